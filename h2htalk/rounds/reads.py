"""What the people of a closed round have read: a `Read` for each item, for the gates of a release.

A "yes" by one person is a finding, and so is "not sure". Both are open until experts have looked: a reading of the same
item by the people of a round of kind `expert`, who count as readers, were asked for the gate and found nothing.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from h2htalk.data.readers.passages import item_passages
from h2htalk.data.readers.reads import READ_GATES, Read, ReadFinding, ReadGate
from h2htalk.rounds.annotations import Annotation
from h2htalk.rounds.erased_annotators import NO_TIME, ErasedVotes
from h2htalk.rounds.items import Item
from h2htalk.rounds.outcome import RoundOutcome
from h2htalk.rounds.questions import HARMFUL, UNSURE, YES, Question
from h2htalk.rounds.readers.planted import readers_among
from h2htalk.rounds.round_folder import RoundFolder

# Passages that are shown beside an item and are not of it.
_BESIDE = ("persona", "points", "facts")
# Of harm that people found, who are not asked how severe it is: somebody may be worse off (`curation/reading`).
_SEVERITY = 2


def reads_of_round(outcome: RoundOutcome) -> tuple[Read, ...]:
    """Return what the people of a closed round have read, sorted by item.

    An item has a `Read` for each number of people: those who count as readers (`planted.py`) and answered the question
    about these gates. Mostly that is one. A gate about which nobody answered is in none; findings are of everybody.
    There is none of a round that did not ask `HARMFUL` (those of an earlier version, safety, adjudication), nor of gold
    items. `passages` are those that annotators saw: the conversation, the inputs, and the references that were shown
    (rounds of earlier versions showed only the first).
    """
    asked = [question for question in outcome.questions if question.is_reading]
    if HARMFUL not in asked:
        return ()
    answers: dict[str, list[Annotation]] = {}
    names = {question.name for question in asked}
    for annotation in outcome.annotations.values():
        if annotation.question in names and annotation.value is not None:
            answers.setdefault(annotation.item, []).append(annotation)
    closed_on = _closed_on(outcome)
    readers = readers_among(outcome.items, outcome.annotations.values())
    erased = {one.item: one for one in RoundFolder(outcome.path).erased_votes()}
    reads: list[Read] = []
    for item in outcome.items:
        if item.id in answers and not item.gold:
            own_readers = readers.get(item.language, frozenset())
            people = _people_by_gate(asked, answers[item.id], own_readers, erased.get(item.id))
            reads += _reads(outcome, item, asked, answers[item.id], people, closed_on)
    return tuple(reads)


def reader_name(outcome: RoundOutcome) -> str:
    """Return the name under which the people of a round are a reader."""
    return f"people:{outcome.name}"


def item_hashes(item: Item, *, is_dialogue: bool = False) -> tuple[str, ...]:
    """Return the hashes of the passages of an item, as annotators see them, sorted.

    `is_dialogue`: it is a whole dialogue, and an item of a release may begin with any message of it.
    """
    inputs = [text for name, text in item.context if name not in _BESIDE]
    replies = [item.response, *item.references]
    passages = item_passages(item.turns, inputs, replies)
    hashes = {passage.hash for passage in passages}
    if is_dialogue:
        hashes |= {passage.hash_as_first for passage in passages}
    return tuple(sorted(hashes))


def _people_by_gate(
    asked: Sequence[Question],
    answers: Sequence[Annotation],
    readers: Collection[str],
    erased: ErasedVotes | None,
) -> dict[ReadGate, int]:
    """Return how many people who count as readers answered about each gate; no gate about which nobody answered."""
    numbers: dict[ReadGate, int] = {}
    for question in asked:
        annotators = {one.annotator for one in answers if one.question == question.name}
        people = sum(annotator in readers for annotator in annotators)
        if erased is not None:
            # Nobody knows whose answer is lacking: a reader's.
            lacking = sum(question.name not in votes for votes in erased.answers)
            people += max(0, erased.readers - lacking)
        if annotators:
            numbers |= dict.fromkeys(question.gates, people)
    return numbers


def _reads(
    outcome: RoundOutcome,
    item: Item,
    asked: Sequence[Question],
    answers: Sequence[Annotation],
    people_by_gate: Mapping[ReadGate, int],
    closed_on: str,
) -> list[Read]:
    """Return the readings of an item, one for each number of people, the largest first."""
    findings: list[ReadFinding] = []
    for question in asked:
        counts = Counter(str(one.value) for one in answers if one.question == question.name)
        findings += _findings(question, counts)
    dates = [_day(one.when) for one in answers if one.when != NO_TIME]
    reads: list[Read] = []
    for people in sorted(set(people_by_gate.values()), reverse=True):
        gates = tuple(gate for gate in READ_GATES if people_by_gate.get(gate) == people)
        read = Read(
            item=item.id,
            reader=reader_name(outcome),
            date=max(dates, default=closed_on),
            gates=gates,
            passages=item_hashes(item, is_dialogue=outcome.spec.kind == "safety"),
            findings=tuple(finding for finding in findings if finding.gate in gates),
            people=people,
        )
        reads.append(read)
    return reads


def _findings(question: Question, counts: Mapping[str, int]) -> list[ReadFinding]:
    """Return a finding for each gate of a question that somebody did not answer with no."""
    if not counts.get(YES) and not counts.get(UNSURE):
        return []
    total = sum(counts.values())
    found = ", ".join(f"{label} {counts[label]}" for label in (YES, UNSURE) if counts.get(label))
    return [
        ReadFinding(
            gate=gate,
            what=f"{question.name}: {found} of {total}",
            unsure=not counts.get(YES),
            severity=_SEVERITY if gate == "companion_harm" else 0,
        )
        for gate in question.gates
    ]


def _closed_on(outcome: RoundOutcome) -> str:
    """Return the day on which the round was closed: the date of readings whose answers have lost their time."""
    events = RoundFolder(outcome.path).events()
    return _day(next(str(one["when"]) for one in reversed(events) if one["event"] == "closed"))


def _day(when: str) -> str:
    return datetime.datetime.fromisoformat(when).astimezone(datetime.UTC).date().isoformat()
