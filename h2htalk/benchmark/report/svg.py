"""SVG documents as text: lines, discs, words and the document around them.

Attributes hold the colours of a file that stands alone; the style sheet of a page replaces them by class.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TypeAlias

from h2htalk.text.escaping import printable

Place: TypeAlias = tuple[float, float]

# Okabe and Ito's colours, which people with colour blindness tell apart.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")


def line(places: Iterable[Place], colour: str = "#cccccc", attributes: str = "") -> str:
    """Draw a line through places."""
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    return f'<polyline points="{points}" fill="none" stroke="{colour}"{attributes}/>'


def text(x: float, y: float, words: str, anchor: str = "middle", attributes: str = "") -> str:
    """Write a line of text; control characters are shown."""
    content = escape(printable(words))
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{attributes}>{content}</text>'


def titled(shapes: Iterable[str], title: str) -> str:
    """Group shapes under a title, which a browser shows beside the pointer."""
    return f"<g><title>{escape(printable(title.rstrip()))}</title>{''.join(shapes)}</g>"


def svg(shapes: Iterable[str], title: str, description: str, size: tuple[int, int]) -> str:
    """Return a document of shapes on a white ground; `description` says what it shows, `size` is width and height."""
    width, height = size
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" font-family="sans-serif" font-size="12" fill="#222222">'
        f"<title>{escape(printable(title))}</title><desc>{escape(printable(description))}</desc>"
        f'<rect class="ground" width="{width}" height="{height}" fill="#ffffff"/>{"".join(shapes)}</svg>\n'
    )
