"""Fig. 4 of the paper: a word cloud, drawn as text from the places that `word_clouds.cloud_layout` found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h2htalk.analysis.figures.labels import Label, write
from h2htalk.analysis.figures.style import (
    DOUBLE_COLUMN,
    PALETTE,
    POINTS,
    bare_panel,
    draw_sentence,
    house_style,
    new_figure,
    notes,
    plural,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from h2htalk.analysis.word_clouds import Cloud, PlacedWord

FOOT = 14.0  # points for the remarks


@house_style()
def draw_word_cloud(cloud: Cloud) -> Figure:
    """The words at their places, in the cloud's font and the palette's colours; 6.9 in wide.

    What the font cannot draw and what found no room is counted below the cloud.
    """
    if not cloud.placed:
        lacking = f" ({plural(len(cloud.left_out), 'word')} without glyphs)" if cloud.left_out else ""
        return draw_sentence(f"no words{lacking}")
    missing = []
    if cloud.left_out:
        missing.append(f"{plural(len(cloud.left_out), 'word')} without glyphs")
    if cloud.crowded_out:
        missing.append(f"{plural(len(cloud.crowded_out), 'word')} without room")
    remarks = [f"Not drawn: {', '.join(missing)}; see the table."] if missing else []
    scale = DOUBLE_COLUMN * POINTS / cloud.width  # points a unit of the cloud
    foot = FOOT if remarks else 0.0
    figure = new_figure(DOUBLE_COLUMN, (cloud.height * scale + foot) / POINTS)
    axes = bare_panel(figure)
    left, bottom = axes.get_xlim()[0], axes.get_ylim()[0] + foot
    for word in cloud.placed:
        _write_word(axes, word, str(cloud.font.path), left, bottom, scale)
    notes(figure, remarks)
    return figure


def _write_word(axes: Axes, word: PlacedWord, font: str, left: float, bottom: float, scale: float) -> None:
    write(
        axes,
        left + word.x * scale,
        bottom + word.y * scale,
        Label(word.word, font),
        word.size * scale,
        color=PALETTE[word.shade % len(PALETTE)],
        ha="left",
        va="baseline",
        rotation=90 if word.turned else 0,
        rotation_mode="anchor",
    )
