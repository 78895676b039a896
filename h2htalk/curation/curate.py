"""A whole curation: the stages one by one or together, resumable, in one workspace.

    gather -> anonymize -> safety -> dedup -> compose -> review

Each stage reads what the one before it kept. A finished stage is not made again; one that was interrupted goes on where
it stopped; one whose settings changed is an error that names them, unless it is asked for with `again`. An erasure that
a kill interrupted is finished before anything else is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path

from h2htalk.curation.erase import finish_erasure
from h2htalk.curation.pipeline import Incomplete, run_stage
from h2htalk.curation.preflight import preflight, to_review
from h2htalk.curation.settings import CurateSpec, read_spec
from h2htalk.curation.stage_folder import Counts, require_no_links
from h2htalk.curation.workspace import STAGES, Workspace
from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.errors import ConfigError, quoted

# How each stage is run: by a rule that `make_stage` describes, or by a function of its own.
_STAGES = {
    "gather": "h2htalk.curation.gather.stage:run_gather",
    "anonymize": "h2htalk.curation.anonymize.stage:make_stage",
    "safety": "h2htalk.curation.safety.stage:make_stage",
    "dedup": "h2htalk.curation.dedup.stage:run_dedup",
    "compose": "h2htalk.curation.compose.stage:make_stage",
    "review": "h2htalk.curation.review.stage:run_review",
}


@dataclass(frozen=True, slots=True)
class StageCounts:
    """What a stage did, as its summary says; `told` is what it says of itself as a whole, a sentence each."""

    stage: str
    counts: Counts
    told: tuple[str, ...] = ()


def curate(
    spec_path: Path,
    stages: Sequence[str] = (),
    *,
    workspace: Path | None = None,
    again: str | None = None,
    processes: int | None = None,
) -> Workspace:
    """Run a curation; returns its workspace, whose counts are `summaries`.

    Examples:
        >>> import h2htalk
        >>> workspace = h2htalk.curate(Path("curate.toml"), ["gather"])
        >>> workspace.path.name
        'workspace'

    Args:
        spec_path: its TOML file; relative paths in it are beside it.
        stages: which; all of them when none is named, but for a review that nobody is named for. A stage whose
            forerunner is not finished is an error.
        workspace: stands in for the file's.
        again: make this stage and those after it again; what is there is removed only when they can be made.
        processes: stands in for the file's.

    Raises:
        ConfigError: the specification, a stage's name, changed settings, a purged workspace.
        DataError: a source or a file of the workspace is damaged, or another process works here.
        Incomplete: model calls failed; the same command goes on.
    """
    spec = read_spec(spec_path, workspace=workspace, processes=processes)
    for name in [*stages, *([again] if again else [])]:
        if name not in STAGES:
            raise ConfigError(f"no stage {quoted(name)}; choose from {', '.join(STAGES)}")
    wanted = [name for name in STAGES if not stages or name in stages]
    if again and again not in wanted:
        raise ConfigError(
            f"--again {again} would remove it and what follows, but only {', '.join(wanted)} would be made: "
            f"add --stage {again}, or leave --stage out"
        )
    base = spec_path.resolve().parent
    place = Workspace(base / spec.workspace)
    with place.locked():
        finish_erasure(place)
        key = place.open_key()
        if not stages and again != "review":
            wanted = to_review(wanted, spec, place)
        for name in list(STAGES)[list(STAGES).index(again) :] if again else ():
            require_no_links(place.stage(name).path)
        preflight(_to_make(wanted, place, again), spec, base, place, key)
        removed = False
        for name in wanted:
            if name == again:  # not before: those before it may turn out to be made with other settings
                _forget_scripts(place, again)
                remove_from(place, again)
                removed = True
            try:
                _run(name, spec, base, place, key)
            except Incomplete as error:
                if not removed:
                    raise
                raise Incomplete(f"{error}, without --again {again}") from error
    return place


def _to_make(wanted: Sequence[str], workspace: Workspace, again: str | None) -> list[str]:
    """The stages among these that are not finished, or are to be made again."""
    names = list(STAGES)
    renewed = names[names.index(again) :] if again else []
    return [
        name
        for name in wanted
        if name in renewed or not (workspace.stage(name).path / "summary.json").exists()
    ]


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


def _forget_scripts(workspace: Workspace, again: str) -> None:
    """Drop what scripts answered in the stages to be made again: removing a stage keeps paid answers, but a script's
    cost nothing, and an edited one says something else. Raises DataError."""
    names = list(STAGES)
    for name in names[names.index(again) :]:
        for path in sorted((workspace.stage(name).path / "calls").glob("*.jsonl")):
            lines = [line for _, line in read_jsonl(path, torn_tail=True)]
            write_jsonl(path, (one for one in lines if not str(one.get("model")).startswith("scripted:")))


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
    return [StageCounts(name, workspace.stage(name).total(), _told(workspace, name)) for name in begun]


def _told(workspace: Workspace, stage: str) -> tuple[str, ...]:
    return tuple(str(remark["told"]) for remark in workspace.stage(stage).remarks().values())
