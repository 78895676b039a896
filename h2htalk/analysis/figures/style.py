"""The style of every figure: widths of a printed column, sizes, a palette for colour-blind readers, panels, files.

The palette is Okabe and Ito's (2008, "Color Universal Design"), darkened until each colour has a
luminance contrast of at least 4.5 on white (WCAG 2.2, 1.4.3), so that words drawn in it can be read, also in grey.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h2htalk.analysis.figures.fonts import find_font
from h2htalk.errors import MissingExtraError, counted
from h2htalk.text.parsing.parsing import INSTALL

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SINGLE_COLUMN = 3.35  # inches: one column of a two-column page
DOUBLE_COLUMN = 6.9  # inches: both columns
POINTS = 72.0  # of an inch

MOST_ROWS = 100  # of one figure, which is then two pages high; emotions are an open list
BODY, SMALL, TINY = 8.0, 7.0, 5.0  # points; nothing is smaller than TINY

PALETTE = ("#0072b2", "#b04400", "#00523f", "#a0407f", "#1b2a49")  # blue, vermilion, green, purple, ink blue
SIDE_COLOURS = {"instruction": PALETTE[0], "response": PALETTE[1]}
INK, QUIET, LINE, PAPER = "#1d2328", "#5f6b75", "#d5d8da", "#ffffff"

FAMILIES = ("DejaVu Sans", "H2HTalk Sans SC")  # the second draws characters that the first lacks

_RC: dict[Any, Any] = {
    "font.family": FAMILIES,
    "font.size": BODY,
    "text.color": INK,
    "axes.edgecolor": QUIET,
    "axes.labelcolor": INK,
    "axes.labelsize": BODY,
    "axes.labelpad": 2,
    "axes.titlesize": BODY,
    "axes.titlepad": 5,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": SMALL,
    "figure.constrained_layout.w_pad": 6 / POINTS,
    "grid.color": QUIET,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.4,
    "hatch.linewidth": 0.5,
    "hatch.color": LINE,
    "svg.fonttype": "path",  # the page needs no font
    "pdf.fonttype": 42,  # TrueType: publishers refuse Type 3
    "svg.image_inline": True,
    "path.simplify": True,
}
for _axis in ("xtick", "ytick"):
    _RC |= {f"{_axis}.labelsize": SMALL, f"{_axis}.color": QUIET, f"{_axis}.labelcolor": INK}
    _RC |= {f"{_axis}.major.width": 0.6, f"{_axis}.major.size": 2.5}
FORMATS = ("svg", "pdf", "png")
PNG_WIDTH = 1656  # pixels; SVG and PDF are for print
_MAKER = "h2htalk"
# No date, no version: files drawn from the same data are equal.
_METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": _MAKER},
    "pdf": {"CreationDate": None, "Creator": _MAKER, "Producer": None},
    "png": {"Software": None},
}
# These select a screen; a figure must not change them.
_NOT_OURS = frozenset({"backend", "backend_fallback", "interactive", "toolbar", "timezone"})


@contextmanager
def figure_style() -> Iterator[None]:
    """Draw with matplotlib's defaults and ours, ignoring `matplotlibrc` and `MPLBACKEND`; usable as a decorator.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    mpl = _matplotlib()
    settings: Any = {key: value for key, value in mpl.rcParamsDefault.items() if key not in _NOT_OURS}
    find_font("zh")  # registers the bundled font with matplotlib
    with mpl.rc_context({**settings, **_RC}):
        yield


def _matplotlib() -> Any:
    """Import matplotlib without `MPLBACKEND`: a wrong value fails the import, and no figure needs a screen.

    A valid value is set afterwards, for code that draws on a screen in the same process.
    """
    screen = None if "matplotlib" in sys.modules else os.environ.pop("MPLBACKEND", None)
    try:
        mpl = import_module("matplotlib")
    except ImportError:
        raise MissingExtraError("drawing figures", INSTALL) from None
    finally:
        if screen is not None:
            os.environ["MPLBACKEND"] = screen
    if screen:
        with suppress(ValueError):
            mpl.rcParams["backend"] = screen
    return mpl


def new_figure(width: float, height: float) -> Figure:
    """Create an empty white figure, width in inches and height in points, without pyplot."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height / POINTS), facecolor=PAPER)


def new_panels(width: float, height: float, rows: int = 1, columns: int = 1) -> tuple[Figure, list[Axes]]:
    """Create a figure as `new_figure` does, with panels for which matplotlib finds the room."""
    figure = new_figure(width, height)
    figure.set_layout_engine("constrained")
    return figure, list(figure.subplots(rows, columns, squeeze=False).flat)


def tint(colour: str, share: float) -> tuple[float, ...]:
    """Mix a colour with white: `share` of it in [0, 1], the rest white; returns red, green, blue in [0, 1]."""
    from matplotlib.colors import to_rgb

    return tuple(1 - share * (1 - part) for part in to_rgb(colour))


@figure_style()
def draw_sentence(sentence: str) -> Figure:
    """Draw a figure that holds one sentence, for a figure that has nothing to show."""
    figure = new_figure(SINGLE_COLUMN, 58)
    figure.text(0.5, 0.5, sentence, ha="center", va="center", size=BODY, color=QUIET, wrap=True, parse_math=False)
    return figure


def thousands(value: float) -> str:
    """Format a count or length: `7.47`, `38.2`, `1,204`."""
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


def not_drawn(count: int, noun: str) -> list[str]:
    """Return the sentence for the foot of a figure that omits rows of its table."""
    return [f"Not drawn: {counted(count, noun)}; see the table."] if count > 0 else []


def notes(figure: Figure, sentences: Sequence[str]) -> None:
    """Write small print along the figure's foot: what is not drawn, and what a mark means."""
    if sentences:
        figure.supxlabel("\n".join(sentences), x=0.01, ha="left", size=6, color=QUIET, parse_math=False)


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
            figure.savefig(path, format=kind, dpi=PNG_WIDTH / figure.get_figwidth(), metadata=_METADATA[kind])
        paths.append(path)
    return paths
