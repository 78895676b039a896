"""Render an analysis as one HTML file that needs no network, no server and no script: every figure with its table.

Its policy is that of `h2htalk.text.html_pages`; the pictures are SVG in image elements, where neither scripts nor
links work.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from itertools import groupby
from typing import Any
from urllib.parse import quote

from h2htalk.analysis.analyze import Analysis, LanguageAnalysis
from h2htalk.analysis.measures.scenario_texts import SIDES
from h2htalk.analysis.report.figure_specs import PAIRS_GROUP, SIDE_NAMES, FigureSpec, split_names
from h2htalk.data.languages import find_language
from h2htalk.text.escaping import printable
from h2htalk.text.html_pages import render_page

_PAGE = files("h2htalk.analysis.report") / "page"


def page_text(
    analysis: Analysis, shown: Sequence[FigureSpec], pictures: Mapping[str, str], made: Mapping[str, str]
) -> str:
    """Render the page.

    Args:
        shown: the figures in the page's order.
        pictures: each figure's SVG, by its name.
        made: the analysis's settings, texts by name.
    """
    return render_page(_PAGE, page_view(analysis, shown, pictures, made), pictures=True)


_PARTS = {"diversity": "Diversity", "differences": "Differences"}
_SIZE = re.compile(r'<svg\b[^>]*?\bwidth="([\d.]+)pt"[^>]*', re.DOTALL)
_HEIGHT = re.compile(r'\bheight="([\d.]+)pt"')
_BROAD = 300.0  # points: a figure of two printed columns is wider
_HEADING = 40  # characters
# Characters that a data address need not escape: nearly all of a picture.
_UNQUOTED = " !$()+*,-./:;=?@_~"


def page_view(
    analysis: Analysis, shown: Sequence[FigureSpec], pictures: Mapping[str, str], made: Mapping[str, str]
) -> dict[str, Any]:
    """Compute everything page.html needs, every text made printable.

    Args:
        shown: the figures in the page's order.
        pictures: each figure's SVG, by its name.
        made: the rows of "How it was made".
    """
    facts = analysis.split.facts
    counts = [f"{n:,} {find_language(language).name}" for language, n in facts.scenarios.items()]
    subtitle = f"version {facts.version}: {' and '.join(counts)} {_scenarios(sum(facts.scenarios.values()))}"
    if analysis.compare_with:
        subtitle += f", compared with {analysis.compare_with.facts.name} {analysis.compare_with.facts.version}"
    names = split_names(analysis)
    return {
        "split": printable(facts.name),
        "subtitle": printable(subtitle),
        "tiles": [tile for part in analysis.split.languages for tile in _tiles(part)],
        "parts": [
            {
                "id": part,
                "title": _PARTS.get(part) or find_language(part).name,
                "groups": _groups(list(of), pictures, names),
            }
            for part, of in groupby(shown, key=lambda spec: spec.part)
        ],
        "unmeasured": [f"Not measured: {printable(text)}." for text in analysis.unmeasured],
        "made": [(printable(key), printable(value)) for key, value in made.items()],
    }


def _scenarios(count: int) -> str:
    return "scenario" if count == 1 else "scenarios"


def _tiles(part: LanguageAnalysis) -> list[dict[str, str]]:
    """Summarise a language's figures."""
    name = find_language(part.language).name
    tiles = [
        {
            "label": name,
            "value": f"{part.scenarios:,}",
            "note": _scenarios(part.scenarios),
        }
    ]
    for side in SIDES:
        for s in part.lengths.summaries:
            if (s.side, s.group, s.measure) == (side, "all", "words"):
                note = f"words, median; mean {s.mean:,.1f}"
                tiles.append({"label": f"{name} {SIDE_NAMES[side]}", "value": f"{s.median:,.0f}", "note": note})
    share = f"{100 * part.coverage.filled / max(1, part.coverage.total):.0f} %"
    cells = f"{part.coverage.filled:,} of {part.coverage.total:,} cells hold a scenario"
    return [*tiles, {"label": f"{name} grid", "value": share, "note": cells}]


def _groups(shown: Iterable[FigureSpec], pictures: Mapping[str, str], names: tuple[str, str]) -> list[dict[str, Any]]:
    return [
        {
            "title": title,
            "paired": title == PAIRS_GROUP,
            "figures": [_figure(one, pictures[one.name], names) for one in of],
        }
        for title, of in groupby(shown, key=lambda spec: spec.group)
    ]


def _figure(spec: FigureSpec, picture: str, names: tuple[str, str]) -> dict[str, Any]:
    width, height = picture_size(picture)
    return {
        "name": spec.name,
        "title": printable(spec.title),
        "note": printable(spec.note),
        "alt": printable(f"{spec.title}. {spec.note}".strip()),
        "source": picture_address(picture),
        "width": round(width * 4 / 3),
        "height": round(height * 4 / 3),
        "broad": width > _BROAD,
        "files": [(kind.upper(), f"figures/{spec.name}.{kind}") for kind in ("svg", "pdf", "png")],
        "table": _table(spec, names),
    }


def _table(spec: FigureSpec, names: tuple[str, str]) -> dict[str, Any]:
    rows = spec.shown.rows
    headings = {"count_a": _short(names[0]), "count_b": _short(names[1])}
    shown = f"{len(rows):,} of {spec.total:,} rows" if len(rows) < spec.total else f"{spec.total:,} rows"
    table = replace(spec.shown, header=[headings.get(h, h.replace("_", " ")) for h in spec.shown.header])
    return {
        "html": table.to_html(spec.language) if rows else "",
        "shown": shown,
        "link": f"tables/{spec.table.name}.csv",
    }


def _short(name: str) -> str:
    """Shorten a split's name over a column of numbers, keeping both ends: two names may begin alike."""
    return name if len(name) <= _HEADING else f"{name[: _HEADING - 13].rstrip()}…{name[-12:].lstrip()}"


def picture_size(svg: str) -> tuple[float, float]:
    """Return width and height of an SVG in points."""
    width = _SIZE.search(svg)
    height = _HEIGHT.search(width[0]) if width else None
    if width is None or height is None:
        raise ValueError("an SVG without width and height in points")
    return float(width[1]), float(height[1])


def picture_address(svg: str) -> str:
    """Encode the SVG as a data address: a picture of its own, whose ids and styles stay within it."""
    # A line end is white space in XML, but three characters in an address.
    return "data:image/svg+xml," + quote(" ".join(svg.split()), safe=_UNQUOTED)
