"""Draw heat maps with a number in each cell: the combinations of tags that a split covers, and correlations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product
from typing import TYPE_CHECKING, Any

from h2htalk.analysis.figures.style import (
    INK,
    LINE,
    MOST_ROWS,
    PALETTE,
    PAPER,
    SMALL,
    draw_sentence,
    figure_style,
    label,
    new_panels,
    not_drawn,
    notes,
    replaced_note,
    row_labels,
    shortened,
    tint,
    width_of,
    write,
)
from h2htalk.data.scenario import COMPLEXITIES, INTERACTIONS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from h2htalk.analysis.measures.diversity import Coverage

Estimate = tuple[float | None, float | None, float | None]  # a correlation, and the ends of its interval
_DARK = 0.8  # above this share of a cell's colour, white numbers are easier to read


@figure_style()
def draw_coverage(coverage: Coverage) -> Figure:
    """Draw emotions as rows, interactions and within them complexities as columns.

    The most frequent emotion is first, at most 40 are drawn (the rest is counted below). A cell's number is its
    scenarios and its colour their square root; an empty cell is hatched.
    """
    if not coverage.emotions:
        return draw_sentence("no scenarios, so nothing is covered")
    emotions, columns = list(coverage.emotions)[:MOST_ROWS], list(product(INTERACTIONS, COMPLEXITIES))
    largest = max(coverage.cells.values())
    figure, (axes,) = new_panels(13 * len(emotions) + 50)
    row_labels([axes], [emotion.replace("_", " ") for emotion in emotions], 120)
    for (row, emotion), (column, (interaction, complexity)) in product(enumerate(emotions), enumerate(columns)):
        count = coverage.cells[emotion, complexity, interaction]
        share = 0.1 + 0.9 * math.sqrt(count / largest) if count else None
        _cell(axes, column, row, share, PALETTE[0], f"{count:,}")
    middle, last = COMPLEXITIES[len(COMPLEXITIES) // 2], COMPLEXITIES[-1]
    heads = [f"{one.replace('_', ' ') if complexity == middle else ''}\n{complexity}" for one, complexity in columns]
    _column_heads(axes, heads, len(columns), multialignment="center")
    axes.vlines([n + 0.5 for n, (_, one) in enumerate(columns) if one == last], -0.5, len(emotions) - 0.5, PAPER, lw=3)
    notes(figure, ["Hatched: no scenario.", *not_drawn(len(coverage.emotions) - len(emotions), "rarer emotion")])
    return figure


@figure_style()
def draw_correlations(cells: Mapping[tuple[str, str], Estimate], what: str) -> Figure:
    """Draw correlations as cells by (column, row): one colour for positive ones, one for negative ones.

    Args:
        cells: each with its interval; a value that is None is hatched, an interval without 0 gets a star.
        what: they are of, such as "over models".
    """
    across, rows = (list(dict.fromkeys(pair[side] for pair in cells)) for side in (0, 1))
    heads = [shortened(label(name), 120, SMALL) for name in across]
    head_room = 0.75 * max(width_of(text, SMALL) for text in heads)
    figure, (axes,) = new_panels(15 * len(rows) + head_room + 36)
    names = row_labels([axes], rows, 120)
    # A few cells are not broader than a page.
    _column_heads(axes, heads, max(len(across), 8), rotation=45, ha="left", rotation_mode="anchor", parse_math=False)
    for (column, row), (value, low, high) in cells.items():
        mark = "*" if low is not None and high is not None and low * high > 0 else ""
        share, text = (None, "") if value is None else (abs(value), f"{value:.2f}{mark}")
        _cell(axes, across.index(column), rows.index(row), share, PALETTE[(value or 0) < 0], text)
    notes(figure, [f"Spearman's rho {what}. * The 95 % interval does not hold 0.", *replaced_note([*heads, *names])])
    return figure


def _column_heads(axes: Axes, heads: list[str], width: int, **options: Any) -> None:
    axes.set_xticks(range(len(heads)), heads, size=6.5, **options)
    axes.set_xlim(-0.5, width - 0.5)
    axes.tick_params(axis="x", length=0, pad=3, top=True, labeltop=True, labelbottom=False)
    axes.spines[:].set_visible(False)


def _cell(axes: Axes, x: int, y: int, share: float | None, colour: str, text: str) -> None:
    """Draw a cell with a share of a colour and a text; hatched where the share is None."""
    from matplotlib.patches import Rectangle

    look: dict[str, Any] = {"facecolor": PAPER, "edgecolor": LINE, "hatch": "////", "linewidth": 0}
    if share is not None:
        look = {"facecolor": tint(colour, share), "edgecolor": PAPER, "linewidth": 0.8}
        ink = PAPER if share > _DARK else INK
        write(axes, x, y, text, SMALL, ha="center", va="center_baseline", color=ink)
    axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, **look))
