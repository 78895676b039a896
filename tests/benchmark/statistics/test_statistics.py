"""Cells, averages, intervals; paired comparisons; Holm; ranks; the null class; distributions; stored oracles."""

from __future__ import annotations

import json
import math
import random
import statistics
from collections import Counter
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from h2htalk.benchmark.calibration.corrected_mean import regression
from h2htalk.benchmark.statistics import averages as own
from h2htalk.benchmark.statistics.averages import NullClass, Value, aggregate
from h2htalk.benchmark.statistics.estimates import Estimate
from h2htalk.benchmark.statistics.paired_tests import (
    Difference,
    figure_means,
    holm,
    items_needed,
    paired_figures,
    paired_result,
)
from h2htalk.benchmark.statistics.rank_correlation import closed_form, rank_correlation
from h2htalk.data.subtasks import DIMENSIONS, SUBTASKS
from h2htalk.distributions import binomial_tail, t_quantile, wilson_interval, z_quantile


def constant(by_subtask: dict[str, float | None], count: int = 3) -> list[Value]:
    return list(chain.from_iterable(repeat(value, count) for value in by_subtask.items()))


def drawn(count: int, seed: int = 0, subtasks: tuple[str, ...] = tuple(SUBTASKS)) -> list[Value]:
    draw = random.Random(seed)
    names = chain.from_iterable(repeat(name, count) for name in subtasks)
    return [(name, draw.random()) for name in names]


def test_a_cell_is_a_hundred_times_the_mean_of_what_was_scored() -> None:
    row = aggregate([("dialogue_base", value) for value in (0.25, None, 0.5)])
    cell = row["dialogue_base"]
    assert (cell.value, cell.n, cell.total) == (37.5, 2, 3)
    row = aggregate(constant({"dialogue_base": None}))
    assert row["dialogue_base"] == Estimate(None, None, None, 0, 3)
    assert aggregate([])["overall"] == Estimate(None, None, None, 0, 0)


def test_the_overall_is_weighted_with_table_1_and_the_other_two_stand_beside_it() -> None:
    by_subtask = {name: place / 20 for place, name in enumerate(SUBTASKS)}
    values: list[Value] = []
    for n, (name, value) in enumerate(by_subtask.items()):
        values += constant({name: value}, 1 + n)
    row = aggregate(values)
    weighted = sum(100 * by_subtask[name] * SUBTASKS[name].count for name in SUBTASKS) / 4650
    assert row["overall"].value == pytest.approx(weighted)
    known = [value for _, value in values if value is not None]
    assert row["items_mean"].value == pytest.approx(100 * statistics.fmean(known))
    assert row["plain_mean"].value == pytest.approx(100 * statistics.fmean(by_subtask.values()))
    for dimension in DIMENSIONS:  # means of cells, not of items
        cells = [
            value for name, value in by_subtask.items() if SUBTASKS[name].dimension == dimension
        ]
        assert row[f"{dimension}_avg"].value == pytest.approx(100 * statistics.fmean(cells))
    assert (
        len(
            {round(c.value or 0, 3) for c in (row["overall"], row["items_mean"], row["plain_mean"])}
        )
        == 3
    )


@pytest.mark.parametrize("missing", SUBTASKS)
@pytest.mark.parametrize("how", ["not asked", "not scored"])
def test_an_average_with_a_missing_part_is_no_average(missing: str, how: str) -> None:
    by_subtask: dict[str, float | None] = {**dict.fromkeys(SUBTASKS, 0.5), missing: None}
    row = aggregate(
        [one for one in constant(by_subtask) if how == "not scored" or one[1] is not None]
    )
    assert row["overall"].value is None
    for dimension in DIMENSIONS:
        expected = None if dimension == SUBTASKS[missing].dimension else pytest.approx(50)
        assert row[f"{dimension}_avg"].value == expected
    assert row["items_mean"].value == pytest.approx(50)
    assert row["plain_mean"].value == (pytest.approx(50) if how == "not asked" else None)
    assert (row["overall"].n, row["overall"].total) == (30, 30 if how == "not asked" else 33)


