"""Draw what one split has more of than another: estimates as dots, 95 % intervals as lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from h2htalk.analysis.figures.labels import label, replaced_note, row_labels, shortened, width_of, write
from h2htalk.analysis.figures.style import (
    BODY,
    DOUBLE_COLUMN,
    MOST_ROWS,
    PALETTE,
    PAPER,
    POINTS,
    QUIET,
    SMALL,
    draw_sentence,
    figure_style,
    new_figure,
    not_drawn,
    notes,
    panel,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from h2htalk.analysis.measures.log_odds import LogOdds

EACH_WAY = 15
STEP = 11.5  # points a row
_ALIKE = 1e-9  # closer to 0 is rounding: the shares are equal
COLOURS = PALETTE[0], PALETTE[1]  # what a has more of, what b has more of


@figure_style()
def draw_log_odds(rows: Sequence[LogOdds], name_a: str, name_b: str, each_way: int = EACH_WAY) -> Figure:
    """Draw the items that differ most significantly, the strongest towards a on top; 6.9 in wide.

    Args:
        rows: as `measures.log_odds` gives them. Of those with more in a and of those with more in b, the
            `each_way` with the largest |z| are drawn, by their log-odds.
        name_a, name_b: the names of the two splits.

    A filled dot: the row is `clear`, the difference is significant with all items tested at once. Counts of both
    splits are on the right.
    """
    ranked = sorted(rows, key=lambda row: (-abs(row.z), row.item))
    more_a = [row for row in ranked if row.log_odds > _ALIKE][:each_way]
    more_b = [row for row in ranked if row.log_odds < -_ALIKE][:each_way]
    return _draw([*more_a, *more_b], name_a, name_b, "nothing that one split has more of")


@figure_style()
def draw_emotions(rows: Sequence[LogOdds], name_a: str, name_b: str) -> Figure:
    """Draw the same for emotions, which are few: every one, up to the 100 that differ most significantly."""
    ranked = sorted(rows, key=lambda row: (-abs(row.z), row.item))
    shown = ranked[:MOST_ROWS]
    return _draw(shown, name_a, name_b, "no emotions to compare", len(rows) - len(shown))


def _draw(rows: Sequence[LogOdds], name_a: str, name_b: str, nothing: str, left_out: int = 0) -> Figure:
    if not rows:
        return draw_sentence(nothing)
    shown = sorted(rows, key=lambda row: (-row.log_odds, row.item))
    whole = [label(row.item) for row in shown]
    labels = [shortened(one, 130, SMALL) for one in whole]
    counts = [(label(f"{row.count_b:,}"), label(f"{row.count_a:,}")) for row in shown]
    names = [label(name_a), label(name_b)]
    note_lines = [
        "Line: 95 % interval. Filled: clear with all items tested at once. "
        "Right: counts, left and right as the headings.",
        *replaced_note([*labels, *names]),
        *not_drawn(left_out, "emotion"),
    ]
    left = 12 + max(width_of(one, SMALL) for one in labels)
    column = 5 + max(width_of(one, SMALL) for both in counts for one in both)
    right = 10 + 2 * column
    foot = 32.0 + 8 * len(note_lines)
    height = STEP * len(shown) + foot + 18
    figure = new_figure(DOUBLE_COLUMN, height / POINTS)
    wide = DOUBLE_COLUMN * POINTS - left - right
    axes = panel(figure, left, foot, wide, STEP * len(shown))
    for row, one in enumerate(shown):
        _interval(axes, row, one)
    _scale(axes, shown)
    row_labels(axes, labels, SMALL)
    for row, both in enumerate(counts):
        for place, (count, colour) in enumerate(zip(both, reversed(COLOURS), strict=True), 1):
            across = 1 + (4 + place * column) / wide
            write(axes, across, row, count, SMALL, ha="right", va="center_baseline", color=colour,
                  transform=axes.get_yaxis_transform())  # fmt: skip
    _sides(axes, names, wide, len(shown))
    notes(figure, note_lines)
    return figure


def _interval(axes: Axes, row: int, one: LogOdds) -> None:
    colour = COLOURS[0] if one.log_odds > _ALIKE else COLOURS[1] if one.log_odds < -_ALIKE else QUIET
    axes.plot([one.low, one.high], [row, row], color=colour, linewidth=1.1, solid_capstyle="butt")
    face = colour if one.clear else PAPER
    axes.plot([one.log_odds], [row], "o", markersize=4, markerfacecolor=face, markeredgecolor=colour)


def _scale(axes: Axes, shown: Sequence[LogOdds]) -> None:
    from matplotlib.ticker import MaxNLocator

    low, high = min(0.0, *(row.low for row in shown)), max(0.0, *(row.high for row in shown))
    margin = 0.04 * (high - low) or 1.0
    axes.set_xlim(low - margin, high + margin)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.axvline(0, color=QUIET, linewidth=0.7)
    axes.xaxis.set_major_locator(MaxNLocator(7))
    axes.grid(axis="x", color=QUIET, alpha=0.25, linewidth=0.4)
    axes.set_xlabel("log-odds ratio (natural logarithm; 0: both alike)", labelpad=2)


def _sides(axes: Axes, names: Sequence[str], wide: float, rows: int) -> None:
    """Write above the panel which direction belongs to which split; long names are shortened."""
    above = 1 + 8 / (STEP * rows)
    name_a, name_b = (shortened(name, wide / 2 - 66, BODY) for name in names)
    place = {"va": "center_baseline", "transform": axes.transAxes}
    write(axes, 0, above, f"← more in {name_b}", BODY, color=COLOURS[1], ha="left", **place)
    write(axes, 1, above, f"more in {name_a} →", BODY, color=COLOURS[0], ha="right", **place)
