"""Draw verb-noun pairs as plain bars, an alternative to the sunburst."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from h2htalk.analysis.figures.labels import label, replaced_note, row_labels, shortened, width_of, write
from h2htalk.analysis.figures.style import (
    PALETTE,
    POINTS,
    SINGLE_COLUMN,
    SMALL,
    draw_sentence,
    figure_style,
    new_figure,
    notes,
    panel,
    tint,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from h2htalk.analysis.verb_nouns.pairs import PairCount

STEP = 9.6  # points a row
LABEL_ROOM = 110.0  # points


@figure_style()
def draw_pairs_bars(counts: Sequence[PairCount], pairs: int = 50) -> Figure:
    """Draw the most frequent pairs, `verb noun` with its count, the first on top; 3.35 in wide.

    Args:
        counts: sorted, as `count_pairs` gives them; the first `pairs` are drawn.
    """
    shown = [count for count in counts if count.count > 0][:pairs]
    if not shown:
        return draw_sentence("no verb-noun pairs found")
    # One font is chosen for the whole label; a space separates the two words of a Chinese pair.
    whole = [label(f"{pair.verb} {pair.noun}") for pair in shown]
    labels = [shortened(one, LABEL_ROOM, SMALL) for one in whole]
    note_lines = replaced_note(labels)
    left = 10 + max(width_of(one, SMALL) for one in labels)
    foot = 20.0 + 9 * len(note_lines)
    height = STEP * len(shown) + foot + 4
    figure = new_figure(SINGLE_COLUMN, height / POINTS)
    width = SINGLE_COLUMN * POINTS - left - 6
    axes = panel(figure, left, foot, width, STEP * len(shown))
    values = [pair.count for pair in shown]
    axes.barh(range(len(shown)), values, 0.72, color=tint(PALETTE[0], 0.6), linewidth=0)
    numbers = [label(f"{value:,}") for value in values]
    widest = max(width_of(one, SMALL) for one in numbers) + 4
    axes.set_xlim(0, max(values) * width / (width - widest))
    axes.set_ylim(len(shown) - 0.5, -0.5)
    for row, (value, number) in enumerate(zip(values, numbers, strict=True)):
        gap = 2 * axes.get_xlim()[1] / width
        write(axes, value + gap, row, number, 6.5, va="center_baseline")
    row_labels(axes, labels, SMALL)
    axes.spines.bottom.set_visible(False)
    axes.set_xticks([])
    axes.set_xlabel("times in all texts", labelpad=2)
    notes(figure, note_lines)
    return figure
