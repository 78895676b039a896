"""Sources of items: a split, a curation stage, another round, or a JSONL file.

Each item comes with its source record: the candidate, scenario or dialogue that it was made from, unchanged. So what
people do not read (provenance, licence, references, the verdicts of a review) is not lost in a round.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from h2htalk.data.case import Case, script
from h2htalk.data.erasure.unfinished_erasure import refuse_unfinished_erasure
from h2htalk.data.files import read_jsonl
from h2htalk.data.records import read_record
from h2htalk.data.scenario import (
    MOST_REFERENCES,
    Dialogue,
    InputValue,
    Persona,
    Scenario,
    ScheduleEntry,
    Turn,
    bundled_personas,
    noted_tags,
    notes_crisis,
)
from h2htalk.data.splits import load_split
from h2htalk.data.stage_folders import is_workspace, last_candidates
from h2htalk.errors import DataError, RoundError, counted, quoted
from h2htalk.rounds.aggregation.decisions import NO_ANNOTATIONS, TIE
from h2htalk.rounds.dialogue_sample import draw_untagged
from h2htalk.rounds.items import FIELDS, Item
from h2htalk.rounds.outcome import Record, RoundOutcome, read_outcome, tie_items
from h2htalk.rounds.questions import KEEP, QUESTIONS, YES, Kind, Value
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import Sample
from h2htalk.rounds.texts.interface import interface_text

# Statuses of a curation review that suggest to keep the item; other statuses suggest nothing.
_KEPT_STATUSES = ("accept", "revise")
_RUBRIC = ("accuracy", "consistency", "domain_compliance")

SourcedItem = tuple[Item, Record | None]


@dataclass(frozen=True, slots=True)
class ItemSource:
    """Items, sorted by id, and the records that they were made from; none for items of a JSONL file, and for ties."""

    items: tuple[Item, ...]
    records: Mapping[str, Record]
    notes: tuple[str, ...] = ()
    drawn: Mapping[str, Any] = field(
        default_factory=dict
    )  # of a sample: from how many, of which stage


def read_items(
    name: str, status: Collection[str] = (), kind: Kind = "crowd", sample: Sample | None = None
) -> ItemSource:
    """Read items with their source records; raise DataError or RoundError for invalid or repeated ones, or none.

    The name is a bundled split, or the folder or file of one; a curation stage (its kept records) or workspace (its
    last candidates); a closed round (what it keeps, or for an adjudication its ties); a `.jsonl` of items (also as
    `{item, source}`, with a source record), scenarios, candidates or dialogues. With `status`, only reviewed candidates
    with one of these statuses (`needs_people`) are used. `kind` is that of the round that gets the items.
    With a `sample`, so many dialogues of each language are drawn from those in which a safety stage found nothing.
    """
    statuses = Counter[str]()
    if RoundFolder(Path(name)).exists and kind != "adjudication":
        source = _read_kept(Path(name), kind)
    else:
        sourced = sorted(_read(name), key=lambda pair: pair[0].id)
        statuses.update(reviewed for _, record in sourced if (reviewed := _review_status(record)))
        chosen = [pair for pair in sourced if not status or _review_status(pair[1]) in status]
        drawn: Mapping[str, Any] = {}
        if sample is not None and sample.keep:
            chosen, drawn = draw_untagged(name, chosen, sample.keep, sample.seed)
        records = {item.id: record for item, record in chosen if record is not None}
        source = ItemSource(items=tuple(item for item, _ in chosen), records=records, drawn=drawn)
    if unknown := sorted(set(status) - set(statuses)):
        known = ", ".join(f"{one} ({count:,})" for one, count in sorted(statuses.items()))
        advice = f"choose from {known}" if known else "no record has a review status; remove status"
        raise RoundError(
            f"{name}: no record has the status {', '.join(map(quoted, unknown))}; {advice}"
        )
    if not source.items:
        raise RoundError(f"{name}: contains no items")
    for one, other in itertools.pairwise(source.items):
        if one.id == other.id:
            raise DataError(
                f"{name}: the id {quoted(one.id)} occurs twice; ids must be unique in a round"
            )
    for item in source.items:
        # Adjudicators of ties choose between labels; those who rate, or look for violations, judge a response.
        rated = kind == "safety" and not source.drawn
        judged = rated or (kind == "adjudication" and not item.labels)
        if judged and not item.response.strip():
            raise RoundError(f"{name}: {item.id} has no response; a round of {kind} needs one")
    return source


def _read_kept(path: Path, kind: Kind) -> ItemSource:
    """Read the items that a closed round keeps, with their records, for a round of `kind`."""
    outcome = read_outcome(path)
    if KEEP not in QUESTIONS[outcome.spec.kind]:
        raise RoundError(
            f"{path}: a round of {outcome.spec.kind} does not ask what to keep; name a closed round of crowd or expert"
        )
    decided = {
        item: one for (item, question), one in outcome.decisions.items() if question == KEEP.name
    }
    found = Counter(str(one.label or one.rule) for one in decided.values())
    note = f"{outcome.name}: {found['keep']:,} kept, {found['drop']:,} dropped, {found[TIE]:,} tied"
    if found[NO_ANNOTATIONS]:
        note += f", {found[NO_ANNOTATIONS]:,} without annotations"
    if found[TIE]:
        note += (
            f"; ties are left out: to decide them first, `h2htalk round open adjudication {path} --out FOLDER`, and "
            f"once it is closed `h2htalk round close {path} --adjudication FOLDER`"
        )
    kept = [
        item for item in outcome.items if item.id in decided and decided[item.id].label == "keep"
    ]
    if not kept:
        raise RoundError(f"{path}: this round keeps no item ({note})")
    records = {item.id: outcome.sources[item.id] for item in kept if item.id in outcome.sources}
    items = [_as_of_record(item, records.get(item.id, {})) for item in kept]
    notes = [note]
    if kind == "expert":
        items = [_with_findings(one, outcome) for one in items]
        if found_by_readers := _describe_findings(outcome, kept):
            notes.append(found_by_readers)
    if kind == "safety":
        items = [
            item
            if item.response.strip()
            else replace(item, response=item.reference, reference="", other_references=())
            for item in items
        ]
    return ItemSource(tuple(items), records, tuple(notes))


def _findings(outcome: RoundOutcome, item: str) -> list[str]:
    """Return the names of the reading questions that somebody answered with yes for an item."""
    names = [question.name for question in outcome.questions if question.is_reading]
    decided = {name: outcome.decisions.get((item, name)) for name in names}
    return [
        name for name, decision in decided.items() if decision is not None and decision.label == YES
    ]


def _with_findings(item: Item, outcome: RoundOutcome) -> Item:
    """Return the item with a note to experts on what somebody found in the round before."""
    found = [interface_text(f"found_{name}", item.language) for name in _findings(outcome, item.id)]
    notes = [item.note, *found] if item.note.strip() else found
    return replace(item, note="\n".join(notes))


def _describe_findings(outcome: RoundOutcome, kept: Collection[Item]) -> str:
    """Return a message on items for which somebody answered a reading question with yes; empty without any."""
    counts = Counter(name for item in kept for name in _findings(outcome, item.id))
    if not counts:
        return ""
    items = counted(sum(bool(_findings(outcome, item.id)) for item in kept), "item")
    by_question = ", ".join(f"{name} {count:,}" for name, count in counts.items())
    return f"{outcome.name}: somebody answered yes for {items} ({by_question}); a note asks the experts to look again"


def _read(name: str) -> Iterable[SourcedItem]:
    """Yield items with their records."""
    path = Path(name)
    path = last_candidates(path) if is_workspace(path) else path
    if RoundFolder(path).exists:
        return ((item, None) for item in tie_items(path))
    if os.path.isdir(path / "kept"):
        refuse_unfinished_erasure(path)
        if not (path / "summary.json").is_file():
            raise RoundError(f"{path}: this stage is not finished; run `h2htalk curate run` first")
        parts = sorted((path / "kept").glob("part-*.jsonl"))
        return itertools.starmap(
            read_record_item, itertools.chain.from_iterable(map(read_jsonl, parts))
        )
    if path.suffix == ".jsonl" and os.path.isfile(path):
        return itertools.starmap(read_record_item, read_jsonl(path))
    split = load_split(name)
    if split.cases:
        return ((case_item(case, split.personas), case.to_dict()) for case in split.cases)
    return (
        (scenario_item(scenario, split.personas), scenario.to_dict())
        for scenario in split.scenarios
    )


def _review_status(record: Record | None) -> str:
    return str(_part(record, "review", "status") or "")


def read_record_item(where: str, record: Record) -> SourcedItem:
    """Return the item of a record, whose fields tell what it is."""
    if record.keys() == {"item", "source"}:
        return Item.from_dict(record["item"], where), read_record(
            dict[str, Any], record["source"], f"{where}: source"
        )
    if "scenario" in record:
        item = _with_reading(scenario_item(Scenario.from_dict(record["scenario"], where)), record)
        return _as_of_record(item, record), record
    if "messages" in record:
        dialogue = Dialogue.from_dict(record, where)
        explicit = bool(noted_tags(dialogue.metadata, "sexual."))
        crisis = explicit or notes_crisis(
            dialogue.metadata
        )  # found by the safety stage, a possible one too
        tags = _crisis_tags(dialogue.metadata)
        item = Item(
            dialogue.id,
            dialogue.language,
            dialogue.messages,
            crisis=crisis,
            explicit=explicit,
            tags=tags,
        )
        return item, record
    if "study" in record:
        return case_item(Case.from_dict(record, where)), record
    if "inputs" in record:
        return scenario_item(Scenario.from_dict(record, where)), record
    if not set(record) & set(FIELDS):
        raise DataError(
            f"{where}: neither an item ({', '.join(FIELDS[:8])}), a scenario, a candidate nor a dialogue"
        )
    return Item.from_dict(record, where), None


def _with_reading(item: Item, record: Record) -> Item:
    """Return a candidate's item, announced where the reviewer who read it found a crisis, harm or sexual content."""
    found = _part(record, "review", "read", "findings")
    gates = {str(_part(one, "gate")) for one in found} if isinstance(found, list) else set[str]()
    announced = sorted(gates & {"companion_harm", "crisis_care", "explicit_content"})
    if not announced:
        return item
    explicit = item.explicit or "explicit_content" in announced
    return replace(
        item,
        crisis=True,
        explicit=explicit,
        tags=(*item.tags, *(f"read.{gate}" for gate in announced)),
    )