def test_slices_are_cells_in_alphabetical_order() -> None:
    slices = own.aggregate_slices([("joy", 0.5), ("grief", 0.1), ("joy", 0.7)])
    assert list(slices) == ["grief", "joy"]
    assert slices["joy"].value == pytest.approx(60)
    assert slices["grief"] == Estimate(10.0, None, None, 1, 1)


def test_an_average_over_a_cell_of_one_item_has_no_interval() -> None:
    # The single item would count as certain, and the average would look far surer than it is.
    several = drawn(8, subtasks=("dialogue_base", "dialogue_emotion"))
    row = aggregate([*several, ("dialogue_schedule", 0.5)])
    assert row["dialogue_base"].low > 0
    for average in (row["dialogue_avg"], row["items_mean"], row["plain_mean"]):
        assert (average.value > 0, average.low) == (True, None)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=12))
def test_an_interval_holds_its_mean_and_stays_in_range(numbers: list[float]) -> None:
    cell = aggregate([("dialogue_base", x) for x in numbers])["dialogue_base"]
    assert 0 <= cell.low <= cell.value <= cell.high <= 100


def test_row_order_does_not_matter() -> None:
    values = drawn(9)
    row = aggregate(values)
    for order in range(3):
        random.Random(order).shuffle(values)
        assert aggregate(values) == row


def test_check_values_of_intervals() -> None:
    below = (
        [-0.02, -0.01, 0.0],
        (0, 0.8605),
    )  # a mean below zero: t squared / (3 + t squared), as of 0
    for values, ends in (
        ([0, 0.1, 0.2, 0.25, 0.3, 0.4, 0.6], (0.1267, 0.4708)),
        ([0.0] * 7, (0, 0.4610)),
        below,
    ):
        mean = own.mean_of(values)
        assert mean.interval() == pytest.approx(ends, abs=1e-4)
        assert mean.value < 0 or own.weighted_mean([mean], [3]).interval() == pytest.approx(
            mean.interval()
        )


def alone(values: list[float], stratum: str = "x") -> list[Difference]:
    return [Difference(stratum, f"{stratum}{i}", v) for i, v in enumerate(values)]


def test_one_stratum_without_clusters_is_near_the_paired_t_test() -> None:
    values = np.random.default_rng(1).normal(0.1, 1, 40).tolist()
    result = paired_result(alone(values))
    expected = stats.ttest_1samp(values, 0).confidence_interval()
    assert result.estimate.interval == pytest.approx((expected.low, expected.high), abs=0.02)
    assert result.error == pytest.approx(stats.sem(values))
    assert result.effect == pytest.approx(np.mean(values) / np.std(values, ddof=1))
    assert result.detectable == pytest.approx(
        2.8 * np.std(values, ddof=1) / math.sqrt(40), rel=0.04
    )


def test_clusters_have_the_cr1_variance() -> None:
    rng = np.random.default_rng(2)
    sizes = rng.integers(1, 6, 30)
    listed = []
    for c, size in enumerate(sizes):
        listed += [Difference("x", str(c), value) for value in rng.normal(0, 1, size).tolist()]
    mean = np.mean([one.value for one in listed])
    sums = Counter[str]()
    for difference in listed:
        sums[difference.cluster] += difference.value - mean
    error = math.sqrt(30 / 29 * sum(s * s for s in sums.values())) / len(listed)
    result = paired_result(listed)
    assert (result.error, result.df) == pytest.approx((error, 29))
    assert (result.items, result.clusters) == (len(listed), 30)


def test_strata_are_weighted_and_their_order_does_not_matter() -> None:
    listed = [*alone([0.1, 0.3], "a"), *alone([0.5, 0.7, 0.9], "b")]
    result = paired_result(listed, {"a": 3, "b": 1})
    assert result.mean == pytest.approx((3 * 0.2 + 0.7) / 4)
    assert paired_result(listed[::-1], {"a": 3, "b": 1}) == result


