"""Labels: no boxes, no mathematics, no more room than there is."""

from __future__ import annotations

import pytest
from figures_made import HOSTILE
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.analysis.figures.fonts import find_font
from h2htalk.analysis.figures.labels import STAND_IN, label, replaced_note, shortened, width_of, write
from h2htalk.analysis.figures.style import figure_style, new_panels

pytestmark = pytest.mark.filterwarnings("error")  # matplotlib warns of a missing glyph


@given(st.text(max_size=60), st.floats(10, 120))
def test_every_character_of_a_label_has_a_glyph_and_a_shortened_label_fits(text: str, room: float) -> None:
    one = label(text)
    assert not find_font("en").missing(one) & find_font("zh").missing(one)
    short = shortened(one, room, 7)
    if short != one:
        assert short.endswith("…")
        assert width_of(short, 7) <= room


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("茶🫖杯", f"茶{STAND_IN}杯"),
        ("a𓀀b", f"a{STAND_IN}b"),
        ("👩🏽\u200d🚀🫖", STAND_IN),
        ("a\nb\tc", "a b c"),
        ("\u202eevil", "\\u202eevil"),
    ],
)
def test_what_no_font_has_becomes_one_dot_and_controls_do_nothing(text: str, shown: str) -> None:
    assert label(text) == shown


def test_how_many_labels_changed_is_said() -> None:
    assert replaced_note([label("tea")]) == []
    assert replaced_note([label("🫖"), label("茶🫖"), label("tea")])[0].endswith("in 2 labels.")


@figure_style()
@pytest.mark.parametrize("text", [*HOSTILE, "OK 回忆"])
def test_any_text_is_drawn_as_it_is(text: str) -> None:
    figure, (axes,) = new_panels(2, 72)
    drawn = write(axes, 0, 0, label(text))
    figure.canvas.draw()
    assert drawn.get_window_extent().width == pytest.approx(width_of(label(text), 8) * figure.dpi / 72, rel=0.1, abs=2)
