"""Render the page of an analysis: its figures with their tables, and how it was made.

The page is one HTML file that needs no network, no server and no script. Its policy is that of
`h2htalk.text.html_pages`; the pictures are SVG in image elements, where neither scripts nor links work.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from h2htalk.text.tables import Table

_TITLES = {"diversity": "Diversity", "differences": "Differences"}  # other parts are languages
_HEADING = 40  # characters of a split's name over a column
_UNQUOTED = " !$()+*,-./:;=?@_~"  # in an address of data


def page_text(
    analysis: Analysis,
    specs: Sequence[FigureSpec],
    pictures: Mapping[str, str],
    settings: Mapping[str, str],
) -> str:
    """Render the page of figures in this order, every text made printable.

    `pictures` are the figures' SVGs by name, `settings` the rows of "How it was made": texts by name.
    """
    names = split_names(analysis)
    figures = {}
    for spec in specs:
        figures[spec.name] = _figure(spec, pictures.get(spec.name, ""), names)
    tiles: list[dict[str, str]] = []
    for part in analysis.split.languages:
        tiles += _tiles(part)
    view = {
        "split": printable(analysis.split.name),
        "subtitle": printable(_subtitle(analysis)),
        "tiles": tiles,
        "parts": _parts(specs, figures),
        "unmeasured": list(map(printable, analysis.unmeasured)),
        "notes": list(map(printable, analysis.notes)),
        "made": [(printable(key), printable(value)) for key, value in settings.items()],
    }
    return render_page(files("h2htalk.analysis.report") / "page", view, pictures=True)


def _subtitle(analysis: Analysis) -> str:
    split = analysis.split
    counts = []
    for language, count in split.scenarios.items():
        counts.append(f"{count:,} {find_language(language).name}")
    noun = "scenario" if split.selected == 1 else "scenarios"
    subtitle = f"version {split.version}: {' and '.join(counts)} {noun}"
    if analysis.compare_with:
        subtitle += f", compared with {analysis.compare_with.name} {analysis.compare_with.version}"
    return subtitle


def _tiles(part: LanguageAnalysis) -> Iterator[dict[str, str]]:
    """Yield the main numbers of a language: scenarios, words of a text, cells of the grid."""
    language = find_language(part.language).name
    number, noun = counted(part.scenarios, "scenario").split()
    yield _tile(language, number, noun)
    for summary in part.lengths.of_all_texts("words"):
        note = f"words, median; mean {summary.mean:,.1f}"
        yield _tile(f"{language} {summary.side}s", f"{summary.median:,.0f}", note)
    grid = part.coverage
    share = 100 * grid.filled / max(1, len(grid.cells))
    yield _tile(f"{language} grid", f"{share:.0f} %", grid.summary)


def _tile(label: str, value: str, note: str) -> dict[str, str]:
    return {"label": label, "value": value, "note": note}


def _parts(specs: Iterable[FigureSpec], figures: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Group what is shown of figures, by name, into the page's parts and their groups; specs are in this order."""
    sections = []
    for part, part_specs in groupby(specs, key=lambda spec: spec.part):
        groups = []
        for group, group_specs in groupby(part_specs, key=lambda spec: spec.group):
            members = [figures[spec.name] for spec in group_specs]
            groups.append({"title": group, "figures": members})
        title = _TITLES.get(part) or find_language(part).name
        sections.append({"id": part, "title": title, "groups": groups})
    return sections


def _figure(spec: FigureSpec, picture: str, names: tuple[str, str]) -> dict[str, Any]:
    """Return what the page shows of a figure; `names` of the splits stand over the columns of their counts."""
    name_a, name_b = names
    headings = {"count_a": _shorten_heading(name_a), "count_b": _shorten_heading(name_b)}
    header = [headings.get(column, column.replace("_", " ")) for column in spec.page_table.header]
    rows = spec.page_table.rows[: spec.most]
    description = f"{spec.title}. {spec.content} {spec.note}"
    return {
        "name": spec.name,
        "title": printable(spec.title),
        "note": printable(spec.note),
        "alt": printable(description.strip()),
        "source": _picture_address(picture) if picture else "",
        "formats": FORMATS if picture else (),
        "table": Table("", header, rows).to_html(spec.language) if rows else "",
        "rows": len(rows),
        "total": len(spec.page_table.rows),
        "table_name": spec.table.name,
    }


def _shorten_heading(name: str) -> str:
    """Shorten a split's name to its two ends: two names may begin alike."""
    if len(name) <= _HEADING:
        return name
    return f"{name[:27].rstrip()}…{name[-12:].lstrip()}"


def _picture_address(svg: str) -> str:
    """Return a picture as an address: it is a document of its own, whose ids and styles stay within it."""
    one_line = " ".join(svg.split())  # a line end in an address is three characters
    return "data:image/svg+xml," + quote(one_line, safe=_UNQUOTED)
