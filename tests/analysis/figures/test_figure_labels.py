"""Labels: no boxes, no mathematics, no more room than there is."""

from __future__ import annotations

import pytest
from figures_made import HOSTILE
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.font_manager import get_font

from h2htalk.analysis.figures.labels import (
    STAND_IN,
    label,
    properties,
    replaced_note,
    shortened,
    width_of,
    write,
)
from h2htalk.analysis.figures.style import bare_panel, house_style, new_figure
from h2htalk.analysis.fonts import find_font

pytestmark = pytest.mark.filterwarnings("error")  # matplotlib warns of a missing glyph


def drawable(text: str, font: str | None) -> bool:
    path = font or str(find_font("en").path)
    return {ord(character) for character in text} <= set(get_font(path).get_charmap())


@given(st.text(max_size=30))
def test_every_character_of_a_label_has_a_glyph(text: str) -> None:
    one = label(text)
    assert drawable(one.text, one.font)
    assert STAND_IN in one.text or not one.replaced


@given(st.text(max_size=60), st.floats(10, 120))
def test_a_shortened_label_fits_and_is_marked(text: str, room: float) -> None:
    one = label(text)
    short = shortened(one, room, 7)
    assert drawable(short.text, short.font)
    if short != one:
        assert short.text.endswith("…")
        assert width_of(short, 7) <= room


def test_chinese_gets_a_font_that_has_it_and_english_stays_in_the_house_font() -> None:
    assert label("memory").font is None
    assert label("回忆").font == label("OK 回忆").font == str(find_font("zh").path)


def test_a_chinese_font_is_found_by_the_text_not_by_the_figure() -> None:
    assert properties(label("茶"), 8).get_file() == str(find_font("zh").path)


@pytest.mark.parametrize("text", ["茶🫖杯", "a𓀀b"])
def test_what_no_font_has_becomes_one_dot(text: str) -> None:
    one = label(text)
    assert one.replaced
    assert one.text == f"{text[0]}{STAND_IN}{text[-1]}"


def test_a_run_of_emoji_with_joiners_and_skin_tones_is_one_dot() -> None:
    assert label("👩🏽\u200d🚀🫖").text == STAND_IN


def test_controls_and_line_ends_do_nothing() -> None:
    assert label("a\nb\tc").text == "a b c"
    assert label("\u202eevil").text == "\\u202eevil"


def test_how_many_labels_changed_is_said() -> None:
    assert replaced_note([label("tea")]) == []
    assert replaced_note([label("🫖"), label("茶🫖"), label("tea")])[0].endswith("in 2 labels.")


@house_style()
@pytest.mark.parametrize("text", HOSTILE)
def test_any_text_can_be_drawn(text: str) -> None:
    figure = new_figure(2, 1)
    drawn = write(bare_panel(figure), 0, 0, label(text))
    assert not drawn.get_parse_math()
    figure.canvas.draw()


@house_style()
def test_a_dollar_is_a_dollar() -> None:
    figure = new_figure(2, 1)
    drawn = write(bare_panel(figure), 0, 0, label("$x^2$"))
    figure.canvas.draw()
    assert drawn.get_text() == "$x^2$"
    assert drawn.get_window_extent().width == pytest.approx(
        width_of(label("$x^2$"), 8) * figure.dpi / 72, rel=0.1
    )
