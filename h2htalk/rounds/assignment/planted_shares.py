"""Which planted items an annotator gets in a language, or a session of a server: the harmful ones first."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import HARMFUL, YES

SHARE = 20  # one planted item for so many others
FINE_EVERY = 4  # each fourth planted item only sounds harmful
LEAST_HARMFUL = (
    2  # harmful ones that somebody must have answered in a language to count as a reader of it
)


def planted_number(others: int) -> int:
    """Return the number of planted items among so many others: one in twenty, and as many as a reader must answer."""
    return max(LEAST_HARMFUL, others // SHARE) if others else 0


def choose_planted(pool: Sequence[Item], number: int, had: Collection[str]) -> list[Item]:
    """Return further planted items of a pool, in its order, for whoever has `had` some; fewer where it is used up."""
    known = {item.id for item in pool}
    harmful = [item for item in pool if item.id not in had and item.gold[HARMFUL.name] == YES]
    others = [item for item in pool if item.id not in had and item.gold[HARMFUL.name] != YES]
    chosen: list[Item] = []
    for place in range(len(known.intersection(had)), number):
        is_fine = place % FINE_EVERY == FINE_EVERY - 1
        first, second = (others, harmful) if is_fine else (harmful, others)
        source = first or second
        if source:
            chosen.append(source.pop(0))
    return chosen


def spread(others: Sequence[str], planted: Sequence[str]) -> list[str]:
    """Return the names of both, with the planted ones at even distances."""
    places = {
        (2 * number + 1) * len(others) // (2 * len(planted)): name
        for number, name in enumerate(planted)
    }
    mixed: list[str] = []
    for place, name in enumerate(others):
        if place in places:
            mixed.append(places[place])
        mixed.append(name)
    return [*mixed, *(name for name in planted if name not in mixed)]
