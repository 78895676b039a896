"""A whole curation in one workspace: stage by stage or together, resumable.

    gather -> anonymize -> safety -> dedup -> compose -> review

Each stage reads the records that the stage before it kept. A finished stage is not made again, and an interrupted one
continues. A stage whose settings changed is an error that names them, unless `from_stage` asks to make it again. An
erasure that was interrupted is completed before anything else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from pydantic import NonNegativeInt

from h2htalk.chat.engines import parse_model
from h2htalk.chat.prices import add, dollars_text, load_prices
from h2htalk.chat.store.model_calls import CallSettings, check_model
from h2htalk.curation import stages as stage_table
from h2htalk.curation.compose.drafts import MOST_DRAFTS
from h2htalk.curation.erase import finish_erasure
from h2htalk.curation.gather.formats import RawDialogue
from h2htalk.curation.gather.source_files import plan_source
from h2htalk.curation.gather.updates import SourceUpdate, begin_update, interrupted_update
from h2htalk.curation.review.faireval import ORDERS
from h2htalk.curation.review.reviewer import read_gold
from h2htalk.curation.run import (
    StageRun,
    adopt_parts,
    is_made,
    require_finished,
    run_stage,
    say,
)
from h2htalk.curation.stage_folder import EARLIER_STATE, RecordCounts, read_dialogue
from h2htalk.curation.stage_records import StageFile, read_checked
from h2htalk.curation.workspace import Workspace, erasure_key
from h2htalk.data.files import read_jsonl, refuse_links, write_jsonl
from h2htalk.data.records import read_record, strict_record
from h2htalk.data.releases.release_folder import is_release, read_manifest
from h2htalk.data.responses import CALLS, Usage
from h2htalk.data.scenario import Dialogue, Turn
from h2htalk.data.settings import as_path
from h2htalk.errors import ConfigError, IncompleteError
from h2htalk.text.language_data import read_data
from h2htalk.text.tables import Table

if TYPE_CHECKING:
    from h2htalk.curation.safety.guard_load import GuardLoad


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
        update: read what is new in the sources. Stages that compare records, and those after them, are made again.

    Raises ConfigError for wrong or changed settings and a purged workspace; DataError where a file is damaged, or
    another process works here; IncompleteError where model calls failed: the same command continues.
    """
    spec, place, asked, renewed = choose_stages(spec_path, stages, workspace, from_stage, processes)
    with place.locked():
        finish_erasure(place)
        key = place.open_key()
        names = stages_to_make(spec, place, asked, from_stage)
        if renewed or update:
            refuse_links(place.path)
        for name in names:
            if update or name in renewed or not place.stage(name).finished:
                stage_table.require_stage_models(spec, name)
        if update:
            found = begin_update(spec, place, erasure_key(key))
            if not found.is_new:
                say("gather: nothing is new in the sources")
            _adopt(place, found)
        elif not renewed and (interrupted := interrupted_update(place)) is not None:
            _adopt(place, interrupted)
        # Settings, models, prices, keys and sources are checked before anything is removed, read or sent.
        calls: list[CallSettings] = []
        todo = [name for name in names if name in renewed or not place.stage(name).finished]
        for name in todo:
            if (previous := stage_table.stage_before(name)) and previous not in todo:
                require_finished(place.stage(previous))
            calls += stage_table.find_stage(name).make(spec, place, key).calls
        for settings in calls:
            check_model(settings)
        for name in names:
            if (
                name == from_stage
            ):  # not earlier: stages before it may turn out to have other settings
                _remove(place, renewed)
            try:
                run_stage(
                    stage_table.find_stage(name).make(spec, place, key),
                    place,
                    processes=spec.processes,
                )
            except IncompleteError as error:
                if name not in renewed:
                    raise
                raise IncompleteError(f"{error}, without --from-stage {from_stage}") from error
    return place


