"""Balanced assignment of items to annotators; it depends on the seed and the ids, never on the order of rows."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from h2htalk.data.languages import Language
from h2htalk.errors import RoundError
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.assignment.session_sizes import max_crises, session_sizes
from h2htalk.rounds.items import Item
from h2htalk.rounds.settings import Care


@dataclass(frozen=True, slots=True)
class Assignment:
    """One item given to one annotator: in which session, and at which place among all of theirs (both from 1)."""

    annotator: str
    item: str
    session: int
    place: int


@dataclass(frozen=True, slots=True)
class AssignmentSet:
    """Items that are published together.

    Attributes:
        number: from 1.
        requested: item -> number of annotators that this set requests.
        assignments: who gets what; empty if a server hands out the items.
        groups: items by session, if a server hands them out.
        sessions: their numbers, where groups were erased; else they are numbered by language, in order.
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
    number: int,
    items: Sequence[Item],
    requested: Mapping[str, int],
    annotators: Sequence[Annotator],
    assigned: Collection[tuple[str, str]],
    care: Care,
    seed: int,
    *,
    allow_single_crises: bool = False,
) -> AssignmentSet:
    """Assign items so that all annotators have about as many items, and about as many items about crises.

    Args:
        number: of the assignment set, from 1.
        items: of the round.
        requested: item -> number of annotators, at most those who are eligible and have not got it.
        annotators: of the round; inactive ones get nothing.
        assigned: (item, annotator) pairs of earlier sets: nobody gets an item twice.
        care: session size and share of crises.
        seed: of the round.
        allow_single_crises: as of `sessions`.

    Raises:
        RoundError: there are too many crises.
    """
    load = dict.fromkeys((annotator.id for annotator in annotators), 0)
    crises = dict(load)
    given: dict[str, list[Item]] = {annotator.id: [] for annotator in annotators}
    for item in sorted(items, key=lambda item: seeded_number(seed, "item", str(number), item.id)):
        count = requested.get(item.id, 0)
        if not count:
            continue
        eligible = [v for v in annotators if is_eligible(v, item) and (item.id, v.id) not in assigned]

        def priority(v: Annotator, item: Item = item) -> tuple[int, int, int]:
            tie_breaker = seeded_number(seed, "annotator", item.id, v.id)
            return crises[v.id] if item.crisis else 0, load[v.id], tie_breaker

        for annotator in sorted(eligible, key=priority)[:count]:
            given[annotator.id].append(item)
            load[annotator.id] += 1
            crises[annotator.id] += item.crisis
    _rebalance_crises(given, annotators, assigned, care, seed)
    assignments: list[Assignment] = []
    for annotator in annotators:
        theirs = sessions(given[annotator.id], care, seed, annotator.id, allow_single=allow_single_crises)
        order = [(session, item) for session, group in enumerate(theirs, 1) for item in group]
        assignments += [
            Assignment(annotator.id, item, session, place) for place, (session, item) in enumerate(order, 1)
        ]
    return AssignmentSet(number, dict(sorted(requested.items())), tuple(assignments))


def group_items(
    number: int,
    items: Sequence[Item],
    requested: Mapping[str, int],
    care: Care,
    seed: int,
    *,
    allow_single_crises: bool = False,
    mixed: bool = False,
) -> AssignmentSet:
    """Make an assignment set for a server that hands out items: sessions of one language, crises spread over them.

    A server has one number of annotators for a whole session, so all items of a session request the same number. Not
    if `mixed` (a pilot or a first set): fewer annotators read crises, which is no reason to put crises into one
    session. The session's number is the largest then; nobody else gets its crises.
    """
    groups: list[tuple[str, ...]] = []
    published = [item for item in items if requested.get(item.id)]
    kinds = sorted({(item.language, 0 if mixed else requested[item.id]) for item in published})
    for language, count in kinds:
        group = [one for one in published if one.language == language and (mixed or requested[one.id] == count)]
        name = f"{language}/{count}/{number}"
        groups += sessions(group, care, seed, name, allow_single=allow_single_crises)
    return AssignmentSet(number, dict(sorted(requested.items())), (), tuple(groups))


def _rebalance_crises(
    given: Mapping[str, list[Item]],
    annotators: Sequence[Annotator],
    assigned: Collection[tuple[str, str]],
    care: Care,
    seed: int,
) -> None:
    """Move crises from annotators whose sessions cannot hold them to others, if possible in exchange for an item."""
    order = sorted(annotators, key=lambda annotator: seeded_number(seed, "relieve", annotator.id))

    def held(annotator: Annotator, more: int = 0) -> tuple[int, int]:
        theirs = given[annotator.id]
        return len(theirs) + more, sum(item.crisis for item in theirs) + more

    def can_take(annotator: Annotator, item: Item) -> bool:
        new = (item.id, annotator.id) not in assigned and item not in given[annotator.id]
        return new and is_eligible(annotator, item)

    def fits(count: int, crises: int) -> bool:
        return session_sizes(count, crises, care) is not None

    def move(one: Annotator, item: Item) -> None:
        others = [v for v in order if v is not one and can_take(v, item)]
        for other in sorted(others, key=lambda v: held(v)[1]):
            count, crises = held(other, 1)
            exchange = next((i for i in given[other.id] if not i.crisis and can_take(one, i)), None)
            if fits(count - (exchange is not None), crises):
                given[one.id].remove(item)
                given[other.id].append(item)
                if exchange is not None:
                    given[other.id].remove(exchange)
                    given[one.id].append(exchange)
                return

    for one in order:
        for item in [item for item in given[one.id] if item.crisis]:
            if fits(*held(one)):
                break
            move(one, item)


def sessions(
    items: Sequence[Item], care: Care, seed: int, name: str, *, allow_single: bool = False
) -> list[tuple[str, ...]]:
    """Return item ids in random order, divided into sessions that respect the share of crises.

    Args:
        items: of one annotator, or one language.
        care: session size and share of crises.
        seed: of the round.
        name: of the annotator or language; determines the order together with the seed.
        allow_single: whether crises that fit into no session become sessions of one item at the end. A later
            assignment set may consist of crises alone, which others skipped.

    Raises:
        RoundError: there are more crises than the sessions may hold.
    """
    order = sorted(items, key=lambda item: seeded_number(seed, "order", name, item.id))
    crises = [item.id for item in order if item.crisis]
    others = [item.id for item in order if not item.crisis]
    singles: list[str] = []
    while (
        (sizes := session_sizes(len(others) + len(crises), len(crises), care)) is None
        and allow_single
        and care.crisis_share
    ):
        singles.append(crises.pop())
    if sizes is None:
        raise RoundError(
            f"{len(crises)} of {len(order)} items are about a crisis; with care.crisis_share = {care.crisis_share:g} "
            f"and sessions of {care.session_items} at most {max_crises(len(order), care)} fit; add other items, or set "
            "a larger share and shorter sessions"
        )
    groups: list[tuple[str, ...]] = []
    for size, count in sizes:
        group = [*crises[:count], *others[: size - count]]
        crises, others = crises[count:], others[size - count :]
        groups.append(tuple(sorted(group, key=lambda one: seeded_number(seed, "session", name, one))))
    return [*groups, *((one,) for one in reversed(singles))]