def test_what_has_no_interval_has_none() -> None:
    """Equal runs do not differ, and of three clusters the test rejects nothing."""
    result = paired_result(alone([0.0] * 20))
    assert (result.mean, result.estimate.interval, result.effect, result.p()) == (0, None, None, 1)
    result = paired_result([*alone([0.1, 0.3]), *alone([0.5], "y")])
    assert (result.estimate.interval, result.detectable) == (None, None)
    assert 0 < result.p() <= 1


def test_figures_are_those_of_table_2_that_have_their_parts() -> None:
    names = [name for name in SUBTASKS if name.startswith("dialogue")][:3]
    some = list(chain.from_iterable(alone([0.1, 0.2], name) for name in names))
    assert list(paired_figures(some)) == [*names, "dialogue_avg", "items_mean", "plain_mean"]
    everything = list(chain.from_iterable(alone([0.1, 0.2], name) for name in SUBTASKS))
    assert {"overall", "itinerary_avg", "recollection_avg"} <= paired_figures(everything).keys()


def test_holm_by_hand() -> None:
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx(
        {"a": 0.03, "b": 0.06, "c": 0.06}
    )
    assert holm({}) == {}


@pytest.mark.parametrize(("difference", "sd"), [(3, 20), (3, 12), (4, 4.5), (0.03, 0.5)])
def test_items_needed_reach_the_power(difference: float, sd: float) -> None:
    n = items_needed(difference, sd)
    less, power = (
        stats.nct.sf(stats.t.ppf(0.975, m - 1), m - 1, difference / sd * math.sqrt(m))
        for m in (n - 2, n)
    )
    assert less < 0.8
    assert power >= 0.795


RNG = np.random.default_rng(3)


def rho(*pairs: Any) -> Any:
    """The correlation over items, each its own cluster, of one or several runs' two rows of values."""
    samples = []
    for pair in pairs:
        clusters = [str(n) for n in range(len(pair[0]))]
        samples.append((clusters, np.array(pair, float)))
    return rank_correlation(samples)


@pytest.mark.parametrize("levels", [2, 6, 50])
def test_rho_is_scipys_on_tied_values_and_averaged_over_runs(levels: int) -> None:
    """Models of another level do not add to a correlation within each."""
    x = RNG.integers(0, levels, 40).astype(float)
    y = np.round(x + RNG.normal(0, levels / 3, 40))
    found = rho([x, y])
    assert found.value == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)
    twice = rho([x, y], [x + 100, y + 100])
    assert twice.fields[:3] == pytest.approx(found.fields[:3])
    assert (found.n, twice.n) == (40, 80)
    assert rho([x, y], [x, -y]).value == pytest.approx(0, abs=1e-12)


def test_what_cannot_be_computed_is_none() -> None:
    assert rho([[1, 1, 1, 1, 1], [1, 2, 3, 4, 5]]) == Estimate(None, None, None, 5, 5)
    assert rho([[1, 2, 3], [1, 3, 2]]) == Estimate(pytest.approx(0.5), None, None, 3, 3)
    assert closed_form(0.9, 3) == Estimate(0.9, None, None, 3, 3)


def test_the_closed_form_is_bonett_and_wrights_and_a_few_perfect_pairs_are_no_certainty() -> None:
    low, high = (
        math.tanh(math.atanh(0.6) + sign * 1.959964 * math.sqrt(1.18 / 17)) for sign in (-1, 1)
    )
    assert closed_form(0.6, 20).fields[:3] == pytest.approx((0.6, low, high), abs=1e-6)
    perfect = rho([[1, 2, 3, 4], [2, 3, 4, 9]])
    assert perfect == closed_form(1.0, 4)
    assert perfect.low < 0 < perfect.high == pytest.approx(1)


def ratio_values(found: NullClass) -> tuple[float | None, ...]:
    return found.precision.value, found.recall.value, found.f1.value


