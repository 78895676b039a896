"""Who is spared what: on the server a discard made in advance, here a list that tells it from a voter's own."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.rounds.items import Item
from h2htalk.rounds.voters import Voter


@dataclass(frozen=True, slots=True)
class Aside:
    """The file of (dataset, item, voter id) that were discarded in advance. Making the object touches nothing."""

    path: Path

    def all(self) -> set[tuple[str, str, str]]:
        """Everything in it. Raises DataError."""
        if not self.path.exists():
            return set()
        return {(one["dataset"], one["item"], one["voter"]) for _, one in read_jsonl(self.path)}

    def add(self, dataset: str, pairs: Collection[tuple[str, str]]) -> None:
        """Write down (item, voter id) pairs: before the server hears of them. Raises DataError."""
        known = self.all()
        new = {(dataset, item, voter) for item, voter in pairs} - known
        if new:
            rows = sorted(known | new)
            write_jsonl(self.path, ({"dataset": d, "item": item, "voter": voter} for d, item, voter in rows))


def set_aside(
    items: Sequence[Item], voters: Sequence[Voter], answered: Collection[tuple[str, str]]
) -> Mapping[str, set[str]]:
    """Item -> voters who must not meet it: no crises for who wants none, nothing twice, nothing for who left.

    Args:
        items: of a sitting.
        voters: everybody who was ever asked.
        answered: (item, voter id) pairs with an answer or a skip elsewhere.
    """
    spared: dict[str, set[str]] = {}
    for item in items:
        for voter in voters:
            unwanted = not voter.here or (item.crisis and not voter.crisis)
            if item.language in voter.languages and (unwanted or (item.id, voter.id) in answered):
                spared.setdefault(item.id, set()).add(voter.id)
    return spared
