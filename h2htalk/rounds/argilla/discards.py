"""Responses that are discarded in advance, so that annotators do not get items that are not for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.assignment.assignments import is_eligible
from h2htalk.rounds.items import Item


@dataclass(frozen=True, slots=True)
class AdvanceDiscards:
    """The file of (dataset, item, annotator id) that were discarded in advance; its methods raise DataError."""

    path: Path

    def all(self) -> set[tuple[str, str, str]]:
        if not self.path.exists():
            return set()
        return {(one["dataset"], one["item"], one["annotator"]) for _, one in read_jsonl(self.path)}

    def add(self, dataset: str, pairs: Collection[tuple[str, str]]) -> None:
        """Add (item, annotator id) pairs; before they are sent to the server."""
        known = self.all()
        self._write(known | {(dataset, item, annotator) for item, annotator in pairs}, known)

    def remove(self, dataset: str, pairs: Collection[tuple[str, str]]) -> None:
        """Remove (item, annotator id) pairs; after the server has deleted them."""
        self.remove_all({(dataset, item, annotator) for item, annotator in pairs})

    def remove_all(self, rows: Collection[tuple[str, str, str]]) -> None:
        """Remove (dataset, item, annotator id): a later discard there is the annotator's own."""
        known = self.all()
        self._write(known - set(rows), known)

    def _write(self, rows: Collection[tuple[str, str, str]], before: Collection[tuple[str, str, str]]) -> None:
        if rows != before:
            write_jsonl(
                self.path,
                ({"dataset": d, "item": item, "annotator": annotator} for d, item, annotator in sorted(rows)),
            )


def items_to_discard(
    items: Sequence[Item], annotators: Sequence[Annotator], annotated: Collection[tuple[str, str]]
) -> Mapping[str, set[str]]:
    """Return item -> annotators who must not get it: not eligible, or they annotated or skipped it.

    Args:
        items: of a dataset.
        annotators: all annotators that the round ever had.
        annotated: (item, annotator id) pairs with an annotation or a skip.
    """
    return {
        item.id: {v.id for v in annotators if not is_eligible(v, item) or (item.id, v.id) in annotated}
        for item in items
    }
