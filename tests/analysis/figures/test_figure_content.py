"""What each figure shows, and what it says where there is nothing to show."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from figures_made import (
    HOSTILE,
    made_coverage,
    made_diversity,
    made_groups,
    made_histogram,
    made_lengths,
    made_odds,
    made_pairs,
    made_summary,
    shown_texts,
    words_of,
)
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.textpath import TextPath
from matplotlib.transforms import Affine2D, Bbox

from h2htalk.analysis.comparison import log_odds
from h2htalk.analysis.coverage import Coverage
from h2htalk.analysis.figures import (
    draw_coverage,
    draw_diversity,
    draw_emotions,
    draw_length_deciles,
    draw_lengths,
    draw_log_odds,
    draw_pairs_bars,
    draw_sunburst,
    draw_word_cloud,
)
from h2htalk.analysis.figures.style import TINY, house_style
from h2htalk.analysis.texts import SIDES
from h2htalk.analysis.verb_nouns import PairCount, top_verbs
from h2htalk.analysis.word_clouds import Cloud, WordCount, cloud_layout
from h2htalk.data.scenario import COMPLEXITIES

pytestmark = pytest.mark.filterwarnings("error")


def made_cloud(words: int = 12, language: str = "en") -> Cloud:
    letters = (
        "tea walk smile today memory share gentle we" if language == "en" else "喝茶 散步 微笑 今天 回忆 分享"
    )
    names = [f"{word}{mark}" for mark in ("", "s", "ing") for word in letters.split()][:words]
    return cloud_layout([WordCount(w, 90 - 3 * i, 1) for i, w in enumerate(names)], language)


def every_figure(language: str) -> list[Figure]:
    lengths = made_lengths(language)
    diversity = [made_diversity(language=language), made_diversity("response", language, spread=0.4)]
    return [
        draw_lengths(lengths.histograms, lengths.summaries),
        draw_length_deciles(lengths.summaries),
        draw_word_cloud(made_cloud(language=language)),
        draw_sunburst(made_groups(language, verbs=25)),
        draw_pairs_bars(made_pairs(language)),
        draw_coverage(made_coverage(40)),
        draw_log_odds(made_odds(), "mini", "另一个"),
        draw_emotions(made_odds(30), "mini", "other"),
        draw_diversity(diversity, diversity, "mini", "other"),
    ]


def covered(text: Text) -> Bbox:
    """What a text covers. A word of a cloud: its ink, for other words fill the room of descenders it may not have."""
    if (text.get_horizontalalignment(), text.get_verticalalignment()) != ("left", "baseline"):
        return text.get_window_extent()
    path = TextPath((0, 0), text.get_text(), prop=text.get_fontproperties())
    x, y = text.get_transform().transform(text.get_position())
    shape = Affine2D().scale(text.get_figure().dpi / 72).rotate_deg(text.get_rotation()).translate(x, y)
    return path.get_extents(shape)


def render(figure: Figure) -> np.ndarray:
    """The picture's darkness, 0 white to 255, rows from above."""
    with house_style():
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
    return 255 - np.asarray(canvas.buffer_rgba())[..., :3].min(axis=-1)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_all_text_lies_on_the_page_and_none_is_too_small(language: str) -> None:
    for figure in every_figure(language):
        render(figure)
        width, height = figure.get_size_inches() * figure.dpi
        for text in shown_texts(figure):
            box = covered(text)
            assert text.get_fontsize() >= TINY
            assert box.x0 >= -1, text
            assert box.y0 >= -1, text
            assert box.x1 <= width + 1, text
            assert box.y1 <= height + 1, text


