"""Decisions of an adjudication round, taken back into the round whose ties it is over (adjudicated.jsonl)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from h2htalk.data.files import write_jsonl
from h2htalk.errors import counted
from h2htalk.rounds.aggregation.decisions import (
    ADJUDICATION,
    TIE,
    Adjudication,
    Settled,
    adjudicated,
    decide,
    tie_id,
)
from h2htalk.rounds.round_folder import RoundFolder, read_records


def decided(folder: RoundFolder) -> list[Settled]:
    """A round's decisions from the answers that are stored, ties not yet adjudicated."""
    spec, answers = folder.spec(), list(folder.answers().values())
    return decide(folder.items(), folder.questions(), answers, spec.answers, spec.ties.dawid_skene)


def with_adjudications(folder: RoundFolder, settled: Sequence[Settled]) -> list[Settled]:
    """Decisions in which ties are settled by the adjudications that the round has taken. Raises DataError."""
    return adjudicated(settled, _stored(folder))


def _stored(folder: RoundFolder) -> dict[str, Adjudication]:
    path = folder.path / "adjudicated.jsonl"
    return {one.tie: one for _, one in read_records(path, Adjudication)} if path.exists() else {}


def take_adjudications(folder: RoundFolder, other: RoundFolder, settled: Sequence[Settled]) -> str:
    """Store an adjudication's decisions beside those of earlier ones; record it, and say how many were applied.

    Only decisions between exactly the labels that are tied now are taken. What this adjudication decided before is
    replaced by what it says now, and is gone where it has taken a decision back.

    Args:
        folder: the round with the ties.
        other: the adjudication, closed. Its own ties are settled by the adjudications that it has taken in its turn.
        settled: the round's decisions, before any adjudication.
    """
    between = {item.id: item.labels for item in other.items()}
    now = {tie_id(one.item, one.question): set(one.tied) for one in settled if one.how == TIE}
    asked = [one for one in with_adjudications(other, decided(other)) if one.question == "label"]
    said = {
        one.item: Adjudication(one.item, str(one.label), between[one.item], other.name)
        for one in asked
        if one.label is not None
    }
    fitting = {tie: one for tie, one in said.items() if now.get(tie) == set(one.tied)}
    stored = _stored(folder)
    made = {tie: one for tie, one in stored.items() if tie not in between or one.by != other.name} | fitting
    after = adjudicated(settled, made)
    applied = sum(one.how == ADJUDICATION and tie_id(one.item, one.question) in fitting for one in after)
    if made != stored:
        write_jsonl(folder.path / "adjudicated.jsonl", map(asdict, made.values()))
        folder.note("adjudicated", by=other.name, applied=applied)
    skipped = len(said) - len(fitting)
    unfit = f", {skipped} skipped (no longer tied between the same labels)" if skipped else ""
    left = counted(sum(one.how == TIE for one in after), "tie remains", "ties remain")
    return f"adjudication {other.name}: {applied} of {counted(len(asked), 'decision')} applied{unfit}; {left}"


def told_of_unfit(folder: RoundFolder, settled: Sequence[Settled]) -> list[str]:
    """A line where adjudications taken earlier fit no tie of now. `settled`: decisions before any adjudication."""
    stored = _stored(folder)
    unfit = len(stored) - sum(one.how == ADJUDICATION for one in adjudicated(settled, stored))
    return [
        f"{counted(unfit, 'earlier adjudication is', 'earlier adjudications are')} not applied: answered since, no "
        "longer tied between the same labels"
    ] * bool(unfit)
