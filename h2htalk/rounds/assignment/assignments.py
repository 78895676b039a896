"""Balanced assignment of items to annotators; it depends on the seed and the ids, never on the order of rows."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from h2htalk.data.languages import Language
from h2htalk.errors import RoundError
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.items import Item
from h2htalk.rounds.settings import Care, RoundSpec

# Tolerance for floating point: 0.2 of 10 must be two.
TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Assignment:
    """One item given to one annotator: in which session, and at which place among all of theirs (both from 1)."""

    annotator: str
    item: str
    session: int
    place: int


@dataclass(frozen=True, slots=True)
class AssignmentSet:
    """Items that are published together, for `requested` annotators each; sets are numbered from 1.

    `assignments` say who gets what. If a server hands out the items, they are empty, and `groups` are the items by
    session; `sessions` are their numbers, where groups were erased, else they are numbered by language, in order.
    """

    number: int
    requested: Mapping[str, int]
    assignments: tuple[Assignment, ...] = ()
    groups: tuple[tuple[str, ...], ...] = ()
    sessions: tuple[int, ...] = ()


def session_numbers(one: AssignmentSet, languages: Mapping[str, Language]) -> tuple[int, ...]:
    """Return the numbers of an assignment set's groups. `languages`: of its items."""
    counts = Counter[Language]()
    numbers = []
    for group in one.groups if not one.sessions else ():
        counts[languages[group[0]]] += 1
        numbers.append(counts[languages[group[0]]])
    return one.sessions or tuple(numbers)


def seeded_number(seed: int, *names: str) -> int:
    """Return a pseudo-random number, 0 to 2^64 - 1, that depends on the seed and the names alone."""
    text = "\0".join((str(seed), *names))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def is_eligible(annotator: Annotator, item: Item) -> bool:
    """Return whether an annotator is active, reads an item's language, and agreed to crises if it is about one."""
    return annotator.active and item.language in annotator.languages and (annotator.crisis or not item.crisis)


def assign(
    spec: RoundSpec,
    number: int,
    items: Sequence[Item],
    requested: Mapping[str, int],
    annotators: Sequence[Annotator],
    assigned: Collection[tuple[str, str]],
    *,
    allow_single: bool = False,
) -> AssignmentSet:
    """Assign items so that all annotators have about as many items, and about as many items about crises.

    `requested` is item -> number of annotators, at most those who are eligible and have not got it. Nobody gets an item
    twice: `assigned` are the (item, annotator) pairs of earlier sets. Raise RoundError as `sessions`.
    """
    seed, given = spec.seed, dict[str, list[Item]]((annotator.id, []) for annotator in annotators)
    crises = Counter[str]()
    for item in sorted(items, key=lambda item: seeded_number(seed, "item", str(number), item.id)):
        eligible = [v for v in annotators if is_eligible(v, item) and (item.id, v.id) not in assigned]

        def priority(v: Annotator, item: Item = item) -> tuple[int, int, int]:
            tie_breaker = seeded_number(seed, "annotator", item.id, v.id)
            return crises[v.id] if item.crisis else 0, len(given[v.id]), tie_breaker

        for annotator in sorted(eligible, key=priority)[: requested.get(item.id, 0)]:
            given[annotator.id].append(item)
            crises[annotator.id] += item.crisis
    _rebalance_crises(spec, given, annotators, assigned)
    assignments: list[Assignment] = []
    for annotator in annotators:
        theirs = sessions(spec, given[annotator.id], annotator.id, allow_single=allow_single)
        order = [(session, item) for session, group in enumerate(theirs, 1) for item in group]
        assignments += [
            Assignment(annotator.id, item, session, place) for place, (session, item) in enumerate(order, 1)
        ]
    return AssignmentSet(number, dict(sorted(requested.items())), tuple(assignments))


def group_items(
    spec: RoundSpec,
    number: int,
    items: Sequence[Item],
    requested: Mapping[str, int],
    *,
    allow_single: bool,
    mixed: bool,
) -> AssignmentSet:
    """Make an assignment set for a server that hands out items: sessions of one language, crises spread over them.

    All items of a session request the same number of annotators, which a server has for the whole. Not if `mixed` (a
    pilot or a first set): then it is the largest, so that crises, which fewer annotators read, are not put together.
    """
    by_session: dict[tuple[Language, int], list[Item]] = {}
    for item in items:
        if count := requested.get(item.id):
            by_session.setdefault((item.language, 0 if mixed else count), []).append(item)
    groups: list[tuple[str, ...]] = []
    for (language, count), group in sorted(by_session.items()):
        name = f"{language}/{count}/{number}"
        groups += sessions(spec, group, name, allow_single=allow_single)
    return AssignmentSet(number, dict(sorted(requested.items())), (), tuple(groups))


