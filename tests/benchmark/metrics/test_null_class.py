"""RecollectionSynthesis's null line as a class of its own: precision, recall, F1, with items and intervals."""

from __future__ import annotations

import random

import pytest

from h2htalk.benchmark.statistics import Cell, NullClass, null_class


def values(found: NullClass) -> tuple[float | None, float | None, float | None]:
    return found.precision.value, found.recall.value, found.f1.value


def cells(found: NullClass) -> tuple[Cell, Cell, Cell]:
    return found.precision, found.recall, found.f1


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
def test_the_ratios_by_hand(
    hits: int, false_alarms: int, misses: int, others: int, expected: tuple[float | None, ...]
) -> None:
    pairs = [(1.0, True)] * hits + [(1.0, False)] * false_alarms
    pairs += [(0.0, True)] * misses + [(0.0, False)] * others
    random.Random(1).shuffle(pairs)
    found = null_class(pairs, total=30)
    assert values(found) == pytest.approx(expected)
    assert (found.references, found.answers, found.hits) == (hits + misses, hits + false_alarms, hits)
    assert {(cell.n, cell.total) for cell in cells(found)} == {(len(pairs), 30)}


def test_an_item_with_several_samples_counts_by_their_share() -> None:
    """Two null answers of four on an item with a null reference are half a hit, not two."""
    found = null_class([(0.5, True), (0.25, False), (1.0, True)], 3)
    assert (found.references, found.answers, found.hits) == (2, 1.75, 1.5)
    assert values(found) == pytest.approx((150 / 1.75, 75, 300 / 3.75))
