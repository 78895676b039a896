"""What a closed round left tied, as items of an adjudication, and whether an adjudication is over a round's ties."""

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
    adjudicated,
    decide,
    tie_id,
)
from h2htalk.rounds.items import Item
from h2htalk.rounds.round_folder import RoundFolder, read_records
from h2htalk.rounds.texts.interface import question_title


def items_of_ties(path: Path) -> Iterator[Item]:
    """One item a tie, with the tied labels to choose from and the question above it.

    Raises:
        RoundError: the round is not closed, or nothing in it is tied.
    """
    folder = RoundFolder(path)
    decisions = path / "decisions.jsonl"
    if folder.state != "closed" or not decisions.is_file():
        raise RoundError(
            f"{path}: this round is not closed, so nothing in it is a tie yet; `h2htalk round close` first"
        )
    items = {item.id: item for item in folder.items()}
    tied = [record for _, record in read_jsonl(decisions) if record["rule"] == TIE]
    if not tied:
        raise RoundError(f"{path}: no decision of this round is tied; there is nothing to adjudicate")
    for record in tied:
        item, question = items[record["item"]], str(record["question"])
        yield replace(
            item,
            id=tie_id(item.id, question),
            labels=tuple(record["tied"]),
            note=question_title(question, item.language),
            suggested={},
        )


def source_of(path: Path) -> dict[str, str]:
    """What an adjudication keeps of the round it is over: its name, and the fingerprint of its items."""
    folder = RoundFolder(path)
    return {"name": folder.name, "items_sha256": str(folder.facts().get("items_sha256", ""))}


def require_over(adjudication: RoundFolder, folder: RoundFolder) -> None:
    """Raise RoundError unless an adjudication is over this round's ties."""
    source = adjudication.facts().get("over")
    if not isinstance(source, dict):
        raise RoundError(
            f"{adjudication.path}: this round is no adjudication over another round's ties; "
            f"`h2htalk round open adjudication {folder.path} --out ...` opens one"
        )
    if source != source_of(folder.path):
        raise RoundError(
            f"{adjudication.path}: this adjudication is over the ties of another round, {source.get('name')}; none of "
            f"its decisions can be applied to {folder.path}"
        )


def decided(folder: RoundFolder) -> list[Decision]:
    """A round's decisions from the answers that are stored, ties not yet adjudicated."""
    spec, answers = folder.spec(), list(folder.answers().values())
    return decide(folder.items(), folder.questions(), answers, spec.answers, spec.ties.dawid_skene)


def with_adjudications(folder: RoundFolder, settled: Sequence[Decision]) -> list[Decision]:
    """Decisions in which ties are settled by the adjudications that the round has taken. Raises DataError."""
    return adjudicated(settled, _stored(folder))


def _stored(folder: RoundFolder) -> dict[str, Adjudication]:
    path = folder.path / "adjudications.jsonl"
    return {one.tie: one for _, one in read_records(path, Adjudication)} if path.exists() else {}


def take_adjudications(folder: RoundFolder, other: RoundFolder, settled: Sequence[Decision]) -> str:
    """Store an adjudication's decisions beside those of earlier ones; record it, and say how many were applied.

    Only decisions between exactly the labels that are tied now are taken. What this adjudication decided before is
    replaced by what it says now, and is gone where it has taken a decision back.

    Args:
        folder: the round with the ties.
        other: the adjudication, closed. Its own ties are settled by the adjudications that it has taken in its turn.
        settled: the round's decisions, before any adjudication.
    """
    between = {item.id: item.labels for item in other.items()}
    now = {tie_id(one.item, one.question): set(one.tied) for one in settled if one.rule == TIE}
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
    applied = sum(one.rule == ADJUDICATION and tie_id(one.item, one.question) in fitting for one in after)
    if made != stored:
        write_jsonl(folder.path / "adjudications.jsonl", map(asdict, made.values()))
        folder.note("adjudicated", by=other.name, applied=applied)
    skipped = len(said) - len(fitting)
    unfit = f", {skipped} skipped (no longer tied between the same labels)" if skipped else ""
    left = counted(sum(one.rule == TIE for one in after), "tie remains", "ties remain")
    return f"adjudication {other.name}: {applied} of {counted(len(asked), 'decision')} applied{unfit}; {left}"


def describe_unfit(folder: RoundFolder, settled: Sequence[Decision]) -> list[str]:
    """A line where adjudications taken earlier fit no tie of now. `settled`: decisions before any adjudication."""
    stored = _stored(folder)
    unfit = len(stored) - sum(one.rule == ADJUDICATION for one in adjudicated(settled, stored))
    return [
        f"{counted(unfit, 'earlier adjudication is', 'earlier adjudications are')} not applied: answered since, no "
        "longer tied between the same labels"
    ] * bool(unfit)
