"""Draw correlations as a heat map: one colour for positive, one for negative, the number in each cell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from h2htalk.analysis.figures.labels import cell, label, replaced_note, row_labels, shortened, width_of
from h2htalk.analysis.figures.style import DOUBLE_COLUMN, PALETTE, SMALL, figure_style, new_panels, notes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Estimate = tuple[float | None, float | None, float | None]  # a correlation, and the ends of its interval


@figure_style()
def draw_correlations(cells: Mapping[tuple[str, str], Estimate], what: str) -> Figure:
    """Draw correlations as cells by (column, row); 6.9 in wide.

    Args:
        cells: each with its interval; a value that is None is hatched, an interval without 0 gets a star.
        what: they are of, such as "over models".
    """
    across, rows = (list(dict.fromkeys(pair[side] for pair in cells)) for side in (0, 1))
    heads = [shortened(label(name), 120, SMALL) for name in across]
    head_room = 0.75 * max(width_of(text, SMALL) for text in heads)
    figure, (axes,) = new_panels(DOUBLE_COLUMN, 15 * len(rows) + head_room + 36)
    names = row_labels([axes], rows, 120)
    axes.set_xlim(-0.5, max(len(across), 8) - 0.5)  # a few cells are not broader than a page
    axes.spines[:].set_visible(False)
    axes.tick_params(axis="x", length=0, pad=3, top=True, labeltop=True, labelbottom=False)
    axes.set_xticks(range(len(across)), heads, size=SMALL, parse_math=False)
    for tick in axes.get_xticklabels():
        tick.set(rotation=45, ha="left", rotation_mode="anchor")
    for (column, row), (value, low, high) in cells.items():
        mark = "*" if low is not None and high is not None and low * high > 0 else ""
        share, text = (None, "") if value is None else (abs(value), f"{value:.2f}{mark}")
        cell(axes, across.index(column), rows.index(row), share, PALETTE[(value or 0) < 0], text)
    notes(figure, [f"Spearman's rho {what}. * The 95 % interval does not hold 0.", *replaced_note([*heads, *names])])
    return figure
