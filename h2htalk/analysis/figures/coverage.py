"""Draw the combinations of emotion, interaction and complexity that a split covers: a heat map with counts."""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING

from h2htalk.analysis.figures.labels import cell, row_labels
from h2htalk.analysis.figures.style import (
    DOUBLE_COLUMN,
    MOST_ROWS,
    PALETTE,
    PAPER,
    draw_sentence,
    figure_style,
    new_panels,
    not_drawn,
    notes,
)
from h2htalk.data.scenario import COMPLEXITIES, INTERACTIONS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from h2htalk.analysis.measures.coverage import Coverage


@figure_style()
def draw_coverage(coverage: Coverage) -> Figure:
    """Draw emotions as rows, interactions and within them complexities as columns; 6.9 in wide.

    The most frequent emotion is first, at most 100 are drawn (the rest is counted below). A cell's number is its
    scenarios and its colour their square root; an empty cell is hatched.
    """
    if not coverage.emotions:
        return draw_sentence("no scenarios, so nothing is covered")
    counts = {(c.emotion, c.interaction, c.complexity): c.count for c in coverage.cells}
    emotions, columns = list(coverage.emotions)[:MOST_ROWS], list(product(INTERACTIONS, COMPLEXITIES))
    figure, (axes,) = new_panels(DOUBLE_COLUMN, 13 * len(emotions) + 50)
    row_labels([axes], [emotion.replace("_", " ") for emotion in emotions], 120)
    for (row, emotion), (column, pair) in product(enumerate(emotions), enumerate(columns)):
        count = counts.get((emotion, *pair), 0)
        share = 0.1 + 0.9 * math.sqrt(count / max(counts.values())) if count else None
        cell(axes, column, row, share, PALETTE[0], f"{count:,}")
    middle, last = COMPLEXITIES[len(COMPLEXITIES) // 2], COMPLEXITIES[-1]
    heads = [f"{one.replace('_', ' ') if complexity == middle else ''}\n{complexity}" for one, complexity in columns]
    axes.set_xticks(range(len(columns)), heads, size=6.5, multialignment="center")
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.tick_params(axis="x", length=0, top=True, labeltop=True, labelbottom=False)
    axes.spines[:].set_visible(False)
    axes.vlines([n + 0.5 for n, (_, one) in enumerate(columns) if one == last], -0.5, len(emotions) - 0.5, PAPER, lw=3)
    share = 100 * coverage.filled / coverage.total
    sentence = f"{coverage.filled} of {coverage.total} cells hold scenarios ({share:.0f} %); the hatched ones none."
    notes(figure, [sentence, *not_drawn(len(coverage.emotions) - len(emotions), "rarer emotion")])
    return figure
