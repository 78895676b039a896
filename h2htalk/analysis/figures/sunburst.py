"""Fig. 5 of the paper: verbs in the inner ring, the nouns they act on in the outer one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from h2htalk.analysis.figures.labels import label, replaced_note, write
from h2htalk.analysis.figures.rings import Place, Sunburst, Wedge, sunburst
from h2htalk.analysis.figures.style import (
    BODY,
    DOUBLE_COLUMN,
    INK,
    PALETTE,
    PAPER,
    POINTS,
    QUIET,
    bare_panel,
    draw_sentence,
    house_style,
    new_figure,
    notes,
    plural,
    tint,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from h2htalk.analysis.verb_nouns import VerbGroup

VERBS = 20  # of the inner ring, as Self-Instruct draws it (Wang et al. 2023, Fig. 3)
OUTSIDE_ROOM = 62.0  # points for labels beyond the rim


@house_style()
def draw_sunburst(groups: Sequence[VerbGroup]) -> Figure:
    """Verbs and their nouns as two rings, areas of a ring proportional to counts; 6.9 in wide.

    Args:
        groups: as `top_verbs` gives them. The first 20 verbs are drawn; what is left is said below.
    """
    whole = [group for group in groups if any(noun.count > 0 for noun in group.nouns)]
    if not whole:
        return draw_sentence("no verb-noun pairs found")
    drawn, left = whole[:VERBS], whole[VERBS:]
    layout = sunburst(drawn, DOUBLE_COLUMN * POINTS / 2, OUTSIDE_ROOM)
    places = [wedge.place for wedge in (*layout.verbs, *layout.nouns) if wedge.place]
    places += [place for _, place in layout.outside]
    remarks = replaced_note(place.label for place in places)
    if left:
        pairs = sum(len(group.nouns) for group in left)
        remarks.append(f"Not drawn: {plural(len(left), 'verb')} with {plural(pairs, 'pair')}; see the table.")
    figure = new_figure(DOUBLE_COLUMN, DOUBLE_COLUMN)
    axes = bare_panel(figure)
    _rings(axes, layout)
    total = sum(noun.count for group in drawn for noun in group.nouns)
    write(axes, 0, 4.5, label(f"{total:,}"), BODY + 1, ha="center", va="center_baseline")
    write(
        axes,
        0,
        -5,
        label("occurrence" if total == 1 else "occurrences"),
        6,
        ha="center",
        va="center_baseline",
        color=QUIET,
    )
    notes(figure, remarks)
    return figure


def _rings(axes: Axes, layout: Sunburst) -> None:
    for wedge in layout.verbs:
        _ring_piece(axes, wedge, 1.0)
        if wedge.place:
            _along_ray(axes, wedge.place, PAPER)
    for wedge in layout.nouns:
        _ring_piece(axes, wedge, 0.24)
        if wedge.place:
            _along_ray(axes, wedge.place, INK)
    for wedge, place in layout.outside:
        _leader(axes, layout.radius, wedge, place)
        _along_ray(axes, place, INK)


def _leader(axes: Axes, radius: float, wedge: Wedge, place: Place) -> None:
    """From the rim to a label, turning as it goes out: such lines neither cross nor touch the disc."""
    # A label may stand a turn away from its wedge, as degrees count.
    turn = (place.angle - wedge.middle + 180) % 360 - 180
    line = [
        _point(radius + share * (place.near - 1.5 - radius), wedge.middle + share * turn)
        for share in (step / 12 for step in range(13))
    ]
    axes.plot(*zip(*line, strict=True), color=PALETTE[wedge.colour], linewidth=0.4)


def _ring_piece(axes: Axes, wedge: Wedge, share: float) -> None:
    from matplotlib import patches

    arc = math.radians(wedge.start - wedge.end) * wedge.inner
    axes.add_patch(
        patches.Wedge(
            (0, 0),
            wedge.outer,
            wedge.end,
            wedge.start,
            width=wedge.outer - wedge.inner,
            facecolor=tint(PALETTE[wedge.colour], share),
            edgecolor=PAPER,
            linewidth=min(0.8, arc / 4),  # a hair-thin wedge must not vanish under its own edge
        )
    )


def _along_ray(axes: Axes, place: Place, colour: str) -> None:
    """The label along its ray, never upside down."""
    flipped = math.cos(math.radians(place.angle)) < -1e-9
    turn = place.angle + 180 if flipped else place.angle
    x, y = _point(place.near + place.width / 2, place.angle)
    # Letters are centred on the ray by their height without descenders, some 0.36 of the size.
    drop = 0.36 * place.size
    x += drop * math.sin(math.radians(turn))
    y -= drop * math.cos(math.radians(turn))
    write(
        axes,
        x,
        y,
        place.label,
        place.size,
        color=colour,
        ha="center",
        va="baseline",
        rotation=turn % 360,
        rotation_mode="anchor",
    )


def _point(radius: float, degrees: float) -> tuple[float, float]:
    return radius * math.cos(math.radians(degrees)), radius * math.sin(math.radians(degrees))