@pytest.mark.parametrize(
    ("figure", "sentence"),
    [
        (lambda: draw_lengths([], []), "no lengths in words"),
        (lambda: draw_length_deciles([]), "no lengths in words by subtask"),
        (lambda: draw_word_cloud(cloud_layout([], "zh")), "no words"),
        (lambda: draw_sunburst([]), "no verb-noun pairs found"),
        (lambda: draw_pairs_bars([]), "no verb-noun pairs found"),
        (lambda: draw_coverage(Coverage((), (), 0, 0)), "no scenarios, so nothing is covered"),
        (lambda: draw_log_odds([], "a", "b"), "nothing that one split has more of"),
        (lambda: draw_emotions([], "a", "b"), "no emotions to compare"),
        (lambda: draw_diversity([]), "no texts, so no diversity"),
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
        draw_pairs_bars(pairs),
        draw_sunburst(top_verbs(pairs)),
        draw_log_odds(odds, "$a$", "🎉"),
        draw_diversity([made_diversity()], [made_diversity()], "$a$", "\ud800"),
        draw_word_cloud(cloud_layout([WordCount(word, 3, 1) for word in HOSTILE if word], "en")),
    ):
        render(figure)
        assert not any(t.get_parse_math() for t in figure.findobj(Text) if "$" in t.get_text())  # type: ignore[attr-defined]


# --- Lengths ----------------------------------------------------------------------------------------------------


def test_the_length_figure_says_mean_median_and_what_is_beyond_the_last_bin() -> None:
    figure = draw_lengths([made_histogram([30, 20, 10], beyond=40)], [made_summary(100, 7.47, 2.0)], "pieces")
    said = words_of(figure)
    assert {"Responses (n = 100)", "mean 7.47 →", "median 2", "3 or more: 40.0 %"} <= set(said)
    assert "length (whitespace pieces)" in said


def test_the_length_figure_ends_under_the_name_of_its_axis_and_holds_its_last_bar_whole() -> None:
    lengths = made_lengths("en")
    figure = draw_lengths(lengths.histograms, lengths.summaries)
    inked = np.nonzero(render(figure).max(axis=1) > 64)[0]
    assert (figure.get_figheight() * figure.dpi - inked.max()) * 72 / figure.dpi < 10  # points
    for axes in figure.axes:
        assert axes.get_xlim()[1] > axes.patches[0].get_data().edges[-1]  # type: ignore[attr-defined]


def test_empty_texts_have_one_length() -> None:
    # The axis once read −0, −0, 0, 0, 0.
    figure = draw_lengths([made_histogram([5])], [made_summary(5, 0.0, 0.0)], "pieces")
    low, high = figure.axes[0].get_xlim()
    assert [tick for tick in figure.axes[0].get_xticks() if low <= tick <= high] == [0]


def test_bars_stand_over_the_lengths_that_they_count() -> None:
    figure = draw_lengths([made_histogram([0, 5, 0, 0])], [made_summary(5, 1.0, 1.0)], "pieces")
    axes = figure.axes[0]
    stairs = axes.patches[0]
    assert list(stairs.get_data().edges) == [-0.5, 0.5, 1.5, 2.5, 3.5]  # type: ignore[attr-defined]
    assert all(line.get_xdata()[0] == 1.0 for line in axes.lines if line.get_label()[:3] in ("mea", "med"))  # type: ignore[index]


def test_instructions_stand_above_responses_and_only_the_asked_measure_is_drawn() -> None:
    lengths = made_lengths()
    figure = draw_lengths(lengths.histograms[::-1], lengths.summaries, "characters")
    assert len(figure.axes) == 2
    first, second = sorted(figure.axes, key=lambda axes: -axes.get_position().y0)
    assert first.get_title(loc="left").startswith("Instructions")
    assert second.get_title(loc="left").startswith("Responses")


def test_deciles_turn_logarithmic_where_one_row_dwarfs_the_others() -> None:
    rows = [
        replace(
            made_summary(9, 5, 5.0), group="subtask", name=name, deciles=tuple(d * k for d in range(1, 10))
        )
        for name, k in (("dialogue_base", 1.0), ("itinerary_basic", 1000.0))
    ]
    assert draw_length_deciles(rows, "pieces").axes[0].get_xscale() == "log"
    assert draw_length_deciles(rows[:1], "pieces").axes[0].get_xscale() == "linear"


# --- Words and pairs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["en", "zh"])
def test_each_word_of_a_cloud_is_drawn_in_its_own_room(language: str) -> None:
    cloud = made_cloud(15, language)
    assert len(cloud.placed) == 15
    assert any(word.turned for word in cloud.placed) == (language == "en")
    figure = draw_word_cloud(cloud)
    texts = figure.axes[0].texts
    drawn = []
    for shown, word in zip(texts, cloud.placed, strict=True):
        for text in texts:
            text.set_visible(text is shown)
        ink = render(figure) > 128
        drawn.append(ink)
        rows, columns = np.nonzero(ink)
        scale = ink.shape[1] / cloud.width
        left, bottom, width, height = (scale * value for value in word.box)
        assert columns.min() >= left - 1.5
        assert columns.max() <= left + width + 1.5
        assert ink.shape[0] - 1 - rows.max() >= bottom - 1.5
        assert ink.shape[0] - rows.min() <= bottom + height + 1.5
    assert max(int((a & b).sum()) for a, b in itertools.combinations(drawn, 2)) == 0


def test_a_cloud_says_how_many_words_it_could_not_draw() -> None:
    cloud = cloud_layout([WordCount("tea", 3, 1), WordCount("𓀀𓀁", 2, 1)], "en")
    assert "Not drawn: 1 word without glyphs; see the table." in words_of(draw_word_cloud(cloud))
    nothing = replace(cloud, placed=())
    assert words_of(draw_word_cloud(nothing)) == ["no words (1 word without glyphs)"]


def test_the_sunburst_names_verbs_nouns_and_how_many_occurrences() -> None:
    groups = top_verbs([PairCount("make", "tea", 1200), PairCount("read", "book", 800)])
    assert words_of(draw_sunburst(groups)) == ["make", "read", "tea", "book", "2,000", "occurrences"]


def test_a_sunburst_has_at_most_20_verbs_and_says_what_is_left() -> None:
    figure = draw_sunburst(made_groups(verbs=16) + top_verbs([PairCount(f"v{i}", "n", 1) for i in range(6)]))
    assert any(said.startswith("Not drawn: 2 verbs with 2 pairs") for said in words_of(figure))


def test_areas_of_the_rings_are_proportional_to_counts() -> None:
    figure = draw_sunburst(top_verbs([PairCount("make", "tea", 30), PairCount("read", "book", 10)]))
    turns = [(w.theta2 - w.theta1) for w in figure.axes[0].patches]  # type: ignore[attr-defined]
    assert turns == pytest.approx([270, 90, 270, 90])


def test_bars_show_the_most_frequent_pairs_with_their_counts() -> None:
    figure = draw_pairs_bars([PairCount("make", "tea", 1200), PairCount("read", "a book", 3)], pairs=1)
    assert set(words_of(figure)) == {"make tea", "1,200", "times in all texts"}


# --- Coverage, differences, diversity ---------------------------------------------------------------------------


def test_every_filled_cell_holds_its_count_and_every_empty_one_is_hatched() -> None:
    coverage = made_coverage(3, count=1000)
    figure = draw_coverage(coverage)
    hatched = [patch for patch in figure.axes[0].patches if patch.get_hatch()]
    assert len(hatched) == sum(cell.count == 0 for cell in coverage.cells)
    numbers = [said for said in words_of(figure) if said.replace(",", "").isdigit()]
    assert sorted(numbers) == sorted(f"{cell.count:,}" for cell in coverage.cells if cell.count)
    assert any(said.startswith(f"{coverage.filled} of 27 cells hold scenarios") for said in words_of(figure))


def test_forty_emotions_fit_without_touching() -> None:
    figure = draw_coverage(made_coverage(40))
    render(figure)
    names = [text for text in figure.axes[0].texts if text.get_text().startswith("emotion ")]
    boxes = sorted((text.get_window_extent() for text in names), key=lambda box: box.y0)
    assert len(boxes) == 40
    assert all(below.y1 <= above.y0 + 1 for below, above in itertools.pairwise(boxes))
    assert figure.get_figheight() < 9


def test_column_headings_do_not_touch_beside_the_longest_emotion() -> None:
    figure = draw_coverage(made_coverage(1, name="a" * 60))
    render(figure)
    headings = [t.get_window_extent() for t in figure.axes[0].texts if t.get_text() in COMPLEXITIES]
    assert len(headings) == 9
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(headings))


