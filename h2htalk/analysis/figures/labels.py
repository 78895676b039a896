"""Words of a data set as labels of a figure: in a font that has them, never as boxes, never as mathematics."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from h2htalk.analysis.figures.style import BODY, INK, plural
from h2htalk.text.printable import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.font_manager import FontProperties
    from matplotlib.text import Text

STAND_IN = "·"  # for characters that no font at hand has
# Joiners, variation selectors and skin tones only change the character before them.
_CHANGING = re.compile("[\u200d\ufe00-\ufe0f\U0001f3fb-\U0001f3ff]")
LONGEST = 200  # characters of a label that are looked at


@dataclass(frozen=True, slots=True)
class Label:
    """Text that its font has in full: `font` is a file, None the figure's own; `replaced`: STAND_IN is in it."""

    text: str
    font: str | None = None
    replaced: bool = False


@lru_cache(4096)
def label(text: str) -> Label:
    """One line of the text, in the first font that has all of it: DejaVu Sans, else the Chinese one.

    A run of characters that neither has (emoji, rare scripts) becomes one middle dot; controls show as escapes.
    """
    line = printable(" ".join(text[:LONGEST].split()))
    line = _CHANGING.sub("", line) or line
    fonts = (None, _chinese_font())
    for font in fonts:
        if _missing(line, font) == set():
            return Label(line, font)
    font = min(fonts, key=lambda f: sum(c in _missing(line, f) for c in line))
    lost = _missing(line, font)
    return Label(re.sub(f"[{re.escape(''.join(sorted(lost)))}]+", STAND_IN, line), font, replaced=True)


def replaced_note(labels: Iterable[Label]) -> list[str]:
    """The sentence for the figure's foot, where a label had to be changed."""
    count = sum(one.replaced for one in labels)
    if not count:
        return []
    return [f"“{STAND_IN}” stands for characters without a glyph, in {plural(count, 'label')}."]


def _missing(line: str, font: str | None) -> set[str]:
    return {character for character in line if ord(character) not in _characters(font)}


@lru_cache(8)
def _characters(font: str | None) -> frozenset[int]:
    from matplotlib.font_manager import get_font

    return frozenset(get_font(font or _own_font()).get_charmap())


@lru_cache(1)
def _own_font() -> str:
    from matplotlib.font_manager import FontProperties, findfont

    return str(findfont(FontProperties(family=["DejaVu Sans"])))


@lru_cache(1)
def _chinese_font() -> str:
    from h2htalk.analysis.fonts import find_font

    return str(find_font("zh").path)


def properties(one: Label, size: float) -> FontProperties:
    """The label's font at a size in points."""
    from matplotlib.font_manager import FontProperties

    return FontProperties(family=["DejaVu Sans"], fname=one.font, size=size)


@lru_cache(8192)
def width_of(one: Label, size: float = BODY) -> float:
    """The label's width in points at a size in points."""
    from matplotlib.textpath import text_to_path

    if not one.text:
        return 0.0
    width, _, _ = text_to_path.get_text_width_height_descent(one.text, properties(one, size), ismath=False)
    return float(width)


def shortened(one: Label, room: float, size: float = BODY) -> Label:
    """The label, its end cut and marked with an ellipsis where it is wider than `room` points."""
    if width_of(one, size) <= room:
        return one
    low, high = 0, len(one.text)
    while low < high:  # the most characters that fit with the ellipsis
        middle = (low + high + 1) // 2
        if width_of(_cut(one, middle), size) <= room:
            low = middle
        else:
            high = middle - 1
    return _cut(one, low)


def _cut(one: Label, length: int) -> Label:
    return Label(one.text[:length].rstrip() + "…", one.font, one.replaced)


def write(axes: Axes, x: float, y: float, one: Label, size: float = BODY, **options: Any) -> Text:
    """Draw a label on axes; options are those of `matplotlib.text.Text`."""
    options.setdefault("color", INK)
    return axes.text(x, y, one.text, fontproperties=properties(one, size), parse_math=False, **options)


def row_labels(axes: Axes, labels: Sequence[Label], size: float, gap: float = 4.0) -> None:
    """Labels left of the axes at y = 0, 1, 2 ..., `gap` points from the frame, in the place of tick labels."""
    for row, one in enumerate(labels):
        axes.annotate(
            one.text,
            (0, row),
            (-gap, 0),
            xycoords=axes.get_yaxis_transform(),
            textcoords="offset points",
            annotation_clip=False,
            ha="right",
            va="center_baseline",
            fontproperties=properties(one, size),
            parse_math=False,
        )
    axes.set_yticks([])
