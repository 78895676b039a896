"""Draw Fig. 5 of the paper: verbs in the inner ring, the nouns they act on in the outer one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from h2htalk.analysis.figures.labels import label, replaced_note, shortened, write
from h2htalk.analysis.figures.style import (
    BODY,
    INK,
    PALETTE,
    PAPER,
    POINTS,
    QUIET,
    TINY,
    WIDTH,
    draw_sentence,
    figure_style,
    new_panels,
    notes,
    tint,
)
from h2htalk.errors import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from h2htalk.analysis.verb_nouns.pairs import VerbGroup

VERBS = 20  # of the inner ring, as Self-Instruct draws it (Wang et al. 2023, Fig. 3)
RIM, MIDDLE, HOLE = 237.0, 123.0, 41.0  # points: of the rim, between the rings, of the hole
PAD = 3.0  # points between a label and its ring
LARGEST = 9.0  # points a label is high
LINE_HEIGHT = 1.15  # of a label's size


@figure_style()
def draw_sunburst(groups: Sequence[VerbGroup]) -> Figure:
    """Draw verbs and their nouns as two rings, angles proportional to counts.

    Args:
        groups: as `top_verbs` gives them. The first 20 verbs are drawn; the others are counted below.

    A wedge too narrow for its label has none; such wedges are counted below, too.
    """
    if not groups:
        return draw_sentence("no verb-noun pairs found")
    drawn, left = groups[:VERBS], groups[VERBS:]
    nouns = [noun for group in drawn for noun in group.nouns]
    colours = [PALETTE[index % len(PALETTE)] for index in range(len(drawn))]
    if len(drawn) > 1 and colours[-1] == colours[0]:  # they are neighbours
        colours[-1] = PALETTE[2]
    shades = [tint(colour, 0.24) for colour, group in zip(colours, drawn, strict=True) for _ in group.nouns]
    figure, (axes,) = new_panels(WIDTH * POINTS)
    axes.set(xlim=(-RIM, RIM), ylim=(-RIM, RIM))
    axes.set_axis_off()
    names = _ring(axes, [group.count for group in drawn], [group.verb for group in drawn], colours, HOLE, MIDDLE)
    names += _ring(axes, [noun.count for noun in nouns], [noun.noun for noun in nouns], shades, MIDDLE, RIM)
    total, unit = counted(sum(group.count for group in drawn), "occurrence").split()
    write(axes, 0, 4.5, total, BODY + 1, ha="center", va="center_baseline")
    write(axes, 0, -5, unit, 6, ha="center", va="center_baseline", color=QUIET)
    note_lines = replaced_note(names)
    if narrow := len(drawn) + len(nouns) - len(names):
        note_lines.append(f"Too narrow for a label: {counted(narrow, 'wedge')}; see the table.")
    if left:
        pairs = sum(len(group.nouns) for group in left)
        note_lines.append(f"Not drawn: {counted(len(left), 'verb')} with {counted(pairs, 'pair')}; see the table.")
    notes(figure, note_lines)
    return figure


def _ring(
    axes: Axes, counts: Sequence[int], names: Sequence[str], colours: Sequence[Any], inner: float, outer: float
) -> list[str]:
    """Draw a ring clockwise from twelve o'clock, with labels along rays; return the labels that fit."""
    middle, width = (inner + outer) / 2, outer - inner - 2 * PAD
    wedges, texts = axes.pie(
        counts,
        radius=outer,
        colors=colours,
        startangle=90,
        counterclock=False,
        wedgeprops={"width": outer - inner, "edgecolor": PAPER, "linewidth": 0.6},
        labels=[label(name) for name in names],
        labeldistance=middle / outer,
        rotatelabels=True,
        textprops={"rotation_mode": "anchor", "va": "center_baseline", "parse_math": False},
        frame=True,  # else pie() changes the limits of the axes
    )
    for wedge, text in zip(wedges, texts, strict=True):
        size = min(LARGEST, middle * math.radians(wedge.theta2 - wedge.theta1) / LINE_HEIGHT)
        text.set(text=shortened(text.get_text(), width, size), size=size, visible=size >= TINY, ha="center")
        text.set_color(PAPER if outer < RIM else INK)
    return [text.get_text() for text in texts if text.get_visible()]
