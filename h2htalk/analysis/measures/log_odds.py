"""Find the words, pairs and emotions that one split has more of: log-odds ratios, with intervals and tests.

Arithmetic only. Ranks are by the likelihood ratio G^2 (Dunning 1993, "Accurate Methods for the Statistics of Surprise
and Coincidence"), as in Monroe, Colaresi and Quinn's "Fightin' Words" (2008) by z; a count of 0 is corrected by the
sizes of the sides (Sweeting, Sutton and Lambert 2004).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from h2htalk.analysis.measures.scenario_texts import Side
from h2htalk.data.languages import Language

ComparisonKind = Literal["words", "pairs", "emotions"]
Z_95 = 1.96
CHANCE = 0.05  # how often a 95 % interval misses the truth, and the rate of false discoveries allowed to `clear`
TESTED_FROM = 10  # counts of both splits together; rarer items can hardly be clear, and testing them would hide others


@dataclass(frozen=True, slots=True)
class LogOdds:
    """One item's counts in two splits, and how much more of it the first one has.

    `log_odds` (natural logarithm) is above 0 where a has more; `low` and `high` bound the 95 % interval. `z` is the
    signed root of G^2, which orders the rows. `clear`: the difference is significant with all items tested at once
    (Benjamini and Hochberg 1995, at a false discovery rate of 5 %).
    """

    item: str
    count_a: int
    count_b: int
    log_odds: float
    low: float
    high: float
    z: float
    clear: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """One table of differences between split a and split b, in the order of `log_odds`.

    `side` is None for emotions, which belong to the scenario.
    """

    kind: ComparisonKind
    side: Side | None
    language: Language
    rows: tuple[LogOdds, ...]

    @property
    def excluding_zero(self) -> int:
        """Rows whose interval excludes 0."""
        return sum(row.low > 0 or row.high < 0 for row in self.rows)

    @property
    def expected_by_chance(self) -> float:
        """An upper bound on how many of these intervals exclude 0 if the splits do not differ: 5 % of the rows."""
        return CHANCE * len(self.rows)

    @property
    def clear(self) -> int:
        """Rows whose difference is significant with all tested at once."""
        return sum(row.clear for row in self.rows)


def log_odds(a: Mapping[str, int], b: Mapping[str, int]) -> tuple[LogOdds, ...]:
    """Compute the log-odds ratio of each item that a or b holds.

    With n_s a side's total, y_s its count and k_s = n_s / (n_a + n_b), the correction in proportion to the size:

        omega_s = log((y_s + k_s) / (n_s - y_s + k_s)),  log_odds = omega_a - omega_b
        variance = sum over s of 1 / (y_s + k_s) + 1 / (n_s - y_s + k_s)

    and the interval is log_odds +- 1.96 * sqrt(variance). Words come in bursts, which no multinomial knows: a word that
    one text repeats looks surer than it is.

    Counts are 0 or more, and a side may be empty; what both count 0 times is no row. Rows are by z descending (what a
    has more of first), then by item.
    """
    from scipy.stats import false_discovery_control

    totals = (sum(a.values()), sum(b.values()))
    rows = []
    for item in a.keys() | b.keys():
        counts = (a.get(item, 0), b.get(item, 0))
        if any(counts):
            rows.append(_row(item, counts, totals))
    rows.sort(key=lambda row: (-row.z, row.item))
    tested = [row for row in rows if row.count_a + row.count_b >= TESTED_FROM]
    if not tested:
        return tuple(rows)
    p_values = [math.erfc(abs(row.z) / math.sqrt(2)) for row in tested]
    adjusted = false_discovery_control(p_values)
    clear = set()
    for row, p_value in zip(tested, adjusted, strict=True):
        if p_value <= CHANCE:
            clear.add(row.item)
    return tuple(replace(row, clear=row.item in clear) for row in rows)


def _row(item: str, counts: tuple[int, int], totals: tuple[int, int]) -> LogOdds:
    omegas = []
    variance = 0.0
    ratio = 0.0  # G^2
    share = sum(counts) / sum(totals)
    for count, total in zip(counts, totals, strict=True):
        complement = total - count
        correction = max(1, total) / sum(totals)
        odds = (count + correction) / (complement + correction)
        omegas.append(math.log(odds))
        variance += 1 / (count + correction) + 1 / (complement + correction)
        ratio += _deviance(count, total * share)
        ratio += _deviance(complement, total * (1 - share))
    estimate = omegas[0] - omegas[1]
    margin = Z_95 * math.sqrt(variance)
    z = math.copysign(math.sqrt(max(0.0, ratio)), estimate)
    return LogOdds(
        item=item,
        count_a=counts[0],
        count_b=counts[1],
        log_odds=estimate,
        low=estimate - margin,
        high=estimate + margin,
        z=z,
    )


def _deviance(count: int, expected: float) -> float:
    """Return what a cell of the table adds to G^2."""
    return 2 * count * math.log(count / expected) if count else 0.0
