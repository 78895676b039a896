"""Read raw conversations, and simulate others, as dialogues with ids, provenance and a licence.

A dialogue's id is its source's name and its row there (`smile-000123`); a person's id is its source and the order in
which the file first names people (`bank-p0003`), so no name of the raw data is passed on. Of a rejected item only the
id and the reason are kept. The audit is a private index of the raw files, which `purge` removes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, pairwise
from typing import Any, TypeVar

from h2htalk.curation.gather import source_files
from h2htalk.curation.gather.encodings import NAMES
from h2htalk.curation.gather.erased_lines import ErasedMarks, erased_marks
from h2htalk.curation.gather.formats import ADVICE, RawDialogue, RefusedItem, clean
from h2htalk.curation.gather.gathered_items import (
    Comparison,
    GatheredItems,
    clean_words,
    content_marks,
    has_erased_marks,
    is_erased,
    new_items,
    note_recurring_lines,
    raw_place,
    read_known_items,
    say_similar,
)
from h2htalk.curation.gather.records import OnRead
from h2htalk.curation.gather.refusals import Refusals
from h2htalk.curation.gather.simulation import PlannedDialogue, Simulation, open_simulation
from h2htalk.curation.gather.source_files import Item, SourcePlan
from h2htalk.curation.gather.updates import files_of, plan_sources, read_gathered
from h2htalk.curation.licences import licence_id, refusal, require_allowed
from h2htalk.curation.run import StageRun, raise_incomplete, say
from h2htalk.curation.stage_folder import (
    EARLIER_STATE,
    Kept,
    Outcomes,
    RecordCounts,
    Rejected,
    StageFolder,
    part_name,
)
from h2htalk.curation.stage_records import SOURCES
from h2htalk.curation.stages import SIMULATED, AnonymizeSettings, CurateSpec, GatherSettings, Source
from h2htalk.curation.workspace import Workspace, erasure_key, mark, marks_of
from h2htalk.data.files import write_json
from h2htalk.data.scenario import Dialogue
from h2htalk.errors import ConfigError, DataError, IncompleteError
from h2htalk.progress import Progress

VERSION = 3
STAGE = "gather"
T = TypeVar("T")


def make_stage(spec: CurateSpec, workspace: Workspace, key: bytes) -> StageRun:
    """The stage as a specification sets it. Raises ConfigError where it cannot run, such as for a missing file."""
    settings = spec.section(GatherSettings)
    simulated = bool(settings.simulate.dialogues)
    if not settings.sources and not simulated:
        raise ConfigError(
            "gather: there are no [[gather.sources]] and no gather.simulate.dialogues; add some"
        )
    licences = [(source.name, source.licence) for source in settings.sources]
    if simulated:
        licences += [(SIMULATED, settings.simulate.licence)]
    require_allowed(licences, settings.licence)
    planned = plan_sources(spec, workspace)
    simulation = open_simulation(spec) if simulated else None
    values = {
        "release": settings.licence,
        "part": spec.part,
        "name_keys": sorted(spec.section(AnonymizeSettings).name_keys),
        "sources": [plan.to_settings() for plan in planned.plans],
        "simulate": simulation.to_settings() if simulation is not None else None,
    }
    calls = simulation.calls() if simulation is not None else ()
    prepare = partial(_gather, spec, workspace, erasure_key(key), planned.plans, simulation)
    return StageRun(
        name=STAGE,
        version=VERSION,
        settings=values,
        calls=calls,
        prepare=prepare,
        messages=planned.messages,
        changed=planned.changed,
    )


def _gather(
    spec: CurateSpec,
    workspace: Workspace,
    key: bytes,
    plans: Sequence[SourcePlan],
    simulation: Simulation | None,
    folder: StageFolder,
) -> None:
    """Write the parts that are missing. Raises DataError where a file is broken or has no dialogue, IncompleteError."""
    erased = _Erased(workspace, workspace.erased(), erased_marks(workspace.tombstones()), key)
    gathered = read_gathered(folder)
    first_parts = gathered.get("first_parts", [0])
    content: dict[str, Any] = {"sources": files_of(plans), "first_parts": first_parts}
    if "abandoned" in gathered:
        content["abandoned"] = gathered["abandoned"]
    write_json(folder.path / SOURCES, content)
    read = 0
    size = sum(file.end - file.start for plan in plans for file in plan.files)
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
                if update and not plan.files_of(update):
                    continue  # nothing of it is new
                _gather_source(
                    plan, parts, erased, spec.section(GatherSettings).licence, on_read, update
                )
            if simulation is not None and not update:
                _simulate(simulation, parts, erased.ids)


@dataclass(slots=True)
class _Parts:
    """Writes parts of one size, numbered through all sources; complete parts are skipped."""

    folder: StageFolder
    size: int
    number: int  # of the next part
    failed: list[IncompleteError] = field(default_factory=list)

    def write(
        self, items: Iterable[T], rule: Callable[[Sequence[T], str], Sequence[Outcomes]]
    ) -> RecordCounts:
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
    known: ErasedMarks
    key: bytes

    def holds(self, item: Item, source: Source) -> bool:
        return self.has_marks(item, source) or is_erased(self.key, source, item.content, self.known)

    def has_marks(self, item: Item, source: Source) -> bool:
        """Whether an item is held by its id, its person or its words, and not by its lines alone."""
        if not self.ids.isdisjoint((item.id, item.person)):
            return True
        return has_erased_marks(self.key, source, item.content, self.known)

    def item_mark(self, content: RawDialogue | RefusedItem, source: Source) -> str:
        """The mark by which an update recognises an item."""
        return content_marks(self.key, source, content)[-1]

    def words_marks(self, raw: RawDialogue, source: Source) -> frozenset[str]:
        """The mark of a dialogue's words; not of the person, who has others."""
        return marks_of(
            self.key, source.name, None, raw.person, clean_words(raw, source)
        ) - marks_of(self.key, source.name, None, raw.person, None)


