"""Lengths as section 3.3 and Fig. 6 report them, and why the paper's figures say little about Chinese text."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.analysis.measures.lengths import (
    MEASURES,
    Histogram,
    Lengths,
    measure_lengths,
    text_lengths,
)
from h2htalk.analysis.measures.scenario_texts import Side, SideText, instruction_text
from h2htalk.data.languages import Language
from h2htalk.data.scenario import ScheduleEntry, Turn
from h2htalk.data.splits import load_split
from support.tables import table


def side_text(
    text: str,
    side: Side = "instruction",
    language: Language = "en",
    subtask: str = "dialogue_base",
    emotion: str = "joy",
) -> SideText:
    return SideText("an-id", subtask, language, emotion, side, text)


def responses(texts: Sequence[str], language: Language = "en") -> list[SideText]:
    return [side_text(text, "response", language) for text in texts]


def histogram_of(lengths: Lengths, measure: str) -> Histogram:
    (histogram,) = (h for h in lengths.histograms if (h.measure, h.side) == (measure, "response"))
    return histogram


def letters(texts: Sequence[str]) -> list[int]:
    """A counter of tokens for tests: letters."""
    return [sum(map(str.isalpha, text)) for text in texts]


@pytest.mark.parametrize(
    ("text", "language", "characters", "words", "pieces"), table("analysis", "lengths")
)
def test_each_measure_counts_its_unit(
    text: str, language: Language, characters: int, words: int, pieces: int
) -> None:
    assert text_lengths([side_text(text, language=language)]) == {
        "characters": [characters],
        "words": [words],
        "pieces": [pieces],
    }


def test_a_summary_is_numpys_arithmetic() -> None:
    lengths = [1, 1, 2, 3, 5, 8, 13, 40]
    texts = ["word " * length for length in lengths]
    (summary,) = measure_lengths(responses(texts)).of_all_texts("pieces")
    assert summary.n == 8
    assert summary.mean == statistics.mean(lengths)
    assert summary.median == 4.0
    deciles = np.percentile(lengths, range(10, 100, 10))
    assert summary.deciles == pytest.approx(deciles)
    assert summary.minimum == 1
    assert summary.maximum == 40


def test_every_group_is_summarised_on_each_side() -> None:
    texts = [
        side_text("one two", subtask="itinerary_basic", emotion="calm"),
        side_text("one", subtask="dialogue_base", emotion="awe"),
        side_text("一起", language="zh", subtask="dialogue_base", emotion="calm"),
        side_text("three little words", "response", subtask="dialogue_base", emotion="awe"),
    ]
    lengths = measure_lengths(texts, letters)
    groups = [(s.side, s.group, s.name, s.n) for s in lengths.summaries if s.measure == "pieces"]
    assert groups == [
        ("instruction", "all", "all", 3),
        ("instruction", "subtask", "dialogue_base", 2),  # Table 1's order
        ("instruction", "subtask", "itinerary_basic", 1),
        ("instruction", "emotion", "awe", 1),
        ("instruction", "emotion", "calm", 2),
        ("response", "all", "all", 1),
        ("response", "subtask", "dialogue_base", 1),
        ("response", "emotion", "awe", 1),
    ]
    assert [s.measure for s in lengths.summaries[:4]] == list(MEASURES)
    histograms = [(h.side, h.measure) for h in lengths.histograms]
    assert histograms == list(product(("instruction", "response"), MEASURES))


@pytest.mark.parametrize(
    ("texts", "longest", "width"),
    [
        (1, 0, 1),
        (1, 19, 1),
        (1, 20, 2),
        (1, 300, 20),
        (400, 99, 5),
        (400, 100, 10),
        (10_000, 59, 1),
        (10_000, 60, 2),
    ],
)
def test_bins_are_round_and_as_many_as_the_root_of_the_number_of_texts(
    texts: int, longest: int, width: int
) -> None:
    """176 texts had 60 bins, most of them of no text or one."""
    lengths = measure_lengths(responses(["x " * longest for _ in range(texts)]))
    histogram = histogram_of(lengths, "pieces")
    assert histogram.edges[1] == width
    assert histogram.edges[-2] <= longest < histogram.edges[-1]


@given(st.lists(st.integers(0, 100_000), min_size=1, max_size=300))
def test_every_text_is_in_one_bin_or_beyond(lengths: list[int]) -> None:
    def given_lengths(texts: Sequence[str]) -> list[int]:
        return lengths

    measured = measure_lengths(responses(["" for _ in lengths]), given_lengths)
    histogram = histogram_of(measured, "tokens")
    end = histogram.edges[-1]
    counts, _ = np.histogram([length for length in lengths if length < end], histogram.edges)
    assert list(histogram.counts) == counts.tolist()
    assert histogram.beyond == sum(length >= end for length in lengths)
    assert histogram.beyond <= 0.01 * len(lengths)


def test_an_instruction_is_the_inputs_alone() -> None:
    turns = (Turn("user", "今天 好累"), Turn("companion", "抱抱"))
    schedule = (ScheduleEntry("08:00", "吃早餐"), ScheduleEntry("21:30", "睡觉"))
    model = load_split("mini@1").scenarios[0]
    scenario = replace(model, inputs={"history": turns, "schedule": schedule})
    text = instruction_text(scenario)
    assert text == "今天 好累\n抱抱\n08:00 吃早餐\n21:30 睡觉"
    lengths = text_lengths([side_text(text, language="zh")])
    assert lengths["pieces"] == [7]
