"""The style of every figure: widths of a printed column, sizes, a palette for colour-blind readers, an empty figure.

The palette is Okabe and Ito's (2008, "Color Universal Design"), darkened until each colour has a
luminance contrast of at least 4.5 on white (WCAG 2.2, 1.4.3), so that words drawn in it can be read, also in grey.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from h2htalk.analysis.figures.fonts import INSTALL_ANALYSIS, find_font
from h2htalk.errors import MissingExtraError, counted

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
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "legend.frameon": False,
    "legend.fontsize": SMALL,
    "hatch.linewidth": 0.5,
    "hatch.color": LINE,
    "svg.fonttype": "path",  # the page needs no font
    "pdf.fonttype": 42,  # TrueType: publishers refuse Type 3
    "svg.image_inline": True,
    "path.simplify": True,
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
        raise MissingExtraError("drawing figures", INSTALL_ANALYSIS) from None
    finally:
        if screen is not None:
            os.environ["MPLBACKEND"] = screen
    if screen:
        with suppress(ValueError):
            mpl.rcParams["backend"] = screen
    return mpl


def new_figure(width: float, height: float) -> Figure:
    """Create an empty white figure, width and height in inches, without pyplot."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), facecolor=PAPER)


def panel(figure: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    """Add axes at a position given in points from the figure's lower left corner."""
    across, up = figure.get_figwidth() * POINTS, figure.get_figheight() * POINTS
    return figure.add_axes((left / across, bottom / up, width / across, height / up))


def bare_panel(figure: Figure) -> Axes:
    """Add axes over the whole figure, without frame or ticks, in points, with the centre at (0, 0)."""
    across, up = figure.get_figwidth() * POINTS, figure.get_figheight() * POINTS
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    axes.set_xlim(-across / 2, across / 2)
    axes.set_ylim(-up / 2, up / 2)
    return axes


def tint(colour: str, share: float) -> tuple[float, float, float]:
    """Mix a colour with white: `share` of it in [0, 1], the rest white; returns red, green, blue in [0, 1]."""
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(colour)
    return (1 - share * (1 - red), 1 - share * (1 - green), 1 - share * (1 - blue))


@figure_style()
def draw_sentence(sentence: str, width: float = SINGLE_COLUMN) -> Figure:
    """Draw a figure that holds one sentence, for a figure that has nothing to show."""
    figure = new_figure(width, 0.8)
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
        across, up = figure.get_figwidth() * POINTS, figure.get_figheight() * POINTS
        figure.text(4 / across, 4 / up, "\n".join(sentences), size=6, color=QUIET, va="bottom", parse_math=False)
