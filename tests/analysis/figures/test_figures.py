"""What each figure shows, its style, fonts, labels and files, and what it says where there is nothing to show."""

from __future__ import annotations

import re
import zlib
from dataclasses import replace
from itertools import product
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

from h2htalk.analysis.figures import style
from h2htalk.analysis.figures.charts import (
    draw_correlations,
    draw_coverage,
    draw_length_deciles,
    draw_lengths,
    draw_log_odds,
    draw_sunburst,
    draw_word_cloud,
)
from h2htalk.analysis.measures.diversity import Coverage
from h2htalk.analysis.measures.lengths import Lengths, LengthSummary, measure_lengths
from h2htalk.analysis.measures.log_odds import LogOdds, log_odds
from h2htalk.analysis.measures.scenario_texts import Side, SideText
from h2htalk.analysis.measures.words import WordCount
from h2htalk.analysis.verb_nouns.pairs import PairCount, VerbGroup, top_verbs
from h2htalk.data.languages import Language
from h2htalk.data.scenario import COMPLEXITIES, INTERACTIONS
from support.tables import table

HOSTILE = (
    "$x^2$",
    "$",
    "a_b^c",
    "🎉",
    "𓀀",
    "\u202eevil",
    "\x1b[31m",
    "<script>",
    "\ud800",
    "many words\nin lines",
    "",
)


def shown_texts(figure: Figure) -> list[Text]:
    """Every piece of text that the figure shows; matplotlib holds more than it draws."""
    texts = list(figure.texts)
    for axes in figure.axes:
        texts += axes.texts
        if not axes.axison:
            continue
        legend = axes.get_legend()
        if legend:
            texts += legend.get_texts()
        texts += [child for child in axes.get_children() if isinstance(child, Text)]  # titles
        for axis in (axes.xaxis, axes.yaxis):
            texts.append(axis.label)
            low, high = sorted(axis.get_view_interval())
            for tick in axis.get_major_ticks():
                if low <= tick.get_loc() <= high:
                    texts.append(tick.label1)
    visible = [text for text in texts if text.get_visible() and text.get_text().strip()]
    unique = {id(text): text for text in visible}
    return list(unique.values())


def words_of(figure: Figure) -> list[str]:
    return [text.get_text() for text in shown_texts(figure)]


def made_groups(language: str = "en", verbs: int = 12) -> list[VerbGroup]:
    verb, noun = ("make", "tea") if language == "en" else ("泡", "茶")
    counts = []
    for verb_number in range(verbs):
        for noun_number in range(3):
            count = 60 // (1 + verb_number) + 4 - noun_number
            counts.append(PairCount(f"{verb}{verb_number}", f"{noun}{noun_number}", count))
    return top_verbs(counts)


def made_lengths(language: str = "en", count: int = 60) -> Lengths:
    word = "tea " if language == "en" else "我们喝茶。"
    texts = []
    for number in range(count):
        subtask = "itinerary_basic" if number % 2 else "dialogue_base"
        words_of_side: dict[Side, int] = {"instruction": 1 + 2 * number, "response": 1 + number}
        for side, words in words_of_side.items():
            text = SideText(f"s{number}", subtask, language, "joy", side, word * words)  # type: ignore[arg-type]
            texts.append(text)
    return measure_lengths(texts)


def made_summary(n: int, mean: float, median: float) -> LengthSummary:
    return LengthSummary("response", "all", "all", "pieces", n, mean, median, (1.0,) * 9, 1, 50)


def made_coverage(emotions: int, count: int = 1, name: str = "emotion") -> Coverage:
    names = tuple(f"{name}_{chr(97 + i % 26)}{'x' * (i // 26)}" for i in range(emotions))
    cells = {}
    for row, emotion in enumerate(names):
        for complexity in COMPLEXITIES:
            for column, interaction in enumerate(INTERACTIONS):
                cells[emotion, complexity, interaction] = count * row * (column % 3)
    return Coverage(dict.fromkeys(names, 1), cells)


