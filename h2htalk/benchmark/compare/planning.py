"""How many items find a difference between two models, and what fewer items still find."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import variance

from h2htalk.benchmark.compare.comparison import Moved, compare
from h2htalk.benchmark.statistics.averages import figure_weights
from h2htalk.benchmark.statistics.paired_tests import detectable_difference, items_needed
from h2htalk.data.settings import AnyPath
from h2htalk.errors import ConfigError
from h2htalk.text.tables import Table

SAMPLES = (1, 2, 3, 5, 10)
# Standard deviations of paired differences, in points: two similar models, and two that differ much.
ASSUMED = (10.0, 15.0, 20.0, 25.0, 30.0)
ITEMS = (50, 100, 154, 350, 1000, 4650)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a difference, in points (0-100), needs.

    `needed`: (standard deviation of the items' differences, samples an item) -> items for 80 % power at 5 %.
    `detectable`: (standard deviation, items) -> the difference that as many items find. `seen`: what two runs showed.
    """

    difference: float
    needed: dict[tuple[float, int], int]
    detectable: dict[tuple[float, int], float]
    seen: str = ""


def plan(
    difference: float,
    runs: Sequence[AnyPath] = (),
    items: Sequence[int] = ITEMS,
    metric: str | None = None,
) -> Plan:
    """Say how many items find a difference, in points (0-100), four times in five.

    Args:
        runs: two scored runs, whose differences an item vary as those to come will; none: a range is shown.
        items: numbers of items for which to report the detectable difference.
        metric: as of `compare`.

    Examples:
        >>> import h2htalk
        >>> h2htalk.plan(3).needed[20.0, 1]
        351

    Raises:
        ConfigError: the difference is not between 0 and 100, or there are not two runs; also as `compare`.
        DataError: as `compare`.
    """
    if not 0.01 <= difference <= 100:
        raise ConfigError(f"--difference {difference:g}: must be 0.01 to 100 points")
    if not runs:
        needed = {(sd, 1): items_needed(difference, sd) for sd in ASSUMED}
        detectable = {}
        for sd in ASSUMED:
            for number in items:
                detectable[sd, number] = detectable_difference(sd, number)
        return Plan(difference, needed, detectable)
    if len(runs) != 2:
        raise ConfigError(f"--runs takes two runs, not {len(runs)}")
    pair = compare(runs[0], runs[1], metric=metric).pairs[0]
    result = pair.headline.result
    if not result.error or result.df is None:
        raise ConfigError(
            "the two runs do not say how much differences vary; name two that differ in several items"
        )
    # Of the weighted figure: as that many independent items of equal weight would have.
    sd = result.error * math.sqrt(result.items)
    df = result.df / result.items
    within, samples = _within(pair.moved, pair.headline.key)
    # By chance answers can vary more than their means say; the runs' own sd holds.
    within = min(within, sd**2 * samples)
    between = sd**2 - within / samples
    rounded = round(sd, 1)
    needed = {}
    for number in sorted({*SAMPLES, samples}) if samples > 1 else (samples,):
        deviation = math.sqrt(between + within / number)
        needed[rounded, number] = items_needed(difference, deviation, df)
    detectable = {(rounded, number): detectable_difference(sd, number, df) for number in items}
    seen = f"{result.items:,} items, differences with standard deviation {sd:.1f}"
    if samples > 1:
        seen += f", of which {math.sqrt(within / samples):.1f} between answers to one item ({samples} an item)"
        seen += ". The answers to an item were averaged before the runs were compared."
    return Plan(difference, needed, detectable, seen)


def _within(moved: Sequence[Moved], figure: str) -> tuple[float, int]:
    """The variance of a difference of single answers to one item, and how many answers an item has.

    Items count by the square of their weight in the figure, as in the variance of the figure.
    """
    samples = min(min(len(item.a.values), len(item.b.values)) for item in moved)
    if samples < 2 or moved[0].a.reducer:
        return 0.0, 1
    counts = Counter(item.a.subtask for item in moved)
    weights = figure_weights(counts)[figure]
    if not weights:  # a log of another harness has no subtasks
        weights = {name: float(count) for name, count in counts.items()}
    mass = math.fsum(weights.values())
    terms = []
    for item in moved:
        subtask = item.a.subtask
        spread = variance(item.a.values) + variance(item.b.values)
        terms.append(spread * (weights[subtask] / mass / counts[subtask]) ** 2)
    return len(moved) * math.fsum(terms), samples


def plan_tables(sizes: Plan) -> tuple[Table, Table]:
    """How many items find the difference, and what fewer items find."""
    deviation = "standard deviation of the two runs" if sizes.seen else "standard deviation"
    needed = Table(
        f"To find a difference of {sizes.difference:g} points four times in five (two-sided, 5 %)",
        ("items", "answers an item", deviation),
        [(items, samples, sd) for (sd, samples), items in sizes.needed.items()],
    )
    if sizes.seen:
        needed = replace(needed, notes=[f"seen: {sizes.seen}"])
    sds = list(dict.fromkeys(sd for sd, _ in sizes.detectable))
    rows = []
    for number in dict.fromkeys(number for _, number in sizes.detectable):
        rows.append((number, *(sizes.detectable[sd, number] for sd in sds)))
    title = "What fewer items find (--items), with the same answers an item"
    return needed, Table(title, ("items", *(f"sd {sd:g}" for sd in sds)), rows)
