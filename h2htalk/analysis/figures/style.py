"""The style of every figure: width of a printed page, sizes, fonts, a palette for colour-blind readers, labels, files.

The palette is Okabe and Ito's (2008, "Color Universal Design"), darkened until each colour has a
luminance contrast of at least 4.5 on white (WCAG 2.2, 1.4.3), so that words drawn in it can be read, also in grey.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h2htalk.data.languages import LANGUAGES, find_language
from h2htalk.errors import ConfigError, MissingExtraError, counted
from h2htalk.text.escaping import printable
from h2htalk.text.parsing.parsing import INSTALL

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

WIDTH = 6.9  # inches: both columns of a two-column page
POINTS = 72.0  # of an inch

MOST_ROWS = 40  # of one figure, which is then a page high; emotions are an open list
BODY, SMALL, TINY = 8.0, 7.0, 5.0  # points; nothing is smaller than TINY

# Blue, vermilion, green, purple, ink blue.
PALETTE = ("#0072b2", "#b04400", "#00523f", "#a0407f", "#1b2a49")
SIDE_COLOURS = {"instruction": PALETTE[0], "response": PALETTE[1]}
INK, QUIET, LINE, PAPER = "#1d2328", "#5f6b75", "#d5d8da", "#ffffff"

BUNDLED_FONT = Path(__file__).parent / "chinese_font" / "H2HTalkSansSC-Regular.ttf"
FAMILIES = ("DejaVu Sans", "H2HTalk Sans SC")  # the second draws characters that the first lacks

_STYLE = Path(__file__).with_name("figures.mplstyle")
FORMATS = ("svg", "pdf", "png")
PNG_WIDTH = 1656  # pixels; SVG and PDF are for print
_MAKER = "h2htalk"
STAND_IN = "·"  # replaces characters that no font has
# Joiners, variation selectors and skin tones only modify the character before them.
_CHANGING = re.compile("[\u200d\ufe00-\ufe0f\U0001f3fb-\U0001f3ff]")
LONGEST = 200  # characters of a label that are read
# No date, no version: files drawn from the same data are equal.
_METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": _MAKER},
    "pdf": {"CreationDate": None, "Creator": _MAKER, "Producer": None},
    "png": {"Software": None},
}


@contextmanager
def figure_style() -> Iterator[None]:
    """Draw with matplotlib's defaults and ours, without `matplotlibrc`; also a decorator. Raise as `find_font`."""
    find_font("zh")  # registers the bundled font with matplotlib
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(mpl.rc_params_from_file(_STYLE, use_default_template=False))
        yield


@dataclass(frozen=True, slots=True)
class FontFile:
    """A font that matplotlib, Pillow and `wordcloud` all read, with the code points that it can draw.

    The name is that of its family, as a summary names it; the source is `matplotlib` or `bundled`.
    """

    path: Path
    name: str
    source: str
    covers: frozenset[int] = field(repr=False)