def _gather_source(
    plan: SourcePlan,
    parts: _Parts,
    erased: _Erased,
    release: str,
    on_read: Callable[[int], object],
    update: int,
) -> None:
    """Write the parts of what an update found in one source."""
    source, left_out = plan.source, 0
    refusals = Refusals()
    similar: list[str] = []
    note_recurring_lines(plan, update, erased.key, erased.known)
    items = _items_of(plan, erased, update)
    earlier = source_files.find_earlier_states(
        item for item in items(on_read) if not erased.holds(item, source)
    )

    def rule(chunk: Sequence[Item], part: str) -> list[Outcomes]:
        nonlocal left_out
        stay: list[Item] = []
        for item in chunk:
            if not erased.holds(item, source):
                stay.append(item)
            elif isinstance(item.content, RawDialogue) and not erased.has_marks(item, source):
                file = item.file or plan.place
                similar.append(raw_place({"file": file, "line": item.line, **item.content.place}))
        left_out += len(chunk) - len(stay)
        refusals.add(stay)
        return [[_outcome(item, source, release, earlier.get(item.id), erased)] for item in stay]

    counts = parts.write((item for item in items(on_read) if item.update == update), rule)
    for name, encoding in plan.encodings().items():
        say(
            f"gather: source {source.name!r}: {name or plan.place} is read as {NAMES[encoding]}, as it is not UTF-8"
        )
    if line := refusals.left_out_line():
        say(f"gather: source {source.name!r}: {line}")
    for line in (*refusals.joined_lines(), *refusals.lines()):
        say(f"gather: source {source.name!r}: {line}")
    if left_out:
        say(f"gather: left out {left_out:,} erased items of source {source.name!r}")
        say_similar(source.name, similar)
    elif not update and not counts.kept and not erased.workspace.erased_from(source.name):
        if not counts.read:
            raise DataError(f"{plan.place}: source {source.name!r} holds no item")
        advice = ADVICE.get(next(iter(counts.reasons), ""), "see the rejected records of the stage")
        items_read = f"all {counts.read:,} items were" if counts.read > 1 else "its only item was"
        problem = f"{items_read} rejected ({_format_reasons(counts)})"
        message = f"source {source.name!r} gives no dialogue: {problem}; {advice.format(format=source.format)}"
        why = "".join(f"; {line}" for line in refusals.lines()[:1])
        raise DataError(f"{plan.place}: {message}{why}")


