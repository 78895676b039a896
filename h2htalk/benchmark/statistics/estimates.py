"""The record of a figure with its 95 % interval, whatever it is a figure of: a run, a study, a comparison."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from h2htalk.distributions import Interval

FIELDS = ("value", "low", "high", "n", "total")  # what files hold of an estimate
_OF_STUDIES = (("answered_by", ""), ("hits", None), ("tied", 0))  # where they say nothing


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure over `n` scored values of `total`, and the ends of its 95 % interval.

    The value is None where nothing is scored, or where a part of an average is missing; the ends are None where there
    is no interval, such as of one item. The unit is that of the figure: 0 to 100 in tables of runs, 0 to 1 in studies.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    total: int
    answered_by: str = ""  # who answered, in studies with numbers: `judge 140, people 10`
    hits: int | None = None  # how many values of a rate are 1
    tied: int = 0  # values of a rate or a share about which people are tied; they are not scored

    @property
    def interval(self) -> Interval | None:
        """Both ends, or None without an interval."""
        return interval_of(self.low, self.high)

    @property
    def tie_range(self) -> Interval | None:
        """The value with all tied ones at 0, and at 1; None where nobody is tied."""
        if not self.tied:
            return None
        total = self.n + self.tied
        hits = 0.0 if self.value is None else self.value * self.n
        return hits / total, (hits + self.tied) / total

    @property
    def fields(self) -> tuple[float | None, float | None, float | None, int, int]:
        """The values of `FIELDS`."""
        return self.value, self.low, self.high, self.n, self.total


def interval_of(low: float | None, high: float | None) -> Interval | None:
    """Return both ends, or None where there are none."""
    return None if low is None or high is None else (low, high)


def without_value(n: int, total: int) -> Estimate:
    """Return the estimate of a figure that has no value."""
    return Estimate(None, None, None, n, total)


def stored_fields(fields: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return a record as files hold it: without what only estimates of studies say, where it says nothing.

    A `dict_factory` of `dataclasses.asdict`.
    """
    return dict(field for field in fields if field not in _OF_STUDIES)
