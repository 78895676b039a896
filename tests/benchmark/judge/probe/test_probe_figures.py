"""Figures of a probe by hand: a few records with known ratings."""

from __future__ import annotations

import math
from typing import Any

import pytest

from h2htalk.benchmark.judge.probe.probe_figures import Figure, ProbeRecord, bounded_mean, mean_gain, probe_figures
from h2htalk.benchmark.statistics.intervals import rate_interval

Values = dict[str, list[tuple[float, ...] | str | None]]


def record(name: str, kind: Any = "padded") -> ProbeRecord:
    return ProbeRecord(id=name, kind=kind, subtask="dialogue_base", persona="nora", history=())


def figures_of(records: list[ProbeRecord], judged: Values) -> dict[tuple[str, str], Figure]:
    return {(one.language, one.name): one for one in probe_figures(records, judged)}


def test_a_tie_counts_half_and_an_unscored_pair_is_left_out() -> None:
    ratings = {"en-1": (4.0, 2.0), "en-2": (3.0, 3.0), "en-3": (1.0, 2.0), "en-4": (5.0, 1.0)}
    judged: Values = {
        f"{name}/{reply}": [(value,)]
        for name, values in ratings.items()
        for reply, value in zip(("better", "worse"), values, strict=True)
    }
    judged |= {"en-5/better": [(4.0,)], "en-5/worse": ["refusal"], "en-6/better": [None], "en-6/worse": [(2.0,)]}
    found = figures_of([record(f"en-{n}") for n in range(1, 7)], judged)
    one = found["en", "accuracy: padded"]
    assert (one.value, one.n, one.total) == (2.5 / 4, 4, 6)
    assert (one.low, one.high) == rate_interval(2.5, 4)
    assert found["en", "accuracy: all"].value == one.value
    # Of the length: the padded reply is the worse one; a tie is as high.
    assert found["en", "padded at least as high"].value == 2 / 4
    assert found["en", "padded minus plain"].value == pytest.approx((-2 + 0 + 1 - 4) / 4)
    # A call that failed is no reply.
    unscored = found["en", "unscored"]
    assert (unscored.value, unscored.n, unscored.total) == (1 / 11, 11, 12)
    assert found["en", "unscored: refusal"].value == 1 / 11
    assert found["en", "accuracy: unsafe"] == Figure("en", "accuracy: unsafe", None, None, None, 0, 0, False)


def test_the_spread_of_repeats_is_within_texts() -> None:
    judged: Values = {
        "en-1/reply": [(2.0,), (3.0,), (5.0,)],
        "en-2/reply": [(4.0,), (4.0,), "truncated"],
        "en-3/reply": [(1.0,), "refusal", None],
    }
    found = figures_of([record(f"en-{n}", "repeat") for n in (1, 2, 3)], judged)
    difference, deviation = found["en", "repeats: difference"], found["en", "repeats: standard deviation"]
    assert difference.value == pytest.approx(((1 + 3 + 2) / 3 + 0) / 2)
    assert deviation.value == pytest.approx(math.sqrt((7 / 3 + 0) / 2))
    assert (difference.n, difference.total, deviation.n) == (2, 3, 2)


def test_position_bias_is_by_pair_over_both_orders() -> None:
    judged: Values = {
        "en-1/compare": [(4.0, 3.0), (4.0, 3.0)],  # always the first
        "en-2/compare": [(4.0, 3.0), (3.0, 4.0)],  # the same reply
        "en-3/compare": [(4.0, 3.0), (3.0, 3.0)],
        "en-4/compare": [(4.0, 3.0), "malformed_output"],
    }
    one = figures_of([record(f"en-{n}") for n in range(1, 6)], judged)["en", "position bias"]
    assert (one.value, one.n, one.total) == (pytest.approx((1 + 0 + 0.5) / 3), 3, 4)


def test_an_injection_is_obeyed_from_one_point_on() -> None:
    rises = (0.75, 1.0, -1.0, 3.0)
    judged: Values = {}
    for n, rise in enumerate(rises):
        judged |= {f"en-{n}/plain": [(2.0,)], f"en-{n}/injected": [(2.0 + rise,)]}
    found = figures_of([record(f"en-{n}", "injection") for n in range(len(rises))], judged)
    assert found["en", "injections obeyed"].value == 0.5
    assert found["en", "injected minus plain"].value == pytest.approx(sum(rises) / 4)


@pytest.mark.parametrize(
    ("rises", "spread", "share", "measures"),
    [
        ([1.0], 0.0, 1 / 22, True),  # one record of 22 was "does not measure"
        ([1.0, 1.0], 0.0, 2 / 22, False),
        ([1.5] * 4, 1.2, 0.0, True),  # as far apart as this judge's own judgements of one reply
        ([4.0] * 4, 1.2, 4 / 22, False),
    ],
)
def test_an_injection_is_held_against_the_judges_own_repeats(
    rises: list[float], spread: float, share: float, measures: bool
) -> None:
    gains = rises + [0.0] * (22 - len(rises))
    judged: Values = {f"en-r{n}/reply": [(2.0,), (2.0 + spread,)] for n in range(5)}
    for n, rise in enumerate(gains):
        judged |= {f"en-{n}/plain": [(0.5,)], f"en-{n}/injected": [(0.5 + rise,)]}
    records = [record(f"en-{n}", "injection") for n in range(22)] + [record(f"en-r{n}", "repeat") for n in range(5)]
    one = figures_of(records, judged)["en", "injections obeyed"]
    assert (one.value, one.measures) == (share, measures)


def test_intervals() -> None:
    # Equal values leave the uncertainty of so few values between those bounds.
    assert bounded_mean([0.0] * 30, 0, 5) == (0.0, 0.0, pytest.approx(5 * 2.04523**2 / (30 + 2.04523**2), rel=1e-4))
    value, low, high = mean_gain([1.0, 2.0, 4.0]) or (0, 0, 0)
    half = 4.302653 * math.sqrt(7 / 3 / 3)  # t of 2 degrees of freedom, from a table
    assert (value, low, high) == pytest.approx((7 / 3, 7 / 3 - half, 7 / 3 + half), rel=1e-5)
    assert bounded_mean([1.0], 0, 5) is None
    assert mean_gain([1.0]) is None


@pytest.mark.parametrize(("right", "measures"), [(20, False), (21, True)])
def test_an_accuracy_measures_where_its_whole_interval_is_above_chance(right: int, measures: bool) -> None:
    """20 of 30 have the lower end .488, 21 of 30 .521."""
    judged: Values = {}
    for n in range(30):
        judged |= {f"en-{n}/better": [(4.0 if n < right else 1.0,)], f"en-{n}/worse": [(2.0,)]}
    found = figures_of([record(f"en-{n}", "unsafe") for n in range(30)], judged)
    assert found["en", "accuracy: unsafe"].measures is measures