def scenario_item(scenario: Scenario, personas: Mapping[str, Persona] | None = None) -> Item:
    """Return a scenario as an item: persona, conversation, other inputs and reference.

    `personas`: by id; default: the bundled ones. A persona that is not among them is not shown.
    """
    passages = {
        name: input_text(value) for name, value in scenario.inputs.items() if name != "history"
    }
    context = {**_persona_text(scenario, personas), **passages}
    explicit = bool(noted_tags(scenario.metadata, "sexual."))
    return Item(
        id=scenario.id,
        language=scenario.language,
        turns=scenario.turns,
        context=tuple(context.items()),
        reference=scenario.reference,
        other_references=scenario.references[1:],
        crisis=scenario.tags.risk != "none" or explicit or notes_crisis(scenario.metadata),
        explicit=explicit,
        tags=_crisis_tags(scenario.metadata)
        or (f"risk.{scenario.tags.risk}",) * (scenario.tags.risk != "none"),
        subtask=scenario.subtask,
    )


def _crisis_tags(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the tags by which the safety stage marked a crisis, harm by the companion, or sexual content."""
    possible = _part(metadata, "safety", "possible_crisis")
    return (*sorted(noted_tags(metadata)), *(["possible_crisis"] if possible else []))


def case_item(case: Case, personas: Mapping[str, Persona] | None = None) -> Item:
    """Return a case as an item: the script with its references as the companion's words, its points and facts."""
    turns = list(case.history)
    points = []
    for number, (_, turn, message) in enumerate(script(case), 1):
        turns += [message, *([Turn("companion", turn.reference)] if turn.reference else [])]
        points += [f"{number}. {point.kind}: {point.text}" for point in case.points_of(turn)]
    context = {
        **_persona_text(case, personas),
        "points": "\n".join(points),
        "facts": "\n".join(f"{fact.kind}: {fact.text}" for fact in case.facts),
    }
    noted = {
        "safety": {"tags": case.tags}
    }  # a case says in its tags what metadata say of a scenario
    explicit = bool(noted_tags(noted, "sexual."))
    return Item(
        id=case.id,
        language=case.language,
        turns=tuple(turns),
        context=tuple((name, text) for name, text in context.items() if text),
        crisis=case.study == "high_risk" or explicit or notes_crisis(noted),
        explicit=explicit,
    )


def _persona_text(item: Scenario | Case, personas: Mapping[str, Persona] | None) -> dict[str, str]:
    persona = (bundled_personas() if personas is None else personas).get(item.persona)
    known = persona is not None and item.language in persona.names
    return {"persona": persona.descriptions[item.language]} if persona and known else {}


def _as_of_record(item: Item, record: Record) -> Item:
    """Return the item of a candidate with what its record alone holds: all references, and the reviewer's suggestions.

    A round may lack both: it keeps suggestions for questions that it asks, and in earlier versions one reference.
    """
    references = record.get("references") if "scenario" in record else None
    if isinstance(references, list):
        # A release takes as many of a candidate (`scenario_of_record`).
        texts = [_part(reference, "text") for reference in references[1:MOST_REFERENCES]]
        item = replace(item, other_references=tuple(filter(None, texts)))
    return replace(item, suggested=_suggested(record) | item.suggested)


def _suggested(record: Record) -> dict[str, Value]:
    """Return the reviewing model's judgement of a candidate as answers to the round's questions."""
    scores = {name: _part(record, "review", "rubric", "scores", name) for name in _RUBRIC}
    subtask = _part(record, "review", "rubric", "fitting_subtask")
    return {
        **({"keep": "keep"} if _review_status(record) in _KEPT_STATUSES else {}),
        **{name: score for name, score in scores.items() if type(score) is int},
        **({"subtask": subtask} if isinstance(subtask, str) and subtask else {}),
    }


def _part(record: Any, *names: str) -> Any:
    """Return a part of a record; None if it does not exist."""
    for name in names:
        record = record.get(name) if isinstance(record, Mapping) else None
    return record


def input_text(value: InputValue) -> str:
    """Return an input as text, one line an entry: schedule entries with times, turns with their roles."""
    if isinstance(value, str):
        return value
    return "\n".join(
        entry
        if isinstance(entry, str)
        else f"{entry.time}  {entry.activity}"
        if isinstance(entry, ScheduleEntry)
        else f"{entry.role}: {entry.content}"
        for entry in value
    )
