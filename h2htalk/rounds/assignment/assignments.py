"""Balanced assignment of items to annotators; it depends on the seed and the ids, never on the order of rows."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from h2htalk.data.languages import Language
from h2htalk.errors import RoundError, counted, quoted
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.assignment.planted_shares import SHARE, choose_planted, planted_number, spread
from h2htalk.rounds.items import Item
from h2htalk.rounds.settings import TOLERANCE, Care, RoundSpec


class CrisisExcessError(RoundError):
    """Sessions cannot hold so many items about a crisis; `held`: items and crises of each annotator or language."""

    def __init__(self, message: str, held: Sequence[tuple[int, int]]) -> None:
        super().__init__(message)
        self.held = tuple(held)


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
    """Return whether an annotator is active, reads an item's language, and agreed to crises if the item needs that."""
    return (
        annotator.active
        and item.language in annotator.languages
        and (annotator.crisis or not item.is_spared)
    )


def assign(
    spec: RoundSpec,
    number: int,
    items: Sequence[Item],
    requested: Mapping[str, int],
    annotators: Sequence[Annotator],
    assigned: Collection[tuple[str, str]],
    *,
    may_exceed_share: bool = False,
) -> AssignmentSet:
    """Assign items so that all annotators have about as many items, and about as many items about crises.

    `requested` is item -> number of annotators, at most those who are eligible and have not got it. Nobody gets an item
    twice: `assigned` are the (item, annotator) pairs of earlier sets. Raise RoundError as `sessions`.
    """
    seed = spec.seed
    given = dict[str, list[Item]]((annotator.id, []) for annotator in annotators)
    crises = Counter[str]()
    others = [item for item in items if not item.planted]
    for item in sorted(others, key=lambda item: seeded_number(seed, "item", str(number), item.id)):
        eligible = [
            v for v in annotators if is_eligible(v, item) and (item.id, v.id) not in assigned
        ]

        def priority(v: Annotator, item: Item = item) -> tuple[int, int, int]:
            tie_breaker = seeded_number(seed, "annotator", item.id, v.id)
            return crises[v.id] if item.crisis else 0, len(given[v.id]), tie_breaker

        for annotator in sorted(eligible, key=priority)[: requested.get(item.id, 0)]:
            given[annotator.id].append(item)
            crises[annotator.id] += item.crisis
    _rebalance_crises(spec, given, annotators, assigned)
    requested = {**requested, **_give_planted(spec, given, items, annotators, assigned)}
    assignments: list[Assignment] = []
    excesses: list[tuple[Annotator, CrisisExcessError]] = []
    for annotator in annotators:
        try:
            theirs = sessions(
                spec, given[annotator.id], annotator.id, may_exceed_share=may_exceed_share
            )
        except CrisisExcessError as error:
            excesses.append((annotator, error))
            continue
        order = [(session, item) for session, group in enumerate(theirs, 1) for item in group]
        assignments += [
            Assignment(annotator.id, item, session, place)
            for place, (session, item) in enumerate(order, 1)
        ]
    if excesses:
        raise _excess_of(excesses)
    return AssignmentSet(number, dict(sorted(requested.items())), tuple(assignments))


def _excess_of(excesses: Sequence[tuple[Annotator, CrisisExcessError]]) -> CrisisExcessError:
    """Return one error on all annotators whose sessions cannot hold their items, which names the first."""
    annotator, first = excesses[0]
    others = ""
    if len(excesses) > 1:
        others = f" (and {counted(len(excesses) - 1, 'other annotator')} with too many)"
    message = f"annotator {quoted(annotator.name)}{others}: {first}"
    return CrisisExcessError(message, [pair for _, error in excesses for pair in error.held])


