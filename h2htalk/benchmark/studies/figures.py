"""Figures of a study from its observations: rates and means with intervals, differences of arms, trends, blindness."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from h2htalk.benchmark.statistics.bootstrap import ClusteredResult, clustered_mean, clustered_slope
from h2htalk.benchmark.statistics.intervals import mean_of, rate_interval
from h2htalk.benchmark.studies.observations import Observation, scored

# The lowest and highest value of figures that are no rates or scores in [0, 1].
SCALES = {"perception": (1.0, 5.0)}
HINT = 2  # the lowest degree that is a hint
COUNTS = ("tokens",)  # figures without an upper end
RATES = ("violation", "over_refusal", "need_met", "type_named")  # of 0 and 1, as is every point


def is_rate(figure: str) -> bool:
    """Whether the values of a figure are 0 or 1; scores in [0, 1] can happen to be."""
    return figure in RATES or figure.startswith(("must.", "must_not."))


@dataclass(frozen=True, slots=True)
class Figure:
    """A rate or a mean over some observations.

    Attributes:
        value: None where nothing is scored.
        low, high: 95 %, of a rate Wilson's; None without an interval.
        hits: of a rate, how many are 1; None for others.
        n, total: how many are scored, of how many.
        by: who answered, with numbers: `judge 140, people 10`.
    """

    value: float | None
    low: float | None
    high: float | None
    hits: int | None
    n: int
    total: int
    by: str = ""


def figure_of(rows: Sequence[Observation]) -> Figure:
    """Sum up observations of one figure."""
    known = scored(rows)
    values = [row.value for row in known if row.value is not None]
    if not values:
        return Figure(None, None, None, None, 0, len(rows))
    by = _who(row.by for row in known)
    mean, name = fmean(values), rows[0].figure
    if is_rate(name):
        low, high = rate_interval(sum(values), len(values))
        return Figure(mean, low, high, int(sum(values)), len(values), len(rows), by)
    least, most = SCALES.get(name, (0.0, 1.0))
    scaled = mean_of([(one - least) / (most - least) for one in values])
    if scaled is None or name in COUNTS:
        return Figure(mean, None, None, None, len(values), len(rows), by)
    low, high = scaled.interval()
    return Figure(mean, least + low * (most - least), least + high * (most - least), None, len(values), len(rows), by)


def _who(names: Iterable[str]) -> str:
    found: dict[str, int] = {}
    for name in names:
        found[name] = found.get(name, 0) + 1
    if set(found) <= {""}:
        return ""
    if len(found) == 1:
        return next(iter(found))
    return ", ".join(f"{name} {number:,}" for name, number in sorted(found.items()))


def difference(a: Sequence[Observation], b: Sequence[Observation]) -> ClusteredResult | None:
    """The mean of b minus a at the places that both have; None where there is none."""
    before = {row.key: row.value or 0.0 for row in scored(a)}
    pairs = [(row, (row.value or 0.0) - before[row.key]) for row in scored(b) if row.key in before]
    if not pairs:
        return None
    return clustered_mean([row.cluster for row, _ in pairs], [shift for _, shift in pairs])


def trend(
    rows: Sequence[Observation], of: Callable[[Observation], float] = lambda row: float(row.turn)
) -> ClusteredResult | None:
    """The change of a figure from turn to turn within a case (or by another number, within a cluster)."""
    own = scored(rows)
    if not own:
        return None
    return clustered_slope([row.cluster for row in own], [of(row) for row in own], [row.value or 0.0 for row in own])


def by_number(
    rows: Sequence[Observation], of: Callable[[Observation], int] = lambda row: row.turn
) -> dict[int, Figure]:
    """The figure at each turn (or by another number)."""
    groups: dict[int, list[Observation]] = {}
    for row in rows:
        groups.setdefault(of(row), []).append(row)
    return {number: figure_of(own) for number, own in sorted(groups.items())}


def blindness(rows: Sequence[Observation]) -> Figure:
    """Of the needs that are met where they are commanded, the share that is missed where they are only hinted at.

    Args:
        rows: of the figure `need_met`, each cluster a family of cases in several degrees.
    """
    families: dict[str, dict[int, float | None]] = {}
    for row in rows:
        families.setdefault(row.cluster, {})[row.degree] = row.value
    hinted = [(own[min(own)], own[max(own)]) for own in families.values() if min(own) < HINT <= max(own)]
    missed = [1 - hint for told, hint in hinted if told == 1 and hint is not None]
    if not missed:
        return Figure(None, None, None, None, 0, len(families))
    low, high = rate_interval(sum(missed), len(missed))
    return Figure(fmean(missed), low, high, int(sum(missed)), len(missed), len(families))


def select(rows: Iterable[Observation], figure: str, arm: str | None = None, **fields: object) -> list[Observation]:
    """The observations of a figure, of one arm, and with these values of other fields."""
    return [
        row
        for row in rows
        if row.figure == figure
        and (arm is None or row.arm == arm)
        and all(getattr(row, name) == value for name, value in fields.items())
    ]
