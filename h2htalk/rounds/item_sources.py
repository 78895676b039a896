"""Where items come from: a split, a stage folder of a curation, another round's ties, or a JSONL file."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from h2htalk.data.dialogue import Dialogue
from h2htalk.data.files import read_jsonl
from h2htalk.data.persona import Persona, bundled_personas
from h2htalk.data.scenario import InputValue, Scenario, ScheduleEntry
from h2htalk.data.splits import load_split
from h2htalk.errors import DataError, RoundError, quoted
from h2htalk.rounds.items import FIELDS, Item

# What a review's status says of keeping an item (curation's review); people are asked where it says nothing.
_KEEP = {"accept": "keep", "revise": "keep"}
_RUBRIC = ("accuracy", "consistency", "domain_compliance")


def read_items(name: str, status: Collection[str] = ()) -> tuple[Item, ...]:
    """Items by id, from whatever `name` is.

    Args:
        name: a bundled split or a split's folder or file; a stage folder of a curation (`06-reviewed`: what it kept);
            a closed round's folder (what it left tied, for an adjudication); a `.jsonl` of items, scenarios,
            candidates or dialogues.
        status: of reviewed candidates only those with one of these (`needs_people`); empty for all.

    Raises:
        DataError, RoundError: nothing is there, a record is wrong, an id stands twice, or no record has one of the
            states in `status`.
    """
    seen: Counter[str] = Counter()
    items = sorted(_read(name, status, seen), key=lambda item: item.id)
    if status:
        _check_status(name, status, seen)
    if not items:
        raise RoundError(f"{name}: holds no items to vote on")
    for one, other in itertools.pairwise(items):
        if one.id == other.id:
            raise DataError(f"{name}: the id {quoted(one.id)} stands twice; ids must be unique in a round")
    return tuple(items)


def _check_status(name: str, status: Collection[str], seen: Counter[str]) -> None:
    """Raise RoundError unless every status asked for stands in a record: a misspelt one would leave items out."""
    if not seen:
        raise RoundError(
            f"{name}: status = {', '.join(map(quoted, sorted(status)))} chooses among what a review judged, and no "
            "record here carries a review's status; leave status out, or name a reviewed stage"
        )
    unknown = sorted(set(status) - set(seen))
    if unknown:
        there = ", ".join(f"{one} ({count:,})" for one, count in sorted(seen.items()))
        raise RoundError(
            f"{name}: no record has the status {', '.join(map(quoted, unknown))}; there are {there}"
        )


def _read(name: str, status: Collection[str], seen: Counter[str]) -> Iterable[Item]:
    """Items, one by one; `seen` counts each record's status."""
    path = Path(name)
    if (path / "round.json").is_file():
        from h2htalk.rounds.adjudication import items_of_ties

        return items_of_ties(path)
    if (path / "kept").is_dir():
        return _of_stage(path, status, seen)
    if path.suffix == ".jsonl" and path.is_file():
        return _of_records(read_jsonl(path), status, seen)
    split = load_split(name)
    return (of_scenario(scenario, split.personas) for scenario in split.scenarios)


def _of_stage(path: Path, status: Collection[str], seen: Counter[str]) -> Iterator[Item]:
    if not (path / "summary.json").is_file():
        raise RoundError(f"{path}: this stage is not finished; run `h2htalk curate run` to its end first")
    for part in sorted((path / "kept").glob("part-*.jsonl")):
        yield from _of_records(read_jsonl(part), status, seen)


def _of_records(
    records: Iterable[tuple[str, dict[str, Any]]], status: Collection[str], seen: Counter[str]
) -> Iterator[Item]:
    for where, record in records:
        found = _status(record)
        if isinstance(found, str):
            seen[found] += 1
        if not status or found in status:
            yield _of_record(record, where)


def _status(record: Mapping[str, Any]) -> object:
    review = record.get("review")
    return review.get("status") if isinstance(review, Mapping) else None


def _of_record(record: Mapping[str, Any], where: str) -> Item:
    """An item from one record, told apart by its fields."""
    if "scenario" in record:
        return _of_candidate(record, where)
    if "messages" in record:
        return of_dialogue(Dialogue.from_dict(record, where))
    if "inputs" in record:
        return of_scenario(Scenario.from_dict(record, where))
    if not set(record) & set(FIELDS):
        raise DataError(
            f"{where}: neither an item ({', '.join(FIELDS[:7])}), a scenario, a candidate nor a dialogue"
        )
    return Item.from_dict(record, where)


def of_scenario(scenario: Scenario, personas: Mapping[str, Persona] | None = None) -> Item:
    """A scenario as annotators read it: who the companion is, the conversation, the other inputs, the reference.

    Args:
        scenario: of a split or a candidate.
        personas: by id; those that come with the package where left out. One that is not among them is not shown.
    """
    known = (_bundled() if personas is None else personas).get(scenario.persona)
    context = {name: passage(value) for name, value in scenario.inputs.items() if name != "history"}
    if known is not None and scenario.language in known.names:
        context = {"persona": known.descriptions[scenario.language], **context}
    return Item(
        id=scenario.id,
        language=scenario.language,
        turns=scenario.turns,
        context=tuple(context.items()),
        reference=scenario.reference,
        crisis=scenario.tags.risk != "none",
        subtask=scenario.subtask,
    )


@cache
def _bundled() -> Mapping[str, Persona]:
    return bundled_personas()


def of_dialogue(dialogue: Dialogue) -> Item:
    """A whole dialogue; a crisis is what the safety stage tagged as one."""
    safety = dialogue.metadata.get("safety")
    tags = safety.get("tags", ()) if isinstance(safety, Mapping) else ()
    crisis = any(str(tag).startswith("crisis.") for tag in tags)
    return Item(dialogue.id, dialogue.language, dialogue.messages, crisis=crisis)


def _of_candidate(record: Mapping[str, Any], where: str) -> Item:
    """A candidate of compose or review; what the reviewing model said becomes suggestions."""
    item = of_scenario(Scenario.from_dict(record["scenario"], where))
    return replace(item, suggested=_suggested(record.get("review")))


def _suggested(review: object) -> dict[str, str | int]:
    if not isinstance(review, Mapping):
        return {}
    found: dict[str, str | int] = {}
    if review.get("status") in _KEEP:
        found["keep"] = _KEEP[review["status"]]
    rubric = review.get("rubric")
    scores = rubric.get("scores") if isinstance(rubric, Mapping) else None
    for name in _RUBRIC:
        score = scores.get(name) if isinstance(scores, Mapping) else None
        if isinstance(score, int) and not isinstance(score, bool):
            found[name] = score
    subtask = rubric.get("fitting_subtask") if isinstance(rubric, Mapping) else None
    if isinstance(subtask, str) and subtask:
        found["subtask"] = subtask
    return found


def passage(value: InputValue) -> str:
    """An input as lines of text: plans with their times, a list as one line an entry, turns with who spoke."""
    if isinstance(value, str):
        return value
    lines = []
    for entry in value:
        if isinstance(entry, str):
            lines.append(entry)
        elif isinstance(entry, ScheduleEntry):
            lines.append(f"{entry.time}  {entry.activity}")
        else:
            lines.append(f"{entry.role}: {entry.content}")
    return "\n".join(lines)