def made_odds(items: int = 40) -> tuple[LogOdds, ...]:
    return log_odds(
        {f"w{i}": 100 + 9 * i for i in range(items)},
        {f"w{i}": max(1, 300 - 5 * i) for i in range(items)},
    )


pytestmark = pytest.mark.filterwarnings("error")  # matplotlib warns of a missing glyph


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
            {("人类", "S"): (0.5, 0.1, 0.8), ("a long name " * 9, "S"): (None, None, None)},
            "over models",
        ),
    ]


def render(figure: Figure) -> np.ndarray:
    """The picture's darkness, 0 white to 255, rows from above."""
    with style.figure_style():
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
            assert text.get_fontsize() >= style.TINY
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
    calm_figure = figure()  # type: ignore[operator]
    assert words_of(calm_figure) == [sentence]
    assert render(calm_figure).any()


def test_hostile_words_are_drawn_and_reach_no_markup(tmp_path: Path) -> None:
    pairs = [PairCount(word, word, 9) for word in HOSTILE]
    odds = [replace(row, item=word) for row, word in zip(made_odds(30), HOSTILE, strict=False)]
    for figure in (
        draw_sunburst(top_verbs(pairs)),
        draw_log_odds(odds, "$a$", "🎉"),
        draw_word_cloud([WordCount(word, 3, 1) for word in HOSTILE if word], "en"),
    ):
        render(figure)
        assert not any(t.get_parse_math() for t in figure.findobj(Text) if "$" in t.get_text())  # type: ignore[attr-defined]
    # Hostile words reach no markup.
    pairs = [PairCount(word, word, 9) for word in HOSTILE]
    paths = style.save_figure(draw_sunburst(top_verbs(pairs)), tmp_path, "rings")
    svg = paths[0].read_text(encoding="utf-8")
    assert "<script" not in svg
    assert "--" not in "".join(re.findall(r"<!--(.*?)-->", svg))


def test_areas_and_cells_show_counts_and_what_is_left_out() -> None:
    rare = [PairCount(f"v{i}", "n", 1) for i in range(6)]
    figure = draw_sunburst(made_groups(verbs=16) + top_verbs(rare))
    assert any("Not drawn: 2 verbs with 2 pairs" in text for text in words_of(figure))
    # Areas of the rings are proportional to counts.
    figure = draw_sunburst(top_verbs([PairCount("make", "tea", 30), PairCount("read", "book", 10)]))
    turns = [(w.theta2 - w.theta1) for w in figure.axes[0].patches]  # type: ignore[attr-defined]
    assert turns == pytest.approx([270, 90, 270, 90])
    # Every filled cell holds its count and every empty one is hatched.
    coverage = made_coverage(3, count=1000)
    figure = draw_coverage(coverage)
    hatched = [patch for patch in figure.axes[0].patches if patch.get_hatch()]
    assert len(hatched) == sum(count == 0 for count in coverage.cells.values())
    numbers = [text for text in words_of(figure) if text.replace(",", "").isdigit()]
    assert sorted(numbers) == sorted(f"{count:,}" for count in coverage.cells.values() if count)
    assert "Hatched: no scenario." in words_of(figure)


def test_thousands_of_emotions_make_a_figure_of_one_page_and_what_is_left_is_counted() -> None:
    summaries = [
        replace(made_summary(9, 5, 5.0), group="emotion", name=f"e{i}", n=2000 - i)
        for i in range(1900)
    ]
    for figure in (
        draw_coverage(made_coverage(1900)),
        draw_length_deciles(summaries, "pieces", "emotion"),
    ):
        assert figure.get_figheight() < 9
        assert any("1,860" in text for text in words_of(figure))


