"""What a site shows: runs and studies, each with a key that names it in files and addresses, and funnels."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from h2htalk.benchmark.report.leaderboard import labels_of
from h2htalk.benchmark.run import Run, load_run
from h2htalk.benchmark.studies.report import StudyResult
from h2htalk.benchmark.studies.run_study import load_study
from h2htalk.curation.curate import Funnel, read_funnel
from h2htalk.data.erasure.folder_kinds import kind_of, require_erased
from h2htalk.data.files import sha256_of
from h2htalk.data.releases.release_folder import is_release
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.scenario import is_workspace
from h2htalk.data.splits import Split
from h2htalk.errors import ConfigError


@dataclass(frozen=True, slots=True)
class RunSource:
    """A scored run. `key`: eight hexadecimal digits of what it is; `label`: its model, told apart from its twins."""

    key: str
    label: str
    run: Run


@dataclass(frozen=True, slots=True)
class Sources:
    """Everything that a site shows, in an order that does not depend on the command line; studies with their keys."""

    runs: tuple[RunSource, ...] = ()
    studies: tuple[tuple[str, StudyResult], ...] = ()
    funnels: tuple[Funnel, ...] = ()

    @property
    def folders(self) -> list[Path]:
        """Those of which an erasure changes what the site shows: a release says what it was when it was built."""
        results = [*(one.run.data.folder for one in self.runs), *(one.study.folder for _, one in self.studies)]
        return [*(one.path for one in results), *(one.path for one in self.funnels if not one.name)]

    @property
    def splits(self) -> list[Split]:
        return [*(one.run.data.split for one in self.runs), *(one.study.split for _, one in self.studies)]


def read_sources(paths: Sequence[Path]) -> Sources:
    """Open what a site shows. Raises ConfigError for a folder of another kind, DataError for an edited one."""
    runs, studies, funnels = dict[str, Run](), dict[str, StudyResult](), list[Funnel]()
    for path in dict.fromkeys(path.resolve() for path in paths):
        if is_workspace(path) or is_release(path):  # a workspace also while an erasure works there
            funnels.append(read_funnel(path))
            continue
        require_erased(path)
        kind = found.name if (found := kind_of(path)) else ""
        if kind == "run":
            run = load_run(path)
            runs.setdefault(_key(run.data.folder, run.summary.model, run.summary.judging), run)
        elif kind == "study":
            result = load_study(path)
            studies.setdefault(_key(result.study.folder, result.model, result.judge), result)
        else:
            raise ConfigError(f"{path}: is no scored run, study, curation or release; a site shows those")
    if not (runs or studies or funnels):
        raise ConfigError("a site needs a scored run, a study, a curation or a release")
    labels = labels_of([run.summary for run in runs.values()])
    labelled = [RunSource(key, label, run) for (key, run), label in zip(runs.items(), labels, strict=True)]
    by_label = sorted(labelled, key=lambda one: (one.label, one.key))
    by_model = sorted(studies.items(), key=lambda pair: (pair[1].model, pair[0]))
    return Sources(tuple(by_label), tuple(by_model), tuple(sorted(funnels, key=lambda one: (one.name, one.rows))))


def _key(folder: RunFolder, *more: object) -> str:
    """What was asked of whom, what came of it and who judged it; a run that is scored again alike keeps its key."""
    return digits_of([folder.signature().human, sha256_of(folder.calls_file), *more])


def digits_of(content: object) -> str:
    """Eight hexadecimal digits that name something by its content."""
    return hashlib.sha256(repr(content).encode()).hexdigest()[:8]