def choose_stages(
    spec_path: str | Path,
    stages: Sequence[str],
    workspace: str | Path | None,
    from_stage: str,
    processes: int | None = None,
) -> tuple[stage_table.CurateSpec, Workspace, list[str], list[str]]:
    """The specification, its workspace, the stages that are asked for, and those to make again; as of `curate`."""
    stage_table.require_stages(stages)
    folder = as_path(workspace, "workspace") if workspace is not None else None
    spec = stage_table.read_spec(
        as_path(spec_path, "spec_path"), workspace=folder, processes=processes
    )
    place = Workspace(Path(spec.workspace))
    asked = [stage_table.find_stage(name).name for name in stages]
    renewed = stage_table.stages_from(from_stage) if from_stage else []
    if from_stage and asked and from_stage not in asked:
        problem = (
            f"would remove it and the stages after it, but only {', '.join(asked)} would be made"
        )
        raise ConfigError(
            f"--from-stage {from_stage} {problem}: add --stage {from_stage}, or leave --stage out"
        )
    return spec, place, asked, renewed


def stages_to_make(
    spec: stage_table.CurateSpec, place: Workspace, asked: Sequence[str], from_stage: str
) -> list[str]:
    """The stages to make, in order. If none is asked for, the run ends before one whose required setting is empty,
    unless it began; a message on standard error says so."""
    names: list[str] = []
    for name, stage in stage_table.STAGES.items():
        missing = stage.required and not getattr(spec.section(stage.settings), stage.required)
        if not asked and missing and name != from_stage and not place.stage(name).begun:
            problem = (
                f"{name}.{stage.required} is empty, so the run ends with the results of {names[-1]}"
            )
            example = f"{stage.required} = {stage.example} in [{name}]"
            message = f"{problem}; to run {name}, set it, for instance {example}, and start the same command again"
            say(f"{name}: {message}")
            break
        if not asked or name in asked:
            names.append(name)
    return names


def _remove(workspace: Workspace, stages: Sequence[str]) -> None:
    """Remove stages, the last one first: a kill never leaves a stage without the one before it.

    Paid replies are kept. Replies of scripts are not: they cost nothing, and an edited script replies differently.
    """
    for name in reversed(stages):
        folder = workspace.stage(name)
        if (path := folder.path / CALLS).exists():
            asked = ((line, line.get("asked")) for _, line in read_jsonl(path, torn_tail=True))
            write_jsonl(
                path,
                [
                    line
                    for line, model in asked
                    if not model or parse_model(model)[0].model_is != "file"
                ],
            )
        folder.remove()


def _adopt(workspace: Workspace, update: SourceUpdate) -> None:
    """Prepare the stages for what is new in the sources: their parts stay, up to the first that compares records."""
    source = "raw files"
    sources: Mapping[str, str] = update.hashes
    for name, stage in stage_table.STAGES.items():
        if not (folder := workspace.stage(name)).begun:
            return
        if stage.compares:
            if read_checked(StageFile, folder.path / "stage.json")["source"] != source:
                _remove(workspace, stage_table.stages_from(name))
            return
        source = adopt_parts(folder, source, sources)
        sources = {}


def summaries(workspace: Workspace) -> list[StageSummary]:
    """The counts of every stage that has begun, in order; of an unfinished stage those of its finished parts.

    Raises ConfigError where no stage has begun, DataError where a file is damaged.
    """
    found = []
    for name in stage_table.STAGES:
        if (folder := workspace.stage(name)).begun:
            counts = folder.total()
            notes = tuple(str(note["message"]) for note in folder.notes().values())
            if counts.earlier:
                notes += (
                    f"earlier states of conversations that another item continues: {counts.earlier:,}",
                )
            found.append(StageSummary(name, counts, notes))
    if not found:
        raise ConfigError(
            f"{workspace.path}: no curation has begun here; start one: h2htalk curate run SPEC.toml"
        )
    return found


# Candidates of a dialogue: likely, and at most (what is extracted, and four proposals).
_CANDIDATES = np.array([3, MOST_DRAFTS + 1 + 4])
_GUARDED = (
    0.2  # share of the dialogues that a guard is asked about, the undecided ones: an estimate
)
# Of each kind of call: prompt, reply, and the most of a reply.
_TOKENS: Mapping[str, Sequence[int]] = read_data(Path(__file__).with_name("call_tokens.toml"))

