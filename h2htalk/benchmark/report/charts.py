"""Charts of figures with intervals as SVG: a row a figure, a heat map, and score against size.

Each mark has a title that a pointer shows. Each number but those of axes is in the table beside the chart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from h2htalk.benchmark.estimate_text import format_interval
from h2htalk.benchmark.report.svg import COLOURS, line, svg, text, titled
from h2htalk.benchmark.statistics.estimates import interval_of
from h2htalk.text.escaping import printable

_WIDTH = 920
_ROW = 24
_LETTER = 6.7  # the mean width of a Latin letter
_FIRST_WIDE = "\u2e80"  # letters from here on, Chinese ones among them, take twice the room
_BOLD = ' font-weight="600"'
_QUIET = ' class="quiet" fill="#5f6b75"'
_TICK = ' class="quiet tick" fill="#5f6b75"'
_GRID = ' class="grid"'
_BAR = ' class="bar" stroke-width="1.5"'
_WHISKER = ' class="whisker" stroke-width="2"'
_GRID_COLOUR = "#dddddd"
_BAR_COLOUR = "#8a949c"

# Red, green and blue of a heat map's ends and middle, which people with colour blindness tell apart.
_ABOVE = (0, 114, 178)
_BELOW = (213, 94, 0)
_MIDDLE = (244, 244, 241)
_LUMINANCE = (0.2126, 0.7152, 0.0722)  # weights of red, green and blue in a colour's light


@dataclass(frozen=True, slots=True)
class Mark:
    """A dot with its whiskers.

    `group`: rows of one group stand together under its name; `ticks`: values of baselines; `x`: the place in a
    scatter; `other`: a value of other data, drawn hollow; `signed`: a difference, written with its sign.
    """

    label: str
    value: float | None
    low: float | None = None
    high: float | None = None
    group: str = ""
    ticks: tuple[float, ...] = ()
    x: float = 0.0
    other: bool = False
    signed: bool = False

    @property
    def figures(self) -> tuple[str, str]:
        """The value and the interval, as the tables write them."""
        form = "+.2f" if self.signed else ".2f"
        separator = " to " if self.signed else " – "
        value = "-" if self.value is None else f"{self.value:{form}}"
        interval = interval_of(self.low, self.high)
        return value, format_interval(interval, form, separator=separator)


def clipped(name: str, longest: int = 40) -> str:
    """Cut a name so that a chart has room for it; control characters are shown."""
    printed = printable(name[: longest + 1])
    fitting = 0  # letters before which, and with which, there is room for the sign of a cut
    columns = 0
    for letter in printed:
        columns += _columns(letter)
        if columns < longest:
            fitting += 1
    return printed if columns <= longest else printed[:fitting] + "…"


def _columns(words: str) -> int:
    return sum(2 if letter >= _FIRST_WIDE else 1 for letter in words)


def _widest(names: Sequence[str]) -> float:
    return max((_LETTER * _columns(name) for name in names), default=0.0)


def _range(marks: Sequence[Mark]) -> tuple[float, float, list[float]]:
    """Return the least and the most of an axis, and three to eight round numbers between."""
    limits = []
    for mark in marks:
        limits += [end for end in (mark.low, mark.value, mark.high) if end is not None]
    if not limits:
        limits = [0.0, 100.0]
    lowest = min(limits)
    span = max(limits) - lowest
    margin = max(0.05 * span, 0.5)
    for mark in marks:
        # A baseline far below the figures is left out, none above them.
        limits += [tick for tick in mark.ticks if tick > lowest - span]
    least = min(limits) - margin
    most = max(limits) + margin
    roughly = (most - least) / 6
    power = 10 ** math.floor(math.log10(roughly))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= roughly)
    numbers = range(math.ceil(least / step), math.floor(most / step) + 1)
    return least, most, [number * step for number in numbers]


def _scale(least: float, most: float, start: float, end: float) -> Callable[[float], float]:
    """Return what maps a value between least and most to its place between start and end."""
    return lambda value: (
        start + (min(most, max(least, value)) - least) / (most - least) * (end - start)
    )


def interval_plot(title: str, description: str, axis: str, marks: Sequence[Mark]) -> str:
    """Draw a row for each mark; rows of one group have a bar beside them, baselines near them are grey ticks."""
    label_left = 1.12 * _widest([mark.group for mark in marks]) + 20
    plot_left = label_left + _widest([clipped(mark.label) for mark in marks]) + 14
    right = _WIDTH - 170
    least, most, steps = _range(marks)
    position = _scale(least, most, plot_left, right)
    y = 8.0
    drawing = []
    for group, members in groupby(marks, key=lambda mark: mark.group):
        rows = list(members)
        top = y
        for mark in rows:
            middle = y + _ROW / 2
            shapes = []
            for tick in mark.ticks:
                if least <= tick <= most:
                    x = position(tick)
                    shapes.append(line([(x, middle - 6), (x, middle + 6)], _BAR_COLOUR, _BAR))
            if mark.low is not None and mark.high is not None:
                limits = [(position(mark.low), middle), (position(mark.high), middle)]
                shapes.append(line(limits, COLOURS[0], _WHISKER))
            if mark.value is not None:
                centre = f'cx="{position(mark.value):.1f}" cy="{middle:.1f}" r="4.5"'
                shapes.append(f'<circle class="dot" {centre} fill="{COLOURS[0]}"/>')
            value, interval = mark.figures
            shapes += [
                text(label_left, middle + 4, clipped(mark.label), "start"),
                text(right + 56, middle + 4, value, "end", _BOLD),
                text(_WIDTH, middle + 4, interval, "end", _QUIET),
            ]
            drawing.append(titled(shapes, f"{clipped(mark.label, 200)}: {value} {interval}"))
            y += _ROW
        drawing.append(text(label_left - 16, top + 16, group, "end", _BOLD))
        if group and len(rows) > 1:
            x = label_left - 8
            drawing.append(line([(x, top + 4), (x, y - 4)], _BAR_COLOUR, _BAR))
        y += 6
    grid = [line([(position(step), 6), (position(step), y)], _GRID_COLOUR, _GRID) for step in steps]
    for step in steps:
        drawing.append(text(position(step), y + 16, f"{step:g}", attributes=_TICK))
    drawing.append(text((plot_left + right) / 2, y + 34, axis, attributes=_QUIET))
    return svg([*grid, *drawing], title, description, (_WIDTH, round(y) + 42))


def heat_map(
    title: str,
    description: str,
    columns: Sequence[tuple[str, str]],
    rows: Sequence[tuple[str, Sequence[float | None]]],
) -> str:
    """Draw values by row and column (its group and heading), coloured by their distance from the column's mean."""
    plot_left = _widest([clipped(name, 32) for name, _ in rows]) + 12
    width = (_WIDTH - plot_left) / len(columns)
    drawing = []
    means = []
    farthest = 0.0
    for k, (_, heading) in enumerate(columns):
        drawing.append(
            text(plot_left + width * (k + 0.5), 32, heading, attributes=' font-size="10"')
        )
        column_values = [values[k] for _, values in rows]
        scores = [score for score in column_values if score is not None]
        mean = math.fsum(scores) / len(scores) if scores else 0.0
        means.append(mean)
        farthest = max([farthest, *(abs(score - mean) for score in scores)])
    first = 0
    for group, members in groupby(group for group, _ in columns):
        count = len(list(members))
        drawing.append(text(plot_left + width * (first + count / 2), 14, group, attributes=_BOLD))
        first += count
    for number, (name, values) in enumerate(rows):
        y = 40 + _ROW * number
        drawing.append(text(0, y + 16, clipped(name, 32), "start"))
        for k, value in enumerate(values):
            difference = 0.0 if value is None else value - means[k]
            share = abs(difference) / farthest if farthest else 0.0
            end = _ABOVE if difference > 0 else _BELOW
            background = "#"
            luminance = 0.0
            for middle, target, weight in zip(_MIDDLE, end, _LUMINANCE, strict=True):
                channel = round(middle + (target - middle) * share)
                background += f"{channel:02x}"
                luminance += weight * (channel / 255) ** 2.2
            ink = "#ffffff" if luminance < 0.179 else "#000000"
            x = plot_left + width * k
            figure = "-" if value is None else f"{value:.2f}"
            box = f'x="{x + 1:.1f}" y="{y + 1}" width="{width - 2:.1f}" height="{_ROW - 2}" rx="2"'
            shapes = [f'<rect {box} fill="{background}"/>']
            shapes.append(text(x + width / 2, y + 16, figure, attributes=f' fill="{ink}"'))
            drawing.append(
                titled(shapes, f"{clipped(name, 200)}, {' '.join(columns[k])}: {figure}")
            )
    return svg(drawing, title, description, (_WIDTH, 48 + _ROW * len(rows)))


