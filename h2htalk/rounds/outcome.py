"""The outcome of a closed round: written by closing it, read by another round, an adjudication, a release."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from h2htalk.data.files import read_json_object, remove_file, write_json, write_text
from h2htalk.errors import RoundError, counted
from h2htalk.rounds.aggregation.agreement import agreement_of
from h2htalk.rounds.aggregation.annotator_statistics import annotator_statistics, qualified, statistics_csv
from h2htalk.rounds.aggregation.decisions import (
    TIE,
    Adjudication,
    Decision,
    apply_adjudications,
    completed_items,
    tie_id,
    votes_on,
)
from h2htalk.rounds.annotations import Annotations, skips
from h2htalk.rounds.annotators import COLUMNS
from h2htalk.rounds.items import Item
from h2htalk.rounds.round_folder import RoundFolder, RoundState, read_record_lines, read_state
from h2htalk.rounds.settings import RoundSpec
from h2htalk.rounds.texts.interface import question_title
from h2htalk.text.escaping import csv_text

Record = Mapping[str, Any]
ADJUDICATIONS = "adjudications.jsonl"


@dataclass(frozen=True, slots=True)
class RoundOutcome:
    """What a closed round has decided: items by id, decisions by (item, question), not of gold items.

    `sources` are the candidates, scenarios or dialogues that items were made from, unchanged. `annotations` are the
    valid ones. `agreement` is Krippendorff's alpha of each question, with its interval.
    """

    name: str
    path: Path
    spec: RoundSpec
    items: tuple[Item, ...]
    sources: Mapping[str, Record]
    decisions: Mapping[tuple[str, str], Decision]
    annotations: Annotations
    agreement: Mapping[str, Any]


def read_outcome(path: Path) -> RoundOutcome:
    """Read the outcome of a closed round; raise RoundError if it is open, or a copy without the private folder."""
    folder = RoundFolder(path).require()
    state = read_state(folder)
    if state.phase != "closed":
        raise RoundError(
            f"{path}: this round is not closed, so its decisions are not final; run `h2htalk round close {path}` first"
        )
    if not state.annotators:
        raise RoundError(
            f"{path}: this copy of the round has no folder `private`; name the folder in which the round was opened"
        )
    again = f"close the round again, which writes it from the annotations: `h2htalk round close {path}`"
    lines = read_record_lines(path / "decisions.jsonl", Decision, again)
    decisions = {(one.item, one.question): one for _, one in lines}
    agreement = read_json_object(path / "agreement.json")
    annotations = dict(sorted(state.annotations.items()))
    return RoundOutcome(state.name, path, state.spec, state.items, folder.sources(), decisions, annotations, agreement)


def write_statistics(state: RoundState) -> list[str]:
    """Write agreement, statistics and payment of a closed round; return messages for the manager."""
    folder, annotations = state.folder, state.annotations.values()
    agreement = {
        question.name: asdict(agreement_of(votes_on(question, annotations), question.level))
        for question in state.questions
        if question.decided
    }
    write_json(folder.path / "agreement.json", agreement)
    counted_ids = [annotator.id for annotator in state.annotators if annotator.id not in state.removed]
    rows = annotator_statistics(state.items, state.questions, annotations, counted_ids)
    write_text(folder.path / "annotator_statistics.csv", statistics_csv(rows, state.spec.pass_gold))
    _write_payment(state)
    if not any(item.gold for item in state.items):
        return []
    # The active annotators who passed the gold items, as a list for `--annotators`; none if nobody did.
    active, passed = [v for v in state.annotators if v.active], qualified(rows, state.spec.pass_gold)
    columns = COLUMNS if any(v.participant_id for v in active) else COLUMNS[:3]
    people = [v for v in active if passed.get(v.id)]
    cells = [(v.name, " ".join(v.languages), v.crisis, v.participant_id, v.completion_code) for v in people]
    path = folder.private / "qualified.csv"
    result = "annotator_statistics.csv has each one's result"
    if not people:
        remove_file(path)
        return [f"none of {len(active)} annotators passed the gold items, so {path.name} was not written; {result}"]
    folder.write_private(path.name, csv_text(columns, [row[: len(columns)] for row in cells]))
    return [f"{len(people)} of {len(active)} annotators passed the gold items: use {path} as --annotators; {result}"]


def _write_payment(state: RoundState) -> None:
    """Write a CSV of annotators by name, and the bonuses of Prolific as its bulk payment takes them.

    Skipped items are paid, too, and so are those of removed annotators.
    """
    done = Counter(who for them in completed_items(state.items, state.questions, state.stored).values() for who in them)
    skipped = Counter(annotator for _, annotator in skips(state.stored))
    for one in state.folder.erased_items():
        done.update(one.completed)
        skipped.update(one.skipped)
    headings = ["annotator", "items completed", "items skipped", "minutes"]
    rows = [
        [v.name, done[v.id], skipped[v.id], (done[v.id] + skipped[v.id]) * state.spec.minutes] for v in state.annotators
    ]
    on_prolific = [v for v in state.annotators if v.participant_id]
    if on_prolific:
        headings += ["participant id", "completion code"]
        rows = [[*row, v.participant_id, v.completion_code] for row, v in zip(rows, state.annotators, strict=True)]
    state.folder.write_private("payment.csv", csv_text(headings, rows))
    each = Decimal(str(state.spec.minutes)) * Decimal(str(state.spec.hourly)) / 60
    amounts = [(v.participant_id, each * (done[v.id] + skipped[v.id])) for v in on_prolific]
    if any(amount for _, amount in amounts):
        lines = (f"{participant},{amount:.2f}\n" for participant, amount in amounts if amount)
        state.folder.write_private("prolific_bonus.csv", "".join(lines))


# --- Adjudication: ties as items of another round, whose decisions come back ------------------------------------------


def tie_items(path: Path) -> Iterator[Item]:
    """Yield one item for each tie of a closed round, with the tied labels as choices and the question as note."""
    outcome = read_outcome(path)
    items = {item.id: item for item in outcome.items}
    ties = [one for one in outcome.decisions.values() if one.rule == TIE]
    if not ties:
        raise RoundError(f"{path}: this round has no ties to adjudicate")
    for one in ties:
        item = items[one.item]
        note = question_title(one.question, item.language)
        yield replace(item, id=tie_id(item.id, one.question), labels=one.tied, note=note, suggested={})


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
    return {one.tie: one for _, one in read_record_lines(path, Adjudication)} if path.exists() else {}


def store_adjudications(folder: RoundFolder, other: RoundOutcome, decisions: Sequence[Decision]) -> str:
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
    stored = {tie: one for tie, one in before.items() if tie not in choices or one.by != other.name} | valid
    if stored != before:
        folder.write_records(ADJUDICATIONS, stored.values())
        folder.add_event("adjudicated", by=other.name, applied=len(valid))
    skipped = len(made) - len(valid)
    note = f", {skipped} skipped (no longer tied between the same labels)" if skipped else ""
    left = sum(one.rule == TIE for one in apply_adjudications(decisions, stored))
    remaining = counted(left, "tie remains", "ties remain")
    return f"adjudication {other.name}: {len(valid)} of {counted(len(labels), 'decision')} applied{note}; {remaining}"
