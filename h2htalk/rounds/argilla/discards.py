"""Who is spared what: on the server a discard made in advance, here a list that tells it from an annotator's own."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.assignment.assignments import may_see
from h2htalk.rounds.items import Item


@dataclass(frozen=True, slots=True)
class AdvanceDiscards:
    """The file of (dataset, item, annotator id) that were discarded in advance. Making the object touches nothing."""

    path: Path

    def all(self) -> set[tuple[str, str, str]]:
        """Everything in it. Raises DataError."""
        if not self.path.exists():
            return set()
        return {(one["dataset"], one["item"], one["annotator"]) for _, one in read_jsonl(self.path)}

    def add(self, dataset: str, pairs: Collection[tuple[str, str]]) -> None:
        """Write down (item, annotator id) pairs: before the server hears of them. Raises DataError."""
        known = self.all()
        new = {(dataset, item, annotator) for item, annotator in pairs} - known
        if new:
            self._write(known | new)

    def drop(self, dataset: str, pairs: Collection[tuple[str, str]]) -> None:
        """Strike out (item, annotator id) pairs: after the server has forgotten them. Raises DataError."""
        self.strike({(dataset, item, annotator) for item, annotator in pairs})

    def strike(self, rows: Collection[tuple[str, str, str]]) -> None:
        """Strike out (dataset, item, annotator id), as `all` has them: what the annotator does there is their own
        from now on. Raises DataError."""
        known = self.all()
        left = known - set(rows)
        if left != known:
            self._write(left)

    def _write(self, rows: Collection[tuple[str, str, str]]) -> None:
        write_jsonl(
            self.path,
            ({"dataset": d, "item": item, "annotator": annotator} for d, item, annotator in sorted(rows)),
        )


def set_aside(
    items: Sequence[Item], annotators: Sequence[Annotator], answered: Collection[tuple[str, str]]
) -> Mapping[str, set[str]]:
    """Item -> annotators who must not meet it: no crises for who wants none, nothing in a language that they do not
    read (any more), nothing twice, nothing for who left.

    Args:
        items: of a session.
        annotators: everybody who was ever asked.
        answered: (item, annotator id) pairs with an answer or a skip.
    """
    return {
        item.id: {v.id for v in annotators if not may_see(v, item) or (item.id, v.id) in answered}
        for item in items
    }
