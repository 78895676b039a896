"""The outcome of a closed round: written by closing it, read by another round, an adjudication, a release."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from h2htalk.data.files import read_json_object, remove_file, write_json, write_jsonl, write_text
from h2htalk.errors import RoundError, counted
from h2htalk.rounds.aggregation.agreement import agreement_of
from h2htalk.rounds.aggregation.annotator_statistics import (
    annotator_statistics,
    qualified,
    statistics_csv,
)
from h2htalk.rounds.aggregation.decisions import (
    TIE,
    Adjudication,
    Decision,
    apply_adjudications,
    tie_id,
    votes_on,
)
from h2htalk.rounds.aggregation.shared_answers import SharedAnswers
from h2htalk.rounds.annotations import Annotations
from h2htalk.rounds.annotators import COLUMNS
from h2htalk.rounds.items import Item
from h2htalk.rounds.payments.lists import write_payments
from h2htalk.rounds.questions import COMMENT, Question, voted
from h2htalk.rounds.round_folder import RoundFolder, RoundState, read_record_lines, read_state
from h2htalk.rounds.settings import RoundSpec
from h2htalk.rounds.status import describe_shared, shared_answers_of
from h2htalk.rounds.texts.interface import interface_text, label_text, question_title
from h2htalk.text.escaping import csv_text

Record = Mapping[str, Any]
ADJUDICATIONS, DECISIONS, SHARED_ANSWERS = (
    "adjudications.jsonl",
    "decisions.jsonl",
    "shared_answers.jsonl",
)


@dataclass(frozen=True, slots=True)
class RoundOutcome:
    """What a closed round has decided: items by id, decisions by (item, question), not of gold items.

    `questions` are those that it asked. `sources` are the candidates, scenarios or dialogues that items were made from,
    unchanged. `annotations` are the valid ones. `agreement` is Krippendorff's alpha of each question, with its
    interval. `shared_answers` are pairs of annotators who share unusual answers; None if an earlier version closed the
    round, which did not look for them.
    """

    name: str
    path: Path
    spec: RoundSpec
    items: tuple[Item, ...]
    questions: tuple[Question, ...]
    sources: Mapping[str, Record]
    decisions: Mapping[tuple[str, str], Decision]
    annotations: Annotations
    agreement: Mapping[str, Any]
    shared_answers: tuple[SharedAnswers, ...] | None = None


def read_outcome(path: Path) -> RoundOutcome:
    """Read the outcome of a closed round; raise RoundError if it is open, or a copy without the private folder."""
    folder = RoundFolder(path).require()
    state = read_state(folder)
    if state.phase != "closed":
        raise RoundError(
            f"{path}: this round is not closed, so its decisions are not final; run `h2htalk round close {path}` first"
        )
    if not folder.has_annotators:
        raise RoundError(
            f"{path}: this copy of the round has no folder `private`; name the folder in which the round was opened"
        )
    decisions = read_decisions(folder)
    agreement = read_json_object(path / "agreement.json")
    annotations = dict(sorted(state.annotations.items()))
    shared = path / SHARED_ANSWERS
    return RoundOutcome(
        name=state.name,
        path=path,
        spec=state.spec,
        items=state.items,
        questions=state.questions,
        sources=folder.sources(),
        decisions=decisions,
        annotations=annotations,
        agreement=agreement,
        shared_answers=tuple(one for _, one in read_record_lines(shared, SharedAnswers))
        if shared.exists()
        else None,
    )


def read_decisions(folder: RoundFolder) -> dict[tuple[str, str], Decision]:
    """Return the decisions that closing wrote, by (item, question). Raise DataError."""
    path = folder.path / DECISIONS
    again = f"close the round again, which writes it from the annotations: `h2htalk round close {folder.path}`"
    return {(one.item, one.question): one for _, one in read_record_lines(path, Decision, again)}


def write_statistics(state: RoundState) -> list[str]:
    """Write agreement, statistics and payment of a closed round; return messages for the manager."""
    folder = state.folder
    annotations = state.judged
    agreement = {
        question.name: asdict(agreement_of(votes_on(question, annotations), question.level))
        for question in voted(state.questions)
        if question.decided
    }
    write_json(folder.path / "agreement.json", agreement)
    counted_ids = [
        annotator.id for annotator in state.annotators if annotator.id not in state.removed
    ]
    shared = shared_answers_of(state)
    write_jsonl(folder.path / SHARED_ANSWERS, map(asdict, shared))
    rows = annotator_statistics(
        state.judged_items, state.questions, annotations, counted_ids, shared
    )
    write_text(folder.path / "annotator_statistics.csv", statistics_csv(rows, state.spec.pass_gold))
    messages = [*describe_shared(state, shared), *write_payments(state)]
    if not any(item.gold for item in state.judged_items):
        return messages
    # The active annotators who passed the gold items, as a list for `--annotators`; none if nobody did.
    active = [v for v in state.annotators if v.active]
    passed = qualified(rows, state.spec.pass_gold)
    columns = COLUMNS if any(v.participant_id for v in active) else COLUMNS[:3]
    people = [v for v in active if passed.get(v.id)]
    cells = [
        (v.name, " ".join(v.languages), v.crisis, v.participant_id, v.completion_code)
        for v in people
    ]
    path = folder.private / "qualified.csv"
    result = "annotator_statistics.csv has each one's result"
    if not people:
        remove_file(path)
        return [
            *messages,
            f"none of {len(active)} annotators passed the gold items, so {path.name} was not written; {result}",
        ]
    folder.write_private(path.name, csv_text(columns, [row[: len(columns)] for row in cells]))
    passing = f"{len(people)} of {len(active)} annotators passed the gold items"
    return [f"{passing}: use {path} as --annotators; {result}", *messages]


# --- Adjudication: ties as items of another round, whose decisions come back ------------------------------------------


def tie_items(path: Path) -> Iterator[Item]:
    """Yield one item for each tie of a closed round, with the tied labels as choices.

    Its note is the question, with the votes on it and the comments on the item; nothing says whose they are.
    """
    outcome = read_outcome(path)
    items = {item.id: item for item in outcome.items}
    ties = [one for one in outcome.decisions.values() if one.rule == TIE]
    if not ties:
        raise RoundError(f"{path}: this round has no ties to adjudicate")
    for one in ties:
        item = items[one.item]
        note = _tie_note(outcome, item, one.question)
        yield replace(
            item, id=tie_id(item.id, one.question), labels=one.tied, note=note, suggested={}
        )


def _tie_note(outcome: RoundOutcome, item: Item, question: str) -> str:
    """Return what an adjudicator reads above a tied item, in its language."""
    language = item.language
    theirs = [
        one for one in outcome.annotations.values() if one.item == item.id and one.value is not None
    ]
    counts = Counter(str(one.value) for one in theirs if one.question == question)
    # By label, and comments by their text: no order tells whose an answer is.
    votes = [
        f"{label_text(question, label, language)} {count}"
        for label, count in sorted(counts.items())
    ]
    comments = sorted(str(one.value).strip() for one in theirs if one.question == COMMENT.name)
    lines = [
        question_title(question, language),
        interface_text("votes_so_far", language, votes="; ".join(votes)),
    ]
    if comments:
        lines += [
            interface_text("comments_so_far", language),
            *(f"– {comment}" for comment in comments),
        ]
    return "\n".join(lines)


def round_reference(path: Path) -> dict[str, str]:
    """Return name and items' fingerprint of a round, which its adjudication stores; an erasure does not change them."""
    folder = RoundFolder(path)
    return {"name": folder.name, "items_sha256": str(folder.manifest().get("items_sha256"))}


