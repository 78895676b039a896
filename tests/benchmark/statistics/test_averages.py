"""Cells, averages, the Table-1-weighted overall, and intervals that mean what they say."""

from __future__ import annotations

import csv
import os
import random
import statistics
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.benchmark.statistics import (
    Cell,
    ItemValue,
    aggregate,
    aggregate_slices,
    mean_of,
    rate_interval,
    weighted_mean,
)
from h2htalk.data.subtasks import DIMENSIONS, SUBTASKS


def constant(by_subtask: dict[str, float | None], count: int = 3) -> list[ItemValue]:
    """`count` items a subtask, all with the same value."""
    return [ItemValue(f"{name}-{item}", name, value) for name, value in by_subtask.items() for item in range(count)]


def drawn(count: int, seed: int = 0, subtasks: tuple[str, ...] = tuple(SUBTASKS)) -> list[ItemValue]:
    draw = random.Random(seed)
    return [ItemValue(f"{name}-{item:03}", name, draw.random()) for name in subtasks for item in range(count)]


def test_a_cell_is_a_hundred_times_the_mean_of_what_was_scored() -> None:
    row = aggregate([ItemValue(str(n), "dialogue_base", value) for n, value in enumerate((0.25, None, 0.5))])
    cell = row["dialogue_base"]
    assert (cell.value, cell.n, cell.total) == (37.5, 2, 3)
    row = aggregate(constant({"dialogue_base": None}))
    assert row["dialogue_base"] == Cell(None, None, None, 0, 3)
    assert aggregate([])["overall"] == Cell(None, None, None, 0, 0)


def test_dimension_averages_are_plain_means_of_cells() -> None:
    """Not of items: a subtask with a hundred items weighs as much as one with two."""
    values = constant({"dialogue_base": 0.2}, 100) + constant({"dialogue_emotion": 0.4, "dialogue_schedule": 0.9}, 2)
    assert aggregate(values)["dialogue_avg"].value == pytest.approx(50)


def test_the_overall_is_weighted_with_table_1_and_the_other_two_stand_beside_it() -> None:
    by_subtask = {name: place / 20 for place, name in enumerate(SUBTASKS)}
    values = [one for n, (name, value) in enumerate(by_subtask.items()) for one in constant({name: value}, 1 + n)]
    row = aggregate(values)
    weighted = sum(100 * by_subtask[name] * SUBTASKS[name].count for name in SUBTASKS) / 4650
    assert row["overall"].value == pytest.approx(weighted)
    assert row["items_mean"].value == pytest.approx(
        100 * statistics.fmean(v.value for v in values if v.value is not None)
    )
    assert row["plain_mean"].value == pytest.approx(100 * statistics.fmean(by_subtask.values()))
    assert len({round(c.value or 0, 3) for c in (row["overall"], row["items_mean"], row["plain_mean"])}) == 3


@pytest.mark.parametrize("missing", SUBTASKS)
@pytest.mark.parametrize("how", ["not asked", "not scored"])
def test_an_average_with_a_missing_part_is_no_average(missing: str, how: str) -> None:
    by_subtask: dict[str, float | None] = {**dict.fromkeys(SUBTASKS, 0.5), missing: None}
    row = aggregate([one for one in constant(by_subtask) if how == "not scored" or one.value is not None])
    assert row["overall"].value is None
    for dimension in DIMENSIONS:
        expected = None if dimension == SUBTASKS[missing].dimension else pytest.approx(50)
        assert row[f"{dimension}_avg"].value == expected
    assert row["items_mean"].value == pytest.approx(50)
    assert row["plain_mean"].value == (pytest.approx(50) if how == "not asked" else None)
    assert (row["overall"].n, row["overall"].total) == (30, 30 if how == "not asked" else 33)


def test_slices_are_cells_in_alphabetical_order() -> None:
    slices = aggregate_slices([ItemValue("a", "joy", 0.5), ItemValue("b", "grief", 0.1), ItemValue("c", "joy", 0.7)])
    assert list(slices) == ["grief", "joy"]
    assert slices["joy"].value == pytest.approx(60)
    assert slices["grief"] == Cell(10.0, None, None, 1, 1)


def test_the_papers_overall_column_comes_out_of_its_cells() -> None:
    """35 of the 37 clean rows of Table 2 within 0.15; the averages of its dimensions within rounding."""
    folder = os.environ.get("H2HTALK_DATA")
    if not folder:
        pytest.skip("H2HTALK_DATA is not set: it names the folder that holds h2htalk_table2.csv")
    with (Path(folder) / "h2htalk_table2.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))[:37]  # the 13 behind them are damaged
    off = {}
    for paper in rows:
        row = aggregate([ItemValue(name, name, float(paper[name]) / 100) for name in SUBTASKS])
        assert row["overall"].value is not None
        off[paper["model"]] = row["overall"].value - float(paper["overall"])
        for dimension in DIMENSIONS:
            assert row[f"{dimension}_avg"].value == pytest.approx(float(paper[f"{dimension}_avg"]), abs=0.01)
    assert len(off) == 37
    apart = {"QwQ-32B-Preview", "DeepSeek-R1-Distill-Qwen-1.5B-Pro"}
    assert {model for model, gap in off.items() if abs(gap) > 0.15} == apart
    assert statistics.median(map(abs, off.values())) < 0.03


def test_an_average_over_a_cell_of_one_item_has_no_interval() -> None:
    # The single item would count as certain, and the average would look far surer than it is.
    several = drawn(8, subtasks=("dialogue_base", "dialogue_emotion"))
    row = aggregate([*several, ItemValue("x", "dialogue_schedule", 0.5)])
    assert row["dialogue_base"].low is not None
    for average in (row["dialogue_avg"], row["items_mean"], row["plain_mean"]):
        assert average.value is not None
        assert average.low is None


@given(st.lists(st.floats(0, 1), min_size=2, max_size=12))
def test_an_interval_holds_its_mean_and_stays_in_range(numbers: list[float]) -> None:
    cell = aggregate([ItemValue(f"{i:02}", "dialogue_base", x) for i, x in enumerate(numbers)])["dialogue_base"]
    assert 0 <= cell.low <= cell.value <= cell.high <= 100  # type: ignore[operator]


def test_row_order_does_not_matter() -> None:
    values = drawn(9)
    row = aggregate(values)
    for order in range(3):
        random.Random(order).shuffle(values)
        assert aggregate(values) == row


def test_check_values_of_intervals() -> None:
    for values, ends in (
        ([0, 0.1, 0.2, 0.25, 0.3, 0.4, 0.6], (0.1267, 0.4708)),
        ([0.0] * 7, (0, 0.4610)),
        ([-0.02, -0.01, 0.0], (0, 0.8605)),  # a mean below zero: t squared / (3 + t squared), as of 0
    ):
        mean = mean_of(values)
        assert mean is not None
        assert mean.interval() == pytest.approx(ends, abs=1e-4)
        assert mean.value < 0 or weighted_mean([mean], [3]).interval() == pytest.approx(mean.interval())
    # Wilson (1927), 81 of 263, as in statsmodels and R's binom.
    assert rate_interval(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)
