"""Charts as SVG text: lines by turn, the radar of Fig. 7, intervals, a heat map, and score against size.

Each mark of the last three has a title that a pointer shows, and each of their numbers but those of axes is in the
table beside it. Attributes hold the colours of a file that stands alone; a page's sheet replaces them by class.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate, groupby

from h2htalk.benchmark.observations import Figure
from h2htalk.text.escaping import printable

RADAR = "Points met by kind of case (Fig. 7), percent"

# Okabe and Ito's colours, which people with colour blindness tell apart; dashes, so that prints in grey are readable.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")
_DASHES = ("none", "7 4", "2 3", "9 3 2 3", "4 4", "1 4", "12 3", "6 2 2 2")
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM, _LINE = 760, 340, 64, 20, 48, 20


def line_chart(
    series: Mapping[str, Mapping[int, Figure]], y: str, scale: tuple[float, float] | None, note: str = ""
) -> str:
    """Draw named lines by turn, with 95 % intervals; without a scale they are rates, in percent."""
    numbers = sorted({k for points in series.values() for k, one in points.items() if one.value is not None})
    right, floor = _WIDTH - _TOP, _HEIGHT - _BOTTOM
    (least, most), times, label = (scale, 1, y) if scale else ((0.0, 1.0), 100, f"{y}, percent")

    def at(number: float, value: float, aside: float = 0.0) -> tuple[float, float]:
        across = 0.5 if len(numbers) == 1 else (number - numbers[0]) / (numbers[-1] - numbers[0])
        up = (min(most, max(least, value)) - least) / (most - least)
        return _LEFT + 14 + across * (right - _LEFT - 28) + aside, floor - up * (floor - _TOP)

    turned = f' transform="rotate(-90 16 {(_TOP + floor) / 2:.1f})"'
    parts = [text((_LEFT + right) / 2, _HEIGHT - 8, "turn"), text(16, (_TOP + floor) / 2, label, more=turned)]
    for value in (least + k * (most - least) / 4 for k in range(5)):
        _, height = at(numbers[0], value)
        parts += [line([(_LEFT, height), (right, height)]), text(_LEFT - 8, height + 4, f"{times * value:g}", "end")]
    parts += [text(at(number, least)[0], floor + 18, str(number)) for number in numbers]
    for k, points in enumerate(series.values()):
        colour, aside = COLOURS[k % len(COLOURS)], 5 * (k - (len(series) - 1) / 2)
        known = [(number, one, one.value) for number, one in sorted(points.items()) if one.value is not None]
        for number, one, value in known:
            ends = [at(number, value if end is None else end, aside) for end in (one.low, one.high)]
            parts.append(line(ends, colour, ' stroke-opacity=".45" stroke-width="1.5"'))
            across, up = at(number, value, aside)
            parts.append(f'<circle cx="{across:.1f}" cy="{up:.1f}" r="3.5" fill="{colour}"/>')
        parts.append(_series([at(number, value, aside) for number, _, value in known], k))
    return _named(parts, f"{label} by turn", list(series), note)


def radar(series: Sequence[tuple[str, Mapping[str, Figure]]], note: str = "") -> str:
    """Draw figures of 0 to 1 on axes around a centre; a series with a missing value is left out of the drawing."""
    axes, names = list(series[0][1]), []
    centre, middle, radius = _WIDTH / 2, _HEIGHT / 2, _HEIGHT / 2 - 44

    def at(k: int, value: float) -> tuple[float, float]:
        angle = 2 * math.pi * k / len(axes) - math.pi / 2
        return centre + radius * value * math.cos(angle), middle + radius * value * math.sin(angle)

    parts = [text(_LEFT, 16, "Points met, percent", "start")]
    for value in (0.25, 0.5, 0.75, 1.0):
        parts.append(line([at(k, value) for k in range(len(axes) + 1)]))
        parts.append(text(centre + 4, middle - radius * value - 2, f"{100 * value:g}", "start"))
    for k, name in enumerate(axes):
        x, y = at(k, 1.14)
        anchor = "middle" if abs(x - centre) < 20 else "start" if x > centre else "end"
        parts += [line([(centre, middle), at(k, 1.0)]), text(x, y + (12 if y > middle + 20 else 0), name, anchor)]
    for k, (name, values) in enumerate(series):
        known = [at(place, one.value) for place, one in enumerate(values.values()) if one.value is not None]
        whole = len(known) == len(axes)
        parts += [_series([*known, known[0]], k)] if whole else []
        names.append(name if whole else f"{name} (not drawn: an axis has no value)")
    return _named(parts, RADAR, names, note)


def line(places: Iterable[tuple[float, float]], colour: str = "#cccccc", more: str = "") -> str:
    """A line through places."""
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    return f'<polyline points="{points}" fill="none" stroke="{colour}"{more}/>'


def _series(places: Iterable[tuple[float, float]], k: int) -> str:
    more = f' stroke-width="2" stroke-dasharray="{_DASHES[k % len(_DASHES)]}"'
    return line(places, COLOURS[k % len(COLOURS)], more)


def text(x: float, y: float, words: str, anchor: str = "middle", more: str = "") -> str:
    """A line of text; control characters are shown."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(printable(words))}</text>'