_Count = NDArray[np.float64]  # of records that a stage reads, or of calls: likely, and at most
_Calls = list[tuple[Sequence[int], _Count]]  # tokens and number
_Cost = tuple[
    Decimal | None, Decimal | None
]  # US dollars likely, and at most; None where the price is unknown


def estimate_run(
    spec_path: str | Path,
    stages: Sequence[str] = (),
    *,
    workspace: str | Path | None = None,
    from_stage: str = "",
) -> str:
    """Describe what `curate` with these arguments would do, a line a stage; raises what `curate` would, if known.

    Nothing is written, and no model is called. Calls are counted from what is there now, in the raw files or in the
    last finished stage, and multiplied by the mean tokens of such a call.
    """
    spec, place, asked, renewed = choose_stages(spec_path, stages, workspace, from_stage)
    names = stages_to_make(spec, place, asked, from_stage)
    finished = [
        name for name in stage_table.STAGES if name not in renewed and place.stage(name).finished
    ]
    lines: list[str] = []
    costs: list[_Cost] = []
    load = _guard_load(spec) if "safety" in names and "safety" not in finished else None
    given, where = (
        _raw_items(spec, load) if stage_table.FIRST_STAGE not in finished else (np.zeros(2), "")
    )
    if load is not None and not load.dialogues:
        _add_gathered(load, place, finished)
    for name in names:
        stage = stage_table.STAGES[name]
        folder = place.stage(name)
        before = stage_table.stage_before(name)
        run: StageRun = stage.make(spec, place, bytes(32))
        source = "raw files"
        if before and (before in finished or before not in names):
            source = require_finished(place.stage(before))
            given = np.full(2, float(place.stage(before).total().written))
            where = before
        if name not in renewed and (not before or before in finished):
            is_made(folder, run, source)
        if name in finished:
            counts = folder.total()
            lines.append(
                f"{name:10} finished: {counts.kept:,} of {counts.read:,} {stage.reads} kept"
            )
            continue
        most = "at most " if before and before not in finished else ""
        unit = stage.reads if before else "items"
        lines.append(f"{name:10} to make: reads {most}{given[1]:,.0f} {unit} from {where}")
        lines += [f"{'':10} {message}" for message in stage_table.missing_packages(spec, name)]
        for settings, calls in _calls(name, run, spec, given, load):
            text, cost = _cost(settings, calls)
            lines.append(f"{'':10} {settings.model}: {text}")
            costs.append(cost)
        if name == "safety" and load is not None and load.guard.scope == "all":
            lines.append(f"{'':10} {_scope_text(given)}")
        if name == "compose":
            given = given * _CANDIDATES
        where = name
    if any(likely is None or likely for likely, _ in costs):
        known = [cost for cost in costs if None not in cost]
        likely, most_paid = (
            dollars_text(add(*dollars))
            for dollars in zip(*known or [(Decimal(0),) * 2], strict=True)
        )
        unknown = "" if len(known) == len(costs) else ", and what has no known price"
        lines.append(f"together likely {likely}, at most {most_paid} US dollars{unknown}")
    return "\n".join([*lines, "nothing was written and no model was called"])


def _guard_load(spec: stage_table.CurateSpec) -> GuardLoad | None:
    """What counts the calls of a guard, where one is named."""
    # Here, as a run that is no dry run does not need it.
    from h2htalk.curation.safety.guard_load import GuardLoad
    from h2htalk.curation.safety.guarding import Guard

    guard = Guard.of(spec, bytes(32))
    return GuardLoad(guard) if guard is not None else None


def _add_gathered(load: GuardLoad, place: Workspace, finished: Sequence[str]) -> None:
    """Count what a guard has to read of the dialogues of the last stage before safety that is finished."""
    before = [name for name in finished if name in ("gather", "anonymize")]
    for record in place.stage(before[-1]).records() if before else ():
        dialogue = read_dialogue(record)
        if isinstance(dialogue, Dialogue):
            load.add(dialogue.messages, dialogue.language)


