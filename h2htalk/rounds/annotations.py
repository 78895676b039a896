"""Annotations: one annotator's answer to one question on one item, as stored in annotations.jsonl."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from h2htalk.data.records import Text
from h2htalk.rounds.questions import SKIPPED, Value


@dataclass(frozen=True, slots=True)
class Annotation:
    """One annotator's answer to one question on one item.

    Attributes:
        round: name of the round.
        item: id of the item.
        annotator: salted hash of the annotator's name.
        question: name of the question; `skipped` (with `value` "yes") for an item that the annotator skipped.
        value: as `Question.read` returns it; None for an annotation that was withdrawn.
        when: ISO 8601 with time zone: the time of the answer if the platform knows it, else of its collection.
    """

    round: Text
    item: Text
    annotator: Text
    question: Text
    value: Value | None
    when: Text

    @property
    def key(self) -> tuple[str, str, str]:
        return self.item, self.annotator, self.question


# The valid annotations of a round by (item, annotator, question).
Annotations = Mapping[tuple[str, str, str], Annotation]


def latest(annotations: Iterable[Annotation]) -> dict[tuple[str, str, str], Annotation]:
    """Return the valid annotation of each (item, annotator, question): the last line, unless it is withdrawn."""
    last = {annotation.key: annotation for annotation in annotations}
    return {key: annotation for key, annotation in last.items() if annotation.value is not None}


def changes(stored: Annotations, collected: Iterable[Annotation]) -> list[Annotation]:
    """Return the collected annotations that differ from the stored ones, sorted by key.

    Stored annotations that the platform does not mention stay as they are.
    """
    return [
        annotation
        for key, annotation in sorted({one.key: one for one in collected}.items())
        if annotation.value != (stored[key].value if key in stored else None)
    ]


def skips(annotations: Annotations) -> set[tuple[str, str]]:
    """Return the (item, annotator) pairs that were skipped and not annotated since."""
    skipped = {
        (item, annotator) for item, annotator, question in annotations if question == SKIPPED
    }
    return skipped - {
        (item, annotator) for item, annotator, question in annotations if question != SKIPPED
    }
