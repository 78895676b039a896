"""Render an analysis as one HTML file that needs no network, no server and no script: every figure with its table.

Its policy is that of `h2htalk.text.html_pages`; the pictures are SVG in image elements, where neither scripts nor
links work.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from itertools import groupby
from typing import Any
from urllib.parse import quote

from h2htalk.analysis.analyze import Analysis, LanguageAnalysis
from h2htalk.analysis.figures.style import FORMATS
from h2htalk.analysis.report.figure_specs import FigureSpec, split_names
from h2htalk.data.languages import find_language
from h2htalk.errors import counted
from h2htalk.text.escaping import printable
from h2htalk.text.html_pages import render_page

_PARTS = {"diversity": "Diversity", "differences": "Differences"}
_SIZE = re.compile(r'<svg\b[^>]*? width="([\d.]+)pt" height="([\d.]+)pt"')
_BROAD = 300.0  # points: a figure of two printed columns is wider
_HEADING = 40  # characters
# Characters that a data address need not escape: nearly all of a picture.
_UNQUOTED = " !$()+*,-./:;=?@_~"


def page_text(
    analysis: Analysis, shown: Sequence[FigureSpec], pictures: Mapping[str, str], made: Mapping[str, str]
) -> str:
    """Render the page, every text made printable.

    Args:
        shown: the figures in the page's order.
        pictures: each figure's SVG, by its name.
        made: the rows of "How it was made": the analysis's settings, texts by name.
    """
    facts = analysis.split.facts
    counts = " and ".join(f"{n:,} {find_language(language).name}" for language, n in facts.scenarios.items())
    subtitle = f"version {facts.version}: {counts} scenario{'' if sum(facts.scenarios.values()) == 1 else 's'}"
    if analysis.compare_with:
        subtitle += f", compared with {analysis.compare_with.facts.name} {analysis.compare_with.facts.version}"
    names = split_names(analysis)
    parts = [
        {
            "id": part,
            "title": _PARTS.get(part) or find_language(part).name,
            "groups": [
                {
                    "title": group,
                    "figures": [_figure(spec, pictures[spec.name], names) for spec in of_group],
                }
                for group, of_group in groupby(of_part, key=lambda spec: spec.group)
            ],
        }
        for part, of_part in groupby(shown, key=lambda spec: spec.part)
    ]
    view = {
        "split": printable(facts.name),
        "subtitle": printable(subtitle),
        "tiles": [tile for part in analysis.split.languages for tile in _tiles(part)],
        "parts": parts,
        "unmeasured": [f"Not measured: {printable(text)}." for text in analysis.unmeasured],
        "made": [(printable(key), printable(value)) for key, value in made.items()],
    }
    return render_page(files("h2htalk.analysis.report") / "page", view, pictures=True)


def _tiles(part: LanguageAnalysis) -> list[dict[str, str]]:
    """Summarise a language's figures."""
    name, grid = find_language(part.language).name, part.coverage
    tiles = [(name, *counted(part.scenarios, "scenario").split())]
    for s in part.lengths.summaries:
        if (s.group, s.measure) == ("all", "words"):
            tiles.append((f"{name} {s.side}s", f"{s.median:,.0f}", f"words, median; mean {s.mean:,.1f}"))
    share = f"{100 * grid.filled / max(1, grid.total):.0f} %"
    tiles.append((f"{name} grid", share, f"{grid.filled:,} of {grid.total:,} cells hold a scenario"))
    return [dict(zip(("label", "value", "note"), tile, strict=True)) for tile in tiles]


def _figure(spec: FigureSpec, picture: str, names: tuple[str, str]) -> dict[str, Any]:
    width, height = picture_size(picture)
    rows, headings = len(spec.shown.rows), {"count_a": _short(names[0]), "count_b": _short(names[1])}
    table = replace(spec.shown, header=[headings.get(h, h.replace("_", " ")) for h in spec.shown.header])
    return {
        "name": spec.name,
        "title": printable(spec.title),
        "note": printable(spec.note),
        "alt": printable(f"{spec.title}. {spec.note}".strip()),
        "source": picture_address(picture),
        "width": round(width * 4 / 3),
        "height": round(height * 4 / 3),
        "broad": width > _BROAD,
        "files": [(kind.upper(), f"figures/{spec.name}.{kind}") for kind in FORMATS],
        "table": {
            "html": table.to_html(spec.language) if rows else "",
            "shown": f"{rows:,} of {spec.total:,} rows" if rows < spec.total else f"{spec.total:,} rows",
            "link": f"tables/{spec.table.name}.csv",
        },
    }


def _short(name: str) -> str:
    """Shorten a split's name over a column of numbers, keeping both ends: two names may begin alike."""
    return name if len(name) <= _HEADING else f"{name[: _HEADING - 13].rstrip()}…{name[-12:].lstrip()}"


def picture_size(svg: str) -> tuple[float, float]:
    """Return width and height of an SVG of matplotlib in points. Raises ValueError for one without them."""
    if not (found := _SIZE.search(svg)):
        raise ValueError("an SVG without width and height in points")
    return float(found[1]), float(found[2])


def picture_address(svg: str) -> str:
    """Encode the SVG as a data address: a picture of its own, whose ids and styles stay within it."""
    # A line end is white space in XML, but three characters in an address.
    return "data:image/svg+xml," + quote(" ".join(svg.split()), safe=_UNQUOTED)
