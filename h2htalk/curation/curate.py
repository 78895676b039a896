"""A whole curation in one workspace: stage by stage or together, resumable.

    gather -> anonymize -> safety -> dedup -> compose -> review

Each stage reads the records that the stage before it kept. A finished stage is not made again, and an interrupted one
continues. A stage whose settings changed is an error that names them, unless `from_stage` asks to make it again. An
erasure that was interrupted is completed before anything else.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from h2htalk.chat.engines import parse_model
from h2htalk.chat.store.model_calls import CallSettings, check_model
from h2htalk.curation.erase import finish_erasure
from h2htalk.curation.gather.stage import update_sources
from h2htalk.curation.run import adopt_parts, require_finished, run_stage
from h2htalk.curation.stage_folder import RecordCounts
from h2htalk.curation.stages import STAGES, CurateSpec, find_stage, read_spec, stage_before, stages_from
from h2htalk.curation.workspace import Workspace
from h2htalk.data.files import read_json_object, read_jsonl, refuse_links, write_jsonl
from h2htalk.data.records import as_path
from h2htalk.data.responses import CALLS
from h2htalk.errors import ConfigError, IncompleteError
from h2htalk.text.escaping import printable


@dataclass(frozen=True, slots=True)
class StageSummary:
    """The counts of a stage, and notes about the stage as a whole, a sentence each."""

    stage: str
    counts: RecordCounts
    notes: tuple[str, ...] = ()


def curate(
    spec_path: str | Path,
    stages: Sequence[str] = (),
    *,
    workspace: str | Path | None = None,
    from_stage: str = "",
    processes: int | None = None,
    update: bool = False,
) -> Workspace:
    """Run a curation; returns its workspace, whose counts are `summaries`.

    Examples:
        >>> import h2htalk
        >>> workspace = h2htalk.curate("curate.toml", ["gather"])
        >>> workspace.path.name
        'workspace'

    Args:
        spec_path: its TOML file.
        stages: to run; empty: all, but not a stage whose required setting is empty.
        workspace: replaces the workspace in the file.
        from_stage: make this stage and those after it again. Nothing is removed unless they can be made.
        processes: replaces the number in the file.
        update: read new files of the sources and new lines of their files. Stages that compare records, and those
            after them, are made again.

    Raises:
        ConfigError: wrong settings, an unknown stage, changed settings, a purged workspace.
        DataError: a source or a file of the workspace is damaged, or another process works here.
        IncompleteError: model calls failed; the same command continues.
    """
    chosen = choose_stages(spec_path, stages, workspace, from_stage, processes)
    spec, place, renewed = chosen.spec, chosen.place, chosen.renewed
    with place.locked():
        finish_erasure(place)
        key = place.open_key()
        names = chosen.names()
        if renewed or update:
            refuse_links(place.path)
        if update:
            _update(spec, place)
        _preflight([name for name in names if name in renewed or not place.stage(name).finished], spec, place, key)
        removed = False
        for name in names:
            if name == from_stage:  # not earlier: stages before it may turn out to have other settings
                _remove(place, renewed)
                removed = True
            try:
                run_stage(find_stage(name).make(spec, place, key), place, processes=spec.processes)
            except IncompleteError as error:
                if not removed:
                    raise
                raise IncompleteError(f"{error}, without --from-stage {from_stage}") from error
    return place


@dataclass(frozen=True, slots=True)
class ChosenStages:
    """What a run makes: of the stages `asked` for (empty: all) those that can be, and `renewed` ones again."""

    spec: CurateSpec
    place: Workspace
    asked: Sequence[str]
    from_stage: str
    renewed: Sequence[str]

    def names(self) -> list[str]:
        """The stages, in order.

        The run ends before a stage whose required setting is empty, with a message on standard error, unless it began.
        """
        if self.asked:
            return [name for name in STAGES if name in self.asked]
        kept: list[str] = []
        for name, stage in STAGES.items():
            missing = stage.required and not getattr(self.spec.section(stage.settings), stage.required)
            if missing and name != self.from_stage and not self.place.stage(name).begun:
                message = (
                    f"{name}: {name}.{stage.required} is empty, so the run ends with the results of "
                    f"{stage_before(name)}; to run {name}, set it, for instance {stage.required} = "
                    f"{stage.example} in [{name}], and start the same command again"
                )
                print(printable(message), file=sys.stderr, flush=True)
                break
            kept.append(name)
        return kept


def choose_stages(
    spec_path: str | Path,
    stages: Sequence[str],
    workspace: str | Path | None,
    from_stage: str,
    processes: int | None = None,
) -> ChosenStages:
    """Read a specification, and which stages are asked for; arguments and errors as of `curate`."""
    folder = as_path(workspace, "workspace") if workspace is not None else None
    spec = read_spec(as_path(spec_path, "spec_path"), workspace=folder, processes=processes)
    asked = [find_stage(name).name for name in stages]
    renewed = stages_from(from_stage) if from_stage else []
    if from_stage and asked and from_stage not in asked:
        raise ConfigError(
            f"--from-stage {from_stage} would remove it and the stages after it, but only {', '.join(asked)} would be "
            f"made: add --stage {from_stage}, or leave --stage out"
        )
    return ChosenStages(spec, Workspace(Path(spec.workspace)), asked, from_stage, renewed)


def _preflight(names: Sequence[str], spec: CurateSpec, workspace: Workspace, key: bytes) -> None:
    """Check that stages can be made before anything is removed, read or sent: settings, models, prices, keys, sources.

    Raises ConfigError, which says what to change, where one cannot or a package is not installed; DataError where a
    split or a script is damaged.
    """
    calls: list[CallSettings] = []
    for name in names:
        previous = stage_before(name)
        if previous and previous not in names:
            require_finished(workspace.stage(previous))
        calls += find_stage(name).make(spec, workspace, key).calls
    for settings in calls:
        check_model(settings)


def _remove(workspace: Workspace, stages: Sequence[str]) -> None:
    """Remove stages, the last one first: a kill never leaves a stage without the one before it.

    Paid replies are kept. Replies of scripts are not: they cost nothing, and an edited script replies differently.
    """
    for name in reversed(stages):
        folder = workspace.stage(name)
        if (path := folder.path / CALLS).exists():
            asked = ((line, line.get("asked")) for _, line in read_jsonl(path, torn_tail=True))
            write_jsonl(path, [line for line, model in asked if not model or parse_model(model)[0].model_is != "file"])
        folder.remove()


def _update(spec: CurateSpec, workspace: Workspace) -> None:
    """Prepare the stages for what is new in the sources: their parts stay, up to the first that compares records."""
    source, (new, sources) = "raw files", update_sources(spec, workspace)
    if not new:
        print("gather: nothing is new in the sources", file=sys.stderr, flush=True)
    for name, stage in STAGES.items():
        if not (folder := workspace.stage(name)).begun:
            return
        if stage.compares:
            if read_json_object(folder.path / "stage.json")["source"] != source:
                _remove(workspace, stages_from(name))
            return
        source, sources = adopt_parts(folder, source, sources), {}


def summaries(workspace: Workspace) -> list[StageSummary]:
    """The counts of every stage that has begun, in order; of an unfinished stage those of its finished parts.

    Raises ConfigError where no stage has begun, DataError where a file is damaged.
    """
    found = []
    for name, folder in ((name, workspace.stage(name)) for name in STAGES):
        if folder.begun:
            notes = tuple(str(note["message"]) for note in folder.notes().values())
            counts = folder.total()
            if counts.earlier:
                notes += (f"earlier states of conversations that another item continues: {counts.earlier:,}",)
            found.append(StageSummary(name, counts, notes))
    if not found:
        raise ConfigError(f"{workspace.path}: no curation has begun here; start one: h2htalk curate run SPEC.toml")
    return found
