"""Read raw conversations, and simulate others, as dialogues with ids, provenance and a licence.

A dialogue's id is its source's name and its row there (`smile-000123`); a person's id is its source and the order in
which the file first names people (`bank-p0003`), so no name of the raw data is passed on. Of a rejected item only the
id and the reason are kept. The audit is a private index of the raw files, which `purge` removes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, TypeVar

from h2htalk.curation.gather import source_files
from h2htalk.curation.gather.formats import ADVICE, RawDialogue, RefusedItem, clean
from h2htalk.curation.gather.simulation import PlannedDialogue, Simulation, open_simulation
from h2htalk.curation.gather.source_files import ChangedSourceError, Item, SourceFile, SourcePlan
from h2htalk.curation.licences import licence_id, refusal, require_allowed
from h2htalk.curation.run import StageRun, raise_incomplete, require_finished
from h2htalk.curation.stage_folder import EARLIER_STATE, Kept, Outcomes, RecordCounts, Rejected, StageFolder, part_name
from h2htalk.curation.stages import SIMULATED, AnonymizeSettings, CurateSpec, GatherSettings, Source
from h2htalk.curation.workspace import Workspace, erasure_key, marks_of
from h2htalk.data.files import read_json_object, write_json
from h2htalk.data.scenario import Dialogue
from h2htalk.errors import ConfigError, DataError, IncompleteError
from h2htalk.progress import Progress
from h2htalk.text.escaping import printable

VERSION = 3
STAGE = "gather"
FILES = "sources.json"  # what was gathered: `sources`, {name: [file]}, and `first_parts`, the first part of each update
T = TypeVar("T")


def make_stage(spec: CurateSpec, workspace: Workspace, key: bytes) -> StageRun:
    """The stage as a specification sets it. Raises ConfigError where it cannot run, such as for a missing file."""
    settings = spec.section(GatherSettings)
    simulated = bool(settings.simulate.dialogues)
    if not settings.sources and not simulated:
        raise ConfigError("gather: there are no [[gather.sources]] and no gather.simulate.dialogues; add some")
    licences = [(source.name, source.licence) for source in settings.sources]
    licences += [(SIMULATED, settings.simulate.licence)] if simulated else []
    require_allowed(licences, settings.licence)
    plans, messages, changed = _plans(spec, workspace)
    simulation = open_simulation(spec) if simulated else None
    values = {
        "release": settings.licence,
        "part": spec.part,
        "name_keys": sorted(spec.section(AnonymizeSettings).name_keys),
        "sources": [plan.to_settings() for plan in plans],
        "simulate": simulation.to_settings() if simulation is not None else None,
    }
    calls = simulation.calls() if simulation is not None else ()
    prepare = partial(_gather, spec, workspace, erasure_key(key), plans, simulation)
    return StageRun(STAGE, VERSION, values, calls=calls, prepare=prepare, messages=tuple(messages), changed=changed)


def _plans(spec: CurateSpec, workspace: Workspace, update: int = 0) -> tuple[list[SourcePlan], list[str], str]:
    """The plans of all sources, messages, and what has changed since they were gathered. `update`: the number of an
    update, which reads new files and lines too; 0: there is none."""
    settings, name_keys = spec.section(GatherSettings), spec.section(AnonymizeSettings).name_keys
    folder = workspace.stage(STAGE)
    gathered = read_json_object(folder.path / FILES, missing_ok=True).get("sources", {})
    plans, messages, changed = [], [], []
    for source in settings.sources:
        try:
            plan = source_files.plan_source(source, spec.folder, gathered.get(source.name) or None, update)
        except ChangedSourceError as error:
            plan = source_files.plan_source(source, spec.folder)
            if not folder.finished or not workspace.erased_from(source.name):
                changed.append(str(error))
            else:  # its owner may have deleted the lines of the erased, which changes nothing for the others
                plan = replace(plan, files=tuple(SourceFile(Path(), **file) for file in gathered[source.name]))
                message = f"gather: the file of source {source.name!r} has changed since somebody was erased from it"
                advice = "the gathered dialogues stay as they are; to read the file again: --from-stage gather"
                messages.append(f"{message}; {advice}")
        plans.append(replace(plan, name_keys=name_keys))
    return plans, messages, "; ".join(changed)


def update_sources(spec: CurateSpec, workspace: Workspace) -> tuple[bool, dict[str, str]]:
    """List what is new in the sources of a finished stage, which the next run reads: whether there is anything, and the
    SHA-256 of the files of each source. Raises ConfigError for an unfinished stage and a changed file."""
    folder = workspace.stage(STAGE)
    known = read_json_object(folder.path / FILES, missing_ok=True)
    plans, _, changed = _plans(spec, workspace, len(known.get("first_parts", ())))
    if changed:
        raise ConfigError(changed)
    files = _files_of(plans)
    if new := files != known.get("sources"):
        require_finished(folder)
        first = 1 + max(int(part.rpartition("-")[2]) for part in folder.parts())
        write_json(folder.path / FILES, {"sources": files, "first_parts": [*known["first_parts"], first]})
    return new, {plan.source.name: plan.sha256 for plan in plans}


def _files_of(plans: Sequence[SourcePlan]) -> dict[str, list[dict[str, Any]]]:
    fields = ("name", "start", "end", "sha256", "update")
    return {plan.source.name: [{n: getattr(file, n) for n in fields} for file in plan.files] for plan in plans}


def _gather(
    spec: CurateSpec,
    workspace: Workspace,
    key: bytes,
    plans: Sequence[SourcePlan],
    simulation: Simulation | None,
    folder: StageFolder,
) -> None:
    """Write the parts that are missing. Raises DataError where a file is broken or has no dialogue, IncompleteError."""
    marks = frozenset(mark for line in workspace.tombstones() for mark in line.get("marks", ()))
    erased = _Erased(workspace, workspace.erased(), marks, key)
    first_parts = read_json_object(folder.path / FILES, missing_ok=True).get("first_parts", [0])
    write_json(folder.path / FILES, {"sources": _files_of(plans), "first_parts": first_parts})
    read, size = 0, sum(file.end - file.start for plan in plans for file in plan.files)
    # Each file is read twice: an item may be an earlier state of one far behind it.
    with Progress(f"{STAGE} (MB read)", 2 * size >> 20) as progress:

        def on_read(size: int) -> None:
            nonlocal read
            read += size
            progress.advance(count=(read >> 20) - (read - size >> 20))

        for update, (first, end) in enumerate(pairwise([*first_parts, None])):
            if end is not None and all(folder.done(part_name(part)) for part in range(first, end)):
                continue
            parts = _Parts(folder, spec.part, first)
            for plan in plans:
                _gather_source(plan, parts, erased, spec.section(GatherSettings).licence, on_read, update)
            if simulation is not None and not update:
                _simulate(simulation, parts, erased.ids)


@dataclass(slots=True)
class _Parts:
    """Writes parts of one size, numbered through all sources; complete parts are skipped."""

    folder: StageFolder
    size: int
    number: int  # of the next part
    failed: list[IncompleteError] = field(default_factory=list)

    def write(self, items: Iterable[T], rule: Callable[[Sequence[T], str], Sequence[Outcomes]]) -> RecordCounts:
        """Write the parts of some items, also where the calls of one fail; a part holds items of one call only."""
        counts = []
        waiting = iter(items)
        while chunk := list(islice(waiting, self.size)):
            part = part_name(self.number)
            self.number += 1
            try:
                if not self.folder.done(part):
                    self.folder.write(part, rule(chunk, part), STAGE)
                counts.append(self.folder.counts(part))
            except IncompleteError as error:
                self.failed.append(error)
        return RecordCounts.total(counts)


@dataclass(frozen=True, slots=True)
class _Erased:
    """Who was erased, and the key that identifies an item whatever its row is now."""

    workspace: Workspace
    ids: frozenset[str]
    known: frozenset[str]  # marks
    key: bytes

    def holds(self, item: Item, source: Source) -> bool:
        raw, by_id = item.content, not self.ids.isdisjoint((item.id, item.person))
        if by_id or not self.known or not isinstance(raw, RawDialogue):
            return by_id
        return not self.known.isdisjoint(self.marks(raw, source, raw.raw_id))

    def marks(self, raw: RawDialogue, source: Source, raw_id: str | None = None) -> frozenset[str]:
        """The marks of a dialogue's person and words, and of an id."""
        try:
            words = [[turn.role, turn.content] for turn in clean(raw, source.language).messages]
        except RefusedItem:
            words = []
        return marks_of(self.key, source.name, raw_id, raw.person, words)