def test_a_readers_matplotlibrc_changes_nothing(tmp_path: Path) -> None:
    parameters = {
        "font.size": 30,
        "text.usetex": True,
        "axes.facecolor": "red",
        "svg.fonttype": "none",
        "savefig.dpi": 9,
    }
    lengths = made_lengths()

    def files(folder: Path) -> list[bytes]:
        figure = draw_lengths(lengths.histograms, lengths.summaries)
        return [path.read_bytes() for path in style.save_figure(figure, folder, "lengths")]

    expected = files(tmp_path / "a")
    with mpl.rc_context(parameters):
        before = dict(mpl.rcParams)
        assert files(tmp_path / "b") == expected
        assert dict(mpl.rcParams) == before


def two_bytes(encoding: str, first: int, last: int) -> set[int]:
    """The characters that a two-byte encoding has between two leading bytes."""
    trails = [*range(0x40, 0x7F), *range(0xA1, 0xFF)]
    characters = set()
    for lead, trail in product(range(first, last + 1), trails):
        text = bytes([lead, trail]).decode(encoding, "ignore")
        if text > "\x7f":
            characters.add(ord(text))
    return characters


def test_the_style_file_has_the_colours_fonts_and_sizes_that_the_charts_use() -> None:
    with style.figure_style():
        parameters = dict(mpl.rcParams)
    assert parameters["font.family"] == list(style.FAMILIES)
    expected = {
        "text.color": style.INK,
        "axes.edgecolor": style.QUIET,
        "xtick.color": style.QUIET,
        "hatch.color": style.LINE,
        "font.size": style.BODY,
        "legend.fontsize": style.SMALL,
    }
    assert {name: parameters[name] for name in expected} == expected


def test_the_bundled_font_draws_everyday_chinese_of_both_kinds() -> None:
    font = style.find_font("zh")
    simplified = two_bytes("gb2312", 0xB0, 0xF7)
    traditional = two_bytes("big5", 0xA4, 0xC6)
    assert len(simplified & font.covers) == 6763
    assert len(traditional) >= 5401
    assert traditional <= font.covers
    assert font.covers.issuperset(
        map(ord, "佢哋嘅事 㙘䴙𠅤 café ¿qué? Привет Ελλας，。！？「」《》…—々 あア")
    )


@given(st.text(max_size=60), st.floats(10, 120))
def test_every_character_of_a_label_has_a_glyph_and_a_shortened_label_fits(
    text: str, room: float
) -> None:
    label = style.label(text)
    assert set(map(ord, label)) <= style.find_font("en").covers | style.find_font("zh").covers
    short = style.shortened(label, room, 7)
    if short != label:
        assert short.endswith("…")
        assert style.width_of(short, 7) <= room


@pytest.mark.parametrize(("text", "label"), table("analysis", "labels"))
def test_what_no_font_has_becomes_one_dot_and_controls_do_nothing(text: str, label: str) -> None:
    assert style.label(text) == label


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A sunburst in Chinese, in a folder that was not there."""
    return style.save_figure(
        draw_sunburst(made_groups("zh")),
        tmp_path_factory.mktemp("a") / "new" / "figures",
        "pairs_zh",
    )


def test_three_files_hold_their_fonts_and_no_dates(saved: list[Path]) -> None:
    assert [path.name for path in saved] == ["pairs_zh.svg", "pairs_zh.pdf", "pairs_zh.png"]
    for path in saved:
        assert not [
            word
            for word in (b"CreationDate", b"dc:date", b"Matplotlib v")
            if word in path.read_bytes()
        ]
    with Image.open(saved[2]) as image:
        assert image.size == (1656, 1656)
    # The SVG needs no font and nothing from elsewhere.
    svg = saved[0].read_text(encoding="utf-8")
    assert not [element for element in ("<text", "font-family", "<image") if element in svg]
    assert set(re.findall(r'href="(.)', svg)) == {"#"}
    # The PDF embeds TrueType and no Type 3.
    pdf = saved[1].read_bytes()
    streams = [
        zlib.decompressobj().decompress(s)
        for s in re.findall(rb"stream\r?\n(x.*?)endstream", pdf, re.S)
    ]
    content = pdf + b"".join(streams)
    assert b"/CIDFontType2" in content
    assert b"/Type3" not in content
