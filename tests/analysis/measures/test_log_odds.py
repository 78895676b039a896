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
    row = by_item({"rain": 8, "tea": 2}, {"rain": 3, "tea": 17})["rain"]
    assert row.count_a == 8
    assert row.count_b == 3
    # The sides have a third and two thirds of all words.
    corrected = [8 + 1 / 3, 2 + 1 / 3, 3 + 2 / 3, 17 + 2 / 3]
    odds_a = corrected[0] / corrected[1]
    odds_b = corrected[2] / corrected[3]
    estimate = math.log(odds_a) - math.log(odds_b)
    error = math.sqrt(sum(1 / count for count in corrected))
    assert row.log_odds == pytest.approx(estimate, abs=1e-12)
    assert row.low == pytest.approx(estimate - 1.96 * error, abs=1e-12)
    assert row.high == pytest.approx(estimate + 1.96 * error, abs=1e-12)
    # 11 of 30 words are "rain".
    g = 8 * math.log(8 * 30 / 110)
    g += 2 * math.log(2 * 30 / 190)
    g += 3 * math.log(3 * 30 / 220)
    g += 17 * math.log(17 * 30 / 380)
    assert row.z == pytest.approx(math.sqrt(2 * g), abs=1e-12)


def test_a_single_occurrence_in_the_larger_split_is_no_difference() -> None:
    """With half a count on both sides (Haldane, Anscombe), 0 of 23 against 1 of 4,650 gave +4.2, without zero."""
    row = by_item({"rain": 23}, {"rain": 4649, "tea": 1})["tea"]
    assert row.log_odds < 0 < row.high


@given(COUNTS, COUNTS)
def test_exchanging_the_splits_changes_the_sign_only(a: dict[str, int], b: dict[str, int]) -> None:
    rows = by_item(a, b)
    exchanged_rows = by_item(b, a)
    assert rows.keys() == exchanged_rows.keys()
    for item, row in rows.items():
        exchanged = exchanged_rows[item]
        assert exchanged.log_odds == pytest.approx(-row.log_odds, abs=1e-9)
        assert exchanged.low == pytest.approx(-row.high, abs=1e-9)
        assert exchanged.clear == row.clear


@given(COUNTS, COUNTS)
def test_every_item_that_occurs_has_a_finite_row_in_order(
    a: dict[str, int], b: dict[str, int]
) -> None:
    rows = log_odds(a, b)
    items = {item for item in a.keys() | b.keys() if a.get(item) or b.get(item)}
    assert {row.item for row in rows} == items
    assert list(rows) == sorted(rows, key=lambda row: (-row.z, row.item))
    assert rows == log_odds(dict(reversed(a.items())), dict(reversed(b.items())))
    for row in rows:
        assert row.low <= row.log_odds <= row.high
        assert all(map(math.isfinite, (row.log_odds, row.low, row.high, row.z)))


def test_against_an_empty_split_nothing_is_claimed() -> None:
    rows = log_odds({}, {"rain": 90, "tea": 9, "walk": 1})
    assert sorted(row.item for row in rows) == ["rain", "tea", "walk"]
    for row in rows:
        assert row.low < 0 < row.high
        assert row.high - row.low > 1
        assert not row.clear


def test_between_two_halves_of_one_source_almost_nothing_is_clear() -> None:
    generator = np.random.default_rng(3)
    shares = 1 / np.arange(1, 1001)
    shares /= shares.sum()
    sides = []
    for _ in range(2):
        counts = generator.multinomial(20_000, shares)
        sides.append({str(word): int(count) for word, count in enumerate(counts)})
    comparison = Comparison("words", "response", "en", log_odds(*sides))
    assert comparison.clear <= 1
    assert comparison.expected_by_chance == 0.05 * len(comparison.rows)
    assert 0 < comparison.excluding_zero <= comparison.expected_by_chance


def test_rare_words_are_not_tested_so_that_they_hide_no_frequent_one() -> None:
    """G^2 of 34 against 14 is 8.6, p = 0.0034: clear on its own, lost if a thousand rare words were tested as well."""
    often_a = {"often": 34, "the": 10_000}
    often_b = {"often": 14, "the": 10_020}
    rare = {f"word{n}": 3 for n in range(1000)}
    assert by_item(often_a | rare, often_b | rare)["often"].clear
    tested = {f"word{n}": 5 for n in range(1000)}
    assert not by_item(often_a | tested, often_b | tested)["often"].clear
    assert not by_item({"rare": 9, "the": 100}, {"the": 109})["rare"].clear