def _named(parts: list[str], title: str, names: Sequence[str], note: str) -> str:
    """A chart with its names below, where long ones have room, and a note."""
    for k, name in enumerate(names):
        y = _HEIGHT + 14 + _LINE * k
        parts += [_series([(_LEFT, y - 4), (_LEFT + 30, y - 4)], k), text(_LEFT + 38, y, name, "start")]
    height = _HEIGHT + 10 + _LINE * (len(names) + bool(note))
    return svg(parts + [text(_LEFT, height - 6, note, "start")] * bool(note), title, note, (_WIDTH, height))


def svg(parts: Iterable[str], title: str, description: str, size: tuple[int, int]) -> str:
    """A chart of parts on a white ground; `description` says what it shows, `size` is width and height."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 {size[0]} {size[1]}" width="{size[0]}" '
        f'height="{size[1]}" role="img" font-family="sans-serif" font-size="12" fill="#222222">'
        f"<title>{escape(printable(title))}</title><desc>{escape(printable(description))}</desc>"
        f'<rect class="ground" width="{size[0]}" height="{size[1]}" fill="#ffffff"/>{"".join(parts)}</svg>\n'
    )


_WIDE, _ROW, _LETTER = 920, 24, 6.7
_BOLD, _QUIET, _TICK = ' font-weight="600"', ' class="quiet" fill="#5f6b75"', ' class="quiet tick" fill="#5f6b75"'
_BAR, _WHISKER = ' class="bar" stroke-width="1.5"', ' class="whisker" stroke-width="2"'
_ABOVE, _BELOW, _MIDDLE = (0, 114, 178), (213, 94, 0), (244, 244, 241)  # told apart by people with colour blindness
_WEIGHTS = (0.2126, 0.7152, 0.0722)  # of red, green and blue in a colour's light


@dataclass(frozen=True, slots=True)
class Mark:
    """A dot with its whiskers. `group`: rows of one group stand together under its name; `ticks`: values of baselines;
    `x`: the place in a scatter; `other`: of other data, drawn hollow; `signed`: a difference, written with its sign."""

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
        form, to = ("+.2f", "to") if self.signed else (".2f", "–")
        ends = "" if self.low is None or self.high is None else f"{self.low:{form}} {to} {self.high:{form}}"
        return "-" if self.value is None else f"{self.value:{form}}", ends


def clipped(name: str, longest: int = 40) -> str:
    """Cut a name so that a chart has room for it; control characters are shown."""
    shown = printable(name[: longest + 1])
    room = [*accumulate(1 + (sign > "\u2e7f") for sign in shown)]  # Chinese takes twice the room
    return shown if not room or room[-1] <= longest else shown[: sum(one < longest for one in room)] + "…"


def _columns(words: str) -> float:
    return _LETTER * sum(1 + (letter > "\u2e7f") for letter in words)


def _titled(inner: Sequence[str], title: str) -> str:
    return f"<g><title>{escape(printable(title.rstrip()))}</title>{''.join(inner)}</g>"


def _range(marks: Sequence[Mark]) -> tuple[float, float, list[float]]:
    """The least and the most of an axis, and three to eight round numbers between."""
    ends = [end for one in marks for end in (one.low, one.value, one.high) if end is not None] or [0.0, 100.0]
    pad = max(0.05 * (span := max(ends) - min(ends)), 0.5)
    ends += [tick for one in marks for tick in one.ticks if tick > min(ends) - span]  # none above a run is left out
    least, most = min(ends) - pad, max(ends) + pad
    rough = (most - least) / 6
    step = next(k for k in (f * 10 ** math.floor(math.log10(rough)) for f in (1, 2, 5, 10)) if k >= rough)
    return least, most, [k * step for k in range(math.ceil(least / step), math.floor(most / step) + 1)]


def _scale(least: float, most: float, start: float, end: float) -> Callable[[float], float]:
    return lambda value: start + (min(most, max(least, value)) - least) / (most - least) * (end - start)


def interval_plot(title: str, description: str, axis: str, marks: Sequence[Mark]) -> str:
    """Draw a row for each mark; a bar beside rows of one group, near baselines as grey ticks."""
    lead = 1.12 * max((_columns(one.group) for one in marks), default=0.0) + 20
    left = lead + max((_columns(clipped(one.label)) for one in marks), default=0.0) + 14
    (least, most, steps), y, parts, right = _range(marks), 8.0, list[str](), _WIDE - 170
    at = _scale(least, most, left, right)
    for name, own in groupby(marks, key=lambda one: one.group):
        rows, start = [*own], y
        for one in rows:
            middle, (value, ends), near = y + _ROW / 2, one.figures, [v for v in one.ticks if least <= v <= most]
            shapes = [line([(at(v), middle - 6), (at(v), middle + 6)], "#8a949c", _BAR) for v in near]
            if one.low is not None and one.high is not None:
                shapes.append(line([(at(one.low), middle), (at(one.high), middle)], COLOURS[0], _WHISKER))
            if one.value is not None:
                spot = f'cx="{at(one.value):.1f}" cy="{middle:.1f}" r="4.5"'
                shapes.append(f'<circle class="dot" {spot} fill="{COLOURS[0]}"/>')
            shapes.append(text(lead, middle + 4, clipped(one.label), "start"))
            shapes += [text(right + 56, middle + 4, value, "end", _BOLD), text(_WIDE, middle + 4, ends, "end", _QUIET)]
            parts.append(_titled(shapes, f"{clipped(one.label, 200)}: {value} {ends}"))
            y += _ROW
        parts.append(text(lead - 16, start + 16, name, "end", _BOLD))
        parts += [line([(lead - 8, start + 4), (lead - 8, y - 4)], "#8a949c", _BAR)] * (len(rows) > 1 and name != "")
        y += 6
    grid = [line([(at(value), 6), (at(value), y)], "#dddddd", ' class="grid"') for value in steps]
    parts += [text(at(value), y + 16, f"{value:g}", more=_TICK) for value in steps]
    parts.append(text((left + right) / 2, y + 34, axis, more=_QUIET))
    return svg([*grid, *parts], title, description, (_WIDE, round(y) + 42))


def heat_map(
    title: str, description: str, columns: Sequence[tuple[str, str]], rows: Sequence[tuple[str, Sequence[float | None]]]
) -> str:
    """Draw values by row and column (its group and heading), coloured by their distance from the column's mean."""
    left = max((_columns(clipped(name, 32)) for name, _ in rows), default=0.0) + 12
    wide, parts, known = (_WIDE - left) / len(columns), list[str](), list[list[float]]()
    for k, (_, heading) in enumerate(columns):
        known.append([value for _, values in rows if (value := values[k]) is not None])
        parts.append(text(left + wide * (k + 0.5), 32, heading, more=' font-size="10"'))
    means = [math.fsum(own) / len(own) if own else 0.0 for own in known]
    most = max((abs(value - mean) for own, mean in zip(known, means, strict=True) for value in own), default=0.0)
    for group, members in groupby(range(len(columns)), key=lambda k: columns[k][0]):
        places = [*members]
        parts.append(text(left + wide * (places[0] + len(places) / 2), 14, group, more=_BOLD))
    for place, (name, values) in enumerate(rows):
        y = 40 + _ROW * place
        parts.append(text(0, y + 16, clipped(name, 32), "start"))
        for k, value in enumerate(values):
            x, share = left + wide * k, 0.0 if value is None or not most else abs(value - means[k]) / most
            end = _ABOVE if value is not None and value > means[k] else _BELOW
            mixed = [round(m + (e - m) * share) for m, e in zip(_MIDDLE, end, strict=True)]
            dark = sum(w * (c / 255) ** 2.2 for w, c in zip(_WEIGHTS, mixed, strict=True)) < 0.179
            spot = f'x="{x + 1:.1f}" y="{y + 1}" width="{wide - 2:.1f}" height="{_ROW - 2}" rx="2"'
            cell = f'<rect {spot} fill="#{mixed[0]:02x}{mixed[1]:02x}{mixed[2]:02x}"/>'
            ink, figure = f' fill="{"#ffffff" if dark else "#000000"}"', "-" if value is None else f"{value:.2f}"
            figures = cell, text(x + wide / 2, y + 16, figure, more=ink)
            parts.append(_titled(figures, f"{clipped(name, 200)}, {' '.join(columns[k])}: {figure}"))
    return svg(parts, title, description, (_WIDE, 48 + _ROW * len(rows)))


