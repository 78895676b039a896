"""Charts as SVG text: lines with intervals, and a radar. Dashes differ too, so that prints in grey are readable."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from h2htalk.benchmark.observations import Figure
from h2htalk.text.escaping import printable

# Okabe and Ito's colours, which people with colour blindness tell apart.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")
_DASHES = ("", "7 4", "2 3", "9 3 2 3", "4 4", "1 4", "12 3", "6 2 2 2")
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM, _LINE = 760, 340, 64, 20, 48, 20
Place = tuple[float, float]
Points = Mapping[int, Figure]  # by the number on the x axis


def line_chart(series: Mapping[str, Points], x: str, y: str, least: float, most: float, times: float = 1.0) -> str:
    """Draw named lines with 95 % intervals between two ends of the y axis; `times` is for its labels."""
    numbers = sorted({k for points in series.values() for k, one in points.items() if one.value is not None})
    right, floor = _WIDTH - _TOP, _HEIGHT - _BOTTOM

    def at(number: float, value: float) -> Place:
        across = 0.5 if len(numbers) == 1 else (number - numbers[0]) / (numbers[-1] - numbers[0])
        up = (min(most, max(least, value)) - least) / (most - least)
        return _LEFT + 14 + across * (right - _LEFT - 28), floor - up * (floor - _TOP)

    parts = []
    for k in range(5):
        value = least + k * (most - least) / 4
        _, height = at(numbers[0], value)
        parts.append(_line((_LEFT, height), (right, height)))
        parts.append(_text(_LEFT - 8, height + 4, f"{times * value:g}", "end"))
    for number in numbers:
        parts.append(_text(at(number, least)[0], floor + 18, str(number), "middle"))
    parts.append(_text((_LEFT + right) / 2, _HEIGHT - 8, x, "middle"))
    parts.append(_text(16, (_TOP + floor) / 2, y, "middle", f' transform="rotate(-90 16 {(_TOP + floor) / 2:.1f})"'))
    for k, (name, points) in enumerate(series.items()):
        colour, apart = COLOURS[k % len(COLOURS)], 5 * (k - (len(series) - 1) / 2)
        places = []
        for number, one in sorted(points.items()):
            if one.value is None:
                continue
            values = (one.value, *(one.value if end is None else end for end in (one.low, one.high)))
            place, bottom, top = ((x + apart, y) for x, y in (at(number, value) for value in values))
            parts.append(_line(bottom, top, colour, ' stroke-opacity=".45" stroke-width="1.5"'))
            parts.append(f'<circle cx="{place[0]:.1f}" cy="{place[1]:.1f}" r="3.5" fill="{colour}"/>')
            places.append(place)
        parts += [_polyline(places, k), *_legend(k, name)]
    return _svg(parts, f"{y} by {x}", len(series))


def radar(series: Sequence[tuple[str, Mapping[str, float | None]]], title: str) -> str:
    """Draw values of 0 to 1 on axes around a centre; a series with a missing value is left out of the drawing."""
    axes = list(series[0][1]) if series else []
    if len(axes) < 3:
        return ""
    centre, middle, radius = _WIDTH / 2, _HEIGHT / 2, _HEIGHT / 2 - 44

    def at(k: int, value: float) -> Place:
        angle = 2 * math.pi * k / len(axes) - math.pi / 2
        return centre + radius * value * math.cos(angle), middle + radius * value * math.sin(angle)

    parts = [_text(_LEFT, 16, title, "start")]
    for value in (0.25, 0.5, 0.75, 1.0):
        ring = _places(at(k, value) for k in range(len(axes)))
        parts.append(f'<polygon points="{ring}" fill="none" stroke="#cccccc"/>')
        parts.append(_text(centre + 4, middle - radius * value - 2, f"{100 * value:g}", "start"))
    for k, name in enumerate(axes):
        parts.append(_line((centre, middle), at(k, 1.0)))
        x, y = at(k, 1.14)
        anchor = "middle" if abs(x - centre) < 20 else "start" if x > centre else "end"
        parts.append(_text(x, y + (12 if y > middle + 20 else 0), name, anchor))
    for k, (name, values) in enumerate(series):
        known = [at(place, value) for place, value in enumerate(values.values()) if value is not None]
        whole = len(known) == len(axes)
        parts += [_polyline([*known, known[0]], k)] * whole if known else []
        parts += _legend(k, name if whole else f"{name} (not drawn: an axis has no value)")
    return _svg(parts, title, len(series))


def _places(places: Iterable[Place]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def _line(start: Place, end: Place, colour: str = "#cccccc", more: str = "") -> str:
    (x1, y1), (x2, y2) = start, end
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"{more}/>'


def _polyline(places: Iterable[Place], k: int) -> str:
    dashes, colour = _DASHES[k % len(_DASHES)], COLOURS[k % len(COLOURS)]
    dash = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<polyline points="{_places(places)}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>'


def _legend(k: int, name: str) -> list[str]:
    """A line below the chart, where long names have room."""
    y = _HEIGHT + 14 + _LINE * k
    return [_polyline([(_LEFT, y - 4), (_LEFT + 30, y - 4)], k), _text(_LEFT + 38, y, name, "start")]


def _text(x: float, y: float, text: str, anchor: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(printable(text))}</text>'


def _svg(parts: Sequence[str], title: str, series: int) -> str:
    height = _HEIGHT + 10 + _LINE * series
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        f'role="img" font-family="sans-serif" font-size="12" fill="#222222"><title>{escape(printable(title))}</title>'
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>{"".join(parts)}</svg>\n'
    )
