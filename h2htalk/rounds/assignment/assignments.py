"""Who gets which item, and when: balanced draws that depend on the seed and the ids alone, never on row order."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from h2htalk.data.languages import Language
from h2htalk.errors import RoundError, counted
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.assignment.session_sizes import room, session_sizes
from h2htalk.rounds.items import Item
from h2htalk.rounds.settings import Care


@dataclass(frozen=True, slots=True)
class Assignment:
    """One item in front of one annotator: in which session (from 1) and at which place of all theirs (from 1)."""

    annotator: str
    item: str
    session: int
    place: int


@dataclass(frozen=True, slots=True)
class AssignmentSet:
    """Items that went out together.

    Attributes:
        number: from 1.
        wanted: item -> answers that this assignment set is to bring.
        assignments: who got what, where the platform lets us say so; empty where its server decides.
        groups: items by session, for a platform whose server decides who gets them.
    """

    number: int
    wanted: Mapping[str, int]
    assignments: tuple[Assignment, ...] = ()
    groups: tuple[tuple[str, ...], ...] = ()


def draw(seed: int, *names: str) -> int:
    """A number for names, the same for the same seed: what shuffles without a state. 0 to 2^64 - 1."""
    text = "\0".join((str(seed), *names))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def may_see(annotator: Annotator, item: Item) -> bool:
    """Whether an item may go to an annotator: in their language, and no crisis to who wants none."""
    return annotator.here and item.language in annotator.languages and (annotator.crisis or not item.crisis)


def assignment(
    number: int,
    items: Sequence[Item],
    wanted: Mapping[str, int],
    annotators: Sequence[Annotator],
    seen: Collection[tuple[str, str]],
    care: Care,
    seed: int,
    *,
    alone: bool = False,
) -> AssignmentSet:
    """An assignment set in which every item has its annotators, each annotator about as many items, and of these
    about as many hard ones.

    Args:
        number: of the assignment set, from 1.
        items: of the round.
        wanted: item -> answers asked for in this assignment set.
        annotators: of the round; those who left get nothing.
        seen: (item, annotator) pairs that were seated before: nobody gets an item twice.
        care: sessions and their share of crises.
        seed: of the round.
        alone: whether crises that fit in no session go out one by one (`sessions`).

    Raises:
        RoundError: an item has fewer annotators left than answers wanted, or crises cannot be spread so thin.
    """
    load = dict.fromkeys((annotator.id for annotator in annotators), 0)
    hard = dict(load)
    given: dict[str, list[Item]] = {annotator.id: [] for annotator in annotators}
    ordered = sorted(items, key=lambda item: draw(seed, "item", str(number), item.id))
    short: dict[tuple[Language, bool], tuple[int, int, int]] = {}
    for item in ordered:
        count = wanted.get(item.id, 0)
        able = [v for v in annotators if may_see(v, item) and (item.id, v.id) not in seen] if count else []
        if len(able) < count:
            key = (item.language, item.crisis)
            short[key] = (short.get(key, (0, 0, 0))[0] + 1, count, len(able))
            continue
        able.sort(
            key=lambda v: (
                hard[v.id] if item.crisis else 0,
                load[v.id],
                draw(seed, "annotator", item.id, v.id),
            )
        )
        for annotator in able[:count]:
            given[annotator.id].append(item)
            load[annotator.id] += 1
            hard[annotator.id] += item.crisis
    if short:
        raise RoundError(_too_few(short))
    _relieve(given, annotators, seen, care, seed)
    assignments: list[Assignment] = []
    for annotator in annotators:
        groups = sessions(given[annotator.id], care, seed, annotator.id, alone=alone)
        places = ((at, item) for at, group in enumerate(groups, 1) for item in group)
        assignments += [
            Assignment(annotator.id, item, at, place) for place, (at, item) in enumerate(places, 1)
        ]
    return AssignmentSet(number, dict(sorted(wanted.items())), tuple(assignments))


def group(
    number: int,
    items: Sequence[Item],
    wanted: Mapping[str, int],
    care: Care,
    seed: int,
    *,
    alone: bool = False,
    everybody: bool = False,
) -> AssignmentSet:
    """An assignment set whose items a server hands out: sessions of one language each, crises spread over them.

    Items of one session want the same number of answers, for a server has one number for all of them; unless
    `everybody` gets all that they may see (a pilot): fewer answers to crises, which fewer people read, are no reason
    then to put them together. `alone` as of `assignment`.
    """
    groups: list[tuple[str, ...]] = []
    out = [item for item in items if wanted.get(item.id)]
    kinds = sorted({(item.language, 0 if everybody else wanted[item.id]) for item in out})
    for language, count in kinds:
        theirs = [i for i in out if i.language == language and (everybody or wanted[i.id] == count)]
        groups += sessions(theirs, care, seed, f"{language}/{count}/{number}", alone=alone)
    return AssignmentSet(number, dict(sorted(wanted.items())), (), tuple(groups))


def _relieve(
    given: Mapping[str, list[Item]],
    annotators: Sequence[Annotator],
    seen: Collection[tuple[str, str]],
    care: Care,
    seed: int,
) -> None:
    """Hand crises of annotators whose sessions cannot hold them to annotators whose sessions can, for a plain item or
    none.
    """
    ordered = sorted(annotators, key=lambda annotator: draw(seed, "relieve", annotator.id))

    def held(annotator: Annotator, more: int = 0) -> tuple[int, int]:
        return len(given[annotator.id]) + more, sum(item.crisis for item in given[annotator.id]) + more

    def takes(annotator: Annotator, item: Item) -> bool:
        return (
            may_see(annotator, item)
            and (item.id, annotator.id) not in seen
            and item not in given[annotator.id]
        )

    def fits(count: int, hard: int) -> bool:
        return session_sizes(count, hard, care) is not None

    def handed(one: Annotator, item: Item) -> bool:
        able = [v for v in ordered if v is not one and takes(v, item)]
        for other in sorted(able, key=lambda v: held(v)[1]):
            count, hard = held(other, 1)
            back = [i for i in given[other.id] if not i.crisis and takes(one, i)]
            if not fits(count - bool(back), hard):
                continue
            given[one.id].remove(item)
            given[other.id].append(item)
            if back:
                given[other.id].remove(back[0])
                given[one.id].append(back[0])
            return True
        return False

    for one in ordered:
        for item in [item for item in given[one.id] if item.crisis]:
            if fits(*held(one)):
                break
            handed(one, item)


def sessions(
    items: Sequence[Item], care: Care, seed: int, name: str, *, alone: bool = False
) -> list[tuple[str, ...]]:
    """Ids in random order, cut into sessions of which no more than the stated share speaks of a crisis.

    Args:
        items: of one annotator, or one language.
        care: session size, share of crises.
        seed: of the round.
        name: whose order this is: another name, another order.
        alone: whether crises that fit in no session go out one by one, each a session of its own, at the end: a
            later assignment set may be of nothing but crises that others skipped.

    Raises:
        RoundError: there are more crises than the sessions may hold.
    """
    order = sorted(items, key=lambda item: draw(seed, "order", name, item.id))
    hard = [item.id for item in order if item.crisis]
    plain = [item.id for item in order if not item.crisis]
    singles: list[str] = []
    while alone and care.crisis_share and session_sizes(len(plain) + len(hard), len(hard), care) is None:
        singles.append(hard.pop())
    sizes = session_sizes(len(plain) + len(hard), len(hard), care)
    if sizes is None:
        raise RoundError(
            f"{len(hard)} of {len(order)} items speak of a crisis, more than care.crisis_share = "
            f"{care.crisis_share:g} of sessions of {care.session_items} can hold ({room(len(order), care)}); add other "
            "items, or state a larger share and make the sessions short"
        )
    groups: list[tuple[str, ...]] = []
    for size, crises in sizes:
        taken, hard = hard[:crises], hard[crises:]
        rest, plain = plain[: size - crises], plain[size - crises :]
        mixed = sorted([*taken, *rest], key=lambda one: draw(seed, "session", name, one))
        groups.append(tuple(mixed))
    return [*groups, *((one,) for one in reversed(singles))]


def _too_few(short: Mapping[tuple[Language, bool], tuple[int, int, int]]) -> str:
    told = []
    for (language, crisis), (number, count, able) in sorted(short.items()):
        crises = " on crises" if crisis else ""
        wanted = f"{counted(number, 'item')} in {language}{crises}: {counted(count, 'annotator')} wanted"
        told.append(f"{wanted}, {able} can be asked")
    consent = " (yes under crisis is consent to read of crises)" * any(hard for _, hard in short)
    return f"{'; '.join(told)}; name more annotators{consent}, or a smaller overlap"
