"""Adjudicators' words on a round's ties: taken, kept in adjudicated.jsonl, and applied to the ties that they saw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.errors import DataError, counted
from h2htalk.rounds.decide import ADJUDICATION, TIE, Settled, adjudicated, decide, tie_id
from h2htalk.rounds.folder import RoundFolder


def decided(folder: RoundFolder) -> list[Settled]:
    """A round's decisions from the answers that are stored, ties not yet adjudicated."""
    return decide(
        folder.items(), folder.questions(), list(folder.answers().values()), folder.spec().ties.margin
    )


def with_words(folder: RoundFolder, settled: Sequence[Settled]) -> list[Settled]:
    """Decisions in which ties have the words that the round has taken, where those still fit. Raises DataError."""
    return adjudicated(settled, stored_words(folder))


def stored_words(folder: RoundFolder) -> dict[str, Settled]:
    """By `tie_id`, the words that a round has taken; one of an earlier version has no `tied`. Raises DataError."""
    return {name: word for name, (word, _) in _stored(folder).items()}


def _stored(folder: RoundFolder) -> dict[str, tuple[Settled, str]]:
    """By `tie_id`, each word with the adjudication that gave it; an earlier version did not say which."""
    path = folder.path / "adjudicated.jsonl"
    words = {}
    for where, record in read_jsonl(path) if path.exists() else ():
        try:
            word = Settled(
                record["item"], record["question"], record["label"], record["support"], record["posterior"],
                record["how"], record["votes"], tuple(record.get("tied", ())),
            )  # fmt: skip
            words[word.item] = word, str(record.get("by", ""))
        except (KeyError, TypeError) as error:
            raise DataError(
                f"{where}: a word must be a line of the adjudication's decisions, with the labels that were tied; "
                "put the file back, or take it away and close with --adjudication once more"
            ) from error
    return words


def take_words(folder: RoundFolder, other: RoundFolder, settled: Sequence[Settled]) -> str:
    """Store an adjudication's words beside those of earlier ones; record it, and say how many were taken.

    Only words on ties between the labels that they chose from are taken. What this adjudication said before is replaced
    by what it says now, and is gone where it has taken a word back.

    Args:
        folder: the round with the ties.
        other: the adjudication, closed. Its own ties have the words that it has taken in its turn.
        settled: the round's decisions, before any word.
    """
    between = {item.id: item.labels for item in other.items()}
    asked = [one for one in with_words(other, decided(other)) if one.question == "label"]
    said = {one.item: replace(one, tied=between[one.item]) for one in asked if one.label is not None}
    now = {tie_id(one.item, one.question): set(one.tied) for one in settled if one.how == TIE}
    words = {name: (word, other.name) for name, word in said.items() if now.get(name) == set(word.tied)}
    stored = _stored(folder)
    kept = {
        name: one for name, one in stored.items() if name not in between or one[1] not in ("", other.name)
    }
    both = kept | words
    after = adjudicated(settled, {name: word for name, (word, _) in both.items()})
    taken = sum(one.how == ADJUDICATION and tie_id(one.item, one.question) in words for one in after)
    if both != stored:
        lines = (word.to_dict() | {"by": by} for word, by in both.values())
        write_jsonl(folder.path / "adjudicated.jsonl", lines)
        folder.note("adjudicated", by=other.name, words=taken)
    late = len(said) - len(words)
    unfit = f", {late} not: on what is no longer tied between the same labels" if late else ""
    left = counted(sum(one.how == TIE for one in after), "tie is", "ties are")
    return f"{taken} of {counted(len(asked), 'word')} of {other.name} taken{unfit}; {left} left"


def told_of_words(folder: RoundFolder, settled: Sequence[Settled]) -> list[str]:
    """A line where words that were taken earlier fit no tie of now. `settled`: decisions before any word."""
    now = {tie_id(one.item, one.question): one for one in settled}
    unnamed = changed = broken = 0
    for name, word in stored_words(folder).items():
        one = now.get(name)
        if one is None or one.how != TIE:
            broken += 1
        elif not word.tied:
            unnamed += 1
        else:
            changed += set(word.tied) != set(one.tied)
    reasons = [
        f"{count} {reason}"
        for count, reason in (
            (
                changed,
                "on items that are tied between other labels now: an adjudication over these ties asks again",
            ),
            (broken, "on items that are tied no more"),
            (unnamed, "kept without the labels they chose between: close with that adjudication once more"),
        )
        if count
    ]
    if not reasons:
        return []
    return [
        f"{changed + broken + unnamed} words of earlier adjudications fit no tie of now and are not applied: "
        + "; ".join(reasons)
    ]
