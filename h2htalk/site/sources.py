"""What a site shows: runs and studies, each with a key that names it in files and addresses, and funnels."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from h2htalk.benchmark.prompts.prompt_set import PromptSet
from h2htalk.benchmark.report.leaderboard import labels_of
from h2htalk.benchmark.run import Run, load_run
from h2htalk.benchmark.studies.report.study_result import StudyResult
from h2htalk.benchmark.studies.run_study import load_study
from h2htalk.curation.curate import Funnel, read_funnel
from h2htalk.data.erasure.folder_kinds import kind_of, require_erased
from h2htalk.data.files import sha256_of
from h2htalk.data.releases.release_folder import is_release
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.splits import Split
from h2htalk.data.stage_folders import is_workspace
from h2htalk.errors import ConfigError
from h2htalk.progress import counted_items


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
        results = [
            *(source.run.data.folder for source in self.runs),
            *(result.study.folder for _, result in self.studies),
        ]
        workspaces = [funnel.path for funnel in self.funnels if not funnel.name]
        return [*(folder.path for folder in results), *workspaces]

    @property
    def splits(self) -> list[Split]:
        return [
            *(source.run.data.split for source in self.runs),
            *(result.study.split for _, result in self.studies),
        ]


def read_sources(paths: Sequence[Path], prompts: Sequence[Path] = ()) -> Sources:
    """Open what a site shows; `prompts`: folders of templates to render, each of the runs that were asked with it.

    Raises ConfigError for a folder of another kind, or prompts of no run; DataError for an edited one.
    """
    named = {PromptSet.load(folder).fingerprint: folder for folder in prompts}
    asked_with: set[str] = set()
    runs: dict[str, Run] = {}
    studies: dict[str, StudyResult] = {}
    funnels: list[Funnel] = []
    distinct = dict.fromkeys(path.resolve() for path in paths)
    for path in counted_items("reading folders", distinct):
        if is_workspace(path) or is_release(path):  # a workspace also while an erasure works there
            funnels.append(read_funnel(path))
            continue
        require_erased(path)
        folder_kind = kind_of(path)
        kind = folder_kind.name if folder_kind else ""
        if kind == "run":
            signed = RunFolder(path).signature().protocol.get("prompts", "")
            asked_with.add(signed)
            run = load_run(path, named.get(signed))
            runs.setdefault(
                _key(run.data.folder, run.summary.model, run.summary.to_dict()["judging"]), run
            )
        elif kind == "study":
            result = load_study(path)
            studies.setdefault(_key(result.study.folder, result.model, result.judge), result)
        else:
            raise ConfigError(
                f"{path}: is no scored run, study, curation or release; a site shows those"
            )
    if not (runs or studies or funnels):
        raise ConfigError("a site needs a scored run, a study, a curation or a release")
    for fingerprint, folder in named.items():
        if fingerprint not in asked_with:
            raise ConfigError(
                f"--prompts {folder}: none of these runs was asked with these prompts"
            )
    labels = labels_of([run.summary for run in runs.values()])
    labelled = [
        RunSource(key, label, run) for (key, run), label in zip(runs.items(), labels, strict=True)
    ]
    by_label = sorted(labelled, key=lambda source: (source.label, source.key))
    by_model = sorted(studies.items(), key=lambda pair: (pair[1].model, pair[0]))
    return Sources(
        tuple(by_label),
        tuple(by_model),
        tuple(sorted(funnels, key=lambda funnel: (funnel.name, funnel.rows))),
    )


def _key(folder: RunFolder, *facts: object) -> str:
    """What was asked of whom, what came of it and who judged it; a run that is scored again alike keeps its key."""
    return digits_of([folder.signature().human, sha256_of(folder.calls_file), *facts])


def digits_of(content: object) -> str:
    """Eight hexadecimal digits that name something by its content."""
    return hashlib.sha256(repr(content).encode()).hexdigest()[:8]