def read_adjudication(path: Path, folder: RoundFolder) -> RoundOutcome:
    """Read a closed adjudication of the ties of the round in `folder`; raise RoundError if it is none, or DataError."""
    source = RoundFolder(path).require().manifest().get("adjudicates")
    if not isinstance(source, dict):
        raise RoundError(
            f"{path}: this round does not adjudicate the ties of another round; open one that does with "
            f"`h2htalk round open adjudication {folder.path} --out ...`"
        )
    if source != round_reference(folder.path):
        raise RoundError(
            f"{path}: this adjudication is about the ties of another round, {source.get('name')}, and cannot be "
            f"applied to {folder.path}"
        )
    return read_outcome(path)


def read_adjudications(folder: RoundFolder) -> dict[str, Adjudication]:
    """Return the adjudications that a round has stored, by `tie_id`. Raise DataError if a line is invalid."""
    path = folder.path / ADJUDICATIONS
    return (
        {one.tie: one for _, one in read_record_lines(path, Adjudication)} if path.exists() else {}
    )


def store_adjudications(
    folder: RoundFolder, other: RoundOutcome, decisions: Sequence[Decision]
) -> str:
    """Store the decisions of an adjudication beside those of earlier ones, and return how many were applied.

    Only decisions between exactly the labels that are tied now are stored; they replace what the same adjudication
    decided before. `decisions`: those before any adjudication.
    """
    choices = {item.id: item.labels for item in other.items}
    ties = {tie_id(one.item, one.question): set(one.tied) for one in decisions if one.rule == TIE}
    labels = [one for one in other.decisions.values() if one.question == "label"]
    made = {
        one.item: Adjudication(one.item, str(one.label), choices[one.item], other.name)
        for one in labels
        if one.label is not None
    }
    valid = {tie: one for tie, one in made.items() if ties.get(tie) == set(one.tied)}
    before = read_adjudications(folder)
    stored = {
        tie: one for tie, one in before.items() if tie not in choices or one.by != other.name
    } | valid
    if stored != before:
        folder.write_records(ADJUDICATIONS, stored.values())
        folder.add_event("adjudicated", by=other.name, applied=len(valid))
    skipped = len(made) - len(valid)
    note = f", {skipped} skipped (no longer tied between the same labels)" if skipped else ""
    left = sum(one.rule == TIE for one in apply_adjudications(decisions, stored))
    remaining = counted(left, "tie remains", "ties remain")
    return f"adjudication {other.name}: {len(valid)} of {counted(len(labels), 'decision')} applied{note}; {remaining}"
