"""Numbers of items and crises in each session: as even as possible, within the share of crises."""

from __future__ import annotations

from functools import lru_cache

from h2htalk.rounds.settings import Care

# Tolerance for floating point: 0.2 of 10 must be two.
TOLERANCE = 1e-9


@lru_cache(maxsize=4096)
def session_sizes(count: int, crises: int, care: Care) -> tuple[tuple[int, int], ...] | None:
    """Return (items, crises) of each session, with as few sessions as possible; None if the crises do not fit.

    One crisis fits in any session, however short; the share limits two and more.

    Args:
        count: number of items.
        crises: how many of them are about a crisis.
        care: session size and share of crises.
    """
    number = -(-count // care.session_items)
    # Evenly if possible. Else some sessions hold one crisis, which needs no other items, and the others hold more.
    for single in range(min(crises, number - 1) + 1 if number else 0):
        per_session = [*_evenly(crises - single, number - single), *[1] * single]
        least = [_min_items(one, care) for one in per_session]
        if max(least) <= care.session_items and sum(least) <= count:
            return tuple(zip(_fill(least, count, care.session_items), per_session, strict=True))
    return () if count == 0 else None


def max_crises(count: int, care: Care) -> int:
    """Return the largest number of crises among `count` items that the sessions can hold."""
    return next(n for n in range(count, -1, -1) if session_sizes(count, n, care) is not None)


def _min_items(crises: int, care: Care) -> int:
    """Return the smallest size of a session with so many crises."""
    if crises <= 1 and (care.crisis_share or not crises):
        return 1
    if not care.crisis_share:
        return care.session_items + 1
    return max(crises, int(-(-(crises - TOLERANCE) // care.crisis_share)))


def _evenly(count: int, parts: int) -> list[int]:
    return [count // parts + (part < count % parts) for part in range(parts)]


def _fill(least: list[int], count: int, most: int) -> list[int]:
    """Raise sizes to `count` in all, the smallest first, none above `most`."""
    level = next(n for n in range(1, most + 1) if sum(max(size, n) for size in least) >= count)
    sizes = [max(size, level) for size in least]
    excess = sum(sizes) - count
    # The last step may have added too many.
    for at in reversed(range(len(sizes))):
        if excess and sizes[at] > least[at]:
            sizes[at] -= 1
            excess -= 1
    return sizes
