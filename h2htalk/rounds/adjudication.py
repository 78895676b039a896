"""Adjudication: a round's ties as items of an adjudication round, and its decisions applied to the ties."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from h2htalk.errors import RoundError, counted
from h2htalk.rounds.aggregation.decisions import TIE, Adjudication, Decision, apply_adjudications, tie_id
from h2htalk.rounds.items import Item
from h2htalk.rounds.outcome import RoundOutcome, read_outcome
from h2htalk.rounds.round_folder import RoundFolder, read_record_lines
from h2htalk.rounds.texts.interface import question_title

ADJUDICATIONS = "adjudications.jsonl"


def tie_items(path: Path) -> Iterator[Item]:
    """Yield one item for each tie of a closed round, with the tied labels as choices and the question as note.

    Raise RoundError if the round is not closed or has no ties, DataError if a file is invalid.
    """
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

    Only decisions between exactly the labels that are tied now are stored. They replace what the same adjudication
    decided before; a decision that it has withdrawn is removed. `decisions`: those before any adjudication.
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
