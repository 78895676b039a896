"""Draw words of a data set as labels of a figure: one line each, no boxes, no mathematics."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from h2htalk.analysis.figures.style import BODY, FAMILIES, INK, SMALL, find_font
from h2htalk.data.languages import LANGUAGES
from h2htalk.errors import counted
from h2htalk.text.escaping import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

STAND_IN = "·"  # replaces characters that no font has
# Joiners, variation selectors and skin tones only modify the character before them.
_CHANGING = re.compile("[\u200d\ufe00-\ufe0f\U0001f3fb-\U0001f3ff]")
LONGEST = 200  # characters of a label that are read


def label(text: str) -> str:
    """Format one line of text; a run of characters that no font has (emoji, rare scripts) becomes one middle dot."""
    line = printable(" ".join(text[:LONGEST].split()))
    line = _CHANGING.sub("", line) or line
    drawn = frozenset().union(*(find_font(language).covers for language in LANGUAGES))
    return re.sub(r"\0+", STAND_IN, "".join(c if ord(c) in drawn else "\0" for c in line))


def replaced_note(labels: Iterable[str]) -> list[str]:
    """Return the sentence for the figure's foot if characters of a label were replaced."""
    count = sum(STAND_IN in one for one in labels)
    if not count:
        return []
    return [f"“{STAND_IN}” stands for characters without a glyph, in {counted(count, 'label')}."]


@lru_cache(8192)
def width_of(text: str, size: float = BODY) -> float:
    """Return the width in points of a text at a size in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    if not text:
        return 0.0
    properties = FontProperties(family=FAMILIES, size=size)
    return float(text_to_path.get_text_width_height_descent(text, properties, ismath=False)[0])


def shortened(text: str, width: float, size: float = BODY) -> str:
    """Shorten a text with an ellipsis if it is wider than `width` points."""
    if width_of(text, size) <= width:
        return text
    cuts = [f"{text[:length].rstrip()}…" for length in range(len(text))]
    return cuts[max(0, bisect_right(cuts, width, key=lambda cut: width_of(cut, size)) - 1)]


def write(axes: Axes, x: float, y: float, text: str, size: float = BODY, **options: Any) -> Text:
    """Draw a label on axes; options are those of `matplotlib.text.Text`."""
    options.setdefault("color", INK)
    return axes.text(x, y, text, size=size, parse_math=False, **options)


def row_labels(panels: Sequence[Axes], names: Sequence[str], room: float) -> list[str]:
    """Write names, of at most `room` points, left of the first panel at y = 0, 1, 2 ... downwards; return them."""
    drawn = [shortened(label(name), room, SMALL) for name in names]
    for axes in panels:
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0, pad=4)
        axes.set_yticks([])
    panels[0].set_yticks(range(len(names)), drawn, size=SMALL, parse_math=False)
    return drawn