def _items_of(plan: SourcePlan, erased: _Erased, update: int) -> Callable[[OnRead], Iterator[Item]]:
    """A function that reads the items of an update, and those before it where rows number them."""
    if not any(file.by_content for file in plan.files_of(update)):
        return plan.items
    folder = erased.workspace.stage(STAGE)
    gathered = read_known_items(folder).get(plan.source.name, GatheredItems())
    return lambda on_read: new_items(plan, gathered, erased.key, update, on_read, Comparison())


def _outcome(
    item: Item, source: Source, release: str, later: str | None, erased: _Erased
) -> Kept | Rejected:
    """A dialogue, or id and reason: raw text is stored nowhere else. `later`: the item whose earlier state it is."""
    raw = item.content
    # The place in the raw file, of a rejected item too: `erase` must find a person by it.
    folder, _, name = source.path.rpartition("/")  # as in the settings
    place = folder if item.file and source_files.is_pattern(name) else source.path
    index: dict[str, Any] = {
        "file": "/".join(filter(None, (place, item.file))),
        "row": item.row,
        "line": item.line,
    }
    index["mark"] = erased.item_mark(raw, source)
    if isinstance(raw, RawDialogue):
        index |= {"id": raw.raw_id, "person": raw.person, "known_as": item.person, **raw.place}
        if raw.settled is not None:
            index["settled"] = content_marks(erased.key, source, raw)[raw.settled - 1]
        if raw.continues is not None:
            index["continues"] = raw.continues
        if raw.question is not None:
            index["question"] = mark(erased.key, "question", source.name, raw.question)
    index = {key: value for key, value in index.items() if value is not None}
    try:
        if isinstance(raw, RefusedItem):
            raise raw
        if later is not None:
            # So that `erase` finds it with the later one.
            index["marks"] = sorted(erased.words_marks(raw, source))
            return Rejected(
                item.id, EARLIER_STATE, {"line": item.line, "of": later}, audit={"raw": index}
            )
        if raw.language not in (None, source.language):
            raise RefusedItem("language")
        licence = raw.licence or source.licence
        if refusal(licence, release) is not None:
            raise RefusedItem("licence")
        cleaned = clean(raw, source.language)
    except RefusedItem as refused:
        evidence: dict[str, Any] = {"line": item.line} | refused.evidence
        if refused.problem:
            evidence["problem"] = refused.problem
        # Names of the file may be people's: the audit goes with the raw files.
        names = {"names": list(refused.names)} if refused.names else {}
        return Rejected(item.id, refused.reason, evidence, audit={"raw": index, **names})
    linked = {
        "source": source.name,
        "row": item.row,
        "person": item.person,
        "question": item.question,
    }
    provenance = {key: value for key, value in linked.items() if value is not None}
    dialogue = Dialogue(
        item.id,
        source.language,
        cleaned.messages,
        provenance,
        licence_id(licence),
        cleaned.metadata,
    )
    removed = {"removed": dict(cleaned.removed)} if cleaned.removed else {}
    left_out = {"left_out": dict(raw.left_out)} if any(raw.left_out.values()) else {}
    return Kept(
        dialogue.to_dict(),
        raw.tags + (("cleaned",) if removed else ()),
        {"raw": index, **removed, **left_out},
    )


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
        problem = (
            f"all {counts.read:,} simulated dialogues were rejected ({_format_reasons(counts)})"
        )
        raise DataError(
            f"{parts.folder.path}: {problem}; use other models, and --from-stage gather"
        )
