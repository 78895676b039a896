"""What a site shows: runs and studies, each with a key that names it in files and addresses."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path

from h2htalk.benchmark.report.leaderboard import labels_of
from h2htalk.benchmark.run import Run, load_run
from h2htalk.benchmark.studies.report import StudyResult
from h2htalk.benchmark.studies.run_study import load_study
from h2htalk.data.erasure.folder_kinds import kind_of, require_erased
from h2htalk.data.files import sha256_of
from h2htalk.data.run_folder import RunFolder
from h2htalk.errors import ConfigError


@dataclass(frozen=True, slots=True)
class RunSource:
    """A scored run. `key`: eight hexadecimal digits of what it is; `label`: its model, told apart from its twins."""

    key: str
    label: str
    run: Run


@dataclass(frozen=True, slots=True)
class StudySource:
    """A scored study; `key` as of a run."""

    key: str
    label: str
    result: StudyResult


@dataclass(frozen=True, slots=True)
class Sources:
    """Everything that a site shows, in an order that does not depend on the command line."""

    runs: tuple[RunSource, ...] = ()
    studies: tuple[StudySource, ...] = ()


def read_sources(paths: Sequence[Path]) -> Sources:
    """Open scored runs and studies. Raises ConfigError for a folder of another kind, DataError for an edited one."""
    runs, studies = dict[str, RunSource](), dict[str, StudySource]()
    for path in dict.fromkeys(path.resolve() for path in paths):
        require_erased(path)
        kind = kind_of(path)
        if kind is not None and kind.name == "run":
            run = load_run(path)
            runs.setdefault(key := _key(run.data.folder), RunSource(key, run.summary.model, run))
        elif kind is not None and kind.name == "study":
            result = load_study(path)
            studies.setdefault(key := _key(result.study.folder), StudySource(key, result.model, result))
        else:
            raise ConfigError(f"{path}: is no scored run and no study; a site shows those")
    if not runs and not studies:
        raise ConfigError("a site needs a scored run or a study")
    labels = labels_of([one.run.summary for one in runs.values()])
    labelled = [replace(one, label=label) for one, label in zip(runs.values(), labels, strict=True)]
    by_name = attrgetter("label", "key")
    return Sources(tuple(sorted(labelled, key=by_name)), tuple(sorted(studies.values(), key=by_name)))


def _key(folder: RunFolder) -> str:
    """What was asked of whom and what came of it; a run that is scored again alike keeps its key."""
    content = [folder.signature().human, sha256_of(folder.calls_file)]
    return hashlib.sha256(repr(content).encode()).hexdigest()[:8]
