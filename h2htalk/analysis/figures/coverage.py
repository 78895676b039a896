"""Draw the combinations of emotion, interaction and complexity that a split covers: a heat map with counts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from h2htalk.analysis.figures.labels import label, row_labels, shortened, width_of, write
from h2htalk.analysis.figures.style import (
    BODY,
    DOUBLE_COLUMN,
    INK,
    LINE,
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
    tint,
)
from h2htalk.data.scenario import COMPLEXITIES, INTERACTIONS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from h2htalk.analysis.measures.coverage import Coverage

ROW = 13.0  # points
_DARK = 0.8  # above this share of the colour, white numbers have more contrast than dark ones


@figure_style()
def draw_coverage(coverage: Coverage) -> Figure:
    """Draw emotions as rows, interactions and within them complexities as columns; 6.9 in wide.

    The most frequent emotion is first, at most 100 are drawn (the rest is counted below). A cell's number is its
    scenarios and its colour their square root; an empty cell is hatched.
    """
    if not coverage.emotions:
        return draw_sentence("no scenarios, so nothing is covered")
    counts = {(c.emotion, c.interaction, c.complexity): c.count for c in coverage.cells}
    emotions = coverage.emotions[:MOST_ROWS]
    labels = [shortened(label(emotion.replace("_", " ")), 120, SMALL) for emotion in emotions]
    left = 12 + max(width_of(one, SMALL) for one in labels)
    rows = len(emotions)
    foot = 22.0 if rows == len(coverage.emotions) else 30.0
    height = ROW * rows + 36 + foot
    figure = new_figure(DOUBLE_COLUMN, height / POINTS)
    axes = panel(figure, left, foot, DOUBLE_COLUMN * POINTS - left - 8, ROW * rows)
    _frame(axes, rows)
    most = max(counts.values())
    for row, emotion in enumerate(emotions):
        for column, (interaction, complexity) in enumerate(_columns()):
            _cell(axes, row, column, counts.get((emotion, interaction, complexity), 0), most)
    _headings(axes, (DOUBLE_COLUMN * POINTS - left - 8) / len(_columns()))
    row_labels(axes, labels, SMALL)
    share = 100 * coverage.filled / coverage.total
    sentence = f"{coverage.filled} of {coverage.total} cells hold scenarios ({share:.0f} %); the hatched ones none."
    notes(figure, [sentence, *not_drawn(len(coverage.emotions) - rows, "rarer emotion")])
    return figure


def _columns() -> list[tuple[str, str]]:
    return [(interaction, complexity) for interaction in INTERACTIONS for complexity in COMPLEXITIES]


def _frame(axes: Axes, rows: int) -> None:
    axes.set_xlim(-0.5, len(_columns()) - 0.5)
    axes.set_ylim(rows - 0.5, -0.5)
    axes.set_xticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)


def _cell(axes: Axes, row: int, column: int, count: int, most: int) -> None:
    from matplotlib.patches import Rectangle

    corner = (column - 0.5, row - 0.5)
    if not count:
        axes.add_patch(Rectangle(corner, 1, 1, facecolor=PAPER, edgecolor=LINE, hatch="////", linewidth=0))
        return
    share = 0.1 + 0.9 * math.sqrt(count / most)
    axes.add_patch(Rectangle(corner, 1, 1, facecolor=tint(PALETTE[0], share), edgecolor=PAPER, linewidth=0.8))
    ink = PAPER if share > _DARK else INK
    write(axes, column, row, label(f"{count:,}"), SMALL, ha="center", va="center_baseline", color=ink)


def _headings(axes: Axes, width: float) -> None:
    """Draw interactions over complexities; `width` is a column's width in points."""
    inner = len(COMPLEXITIES)
    rows = axes.get_ylim()[0] + 0.5
    widest = max(width_of(label(complexity), SMALL) for complexity in COMPLEXITIES)
    size = min(SMALL, 0.94 * SMALL * width / widest)
    for column, (_, complexity) in enumerate(_columns()):
        write(axes, column, -0.5 - 6 / ROW, label(complexity), size, ha="center", va="center_baseline")
    for place, interaction in enumerate(INTERACTIONS):
        middle = place * inner + (inner - 1) / 2
        title = label(interaction.replace("_", " "))
        write(axes, middle, -0.5 - 20 / ROW, title, BODY, ha="center", va="center_baseline")
        rule = [place * inner - 0.46, (place + 1) * inner - 0.54]
        axes.plot(rule, [-0.5 - 13 / ROW] * 2, color=QUIET, linewidth=0.6, clip_on=False)
        if place:
            edge = place * inner - 0.5
            axes.plot([edge, edge], [-0.5, rows - 0.5], color=PAPER, linewidth=3)