def test_the_comparison_draws_the_surest_15_each_way() -> None:
    figure = draw_log_odds(made_odds(60), "mini", "other")
    items = [said for said in words_of(figure) if said.startswith("w")]
    assert len(items) == 30
    assert {"more in mini", "more in other"} <= set(words_of(figure))


def test_thousands_of_emotions_make_no_endless_figure_and_what_is_left_is_said() -> None:
    summaries = [
        replace(made_summary(9, 5, 5.0), group="emotion", name=f"e{i}", n=2000 - i) for i in range(1900)
    ]
    for figure in (
        draw_coverage(made_coverage(1900)),
        draw_emotions(made_odds(1900), "a", "b"),
        draw_length_deciles(summaries, "pieces", "emotion"),
    ):
        assert figure.get_figheight() < 24
        assert any("1,800" in said for said in words_of(figure))


def test_of_emotions_every_one_is_drawn() -> None:
    assert len([said for said in words_of(draw_emotions(made_odds(38), "a", "b")) if said[0] == "w"]) == 38


def test_equal_shares_are_no_difference() -> None:
    # A split against itself three times over: rounding chose thirty words as its own.
    counts = {f"word{n}": n for n in range(1, 60)}
    rows = log_odds({word: 3 * n for word, n in counts.items()}, counts)
    assert words_of(draw_log_odds(rows, "a", "b")) == ["nothing that one split has more of"]


def test_only_rows_that_stand_when_all_are_tested_are_filled() -> None:
    rows = [replace(row, clear=i == 0) for i, row in enumerate(made_odds(4))]
    figure = draw_emotions(rows, "a", "b")
    filled = [
        line for line in figure.axes[0].lines
        if line.get_marker() == "o" and line.get_markerfacecolor() == line.get_markeredgecolor()
    ]  # fmt: skip
    assert len(filled) == 1


def test_what_was_not_measured_is_said_in_its_place() -> None:
    figure = draw_diversity([made_diversity(), made_diversity("response", spread=0.41)])
    assert words_of(figure).count("not measured") == 1
    assert "0.410" in words_of(figure)


def test_lines_differ_by_more_than_their_colours() -> None:
    rows = [made_diversity(side, language) for language in ("en", "zh") for side in SIDES]
    lines = draw_diversity(rows).axes[0].lines
    assert len({line.get_marker() for line in lines}) == len(lines) == 4


def test_a_second_split_is_hollow_and_named() -> None:
    figure = draw_diversity([made_diversity()], [made_diversity()], "mini", "mine")
    assert {"instructions, en, mini", "instructions, en, mine"} <= set(words_of(figure))
    first, second = figure.axes[0].lines
    assert first.get_markerfacecolor() != second.get_markerfacecolor()