def _give_planted(
    spec: RoundSpec,
    given: Mapping[str, list[Item]],
    items: Sequence[Item],
    annotators: Sequence[Annotator],
    assigned: Collection[tuple[str, str]],
) -> dict[str, int]:
    """Give each annotator planted items in every language of theirs, by all their sets; return item -> annotators."""
    planted = [item for item in items if item.planted]
    languages = {item.id: item.language for item in items if not item.planted}
    requested = Counter[str]()
    for annotator in annotators:
        earlier = {item for item, who in assigned if who == annotator.id}
        had_before = Counter(languages[item] for item in earlier if item in languages)
        new = Counter(item.language for item in given[annotator.id])
        for language, number in sorted(new.items()):
            pool = [item for item in planted if item.language == language]
            pool.sort(key=lambda item: seeded_number(spec.seed, "planted", annotator.id, item.id))
            chosen = choose_planted(pool, planted_number(number + had_before[language]), earlier)
            given[annotator.id].extend(chosen)
            requested.update(item.id for item in chosen)
    return dict(requested)


def group_items(
    spec: RoundSpec,
    number: int,
    items: Sequence[Item],
    requested: Mapping[str, int],
    *,
    may_exceed_share: bool,
    mixed: bool,
    handed_out: Collection[str] = (),
) -> AssignmentSet:
    """Make an assignment set for a server that hands out items: sessions of one language, crises spread over them.

    All items of a session request the same number of annotators, which a server has for the whole. Not if `mixed` (a
    pilot or a first set): then it is the largest, so that crises, which fewer annotators read, are not put together.
    `handed_out` are the planted items of earlier sets, of which the first has at least one in each language.
    """
    by_session: dict[tuple[Language, int], list[Item]] = {}
    for item in items:
        if count := requested.get(item.id):
            by_session.setdefault((item.language, 0 if mixed else count), []).append(item)
    groups: list[tuple[str, ...]] = []
    used = set(handed_out)
    requests = dict(requested)
    for (language, count), group in sorted(by_session.items()):
        name = f"{language}/{count}/{number}"
        pool = [
            item
            for item in items
            if item.planted and item.language == language and item.id not in used
        ]
        pool.sort(key=lambda item: seeded_number(spec.seed, "planted", name, item.id))
        planted = choose_planted(
            pool, planted_number(len(group)) if number == 1 else len(group) // SHARE, ()
        )
        most = max(requested[item.id] for item in group)
        requests |= dict.fromkeys((item.id for item in planted), most)
        used |= {item.id for item in planted}
        group += planted
        groups += sessions(spec, group, name, may_exceed_share=may_exceed_share)
    return AssignmentSet(number, dict(sorted(requests.items())), (), tuple(groups))


def describe_crowded_sessions(one: AssignmentSet, items: Sequence[Item], care: Care) -> list[str]:
    """Return a message on sessions of a set that hold more items about a crisis than their share, and why they do."""
    crises = {item.id for item in items if item.crisis}
    groups = one.groups or _assigned_groups(one)
    crowded = []
    for group in groups:
        held = sum(item in crises for item in group)
        if held > max(1, care.crisis_share * len(group) + TOLERANCE):
            crowded.append((held, len(group)))
    if not crowded:
        return []
    held, size = max(crowded)
    total = counted(len({item for group in groups for item in group}), "item")
    number = counted(len(groups), "session")
    come_in = _sessions_each(one) if one.assignments else number
    come = "comes" if total == "1 item" else "come"
    have = "has" if len(crowded) == 1 else "have"
    return [
        f"{total} {come} in {come_in}; {len(crowded):,} of {number} {have} more items about a crisis than "
        f"care.crisis_share = {care.crisis_share:g} wants, up to {held} of {size}, because there are too few others; "
        f"they are spread evenly, and no session has more than a full session of {care.session_items} may have "
        f"({care.session_crises}). For fewer sessions set a larger share; for fewer crises in each, add other items"
    ]


def _sessions_each(one: AssignmentSet) -> str:
    """Say how many sessions each annotator has who has any: `2 sessions for each of 3 annotators`."""
    counts = Counter(
        annotator for annotator, _ in {(each.annotator, each.session) for each in one.assignments}
    )
    fewest = min(counts.values())
    most = max(counts.values())
    number = counted(most, "session")
    if fewest < most:
        number = f"{fewest:,} to {number}"
    annotators = counted(len(counts), "annotator")
    return (
        f"{number} for {annotators}" if len(counts) == 1 else f"{number} for each of {annotators}"
    )


