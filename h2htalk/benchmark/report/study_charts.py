"""Charts of a study as SVG: figures by turn, and the radar of the paper's Fig. 7."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from h2htalk.benchmark.report.svg import COLOURS, Place, line, svg, text
from h2htalk.benchmark.statistics.estimates import Estimate

RADAR = "Points met by kind of case (Fig. 7), percent"

# Series differ by their dashes too, so that prints in grey are readable.
_DASHES = ("none", "7 4", "2 3", "9 3 2 3", "4 4", "1 4", "12 3", "6 2 2 2")
_WIDTH = 760
_HEIGHT = 340
_LEFT = 64
_RIGHT = 740
_TOP = 20
_FLOOR = 292
_LEGEND_LINE = 20


def line_chart(
    series: Mapping[str, Mapping[int, Estimate]],
    y: str,
    scale: tuple[float, float] | None,
    note: str = "",
) -> str:
    """Draw named lines by turn, with 95 % intervals; without a scale they are rates, in percent."""
    turns = set[int]()
    for figures in series.values():
        turns.update(turn for turn, figure in figures.items() if figure.value is not None)
    first = min(turns)
    last = max(turns)
    least, most = scale or (0.0, 1.0)
    factor = 1 if scale else 100
    label = y if scale else f"{y}, percent"

    def position(turn: int, value: float, shift: float = 0.0) -> Place:
        across = 0.5 if first == last else (turn - first) / (last - first)
        up = (min(most, max(least, value)) - least) / (most - least)
        return _LEFT + 14 + across * (_RIGHT - _LEFT - 28) + shift, _FLOOR - up * (_FLOOR - _TOP)

    middle = (_TOP + _FLOOR) / 2
    shapes = [text((_LEFT + _RIGHT) / 2, _HEIGHT - 8, "turn")]
    shapes.append(text(16, middle, label, attributes=f' transform="rotate(-90 16 {middle:.1f})"'))
    for quarter in range(5):
        value = least + quarter * (most - least) / 4
        _, height = position(first, value)
        shapes.append(line([(_LEFT, height), (_RIGHT, height)]))
        shapes.append(text(_LEFT - 8, height + 4, f"{factor * value:g}", "end"))
    for turn in sorted(turns):
        shapes.append(text(position(turn, least)[0], _FLOOR + 18, str(turn)))
    for number, figures in enumerate(series.values()):
        colour = COLOURS[number % len(COLOURS)]
        shift = 5 * (number - (len(series) - 1) / 2)  # intervals of one turn stand side by side
        dots = []
        for turn, figure in sorted(figures.items()):
            if figure.value is None:
                continue
            low = figure.value if figure.low is None else figure.low
            high = figure.value if figure.high is None else figure.high
            interval = [position(turn, low, shift), position(turn, high, shift)]
            shapes.append(line(interval, colour, ' stroke-opacity=".45" stroke-width="1.5"'))
            x, height = position(turn, figure.value, shift)
            shapes.append(f'<circle cx="{x:.1f}" cy="{height:.1f}" r="3.5" fill="{colour}"/>')
            dots.append((x, height))
        shapes.append(_series_line(dots, number))
    return _with_legend(shapes, f"{label} by turn", list(series), note)


def radar(series: Sequence[tuple[str, Mapping[str, Estimate]]], note: str = "") -> str:
    """Draw figures of 0 to 1 on axes around a centre; a series with a missing value is named but not drawn."""
    axes = list(series[0][1])
    centre = _WIDTH / 2
    middle = _HEIGHT / 2
    radius = _HEIGHT / 2 - 44

    def position(axis: int, value: float) -> Place:
        angle = 2 * math.pi * axis / len(axes) - math.pi / 2
        return centre + radius * value * math.cos(angle), middle + radius * value * math.sin(angle)

    shapes = [text(_LEFT, 16, "Points met, percent", "start")]
    for value in (0.25, 0.5, 0.75, 1.0):
        shapes.append(line([position(axis, value) for axis in range(len(axes) + 1)]))
        shapes.append(text(centre + 4, middle - radius * value - 2, f"{100 * value:g}", "start"))
    for axis, name in enumerate(axes):
        shapes.append(line([(centre, middle), position(axis, 1.0)]))
        x, y = position(axis, 1.14)
        side = "start" if x > centre else "end"
        anchor = "middle" if abs(x - centre) < 20 else side
        below = 12 if y > middle + 20 else 0
        shapes.append(text(x, y + below, name, anchor))
    names = []
    for number, (name, figures) in enumerate(series):
        values = [figure.value for figure in figures.values() if figure.value is not None]
        if len(values) != len(axes):
            names.append(f"{name} (not drawn: an axis has no value)")
            continue
        corners = [position(axis, value) for axis, value in enumerate(values)]
        shapes.append(_series_line([*corners, corners[0]], number))
        names.append(name)
    return _with_legend(shapes, RADAR, names, note)


def _series_line(places: Iterable[Place], number: int) -> str:
    dashes = _DASHES[number % len(_DASHES)]
    attributes = f' stroke-width="2" stroke-dasharray="{dashes}"'
    return line(places, COLOURS[number % len(COLOURS)], attributes)


def _with_legend(shapes: list[str], title: str, names: Sequence[str], note: str) -> str:
    """Return a chart with its legend below, where long names have room, and a note."""
    for number, name in enumerate(names):
        y = _HEIGHT + 14 + _LEGEND_LINE * number
        shapes.append(_series_line([(_LEFT, y - 4), (_LEFT + 30, y - 4)], number))
        shapes.append(text(_LEFT + 38, y, name, "start"))
    height = _HEIGHT + 10 + _LEGEND_LINE * len(names)
    if note:
        height += _LEGEND_LINE
        shapes.append(text(_LEFT, height - 6, note, "start"))
    return svg(shapes, title, note, (_WIDTH, height))
