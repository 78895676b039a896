"""A whole curation: the stages one by one or together, resumable, in one workspace.

    gather -> anonymize -> safety -> dedup -> compose -> review

Each stage reads what the one before it kept. A finished stage is not made again; one that was interrupted goes on where
it stopped; one whose settings changed is an error that names them, unless it is asked for with `again`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path

from h2htalk.curation.parts import Counts, StageFolder
from h2htalk.curation.spec import CurateSpec, read_spec
from h2htalk.curation.stages import finish, run_stage
from h2htalk.curation.workspace import STAGES, Workspace
from h2htalk.errors import ConfigError, quoted

# How each stage is run: by a rule that `make_stage` describes, or by a function of its own.
_STAGES = {
    "gather": "h2htalk.curation.gather:run_gather",
    "anonymize": "h2htalk.curation.anonymize:make_stage",
    "safety": "h2htalk.curation.safety:make_stage",
    "dedup": "h2htalk.curation.dedup:run_dedup",
    "compose": "h2htalk.curation.compose:make_stage",
    "review": "h2htalk.curation.review:run_review",
}


@dataclass(frozen=True, slots=True)
class StageCounts:
    """What a stage did, as its summary says."""

    stage: str
    counts: Counts


def curate(
    spec_path: Path,
    stages: Sequence[str] = (),
    *,
    workspace: Path | None = None,
    again: str | None = None,
    processes: int | None = None,
    on_stage: Callable[[StageCounts], None] | None = None,
) -> Workspace:
    """Run a curation; returns its workspace, whose counts are `summaries`.

    Args:
        spec_path: its TOML file; relative paths in it are beside it.
        stages: which; all of them when none is named. A stage whose forerunner is not finished is an error.
        workspace: stands in for the file's.
        again: make this stage and those after it again.
        processes: stands in for the file's.
        on_stage: told each stage's counts when it is finished.

    Raises:
        ConfigError: the specification, a stage's name, changed settings, a purged workspace.
        DataError: a source or a file of the workspace is damaged, or another process works here.
        Incomplete: model calls failed; the same command goes on.
    """
    spec = read_spec(spec_path, workspace=workspace, processes=processes)
    for name in [*stages, *([again] if again else [])]:
        if name not in STAGES:
            raise ConfigError(f"no stage {quoted(name)}; choose from {', '.join(STAGES)}")
    base = spec_path.resolve().parent
    place = Workspace(base / spec.workspace)
    with place.locked():
        key = place.open_key()
        if again:
            remove_from(place, again)
        for name in (name for name in STAGES if not stages or name in stages):
            counts = _run(name, spec, base, place, key)
            if on_stage is not None:
                on_stage(StageCounts(name, counts))
    return place


def _run(name: str, spec: CurateSpec, base: Path, workspace: Workspace, key: bytes) -> Counts:
    module, _, function = _STAGES[name].partition(":")
    called = getattr(import_module(module), function)
    if function == "make_stage":
        return run_stage(called(spec, workspace, key), workspace, processes=spec.processes)
    if name == "dedup":
        called = partial(called, processes=spec.processes)
    places = (base, workspace) if name == "gather" else (workspace,)
    counts: Counts = called(spec, *places, key)
    return counts


def remove_from(workspace: Workspace, stage: str) -> None:
    """Remove a stage and those after it, the last one first: a kill never leaves a stage without its forerunner."""
    names = list(STAGES)
    for name in reversed(names[names.index(stage) :]):
        workspace.stage(name).remove()


def summaries(workspace: Workspace) -> list[StageCounts]:
    """The counts of every stage that has begun, in order; of unfinished ones what is whole so far.

    Raises:
        ConfigError: no stage has begun.
        DataError: a summary is damaged.
    """
    begun = [name for name in STAGES if (workspace.stage(name).path / "stage.json").exists()]
    if not begun:
        raise ConfigError(
            f"{workspace.path}: no curation has begun here; start one: h2htalk curate run SPEC.toml"
        )
    return [StageCounts(name, workspace.stage(name).total()) for name in begun]


def recount(folders: Mapping[str, StageFolder]) -> None:
    """Write the summaries anew, after records were taken out."""
    for folder in folders.values():
        if (folder.path / "summary.json").exists():
            finish(folder)
