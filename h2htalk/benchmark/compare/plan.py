"""How many items and samples a comparison needs: from the variance of two runs, or for assumed ones."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import variance

from h2htalk.benchmark.compare.comparison import Moved, compare
from h2htalk.benchmark.statistics.paired import detectable_difference, items_needed
from h2htalk.benchmark.statistics.table2_averages import figure_weights
from h2htalk.errors import ConfigError
from h2htalk.text.tables import Table

SAMPLES = (1, 2, 3, 5, 10)
# Standard deviations of paired differences, in points: two similar models, and two that differ much.
ASSUMED = (10.0, 15.0, 20.0, 25.0, 30.0)
LIMITS = (50, 100, 154, 350, 1000, 4650)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a difference needs.

    Attributes:
        difference: in points (0-100).
        needed: (standard deviation of the items' differences, samples an item) -> items for 80 % power at 5 %.
        detectable: (standard deviation, items) -> the difference that as many items find, with the runs' samples.
        seen: where two runs were given: what they showed.
    """

    difference: float
    needed: dict[tuple[float, int], int]
    detectable: dict[tuple[float, int], float]
    seen: str = ""


def plan(
    difference: float,
    runs: Sequence[str | os.PathLike[str]] = (),
    limits: Sequence[int] = LIMITS,
    metric: str | None = None,
) -> Plan:
    """Plan a comparison.

    Args:
        difference: that should be found four times in five, in points (0-100).
        runs: two scored runs, whose differences an item vary as those to come will; none: a range is shown.
        limits: numbers of items whose detectable difference is told.
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
        return Plan(difference, needed, {(sd, n): detectable_difference(sd, n) for sd in ASSUMED for n in limits})
    if len(runs) != 2:
        raise ConfigError(f"--runs takes two runs, not {len(runs)}")
    pair = compare(runs[0], runs[1], metric=metric).pairs[0]
    row = pair.headline.result
    if not row.error or row.df is None:
        raise ConfigError("the two runs do not say how much differences vary; name two that differ in several items")
    # Of the weighted figure: as that many independent items of equal weight would have.
    sd, df = row.error * math.sqrt(row.items), row.df / row.items
    own, samples = _within(pair.moved, pair.headline.key)
    own = min(own, sd**2 * samples)  # by chance answers can vary more than their means say; the runs' own sd holds
    between = sd**2 - own / samples
    counts = sorted({*SAMPLES, samples}) if samples > 1 else (samples,)
    needed = {(round(sd, 1), k): items_needed(difference, math.sqrt(between + own / k), df) for k in counts}
    seen = f"{row.items:,} items, differences with standard deviation {sd:.1f}"
    if samples > 1:
        seen += f", of which {math.sqrt(own / samples):.1f} between answers to one item ({samples} an item)"
    return Plan(difference, needed, {(round(sd, 1), n): detectable_difference(sd, n, df) for n in limits}, seen)


def _within(moved: Sequence[Moved], figure: str) -> tuple[float, int]:
    """The variance of a difference of single answers to one item, and how many answers an item has.

    Items count by the square of their weight in the figure, as in the variance of the figure.
    """
    samples = min(min(len(one.a.values), len(one.b.values)) for one in moved)
    if samples < 2:
        return 0.0, 1
    counts = Counter(one.subtask for one in moved)
    weights = figure_weights(counts)[figure] or dict(counts)  # a log of another harness has no subtasks
    mass = math.fsum(weights.values())
    return len(moved) * math.fsum(
        (variance(one.a.values) + variance(one.b.values)) * (weights[one.subtask] / mass / counts[one.subtask]) ** 2
        for one in moved
    ), samples


def plan_lines(made: Plan) -> Iterator[str]:
    """The plan for the terminal."""
    if made.seen:
        yield f"seen: {made.seen}"
    yield f"to find a difference of {made.difference:g} points four times in five (two-sided, 5 %):"
    for (sd, samples), items in made.needed.items():
        answers = "1 answer an item" if samples == 1 else f"{samples} answers an item"
        yield f"  {items:>8,} items, {answers}" + ("" if made.seen else f", where differences vary by {sd:g}")
    sds = list(dict.fromkeys(sd for sd, _ in made.detectable))
    yield "what fewer items find (--limit), with the same answers an item:"
    sizes = dict.fromkeys(n for _, n in made.detectable)
    rows = [(n, *(f"{made.detectable[sd, n]:.2f}" for sd in sds)) for n in sizes]
    yield from Table("", ("items", *(f"sd {sd:g}" for sd in sds)), rows).to_terminal().splitlines()