@cache
def find_font(language: str) -> FontFile:
    """Find the font for words of a language: the bundled one for Chinese, so that figures are equal everywhere.

    English: matplotlib's DejaVu Sans, which has all of Latin, Greek and Cyrillic. Raise ConfigError for a language that
    is unknown or in a script without a font, MissingExtraError without matplotlib.
    """
    script = find_language(language).script
    if script not in ("Latin", "Chinese"):
        raise ConfigError(
            f"no font for {script} letters; the figures have fonts for Latin and Chinese ones"
        )
    try:
        from matplotlib import get_data_path
        from matplotlib.font_manager import fontManager, get_font
    except ImportError:
        raise MissingExtraError("drawing figures", INSTALL) from None
    path = BUNDLED_FONT
    source = "bundled"
    if script == "Latin":
        path = Path(get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"
        source = "matplotlib"
    fontManager.addfont(path)
    font = get_font(path)
    return FontFile(path, font.family_name, source, frozenset(font.get_charmap()))


def new_panels(height: float, columns: int = 1) -> tuple[Figure, list[Axes]]:
    """Create a white figure, 6.9 inches wide and `height` points high, with panels side by side, without pyplot."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height / POINTS), facecolor=PAPER, layout="constrained")
    return figure, list(figure.subplots(1, columns, squeeze=False).flat)


def tint(colour: str, share: float) -> tuple[float, ...]:
    """Mix a colour with white: `share` of it in [0, 1], the rest white; returns red, green, blue in [0, 1]."""
    from matplotlib.colors import to_rgb

    return tuple(1 - share * (1 - part) for part in to_rgb(colour))


@figure_style()
def draw_sentence(sentence: str) -> Figure:
    """Draw a figure that holds one sentence, for a figure that has nothing to show."""
    figure, (axes,) = new_panels(58)
    axes.set_axis_off()
    figure.text(0.5, 0.5, sentence, ha="center", va="center", color=QUIET)
    return figure


def thousands(value: float) -> str:
    """Format a count or length: `7.47`, `38.2`, `1,204`."""
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


def not_drawn(count: int, noun: str, detail: str = "") -> list[str]:
    """Return the sentence for the foot of a figure that omits rows of its table."""
    if count <= 0:
        return []
    return [f"Not drawn: {counted(count, noun)}{detail}; see the table."]


def notes(figure: Figure, sentences: Sequence[str]) -> None:
    """Write small print along the figure's foot: what is not drawn, and what a mark means."""
    if sentences:
        figure.supxlabel("\n".join(sentences), x=0.01, ha="left", size=6, color=QUIET)


@figure_style()
def save_figure(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write `name`.svg (page), .pdf (print) and .png (slides) into a folder, created if missing; return their paths.

    Equal figures give equal bytes. Text is outlines in the SVG (no font is needed to show it) and TrueType in the PDF.
    Ids inside the SVG depend on the name, so that two figures on one page cannot share a clip path. Raises OSError.
    """
    import matplotlib as mpl

    folder.mkdir(parents=True, exist_ok=True)
    if engine := figure.get_layout_engine():  # once for all formats: it costs more than the drawing
        engine.execute(figure)
        figure.set_layout_engine("none")
    paths = []
    for kind in FORMATS:
        path = folder / f"{name}.{kind}"
        with mpl.rc_context({"svg.hashsalt": f"{_MAKER} {name}"}):
            figure.savefig(path, format=kind, dpi=PNG_WIDTH / WIDTH, metadata=_METADATA[kind])
        paths.append(path)
    return paths


# --- Labels: words of a data set, one line each, no boxes, no mathematics ---------------------------------------------


def label(text: str) -> str:
    """Format one line of text; a run of characters that no font has (emoji, rare scripts) becomes one middle dot."""
    line = printable(" ".join(text[:LONGEST].split()))
    line = _CHANGING.sub("", line) or line
    covered = frozenset().union(*(find_font(language).covers for language in LANGUAGES))
    characters = [c if ord(c) in covered else "\0" for c in line]
    return re.sub(r"\0+", STAND_IN, "".join(characters))


def replaced_note(labels: Iterable[str]) -> list[str]:
    """Return the sentence for the figure's foot if characters of a label were replaced."""
    count = sum(STAND_IN in text for text in labels)
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
    width, _, _ = text_to_path.get_text_width_height_descent(text, properties, ismath=False)
    return float(width)


def shortened(text: str, width: float, size: float = BODY) -> str:
    """Shorten a text with an ellipsis if it is wider than `width` points."""
    if width_of(text, size) <= width:
        return text
    cuts = [f"{text[:length].rstrip()}…" for length in range(len(text))]
    fitting = bisect_right(cuts, width, key=lambda cut: width_of(cut, size))
    return cuts[max(0, fitting - 1)]


def write(axes: Axes, x: float, y: float, text: str, size: float = BODY, **options: Any) -> Text:
    """Draw a label on axes around a point; options are those of `matplotlib.text.Text`."""
    return axes.text(x, y, text, size=size, ha="center", va="center_baseline", **options)


def row_labels(panels: Sequence[Axes], names: Sequence[str], room: float) -> list[str]:
    """Write names, of at most `room` points, left of the first panel at y = 0, 1, 2 ... downwards; return them."""
    labels = [shortened(label(name), room, SMALL) for name in names]
    for axes in panels:
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0, pad=4)
        axes.set_yticks([])
    panels[0].set_yticks(range(len(names)), labels, size=SMALL)
    return labels
