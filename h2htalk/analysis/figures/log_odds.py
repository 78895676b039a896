"""Draw what one split has more of than another: estimates as dots, 95 % intervals as lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from h2htalk.analysis.figures.style import (
    BODY,
    PALETTE,
    PAPER,
    QUIET,
    SMALL,
    draw_sentence,
    figure_style,
    label,
    new_panels,
    notes,
    replaced_note,
    row_labels,
    shortened,
    width_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from h2htalk.analysis.measures.log_odds import LogOdds

EACH_WAY = 15
_ALIKE = 1e-9  # closer to 0 is rounding: the shares are equal


@figure_style()
def draw_log_odds(rows: Sequence[LogOdds], name_a: str, name_b: str) -> Figure:
    """Draw the items that differ most significantly, the strongest towards a on top.

    Args:
        rows: as `measures.log_odds` gives them. Of those with more in a and of those with more in b, the 15 with
            the largest |z| are drawn, by their log-odds.
        name_a, name_b: the names of the two splits.

    A filled dot: the row is `clear`, the difference is significant with all items tested at once. Counts of both
    splits are on the right.
    """
    ranked = sorted(rows, key=lambda row: (-abs(row.z), row.item))
    more_a = [row for row in ranked if row.log_odds > _ALIKE][:EACH_WAY]
    more_b = [row for row in ranked if row.log_odds < -_ALIKE][:EACH_WAY]
    shown = sorted([*more_a, *more_b], key=lambda row: (-row.log_odds, row.item))
    if not shown:
        return draw_sentence("nothing that one split has more of")
    figure, (axes,) = new_panels(11.5 * len(shown) + 66)
    labels = row_labels([axes], [row.item for row in shown], 130)
    places = range(len(shown))
    colours = [PALETTE[row.log_odds < 0] for row in shown]
    faces = [colour if row.clear else PAPER for row, colour in zip(shown, colours, strict=True)]
    axes.hlines(places, [row.low for row in shown], [row.high for row in shown], colours, linewidth=1.1)
    axes.scatter([row.log_odds for row in shown], places, s=16, c=faces, edgecolors=colours, linewidths=1, zorder=2)
    columns = [f"{row.count_b:,}" for row in shown], [f"{row.count_a:,}" for row in shown]
    step = 5 + max(width_of(count, SMALL) for column in columns for count in column)
    where: dict[str, Any] = {"xycoords": axes.get_yaxis_transform(), "textcoords": "offset points"}
    where |= {"ha": "right", "va": "center_baseline", "size": SMALL}
    for number, (column, colour) in enumerate(zip(columns, (PALETTE[1], PALETTE[0]), strict=True), 1):
        for place, count in enumerate(column):
            axes.annotate(count, (1, place), (number * step, 0), color=colour, **where)
    axes.margins(x=0.04)
    axes.axvline(0, color=QUIET, linewidth=0.7)
    axes.grid(axis="x")
    axes.set_xlabel("log-odds ratio (natural logarithm; 0: both alike)")
    name_a, name_b = (shortened(label(name), 140, BODY) for name in (name_a, name_b))
    axes.set_title(f"← more in {name_b}", color=PALETTE[1], loc="left", parse_math=False)
    axes.set_title(f"more in {name_a} →", color=PALETTE[0], loc="right", parse_math=False)
    marks = "Line: 95 % interval. Filled: clear with all items tested at once. Right: counts in both splits."
    notes(figure, [marks, *replaced_note([*labels, name_a, name_b])])
    return figure
