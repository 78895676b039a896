"""The grid emotion x complexity x interaction: every cell, the empty ones too."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from h2htalk.analysis.measures.coverage import coverage
from h2htalk.data.scenario import Complexity, Interaction, Scenario, Tags
from h2htalk.data.splits import load_split

ANY = load_split("mini@1").scenarios[0]
Three = tuple[str, Complexity, Interaction]


def tagged(*tags: Three) -> list[Scenario]:
    return [replace(ANY, id=f"s{n}", tags=Tags(*three, risk="none")) for n, three in enumerate(tags)]


def test_every_combination_of_the_emotions_present_has_a_cell() -> None:
    found = coverage(tagged(("calm", "basic", "casual"), ("calm", "basic", "casual"), ("sad", "advanced", "memory")))
    assert found.emotions == {"calm": 2, "sad": 1}
    assert len(found.cells) == 2 * 3 * 3
    assert found.filled == 2
    held = {cell: count for cell, count in found.cells.items() if count}
    assert held == {("calm", "basic", "casual"): 2, ("sad", "advanced", "memory"): 1}
    assert list(found.cells)[1] == ("calm", "basic", "emotional_support")


def test_the_frequent_emotion_comes_first_and_equal_ones_by_name() -> None:
    found = coverage(
        tagged(
            ("sad", "basic", "casual"),
            ("calm", "basic", "casual"),
            ("proud", "basic", "memory"),
            ("proud", "basic", "casual"),
        )
    )
    assert list(found.emotions) == ["proud", "calm", "sad"]


def test_evenness_by_hand() -> None:
    # Shares 1/2, 1/4, 1/4 over a grid of 9: 1.5 ln 2 / ln 9.
    tags: list[Three] = [("calm", "basic", "casual")] * 2
    tags += [("calm", "basic", "memory"), ("calm", "advanced", "memory")]
    assert coverage(tagged(*tags)).evenness == pytest.approx(1.5 * math.log(2) / math.log(9), abs=1e-12)
