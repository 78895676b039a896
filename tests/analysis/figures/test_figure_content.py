"""What each figure shows, and what it says where there is nothing to show."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from figures_made import (
    HOSTILE,
    made_coverage,
    made_groups,
    made_lengths,
    made_odds,
    made_summary,
    shown_texts,
    words_of,
)
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from h2htalk.analysis.figures.charts import (
    draw_correlations,
    draw_coverage,
    draw_length_deciles,
    draw_lengths,
    draw_log_odds,
    draw_sunburst,
    draw_word_cloud,
)
from h2htalk.analysis.figures.style import TINY, figure_style
from h2htalk.analysis.measures.diversity import Coverage
from h2htalk.analysis.measures.words import WordCount
from h2htalk.analysis.verb_nouns.pairs import PairCount, top_verbs
from h2htalk.data.languages import Language

pytestmark = pytest.mark.filterwarnings("error")


def every_figure(language: Language) -> list[Figure]:
    lengths = made_lengths(language)
    return [
        draw_lengths(lengths.histograms, lengths.summaries),
        draw_length_deciles(lengths.summaries),
        draw_word_cloud([WordCount("tea", 9, 1), WordCount("茶", 5, 1)], language),
        draw_sunburst(made_groups(language, verbs=25)),
        draw_coverage(made_coverage(40)),
        draw_log_odds(made_odds(), "mini", "另一个"),
        draw_correlations(
            {("人类", "S"): (0.5, 0.1, 0.8), ("a long name " * 9, "S"): (None, None, None)}, "over models"
        ),
    ]


def render(figure: Figure) -> np.ndarray:
    """The picture's darkness, 0 white to 255, rows from above."""
    with figure_style():
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
    return 255 - np.asarray(canvas.buffer_rgba())[..., :3].min(axis=-1)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_all_text_lies_on_the_page_and_none_is_too_small(language: Language) -> None:
    for figure in every_figure(language):
        render(figure)
        width, height = figure.get_size_inches() * figure.dpi
        for text in shown_texts(figure):
            box = text.get_window_extent()
            assert text.get_fontsize() >= TINY
            assert box.x0 >= -1, text
            assert box.y0 >= -1, text
            assert box.x1 <= width + 1, text
            assert box.y1 <= height + 1, text


@pytest.mark.parametrize(
    ("figure", "sentence"),
    [
        (lambda: draw_lengths([], []), "no lengths in words"),
        (lambda: draw_length_deciles([]), "no subtask with 5 texts"),
        (lambda: draw_word_cloud([], "zh"), "no words"),
        (lambda: draw_sunburst([]), "no verb-noun pairs found"),
        (lambda: draw_coverage(Coverage({}, {})), "no scenarios, so nothing is covered"),
        (lambda: draw_log_odds([], "a", "b"), "nothing that one split has more of"),
    ],
)
def test_nothing_to_draw_is_one_calm_sentence(figure: object, sentence: str) -> None:
    drawn = figure()  # type: ignore[operator]
    assert words_of(drawn) == [sentence]
    assert render(drawn).any()


def test_hostile_words_are_drawn_in_every_figure_that_shows_words() -> None:
    pairs = [PairCount(word, word, 9) for word in HOSTILE]
    odds = [replace(row, item=word) for row, word in zip(made_odds(30), HOSTILE, strict=False)]
    for figure in (
        draw_sunburst(top_verbs(pairs)),
        draw_log_odds(odds, "$a$", "🎉"),
        draw_word_cloud([WordCount(word, 3, 1) for word in HOSTILE if word], "en"),
    ):
        render(figure)
        assert not any(t.get_parse_math() for t in figure.findobj(Text) if "$" in t.get_text())  # type: ignore[attr-defined]


def test_a_sunburst_has_at_most_20_verbs_and_says_what_is_left() -> None:
    figure = draw_sunburst(made_groups(verbs=16) + top_verbs([PairCount(f"v{i}", "n", 1) for i in range(6)]))
    assert any("Not drawn: 2 verbs with 2 pairs" in said for said in words_of(figure))


def test_areas_of_the_rings_are_proportional_to_counts() -> None:
    figure = draw_sunburst(top_verbs([PairCount("make", "tea", 30), PairCount("read", "book", 10)]))
    turns = [(w.theta2 - w.theta1) for w in figure.axes[0].patches]  # type: ignore[attr-defined]
    assert turns == pytest.approx([270, 90, 270, 90])


def test_every_filled_cell_holds_its_count_and_every_empty_one_is_hatched() -> None:
    coverage = made_coverage(3, count=1000)
    figure = draw_coverage(coverage)
    hatched = [patch for patch in figure.axes[0].patches if patch.get_hatch()]
    assert len(hatched) == sum(count == 0 for count in coverage.cells.values())
    numbers = [said for said in words_of(figure) if said.replace(",", "").isdigit()]
    assert sorted(numbers) == sorted(f"{count:,}" for count in coverage.cells.values() if count)
    assert any(said == "Hatched: no scenario." for said in words_of(figure))


def test_thousands_of_emotions_make_a_figure_of_one_page_and_what_is_left_is_counted() -> None:
    summaries = [replace(made_summary(9, 5, 5.0), group="emotion", name=f"e{i}", n=2000 - i) for i in range(1900)]
    for figure in (draw_coverage(made_coverage(1900)), draw_length_deciles(summaries, "pieces", "emotion")):
        assert figure.get_figheight() < 9
        assert any("1,860" in said for said in words_of(figure))