def _gather_source(
    plan: SourcePlan, parts: _Parts, erased: _Erased, release: str, on_read: Callable[[int], object], update: int
) -> None:
    """Write the parts of what an update found in one source."""
    source, left_out = plan.source, 0
    earlier = source_files.find_earlier_states(item for item in plan.items(on_read) if not erased.holds(item, source))

    def rule(chunk: Sequence[Item], part: str) -> list[Outcomes]:
        nonlocal left_out
        stay = [item for item in chunk if not erased.holds(item, source)]
        left_out += len(chunk) - len(stay)
        return [[_outcome(item, source, release, earlier.get(item.id), erased)] for item in stay]

    counts = parts.write((item for item in plan.items(on_read) if item.update == update), rule)
    if left_out:
        message = f"gather: left out {left_out:,} erased items of source {source.name!r}"
        print(printable(message), file=sys.stderr, flush=True)
    elif not update and not counts.kept and not erased.workspace.erased_from(source.name):
        if not counts.read:
            raise DataError(f"{plan.place}: source {source.name!r} holds no item")
        advice = ADVICE.get(next(iter(counts.reasons), ""), "see the rejected records of the stage")
        problem = f"all {counts.read:,} items were rejected ({_format_reasons(counts)})"
        message = f"source {source.name!r} gives no dialogue: {problem}; {advice.format(format=source.format)}"
        raise DataError(f"{plan.place}: {message}")


