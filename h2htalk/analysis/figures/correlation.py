"""Draw correlations as a heat map: one colour for positive, one for negative, the number in each cell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from h2htalk.analysis.figures.labels import label, replaced_note, row_labels, shortened, width_of, write
from h2htalk.analysis.figures.style import (
    DOUBLE_COLUMN,
    INK,
    LINE,
    PALETTE,
    PAPER,
    POINTS,
    SMALL,
    figure_style,
    new_figure,
    notes,
    panel,
    tint,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROW, WIDEST, FOOT = 15.0, 60.0, 32.0  # points: height of a cell, its width where there are few, the small print
_DARK = 0.75  # above this share of the colour, white numbers have more contrast than dark ones
Estimate = tuple[float | None, float | None, float | None]  # a correlation, and the ends of its interval


@figure_style()
def draw_correlations(cells: Mapping[tuple[str, str], Estimate], what: str) -> Figure:
    """Draw correlations as cells by (column, row); 6.9 in wide.

    Args:
        cells: each with its interval; a value that is None is hatched, an interval without 0 gets a star.
        what: they are of, such as "over models".
    """
    from matplotlib.patches import Rectangle

    across, rows = (list(dict.fromkeys(pair[side] for pair in cells)) for side in (0, 1))
    texts = [shortened(label(name), 120, SMALL) for name in (*across, *rows)]
    left, head = 12 + max(width_of(one, SMALL) for one in texts), 12 + 0.8 * max(width_of(t, SMALL) for t in texts)
    width = min(WIDEST, (DOUBLE_COLUMN * POINTS - left - head) / len(across))
    figure = new_figure(DOUBLE_COLUMN, (ROW * len(rows) + head + FOOT) / POINTS)
    axes = panel(figure, left, FOOT, width * len(across), ROW * len(rows))
    axes.set_xlim(-0.5, len(across) - 0.5)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.spines[:].set_visible(False)
    row_labels(axes, texts[len(across) :], SMALL)
    axes.tick_params(axis="x", length=0, pad=3, top=True, labeltop=True, labelbottom=False)
    axes.set_xticks(range(len(across)), texts[: len(across)], size=SMALL, parse_math=False)
    for text in axes.get_xticklabels():
        text.set(rotation=45, ha="left", rotation_mode="anchor")
    for (column, row), (value, low, high) in cells.items():
        x, y, share = across.index(column), rows.index(row), abs(value or 0.0)
        colour = PAPER if value is None else tint(PALETTE[value < 0], share)
        hatch = "////" if value is None else None
        corner = (x - 0.5, y - 0.5)
        axes.add_patch(Rectangle(corner, 1, 1, facecolor=colour, edgecolor=LINE, linewidth=0.5, hatch=hatch))
        if value is not None:
            mark = "*" if low is not None and high is not None and low * high > 0 else ""
            ink = PAPER if share > _DARK else INK
            write(axes, x, y, label(f"{value:.2f}{mark}"), 6, ha="center", va="center_baseline", color=ink)
    sentence = f"Spearman's rho {what}. * The 95 % interval does not hold 0."
    notes(figure, [sentence, *replaced_note(texts)])
    return figure
