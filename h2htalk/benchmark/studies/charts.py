"""Charts of studies as SVG text: lines by turn, and the radar of Fig. 7."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape

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


def radar(series: Sequence[tuple[str, Mapping[str, float | None]]], note: str = "") -> str:
    """Draw values of 0 to 1 on axes around a centre; a series with a missing value is left out of the drawing."""
    axes, names = list(series[0][1]), []
    centre, middle, radius = _WIDTH / 2, _HEIGHT / 2, _HEIGHT / 2 - 44

    def at(k: int, value: float) -> tuple[float, float]:
        angle = 2 * math.pi * k / len(axes) - math.pi / 2
        return centre + radius * value * math.cos(angle), middle + radius * value * math.sin(angle)

    parts = [text(_LEFT, 16, RADAR, "start")]
    for value in (0.25, 0.5, 0.75, 1.0):
        parts.append(line([at(k, value) for k in range(len(axes) + 1)]))
        parts.append(text(centre + 4, middle - radius * value - 2, f"{100 * value:g}", "start"))
    for k, name in enumerate(axes):
        x, y = at(k, 1.14)
        anchor = "middle" if abs(x - centre) < 20 else "start" if x > centre else "end"
        parts += [line([(centre, middle), at(k, 1.0)]), text(x, y + (12 if y > middle + 20 else 0), name, anchor)]
    for k, (name, values) in enumerate(series):
        known = [at(place, value) for place, value in enumerate(values.values()) if value is not None]
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