def scatter(title: str, description: str, axes: tuple[str, str], marks: Sequence[Mark]) -> str:
    """Draw values against `x` on a logarithmic axis; names stand where they hide no other."""
    (least, most, steps), sizes = _range(marks), [math.log10(one.x) for one in marks]
    left, right, floor = 40, _WIDE - 12, 340
    across, up = _scale(min(sizes) - 0.15, max(sizes) + 0.25, left, right), _scale(least, most, floor, 24)
    parts = [line([(left, up(one)), (right, up(one))], "#dddddd", ' class="grid"') for one in steps]
    parts += [text(left - 8, up(one) + 4, f"{one:g}", "end", _TICK) for one in steps]
    for size in (f * 10.0**k for k in range(-3, 5) for f in (1, 2, 5)):
        if min(sizes) - 0.15 < math.log10(size) < max(sizes) + 0.25:
            parts.append(text(across(math.log10(size)), floor + 18, f"{size:g}", more=_TICK))
    dots = [(across(math.log10(one.x)), up(one.value or 0.0)) for one in marks if not one.other]
    taken = [(x - 7, x + 7, y) for x, y in dots]
    for one in sorted(marks, key=lambda one: not one.other):
        x, y, name = across(math.log10(one.x)), up(one.value or 0.0), clipped(one.label, 32)
        kind = f'class="ring" fill="none" stroke="{COLOURS[1]}"' if one.other else f'class="dot" fill="{COLOURS[0]}"'
        shapes = [f'<circle {kind} cx="{x:.1f}" cy="{y:.1f}" r="{3.5 if one.other else 5}"/>']
        if one.low is not None and one.high is not None:
            shapes.append(line([(x, up(one.low)), (x, up(one.high))], COLOURS[0], _WHISKER))
        for begin in () if one.other else (x + 9, x - 9 - _columns(name)):
            end = begin + _columns(name)
            if left < begin and end < right and all(abs(y - v) > 13 or begin > b or end < a for a, b, v in taken):
                shapes.append(text(begin if begin > x else x - 9, y + 4, name, "start" if begin > x else "end"))
                taken.append((begin, end, y))
                break
        parts.append(_titled(shapes, f"{clipped(one.label, 200)}: {one.x:g}, {' '.join(one.figures)}"))
    parts += [text(left, 12, axes[1], "start", _QUIET), text((left + right) / 2, floor + 36, axes[0], more=_QUIET)]
    return svg(parts, title, description, (_WIDE, floor + 44))