@pytest.mark.parametrize(
    ("hits", "false_alarms", "misses", "others", "expected"),
    [
        (6, 2, 3, 9, (600 / 8, 600 / 9, 1200 / 17)),
        (0, 0, 3, 7, (None, 0.0, 0.0)),
        (0, 4, 0, 6, (0.0, None, 0.0)),
        (0, 0, 0, 6, (None, None, None)),
        (0, 0, 0, 0, (None, None, None)),
    ],
)
def test_ratios(
    hits: int, false_alarms: int, misses: int, others: int, expected: tuple[float | None, ...]
) -> None:
    pairs = [
        *repeat((1.0, True), hits),
        *repeat((1.0, False), false_alarms),
        *repeat((0.0, True), misses),
        *repeat((0.0, False), others),
    ]
    random.Random(1).shuffle(pairs)
    found = own.null_class(pairs, total=30)
    assert ratio_values(found) == pytest.approx(expected)
    assert (found.references, found.answers, found.hits) == (
        hits + misses,
        hits + false_alarms,
        hits,
    )
    assert {(cell.n, cell.total) for cell in (found.precision, found.recall, found.f1)} == {
        (len(pairs), 30)
    }


def test_an_item_with_several_samples_counts_by_their_share() -> None:
    """Two null answers of four on an item with a null reference are half a hit, not two."""
    found = own.null_class([(0.5, True), (0.25, False), (1.0, True)], 3)
    assert (found.references, found.answers, found.hits) == (2, 1.75, 1.5)
    assert ratio_values(found) == pytest.approx((150 / 1.75, 75, 300 / 3.75))


@pytest.mark.parametrize("p", [0.6, 0.8, 0.975, 0.995])
def test_quantiles_are_those_of_scipys_distributions(p: float) -> None:
    assert z_quantile(p) == pytest.approx(stats.norm.ppf(p), rel=1e-12)
    for df in (0.7, 1, 1.4, 6, 29.5, 400, 1e6):
        assert t_quantile(df, p) == pytest.approx(stats.t.ppf(p, df), rel=1e-9)


@pytest.mark.parametrize(("count", "of"), [(0, 5), (1, 5), (3, 7), (5, 5), (6, 5)])
@pytest.mark.parametrize("share", [0.0, 0.2, 1.0])
def test_the_binomial_tail_is_that_of_scipys_distribution(
    count: int, of: int, share: float
) -> None:
    assert binomial_tail(count, of, share) == pytest.approx(
        stats.binom.sf(count - 1, of, share), rel=1e-9
    )


def test_wilsons_interval() -> None:
    # Newcombe, Statistics in Medicine 17 (1998), table I; of a share of 0 or 1 one end is the share itself.
    assert wilson_interval(81 / 263, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson_interval(0, 20) == pytest.approx((0, 0.1611), abs=5e-5)
    assert wilson_interval(1, 29)[1] == 1


STORED = json.loads((Path(__file__).parent / "judge_oracles.json").read_text())


@pytest.mark.parametrize("one", STORED, ids=lambda one: f"{one['error']}-{len(one['labels'])}")
def test_the_regression_is_that_of_ppi_python_and_near_cje_eval(one: dict[str, Any]) -> None:
    """`ppi_mean_pointestimate` with lam = b (1 - n/N); the labels are those of the first items."""
    found = regression(one["scores"], dict(enumerate(one["labels"])))
    mean = found.population
    assert mean.value == pytest.approx(one["ppi_regression"], abs=1e-12)
    if one["error"] != "blunders":
        value, error, low, high = one["cje"]
        assert abs(mean.value - value) <= 1.2 * error
        assert 0.6 <= ((mean.high or 0) - (mean.low or 0)) / (high - low) <= 1.1


def test_means_of_figures_are_those_of_their_tests() -> None:
    draw = random.Random(1)
    for number in (1, 4, len(SUBTASKS)):
        names = draw.sample(list(SUBTASKS), number)
        values = []
        for name in names:
            for k in range(draw.randint(1, 9)):
                values.append(Difference(name, str(k), draw.uniform(0, 100)))
        tested = {key: result.mean for key, result in paired_figures(values).items()}
        assert figure_means(values) == pytest.approx(tested, abs=1e-9)
