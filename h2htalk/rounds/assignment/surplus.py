"""Items about a crisis that sessions cannot hold: what the manager can set, or what is left to a later round."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace

from h2htalk.errors import RoundError, counted
from h2htalk.rounds.assignment.assignments import (
    AssignmentSet,
    CrisisExcessError,
    seeded_number,
    session_sizes,
)
from h2htalk.rounds.items import Item
from h2htalk.rounds.settings import RoundSpec

FirstSet = tuple[
    tuple[Item, ...], AssignmentSet
]  # items, planted ones among them, and their first assignments
MakeFirst = Callable[[RoundSpec, Sequence[Item]], FirstSet]


def first_set(
    spec: RoundSpec, items: Sequence[Item], make: MakeFirst
) -> tuple[tuple[Item, ...], FirstSet]:
    """Return the items of a round, without those that `spread` leaves to a later one, and their first assignments.

    Raise RoundError where sessions cannot hold the items about a crisis: it names an annotator, and the share that
    would do.
    """
    try:
        return tuple(items), make(spec, items)
    except CrisisExcessError as error:
        if spec.spread and (fitting := _fitting_items(spec, items, make)):
            return fitting, make(spec, fitting)
        share = _sufficient_share(spec, items, make, error)
        raise RoundError(f"{error}; {_advice(spec, share)}") from error


def _fits(spec: RoundSpec, items: Sequence[Item], make: MakeFirst) -> bool:
    try:
        make(spec, items)
    except CrisisExcessError:
        return False
    return True


def _fitting_items(spec: RoundSpec, items: Sequence[Item], make: MakeFirst) -> tuple[Item, ...]:
    """Return the items with as many crises as fit, drawn by the seed; none where not even one fits."""
    crises = sorted(
        (item.id for item in items if item.crisis),
        key=lambda name: seeded_number(spec.seed, "later round", name),
    )
    others = sum(not item.crisis for item in items)

    def with_crises(number: int) -> tuple[Item, ...]:
        chosen = set(crises[:number])
        return tuple(item for item in items if not item.crisis or item.id in chosen)

    fewest = 0 if others else 1
    if not _fits(spec, with_crises(fewest), make):
        return ()
    most = len(crises)
    while most - fewest > 1:
        middle = (fewest + most) // 2
        if _fits(spec, with_crises(middle), make):
            fewest = middle
        else:
            most = middle
    return with_crises(fewest)


def _sufficient_share(
    spec: RoundSpec, items: Sequence[Item], make: MakeFirst, error: CrisisExcessError
) -> float:
    """Return the smallest share, in hundredths, with which the round can be opened."""
    for hundredths in range(int(spec.care.crisis_share * 100) + 1, 101):
        share = hundredths / 100
        care = replace(spec.care, crisis_share=share)
        if any(session_sizes(count, crises, care) is None for count, crises in error.held):
            continue
        if _fits(replace(spec, care=care), items, make):
            return share
    return 1.0


def _advice(spec: RoundSpec, share: float) -> str:
    if spec.spread:
        return f"not even one fits: set crisis_share = {share:g} under [care] in the file of --settings"
    return (
        f"set crisis_share = {share:g} under [care] in the file of --settings, add other items, or leave the surplus "
        "to a later round with --spread"
    )


def describe_surplus(spec: RoundSpec, items: Sequence[Item], held: Sequence[Item]) -> list[str]:
    """Return a message on the items that a round leaves to a later one, with the command that opens it."""
    left = len(items) - len(held)
    if not left:
        return []
    crises = counted(sum(item.crisis for item in items), "item")
    source = shlex.quote(str(spec.items))
    command = f"h2htalk round open {spec.kind} {source} --new --spread --out FOLDER"
    return [
        f"--spread: {left:,} of {crises} about a crisis {'is' if left == 1 else 'are'} left to a later round, as they "
        f"exceed care.crisis_share = {spec.care.crisis_share:g}; open it after this one, with the same settings: "
        f"`{command}`"
    ]