def _scope_text(given: _Count) -> str:
    """What the guard's calls would be in the scope of earlier versions."""
    doubtful = given[0] * _GUARDED
    return (
        f'it reads every dialogue that is kept; earlier versions, and guard_scope = "doubtful", ask about the doubtful '
        f"ones alone: likely {doubtful:,.0f} dialogues or fewer"
    )


def _raw_items(spec: stage_table.CurateSpec, load: GuardLoad | None = None) -> tuple[_Count, str]:
    """The items of all sources, and the simulated dialogues; `load` counts what a guard has to read of them.

    Data sets on the Hub are not fetched, so not counted.
    """
    settings = spec.section(stage_table.GatherSettings)
    count, places = 0, []
    for source in settings.sources:
        plan = plan_source(source, spec.folder)
        if source.path.startswith("hub:"):
            places.append(f"{source.name} ({source.path}, not counted)")
            continue
        items = 0
        for item in plan.items(lambda size: None):
            items += 1
            if load is not None and isinstance(item.content, RawDialogue):
                turns = [Turn(role, text) for role, text in item.content.messages]
                load.add(turns, item.content.language or source.language)
        count += items
        places.append(f"{source.name} ({plan.place}, {items:,})")
    if simulated := settings.simulate.dialogues * len(settings.simulate.languages):
        count += simulated
        if load is not None:
            simulate = settings.simulate
            load.add_simulated(simulate.dialogues, simulate.turns, simulate.languages)
        places.append(f"simulation ({simulated:,})")
    return np.full(2, float(count)), ", ".join(places)


def _calls(
    name: str, run: StageRun, spec: stage_table.CurateSpec, given: _Count, load: GuardLoad | None
) -> list[tuple[CallSettings, _Calls]]:
    """The models that a stage calls, and the kinds and numbers of their calls."""
    if not run.calls:
        return []
    if name == stage_table.FIRST_STAGE:
        simulate = spec.section(stage_table.GatherSettings).simulate
        turns = simulate.dialogues * len(simulate.languages) * simulate.turns / 2
        kinds = (_TOKENS["user_turn"], _TOKENS["companion_turn"])
        return [
            (one, [(kind, np.full(2, turns))]) for one, kind in zip(run.calls, kinds, strict=True)
        ]
    (settings,), references = run.calls, spec.section(stage_table.ComposeSettings).references
    if name == "safety":
        return [(settings, [_guard_calls(load, given)])]
    if name == "compose":
        return [
            (
                settings,
                [
                    (_TOKENS["proposals"], given),
                    (_TOKENS["reference"], given * _CANDIDATES * references),
                ],
            )
        ]
    review = spec.section(stage_table.ReviewSettings)
    asked = len(ORDERS) * review.samples
    # The reply of a dialogue is a reference beside those of the model, of every other candidate.
    replies = np.clip([references + 0.5, references + 1], 1, 4)
    compared = given * replies * (replies - 1) / 2 * asked
    if review.gold:
        compared = compared + len(read_gold(Path(review.gold)).candidates) * asked
    return [(settings, [(_TOKENS["rubric"], given), (_TOKENS["comparison"], compared)])]


def _guard_calls(load: GuardLoad | None, given: _Count) -> tuple[Sequence[int], _Count]:
    """The tokens and the number of a guard's calls."""
    if load is None or load.guard.reader.last_only:
        return _TOKENS["guard"], given * (_GUARDED, 1)
    share = (1, 1) if load.guard.scope == "all" else (_GUARDED, 1)
    return load.tokens, given * load.each * share


def _cost(settings: CallSettings, calls: _Calls) -> tuple[str, _Cost]:
    """The number and the cost of a model's calls."""
    likely, most = np.sum([count for _, count in calls], axis=0)
    numbers = f"likely {likely:,.0f}, at most {most:,.0f} calls"
    engine, _ = parse_model(settings.model)
    if engine.local:
        return f"{numbers}; costs nothing but time", (Decimal(0), Decimal(0))
    if (
        price := load_prices(settings.prices).models.get(settings.model) if engine.hosted else None
    ) is None:
        return f"{numbers}; the price is unknown", (None, None)

    def dollars(at: int) -> Decimal | None:
        each = (
            (price.cost(Usage(kind[0], kind[1 + at]), settings.batch), count[at])
            for kind, count in calls
        )
        return add(*(one and one * Decimal(count) for one, count in each))

    cost = dollars(0), dollars(1)
    limit = (
        ""
        if settings.max_cost is None or (cost[1] or 0) <= settings.max_cost
        else ", more than max_cost"
    )
    text = f"likely {dollars_text(cost[0])}, at most {dollars_text(cost[1])} US dollars{limit}"
    return f"{numbers}; {text} (prices of {price.date})", cost


