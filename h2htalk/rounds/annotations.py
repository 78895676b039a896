"""Answers as they came: one line an annotator, item and question; one that is changed later counts once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from h2htalk.errors import DataError, quoted
from h2htalk.rounds.questions import SKIPPED, Value

FIELDS = ("round", "item", "annotator", "question", "value", "when")


@dataclass(frozen=True, slots=True)
class Annotation:
    """One person's answer to one question on one item.

    Attributes:
        round: the round's name.
        item: its id.
        annotator: a salted hash; the name stays in the round's private folder.
        question: its name, or `skipped` for an item that the annotator would rather not read (`value` "yes").
        value: as the question stores it; None where an answer was taken back.
        when: ISO 8601 with its zone, of the answer where the platform knows it, else of the reading.
    """

    round: str
    item: str
    annotator: str
    question: str
    value: Value | None
    when: str

    @property
    def key(self) -> tuple[str, str, str]:
        return self.item, self.annotator, self.question

    def to_dict(self) -> dict[str, Any]:
        value = list(self.value) if isinstance(self.value, tuple) else self.value
        return {
            "round": self.round,
            "item": self.item,
            "annotator": self.annotator,
            "question": self.question,
            "value": value,
            "when": self.when,
        }

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], where: str = "answer") -> Annotation:
        """Read one line of annotations.jsonl; raises DataError that starts with `where`."""
        value = raw.get("value")
        texts = [raw.get(key) for key in FIELDS if key != "value"]
        if not all(isinstance(text, str) and text for text in texts):
            raise DataError(f"{where}: an answer must hold {', '.join(FIELDS)} as text")
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
            value = tuple(value)
        elif value is not None and (isinstance(value, bool) or not isinstance(value, (str, int))):
            raise DataError(
                f"{where}: value is {quoted(value)}; it must be text, a whole number or a list of texts"
            )
        return cls(raw["round"], raw["item"], raw["annotator"], raw["question"], value, raw["when"])


def latest(answers: Iterable[Annotation]) -> dict[tuple[str, str, str], Annotation]:
    """By (item, annotator, question) the answer that counts: the one written last; taken-back ones are left out.

    The order of the lines decides and not `when`: a clock may be wrong, and a line is written when a change is seen.
    """
    found = {answer.key: answer for answer in answers}
    return {key: answer for key, answer in found.items() if answer.value is not None}


def changes(known: Mapping[tuple[str, str, str], Annotation], seen: Iterable[Annotation]) -> list[Annotation]:
    """Of the answers that a platform shows now, those that say something new, sorted by key.

    Args:
        known: what is stored (`latest`).
        seen: the whole of what the platform holds for these items and annotators, or the part that has changed.
    """
    new = {answer.key: answer for answer in seen}
    return [answer for key, answer in sorted(new.items()) if _is_news(known.get(key), answer)]


def _is_news(old: Annotation | None, answer: Annotation) -> bool:
    return answer.value is not None if old is None else old.value != answer.value


def skips(answers: Mapping[tuple[str, str, str], Annotation]) -> set[tuple[str, str]]:
    """The (item, annotator) pairs that an annotator skipped and has not answered since."""
    skipped = {(item, annotator) for item, annotator, question in answers if question == SKIPPED}
    return skipped - {(item, annotator) for item, annotator, question in answers if question != SKIPPED}
