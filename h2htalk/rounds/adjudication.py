"""Adjudication: a round's ties as items of an adjudication round, and its decisions applied to the ties."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.errors import RoundError, counted
from h2htalk.rounds.aggregation.decisions import (
    ADJUDICATION,
    TIE,
    Adjudication,
    Decision,
    apply_adjudications,
    decide,
    tie_id,
)
from h2htalk.rounds.items import Item
from h2htalk.rounds.round_folder import RoundFolder, read_records
from h2htalk.rounds.texts.interface import question_title


def tie_items(path: Path) -> Iterator[Item]:
    """Yield one item for each tie of a closed round, with the tied labels as choices and the question as note.

    Raises:
        RoundError: the round is not closed, or has no ties.
    """
    folder = RoundFolder(path)
    decisions = path / "decisions.jsonl"
    if folder.state != "closed" or not decisions.is_file():
        raise RoundError(
            f"{path}: this round is not closed, so its ties are not final; run `h2htalk round close` first"
        )
    items = {item.id: item for item in folder.items()}
    ties = [record for _, record in read_jsonl(decisions) if record["rule"] == TIE]
    if not ties:
        raise RoundError(f"{path}: this round has no ties to adjudicate")
    for record in ties:
        item, question = items[record["item"]], str(record["question"])
        yield replace(
            item,
            id=tie_id(item.id, question),
            labels=tuple(record["tied"]),
            note=question_title(question, item.language),
            suggested={},
        )


def round_reference(path: Path) -> dict[str, str]:
    """Return name and items' fingerprint of a round, which its adjudication stores."""
    folder = RoundFolder(path)
    return {"name": folder.name, "items_sha256": str(folder.manifest().get("items_sha256", ""))}


def require_adjudication_of(adjudication: RoundFolder, folder: RoundFolder) -> None:
    """Raise RoundError unless `adjudication` is about the ties of the round in `folder`."""
    source = adjudication.manifest().get("adjudicates")
    if not isinstance(source, dict):
        raise RoundError(
            f"{adjudication.path}: this round does not adjudicate the ties of another round; open one that does with "
            f"`h2htalk round open adjudication {folder.path} --out ...`"
        )
    if source != round_reference(folder.path):
        raise RoundError(
            f"{adjudication.path}: this adjudication is about the ties of another round, {source.get('name')}, and "
            f"cannot be applied to {folder.path}"
        )


def compute_decisions(folder: RoundFolder) -> list[Decision]:
    """Return a round's decisions from its stored annotations, before any adjudication."""
    spec, annotations = folder.spec(), list(folder.annotations().values())
    overlap, threshold = spec.annotators_per_item, spec.ties.dawid_skene
    return decide(folder.items(), folder.questions(), annotations, overlap, threshold)


def read_adjudications(folder: RoundFolder) -> dict[str, Adjudication]:
    """Return the adjudications that a round has stored, by `tie_id`. Raise DataError."""
    path = folder.path / "adjudications.jsonl"
    return {one.tie: one for one in read_records(path, Adjudication)} if path.exists() else {}


def store_adjudications(folder: RoundFolder, other: RoundFolder, decisions: Sequence[Decision]) -> str:
    """Store the decisions of an adjudication round beside those of earlier ones, and record it as an event.

    Only decisions between exactly the labels that are tied now are stored. They replace what the same adjudication
    decided before; a decision that it has withdrawn is removed.

    Args:
        folder: the round with the ties.
        other: the closed adjudication. Adjudications that it has stored decide its own ties.
        decisions: decisions of the round before any adjudication.

    Returns:
        A message that says how many decisions were applied.
    """
    choices = {item.id: item.labels for item in other.items()}
    ties = {tie_id(one.item, one.question): set(one.tied) for one in decisions if one.rule == TIE}
    adjudicated = apply_adjudications(compute_decisions(other), read_adjudications(other))
    labels = [one for one in adjudicated if one.question == "label"]
    made = {
        one.item: Adjudication(one.item, str(one.label), choices[one.item], other.name)
        for one in labels
        if one.label is not None
    }
    valid = {tie: one for tie, one in made.items() if ties.get(tie) == set(one.tied)}
    before = read_adjudications(folder)
    stored = {tie: one for tie, one in before.items() if tie not in choices or one.by != other.name} | valid
    after = apply_adjudications(decisions, stored)
    applied = sum(one.rule == ADJUDICATION and tie_id(one.item, one.question) in valid for one in after)
    if stored != before:
        write_jsonl(folder.path / "adjudications.jsonl", map(asdict, stored.values()))
        folder.add_event("adjudicated", by=other.name, applied=applied)
    skipped = len(made) - len(valid)
    note = f", {skipped} skipped (no longer tied between the same labels)" if skipped else ""
    remaining = counted(sum(one.rule == TIE for one in after), "tie remains", "ties remain")
    return f"adjudication {other.name}: {applied} of {counted(len(labels), 'decision')} applied{note}; {remaining}"


def describe_unapplied(folder: RoundFolder, decisions: Sequence[Decision]) -> list[str]:
    """Return a message if stored adjudications fit no current tie. `decisions`: before any adjudication."""
    stored = read_adjudications(folder)
    number = len(stored) - sum(one.rule == ADJUDICATION for one in apply_adjudications(decisions, stored))
    if not number:
        return []
    adjudications = counted(number, "earlier adjudication is", "earlier adjudications are")
    return [f"{adjudications} not applied: later annotations changed the tie"]