def _rebalance_crises(
    spec: RoundSpec,
    given: Mapping[str, list[Item]],
    annotators: Sequence[Annotator],
    assigned: Collection[tuple[str, str]],
) -> None:
    """Move crises from annotators whose sessions cannot hold them to others, if possible in exchange for an item."""
    order = sorted(annotators, key=lambda annotator: seeded_number(spec.seed, "relieve", annotator.id))

    def held(annotator: Annotator) -> tuple[int, int]:
        theirs = given[annotator.id]
        return len(theirs), sum(item.crisis for item in theirs)

    def can_take(annotator: Annotator, item: Item) -> bool:
        new = (item.id, annotator.id) not in assigned and item not in given[annotator.id]
        return new and is_eligible(annotator, item)

    for one in order:
        for item in [item for item in given[one.id] if item.crisis]:
            if session_sizes(*held(one), spec.care) is not None:
                break
            others = [v for v in order if v is not one and can_take(v, item)]
            for other in sorted(others, key=lambda v: held(v)[1]):
                count, crises = held(other)
                exchange = next((i for i in given[other.id] if not i.crisis and can_take(one, i)), None)
                if session_sizes(count + (exchange is None), crises + 1, spec.care) is not None:
                    given[one.id].remove(item)
                    given[other.id].append(item)
                    if exchange is not None:
                        given[other.id].remove(exchange)
                        given[one.id].append(exchange)
                    break


def sessions(spec: RoundSpec, items: Sequence[Item], name: str, *, allow_single: bool = False) -> list[tuple[str, ...]]:
    """Return ids of the items of one annotator or language, divided into sessions that respect the share of crises.

    Name and seed determine their order. With `allow_single`, crises that fit into no session become sessions of one
    item at the end: a later set may consist of crises alone, which others skipped. Else they are a RoundError.
    """
    care, seed = spec.care, spec.seed
    order = sorted(items, key=lambda item: seeded_number(seed, "order", name, item.id))
    crises = [item.id for item in order if item.crisis]
    others = [item.id for item in order if not item.crisis]
    most = len(crises)
    while session_sizes(len(others) + most, most, care) is None and most:
        most -= 1
    if most < len(crises) and not (allow_single and care.crisis_share):
        tags = Counter(tag for item in items if item.crisis for tag in item.tags)
        marked = ", ".join(f"{tag} {number}" for tag, number in sorted(tags.items(), key=lambda one: (-one[1], one[0])))
        fit = next(n for n in range(len(crises), -1, -1) if session_sizes(len(items), n, care) is not None)
        raise RoundError(
            f"{len(crises)} of {len(items)} items are about a crisis{f' (by their tags: {marked})' * bool(tags)}; with "
            f"care.crisis_share = {care.crisis_share:g} and sessions of {care.session_items} at most {fit} fit; add "
            "other items, or set a larger share and shorter sessions"
        )
    crises, singles = crises[:most], crises[most:]
    groups: list[tuple[str, ...]] = []
    for size, count in session_sizes(len(others) + most, most, care) or ():
        group = [*crises[:count], *others[: size - count]]
        crises, others = crises[count:], others[size - count :]
        groups.append(tuple(sorted(group, key=lambda one: seeded_number(seed, "session", name, one))))
    return [*groups, *((one,) for one in singles)]


# --- Sizes of sessions ------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def session_sizes(count: int, crises: int, care: Care) -> tuple[tuple[int, int], ...] | None:
    """Return (items, crises) of each session, with as few sessions as possible; None if the crises do not fit.

    One crisis fits in any session, however short; the share limits two and more.
    """
    number = -(-count // care.session_items)
    # Evenly if possible. Else some sessions hold one crisis, which needs no other items, and the others hold more.
    for single in range(min(crises, number - 1) + 1 if number else 0):
        each, rest = divmod(crises - single, number - single)
        per_session = [each + (at < rest) for at in range(number - single)] + [1] * single
        least = [_min_items(one, care) for one in per_session]
        if max(least) <= care.session_items and sum(least) <= count:
            # Raised to `count` in all, the smallest first; the last step may add too many.
            levels = range(1, care.session_items + 1)
            level = next(n for n in levels if sum(max(size, n) for size in least) >= count)
            sizes = [max(size, level) for size in least]
            excess = sum(sizes) - count
            for at in reversed(range(len(sizes))):
                if excess and sizes[at] > least[at]:
                    sizes[at] -= 1
                    excess -= 1
            return tuple(zip(sizes, per_session, strict=True))
    return () if count == 0 else None


def _min_items(crises: int, care: Care) -> int:
    """Return the smallest size of a session with so many crises."""
    if crises <= 1 and (care.crisis_share or not crises):
        return 1
    if not care.crisis_share:
        return care.session_items + 1
    return max(crises, int(-(-(crises - TOLERANCE) // care.crisis_share)))
