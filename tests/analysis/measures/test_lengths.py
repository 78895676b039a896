"""Lengths as section 3.3 and Fig. 6 report them, and why the paper's figures say little about Chinese text."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.analysis.measures.lengths import MEASURES, Histogram, measure_lengths, text_lengths
from h2htalk.analysis.measures.scenario_texts import Side, SideText, instruction_text
from h2htalk.data.languages import Language
from h2htalk.data.scenario import Scenario, ScheduleEntry, Turn
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


def histogram_of(found: Sequence[Histogram], measure: str) -> Histogram:
    (histogram,) = (h for h in found if (h.measure, h.side) == (measure, "response"))
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
    found = measure_lengths(responses(["word " * n for n in lengths])).summaries
    (summary,) = (s for s in found if (s.measure, s.group) == ("pieces", "all"))
    assert summary.n == 8
    assert summary.mean == statistics.mean(lengths)
    assert summary.median == 4.0
    assert summary.deciles == pytest.approx([np.percentile(lengths, 10 * d) for d in range(1, 10)])
    assert (summary.minimum, summary.maximum) == (1, 40)


def test_every_group_is_summarised_on_each_side() -> None:
    texts = [
        side_text("one two", subtask="itinerary_basic", emotion="calm"),
        side_text("one", subtask="dialogue_base", emotion="awe"),
        side_text("一起", language="zh", subtask="dialogue_base", emotion="calm"),
        side_text("three little words", "response", subtask="dialogue_base", emotion="awe"),
    ]
    found = measure_lengths(texts, letters)
    groups = [(s.side, s.group, s.name, s.n) for s in found.summaries if s.measure == "pieces"]
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
    assert [s.measure for s in found.summaries[:4]] == list(MEASURES)
    assert [(h.side, h.measure) for h in found.histograms] == [
        (side, measure) for side in ("instruction", "response") for measure in MEASURES
    ]


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
    histogram = histogram_of(
        measure_lengths(responses(["x " * longest] * texts)).histograms, "pieces"
    )
    assert histogram.edges[1] == width
    assert histogram.edges[-2] <= longest < histogram.edges[-1]


@given(st.lists(st.integers(0, 100_000), min_size=1, max_size=300))
def test_every_text_is_in_one_bin_or_beyond(lengths: list[int]) -> None:
    def given_lengths(texts: Sequence[str]) -> list[int]:
        return lengths

    histogram = histogram_of(
        measure_lengths(responses([""] * len(lengths)), given_lengths).histograms, "tokens"
    )
    assert (
        list(histogram.counts)
        == np.histogram([n for n in lengths if n < histogram.edges[-1]], histogram.edges)[
            0
        ].tolist()
    )
    assert histogram.beyond == sum(n >= histogram.edges[-1] for n in lengths)
    assert histogram.beyond <= 0.01 * len(lengths)


def test_an_instruction_is_the_inputs_alone() -> None:
    raw = load_split("mini@1").scenarios
    turns = Turn("user", "今天 好累"), Turn("companion", "抱抱")
    schedule = ScheduleEntry("08:00", "吃早餐"), ScheduleEntry("21:30", "睡觉")
    (model,) = (s for s in raw if s.id == "mini-en-dialogue-base-01")
    fields = {name: getattr(model, name) for name in Scenario.__dataclass_fields__}
    scenario = Scenario(**{**fields, "inputs": {"history": turns, "schedule": schedule}})
    assert instruction_text(scenario) == "今天 好累\n抱抱\n08:00 吃早餐\n21:30 睡觉"
    assert text_lengths([side_text(instruction_text(scenario), language="zh")])["pieces"] == [7]