def scatter(title: str, description: str, axes: tuple[str, str], marks: Sequence[Mark]) -> str:
    """Draw values against `x` on a logarithmic axis; names stand where they hide no other."""
    sizes = [math.log10(mark.x) for mark in marks]
    smallest = min(sizes) - 0.15
    largest = max(sizes) + 0.25
    least, most, steps = _range(marks)
    plot_left = 40
    right = _WIDTH - 12
    floor = 340
    across = _scale(smallest, largest, plot_left, right)
    up = _scale(least, most, floor, 24)
    drawing = [
        line([(plot_left, up(step)), (right, up(step))], _GRID_COLOUR, _GRID) for step in steps
    ]
    for step in steps:
        drawing.append(text(plot_left - 8, up(step) + 4, f"{step:g}", "end", _TICK))
    for power in range(-3, 5):
        for factor in (1, 2, 5):
            size = factor * 10.0**power
            if smallest < math.log10(size) < largest:
                x = across(math.log10(size))
                drawing.append(text(x, floor + 18, f"{size:g}", attributes=_TICK))
    occupied = []  # start, end and height of every dot and name
    for mark in marks:
        if not mark.other:
            x = across(math.log10(mark.x))
            occupied.append((x - 7, x + 7, up(mark.value or 0.0)))
    for mark in sorted(marks, key=lambda mark: not mark.other):
        x = across(math.log10(mark.x))
        y = up(mark.value or 0.0)
        style = f'class="dot" fill="{COLOURS[0]}"'
        radius = "5"
        if mark.other:
            style = f'class="ring" fill="none" stroke="{COLOURS[1]}"'
            radius = "3.5"
        shapes = [f'<circle {style} cx="{x:.1f}" cy="{y:.1f}" r="{radius}"/>']
        if mark.low is not None and mark.high is not None:
            shapes.append(line([(x, up(mark.low)), (x, up(mark.high))], COLOURS[0], _WHISKER))
        name = clipped(mark.label, 32)
        width = _LETTER * _columns(name)
        sides = ((x + 9, x + 9, "start"), (x - 9 - width, x - 9, "end"))
        for start_x, anchor_x, anchor in () if mark.other else sides:
            end = start_x + width
            inside = plot_left < start_x and end < right
            if inside and all(abs(y - v) > 13 or start_x > b or end < a for a, b, v in occupied):
                shapes.append(text(anchor_x, y + 4, name, anchor))
                occupied.append((start_x, end, y))
                break
        figures = " ".join(mark.figures)
        drawing.append(titled(shapes, f"{clipped(mark.label, 200)}: {mark.x:g}, {figures}"))
    drawing.append(text(plot_left, 12, axes[1], "start", _QUIET))
    drawing.append(text((plot_left + right) / 2, floor + 36, axes[0], attributes=_QUIET))
    return svg(drawing, title, description, (_WIDTH, floor + 44))
