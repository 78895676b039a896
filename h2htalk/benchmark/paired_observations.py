"""Pairs of observations at the places that two arms or runs both scored, and the mean of their differences.

Values that different kinds of raters gave are not compared: people's answer and a judge's about one reply differ as
raters do, and not as replies do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from h2htalk.benchmark.observations import Observation, scored
from h2htalk.benchmark.raters import CODE, PEOPLE, kinds_of
from h2htalk.benchmark.statistics.paired_tests import Difference, PairedResult, paired_result

VIOLATION = "violation"


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedObservations:
    """The places that both sides scored: pairs of one kind of rater, and pairs that are not compared."""

    pairs: tuple[tuple[Observation, Observation], ...]
    unlike: tuple[tuple[Observation, Observation], ...] = ()

    @property
    def shifts(self) -> list[tuple[str, float]]:
        """The second value minus the first, with its cluster, of each pair of one kind of rater."""
        return [
            (second.cluster, (second.value or 0.0) - (first.value or 0.0))
            for first, second in self.pairs
        ]


def pair(first: Sequence[Observation], second: Sequence[Observation]) -> PairedObservations:
    """Pair the observations of one figure by their places; places that one side did not score are left out."""
    before = {row.key: row for row in scored(first)}
    pairs = list[tuple[Observation, Observation]]()
    unlike = list[tuple[Observation, Observation]]()
    for row in scored(second):
        earlier = before.get(row.key)
        if earlier is None:
            continue
        chosen = pairs if is_comparable(earlier, row) else unlike
        chosen.append((earlier, row))
    return PairedObservations(pairs=tuple(pairs), unlike=tuple(unlike))


def is_comparable(first: Observation, second: Observation) -> bool:
    """Whether one kind of rater gave two values.

    A rule of code decides what it can, whoever answers what it leaves open; so a value of code alone is compared with
    one of a judge, and of a point also with one of people. Whether a reply is a violation people say of the whole
    reply, which no rule of code does.
    """
    kinds = [frozenset(kinds_of(row.by)) - {CODE, ""} for row in (first, second)]
    if kinds[0] == kinds[1]:
        return True
    if all(kinds):
        return False
    return first.figure != VIOLATION or PEOPLE not in kinds[0] | kinds[1]


def difference(first: Sequence[Observation], second: Sequence[Observation]) -> PairedResult | None:
    """The mean of the second minus the first at the places that both have, tested as `compare` tests runs.

    None where there is no such place.
    """
    shifts = pair(first, second).shifts
    differences = [Difference("", cluster, shift) for cluster, shift in shifts]
    return paired_result(differences) if differences else None