def _assigned_groups(one: AssignmentSet) -> list[tuple[str, ...]]:
    """Return the items of each session of each annotator."""
    by_session: dict[tuple[str, int], list[str]] = {}
    for assignment in one.assignments:
        by_session.setdefault((assignment.annotator, assignment.session), []).append(
            assignment.item
        )
    return [tuple(group) for group in by_session.values()]


def _rebalance_crises(
    spec: RoundSpec,
    given: Mapping[str, list[Item]],
    annotators: Sequence[Annotator],
    assigned: Collection[tuple[str, str]],
) -> None:
    """Move crises from annotators whose sessions cannot hold them to others, if possible in exchange for an item."""
    order = sorted(
        annotators, key=lambda annotator: seeded_number(spec.seed, "relieve", annotator.id)
    )

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
                exchange = next(
                    (i for i in given[other.id] if not i.crisis and can_take(one, i)), None
                )
                if session_sizes(count + (exchange is None), crises + 1, spec.care) is not None:
                    given[one.id].remove(item)
                    given[other.id].append(item)
                    if exchange is not None:
                        given[other.id].remove(exchange)
                        given[one.id].append(exchange)
                    break


def sessions(
    spec: RoundSpec, items: Sequence[Item], name: str, *, may_exceed_share: bool = False
) -> list[tuple[str, ...]]:
    """Return ids of the items of one annotator or language, divided into sessions that respect the share of crises.

    Name and seed determine their order. Crises that do not fit are a RoundError. With `may_exceed_share` they are
    spread evenly instead: a later set may consist of crises alone, which others skipped.
    """
    care = spec.care
    seed = spec.seed
    order = sorted(items, key=lambda item: seeded_number(seed, "order", name, item.id))
    crises = [item.id for item in order if item.crisis]
    planted = [item.id for item in order if item.planted]
    others = [item.id for item in order if not item.crisis and not item.planted]
    others = spread(others, planted) if planted else others
    sizes = session_sizes(len(items), len(crises), care)
    if sizes is None and may_exceed_share and care.crisis_share:
        sizes = even_session_sizes(len(items), len(crises), care)
    if sizes is None:
        raise CrisisExcessError(
            _describe_excess(items, len(crises), care), [(len(items), len(crises))]
        )
    groups: list[tuple[str, ...]] = []
    for size, count in sizes:
        group = [*crises[:count], *others[: size - count]]
        crises = crises[count:]
        others = others[size - count :]
        groups.append(
            tuple(sorted(group, key=lambda one: seeded_number(seed, "session", name, one)))
        )
    return groups


def _describe_excess(items: Sequence[Item], crises: int, care: Care) -> str:
    """Return a message on items of which too many are about a crisis, with the tags that mark them."""
    tags = Counter(tag for item in items if item.crisis for tag in item.tags)
    by_number = sorted(tags.items(), key=lambda one: (-one[1], one[0]))
    marked = ", ".join(f"{tag} {number}" for tag, number in by_number)
    by_tags = f" (by their tags: {marked})" if marked else ""
    fit = next(n for n in range(crises, -1, -1) if session_sizes(len(items), n, care) is not None)
    return (
        f"{crises} of {len(items)} items are about a crisis{by_tags}; with care.crisis_share = {care.crisis_share:g} "
        f"and sessions of {care.session_items} at most {fit} fit"
    )


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


def even_session_sizes(count: int, crises: int, care: Care) -> tuple[tuple[int, int], ...]:
    """Return (items, crises) of each session where the share cannot be kept, with as few sessions as possible.

    Both are spread evenly, so that no session could have a smaller share. None has more crises than a full session may
    have, as the guidelines promise.
    """
    number = max(-(-count // care.session_items), -(-crises // care.session_crises))
    items_each, larger = divmod(count, number)
    crises_each, harder = divmod(crises, number)
    return tuple((items_each + (at < larger), crises_each + (at < harder)) for at in range(number))


def _min_items(crises: int, care: Care) -> int:
    """Return the smallest size of a session with so many crises."""
    if crises <= 1 and (care.crisis_share or not crises):
        return 1
    if not care.crisis_share:
        return care.session_items + 1
    return max(crises, int(-(-(crises - TOLERANCE) // care.crisis_share)))