_SHOWN = 8  # reasons of a stage, the most frequent first; the others as one sum


def funnel_table(summaries: Sequence[StageSummary]) -> Table:
    """One row a stage; `funnel_notes` gives the reasons."""
    earlier = ["earlier"] if any(summary.counts.earlier for summary in summaries) else []
    numbers = ["read", "kept", "rejected", *earlier, "written"]
    rows = [
        (
            one.stage,
            stage_table.find_stage(one.stage).reads,
            *(getattr(one.counts, name) for name in numbers),
        )
        for one in summaries
    ]
    return Table(
        "Funnel",
        ("stage", "unit", *(name.replace("earlier", "earlier states") for name in numbers)),
        rows,
    )


def funnel_notes(summaries: Sequence[StageSummary]) -> str:
    """The reasons, tags and notes of each stage, one a line."""
    lines = []
    for summary in summaries:
        counts = summary.counts
        if counts.reasons:
            dropped = f" ({counts.dropped:,} of kept records)" if counts.dropped else ""
            lines.append(f"{summary.stage:10} rejected{dropped}: {_format_counts(counts.reasons)}")
        if counts.tags:
            lines.append(f"{summary.stage:10} tagged: {_format_counts(counts.tags)}")
        lines += [f"{summary.stage:10} {note}" for note in summary.notes]
    return "\n".join(lines)


def _format_counts(counts: Mapping[str, int]) -> str:
    texts = [f"{name} {number:,}" for name, number in counts.items()]
    if len(texts) > _SHOWN:
        rest = sum(list(counts.values())[_SHOWN:])
        texts[_SHOWN:] = [f"{len(texts) - _SHOWN} others {rest:,}"]
    return ", ".join(texts)


@strict_record
class _FunnelStage:
    stage: str
    read: NonNegativeInt
    kept: NonNegativeInt
    reasons: Mapping[str, NonNegativeInt] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Funnel:
    """What the stages of a curation did until now, or those of a release, which has a name, until it was built.

    `rows`: a stage's name, what it reads, how many it read and kept, how many went, their share, and why they went.
    """

    path: Path
    rows: tuple[tuple[str, str, int, int, int, str, str], ...]
    name: str = ""
    canary: str = ""


def read_funnel(path: Path) -> Funnel:
    """Read the funnel of a workspace or of a release, which tells reasons of people alone. Raises as `summaries`."""
    if is_release(path):
        made = read_manifest(path)
        where = f"{path}: release.json: facts"
        refused = read_record(dict[str, NonNegativeInt], made.facts.get("refused", {}), where)
        stages = read_record(tuple[_FunnelStage, ...], made.facts.get("funnel"), where)
        known = [replace(one, reasons=refused) if one.stage == "people" else one for one in stages]
        named = f"{made.name} {made.version}", made.canary
    else:
        counts = [(one.stage, one.counts) for one in summaries(Workspace(path))]
        named = ("", "")
        earlier = [{EARLIER_STATE: one.earlier} if one.earlier else {} for _, one in counts]
        known = [
            _FunnelStage(s, n.read, n.kept, {**n.reasons, **e})
            for (s, n), e in zip(counts, earlier, strict=True)
        ]
    rows = []
    for one in (stage for stage in known if stage.read):  # others are to be made again
        unit = stage_table.STAGES[one.stage].reads if one.stage in stage_table.STAGES else "items"
        went = one.read - one.kept
        share = f"{100 - 100 * one.kept / one.read:.1f} %"
        rows.append((one.stage, unit, one.read, one.kept, went, share, _format_counts(one.reasons)))
    return Funnel(path, tuple(rows), *named)