def _outcome(item: Item, source: Source, release: str, later: str | None, erased: _Erased) -> Kept | Rejected:
    """A dialogue, or id and reason: raw text is stored nowhere else. `later`: the item whose earlier state it is."""
    raw = item.content
    # The place in the raw file, of a rejected item too: `erase` must find a person by it.
    folder, _, name = source.path.rpartition("/")  # as in the settings
    place = folder if item.file and source_files.is_pattern(name) else source.path
    index: dict[str, Any] = {"file": "/".join(filter(None, (place, item.file))), "row": item.row, "line": item.line}
    if isinstance(raw, RawDialogue):
        index |= {"id": raw.raw_id, "person": raw.person, "known_as": item.person}
    index = {key: value for key, value in index.items() if value is not None}
    try:
        if isinstance(raw, RefusedItem):
            raise raw
        if later is not None:
            # Marks of its words, so that `erase` finds it with the later one.
            index["marks"] = sorted(erased.marks(raw, source))
            return Rejected(item.id, EARLIER_STATE, {"line": item.line, "of": later}, audit={"raw": index})
        if raw.language not in (None, source.language):
            raise RefusedItem("language")
        licence = raw.licence or source.licence
        if refusal(licence, release) is not None:
            raise RefusedItem("licence")
        cleaned = clean(raw, source.language)
    except RefusedItem as refused:
        return Rejected(item.id, refused.reason, {"line": item.line} | refused.evidence, audit={"raw": index})
    linked = {"source": source.name, "row": item.row, "person": item.person, "question": item.question}
    provenance = {key: value for key, value in linked.items() if value is not None}
    dialogue = Dialogue(item.id, source.language, cleaned.messages, provenance, licence_id(licence), cleaned.metadata)
    removed = {"removed": dict(cleaned.removed)} if cleaned.removed else {}
    return Kept(dialogue.to_dict(), raw.tags + (("cleaned",) if removed else ()), {"raw": index, **removed})


def _format_reasons(counts: RecordCounts) -> str:
    return ", ".join(f"{reason} {count:,}" for reason, count in islice(counts.reasons.items(), 4))


def _simulate(simulation: Simulation, parts: _Parts, erased: frozenset[str]) -> None:
    with simulation.open_models(parts.folder.path) as models:

        def rule(chunk: Sequence[PlannedDialogue], part: str) -> list[Outcomes]:
            plans = [plan for plan in chunk if plan.id not in erased]
            return [[outcome] for outcome in simulation.talk(plans, models, part)]

        counts = parts.write(simulation.plans, rule)
    raise_incomplete(parts.folder, parts.failed)
    if counts.read and not counts.kept:
        problem = f"all {counts.read:,} simulated dialogues were rejected ({_format_reasons(counts)})"
        raise DataError(f"{parts.folder.path}: {problem}; use other models, and --from-stage gather")
