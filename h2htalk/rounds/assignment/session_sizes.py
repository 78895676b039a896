"""How many items, and how many crises, go into each session: no more than the stated share, as even as it goes."""

from __future__ import annotations

from functools import lru_cache

from h2htalk.rounds.settings import Care

# Floating point must not make 0.2 of 10 less than two.
SLACK = 1e-9


@lru_cache(maxsize=4096)
def session_sizes(count: int, hard: int, care: Care) -> tuple[tuple[int, int], ...] | None:
    """(items, crises among them) of each session; as few sessions as can be. None where so many crises do not fit.

    One crisis fits in any session, however short; the share is of more.

    Args:
        count: items.
        hard: how many of them speak of a crisis.
        care: session size, share of crises.
    """
    number = -(-count // care.session_items)
    # Evenly where that fits. Else some of the sessions hold one crisis, which takes no room, and the others more.
    for single in range(min(hard, number - 1) + 1 if number else 0):
        crises = [*_evenly(hard - single, number - single), *[1] * single]
        least = [_least(one, care) for one in crises]
        if max(least) <= care.session_items and sum(least) <= count:
            return tuple(zip(_filled(least, count, care.session_items), crises, strict=True))
    return () if count == 0 else None


def room(count: int, care: Care) -> int:
    """The most crises that can be among so many items."""
    return next(hard for hard in range(count, -1, -1) if session_sizes(count, hard, care) is not None)


def _least(crises: int, care: Care) -> int:
    """Items that a session with so many crises must have at least."""
    if crises <= 1 and (care.crisis_share or not crises):
        return 1
    return (
        max(crises, int(-(-(crises - SLACK) // care.crisis_share)))
        if care.crisis_share
        else care.session_items + 1
    )


def _evenly(count: int, places: int) -> list[int]:
    return [count // places + (at < count % places) for at in range(places)]


def _filled(least: list[int], count: int, most: int) -> list[int]:
    """Sizes raised to `count` in all, the smallest first, none above `most`."""
    level = next(n for n in range(1, most + 1) if sum(max(size, n) for size in least) >= count)
    sizes = [max(size, level) for size in least]
    over = sum(sizes) - count
    # Those that the last step raised give back what was too much.
    for at in reversed(range(len(sizes))):
        if over and sizes[at] > least[at]:
            sizes[at] -= 1
            over -= 1
    return sizes
