"""Log-odds: what one split has more of, how sure that is, and what many comparisons at once leave of it."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.analysis.measures.log_odds import Comparison, LogOdds, log_odds

COUNTS = st.dictionaries(
    st.sampled_from(["rain", "tea", "walk", "我们", "今天", "=1+1"]), st.integers(0, 500)
)


def by_item(a: Mapping[str, int], b: Mapping[str, int]) -> dict[str, LogOdds]:
    return {row.item: row for row in log_odds(a, b)}


def test_the_estimate_its_interval_and_z_by_hand() -> None:
    row = by_item({"rain": 8, "tea": 2}, {"rain": 3, "tea": 17})[
        "rain"
    ]  # a third and two thirds of all words
    a = 1 / 3
    b = 2 / 3
    estimate = math.log((8 + a) / (2 + a)) - math.log((3 + b) / (17 + b))
    error = math.sqrt(1 / (8 + a) + 1 / (2 + a) + 1 / (3 + b) + 1 / (17 + b))
    g = 8 * math.log(8 * 30 / 110) + 2 * math.log(2 * 30 / 190) + 3 * math.log(3 * 30 / 220)
    g += 17 * math.log(17 * 30 / 380)
    assert (row.count_a, row.count_b) == (8, 3)
    assert row.log_odds == pytest.approx(estimate, abs=1e-12)
    assert row.low == pytest.approx(estimate - 1.96 * error, abs=1e-12)
    assert row.high == pytest.approx(estimate + 1.96 * error, abs=1e-12)
    assert row.z == pytest.approx(math.sqrt(2 * g), abs=1e-12)
    # Half a count on both sides (Haldane, Anscombe) would: 0 of 23 against 1 of 4,650 gave +4.2, without zero.
    row = by_item({"rain": 23}, {"rain": 4649, "tea": 1})["tea"]
    assert row.log_odds < 0 < row.high


@given(COUNTS, COUNTS)
def test_exchanging_the_splits_changes_the_sign_only(a: dict[str, int], b: dict[str, int]) -> None:
    there = by_item(a, b)
    back = by_item(b, a)
    assert there.keys() == back.keys()
    for item, row in there.items():
        assert back[item].log_odds == pytest.approx(-row.log_odds, abs=1e-9)
        assert back[item].low == pytest.approx(-row.high, abs=1e-9)
        assert back[item].clear == row.clear


@given(COUNTS, COUNTS)
def test_every_item_that_occurs_has_a_finite_row_in_order(
    a: dict[str, int], b: dict[str, int]
) -> None:
    rows = log_odds(a, b)
    assert {row.item for row in rows} == {
        item for side in (a, b) for item, count in side.items() if count
    }
    assert list(rows) == sorted(rows, key=lambda row: (-row.z, row.item))
    assert rows == log_odds(dict(reversed(a.items())), dict(reversed(b.items())))
    for row in rows:
        assert row.low <= row.log_odds <= row.high
        assert all(map(math.isfinite, (row.log_odds, row.low, row.high, row.z)))


def test_what_is_not_claimed() -> None:
    rows = log_odds({}, {"rain": 90, "tea": 9, "walk": 1})
    assert sorted(row.item for row in rows) == ["rain", "tea", "walk"]
    for row in rows:
        assert row.low < 0 < row.high
        assert row.high - row.low > 1
        assert not row.clear
    # Between two halves of one source almost nothing is clear.
    draw = np.random.default_rng(3)
    shares = 1 / np.arange(1, 1001)
    sides = [draw.multinomial(20_000, shares / shares.sum()) for _ in range(2)]
    rows = log_odds(*({str(w): int(y) for w, y in enumerate(s)} for s in sides))
    found = Comparison("words", "response", "en", rows)
    assert found.clear <= 1
    assert 0 < found.excluding_zero <= found.expected_by_chance == 0.05 * len(found.rows)
    # G^2 of 34 against 14 is 8.6, p = 0.0034: clear on its own, lost if a thousand rare words were tested as well.
    often_a = {"often": 34, "the": 10_000}
    often_b = {"often": 14, "the": 10_020}
    rare = {f"word{n}": 3 for n in range(1000)}
    assert by_item(often_a | rare, often_b | rare)["often"].clear
    tested = {f"word{n}": 5 for n in range(1000)}
    assert not by_item(often_a | tested, often_b | tested)["often"].clear
    assert not by_item({"rare": 9, "the": 100}, {"the": 109})["rare"].clear
