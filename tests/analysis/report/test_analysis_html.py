"""The page as a file: every figure with its table and its words, and nothing in it that can act."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html.parser import HTMLParser

import pytest
from analysis_made import made_analysis

from h2htalk.analysis.analyze import Analysis
from h2htalk.analysis.measures.words import WordCount
from h2htalk.analysis.report.figure_specs import figure_specs
from h2htalk.analysis.report.write_analysis import page_text
from h2htalk.analysis.verb_nouns.pairs import VerbNounPair

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(1)>{{ 7*7 }}{% raw %}<!--\u2028\x00\u202e'
SVG = """<?xml version="1.0" encoding="utf-8" standalone="no"?>
<svg xmlns="http://www.w3.org/2000/svg" width="241.2pt" height="180pt" viewBox="0 0 241.2 180" version="1.1">
 <style>* { fill: '#fff' }</style>
 <path id="a" d="M 1 2
L 3 4"/>
</svg>
"""


def page(analysis: Analysis, made: Mapping[str, str] | None = None) -> str:
    shown = figure_specs(analysis)
    return page_text(analysis, shown, {spec.name: SVG for spec in shown}, made or {"seed": "0"})


class Elements(HTMLParser):
    """Every element of a page with its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


@pytest.fixture(scope="module")
def whole() -> Analysis:
    return made_analysis(compared=True, unmeasured=("model tokens (nothing to count with)",))


@pytest.fixture(scope="module")
def text(whole: Analysis) -> str:
    return page(whole)


def test_every_figure_stands_there_with_words_a_table_and_its_files(whole: Analysis, text: str) -> None:
    shown = figure_specs(whole)
    elements = Elements(text)
    assert [figure["id"] for figure in elements.of("figure")] == [f"figure-{one.name}" for one in shown]
    assert len({spec.name for spec in shown}) == len(shown)
    assert all(len(image["alt"] or "") > 20 for image in elements.of("img"))
    assert len(elements.of("details")) == len(shown)
    links = {link["href"] for link in elements.of("a")}
    for spec in shown:
        assert f"tables/{spec.table.name}.csv" in links
        assert {f"figures/{spec.name}.{kind}" for kind in ("svg", "pdf", "png")} <= links


def test_the_page_needs_nothing_but_itself(text: str) -> None:
    elements = Elements(text)
    assert {tag for tag, _ in elements.found} & {"script", "link", "iframe", "object", "form", "base"} == set()
    assert all((image["src"] or "").startswith("data:image/svg+xml,") for image in elements.of("img"))
    targets = [link["href"] or "" for link in elements.of("a")]
    assert all(re.fullmatch(r"#\w+|(?:figures|tables)/\w+\.\w+", target) for target in targets)
    assert "default-src 'none'; img-src data:; style-src 'sha256-" in text
    assert "style" not in {name for _, attributes in elements.found for name in attributes}
    ids = [attributes["id"] for _, attributes in elements.found if "id" in attributes]
    assert len(set(ids)) == len(ids), "two elements of one id: a link leads to the wrong one"
    assert {target[1:] for target in targets if target.startswith("#")} <= set(ids)
    outside = re.sub(r'src="data:[^"]*"', "", text)
    for reach in ("url(", "@import", "http:", "https:", "//"):
        assert reach not in outside


def test_hostile_words_and_names_are_text() -> None:
    words = [WordCount(HOSTILE, 9, 9), WordCount("tea", 1, 1)]
    analysis = made_analysis(
        ("en",),
        name=HOSTILE.replace("\0", ""),
        words=words,
        pairs=[VerbNounPair(HOSTILE, HOSTILE)],
        unmeasured=[HOSTILE],
    )
    text = page(analysis, {HOSTILE: HOSTILE})
    quiet = page(made_analysis(("en",), words=words[1:], pairs=[VerbNounPair("a", "b")], unmeasured=["x"]), {"x": "y"})
    count = {tag: len(Elements(quiet).of(tag)) for tag in ("script", "img", "figure", "a", "code")}
    assert {tag: len(Elements(text).of(tag)) for tag in count} == count
    assert "<!--" not in text
    assert "{{ 7*7 }}" in text
    assert not set("\x00\u2028\u202e") & set(text)
