"""The pages of boards and of models: every figure in a table, equal bytes, hostile names, two languages."""

from __future__ import annotations

import csv
import re
import tomllib
import xml.etree.ElementTree as ET
from dataclasses import replace
from decimal import Decimal
from html import unescape
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from h2htalk.benchmark.report.charts import Mark, clipped, heat_map, interval_plot, scatter
from h2htalk.benchmark.report.paper_rows import paper_rows
from h2htalk.chat.prices import Totals
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.site.cells import cost_text
from support.boards import made_runs, made_source, made_split, made_values, site_of

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>{{ 7*7 }}\u202e\x1b[31m\x00__proto__ ]]>"


VOID = ("meta", "rect", "img", "circle", "polyline", "br")


class Texts(HTMLParser):
    """What a reader sees of a page, by the element that holds it, and where its links lead."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.found: list[tuple[str, str]] = []
        self.links: list[str] = []
        self.elements: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        attributes_of_tag = dict(attributes)
        self.elements.add(tag)
        self.elements |= {
            name for name in attributes_of_tag if name.startswith("on") or name == "style"
        }
        kind = tag
        if attributes_of_tag.get("scope") == "col":
            kind = "column"
        elif attributes_of_tag.get("lang") == "en":
            kind = "english"
        if tag not in VOID:
            self.stack.append(kind)
        if "href" in attributes_of_tag:
            self.links.append(attributes_of_tag["href"] or "")

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            self.stack.pop()

    def handle_data(self, data: str) -> None:
        if data.strip() and not {"style", "script"} & {*self.stack}:
            self.found += [(tag, data.strip()) for tag in self.stack]

    def of(self, *tags: str) -> list[str]:
        return [text for tag, text in self.found if tag in tags]


@pytest.fixture(scope="module")
def site() -> dict[str, str]:
    return site_of(made_runs(220))


def numbers(texts: list[str]) -> set[str]:
    return set(re.findall(r"\d+\.\d+", "\n".join(texts)))


def test_every_number_in_a_chart_is_in_a_table_of_its_page(site: dict[str, str]) -> None:
    charts = [path for path in site if path.endswith(".svg")]
    assert len(charts) == 3 + 8
    for path in charts:
        drawings = [
            text
            for text in ET.fromstring(site[path]).iter(f"{SVG}text")
            if "tick" not in text.get("class", "")
        ]
        expected = [title.text or "" for title in ET.fromstring(site[path]).iter(f"{SVG}title")]
        page = next(
            text
            for name, text in site.items()
            if name.endswith(".html") and site[path].strip() in text
        )
        assert len(numbers([text.text or "" for text in drawings])) >= (0 if "size" in path else 8)
        assert numbers([text.text or "" for text in drawings] + expected) <= numbers(
            Texts(page).of("td", "th")
        )


def test_a_mark_stands_where_its_number_says() -> None:
    """Places are read back by the ticks of the axis."""
    marks = [Mark("a", 40.0, 38.0, 43.0), Mark("b", 55.5, 50.0, 60.0), Mark("c", None)]
    root = ET.fromstring(interval_plot("t", "d", "x", marks))
    texts = [text for text in root.iter(f"{SVG}text") if "tick" in text.get("class", "")]
    ticks = {float(text.text or ""): float(text.get("x", "")) for text in texts}
    v0, x0 = min(ticks.items())
    v1, x1 = max(ticks.items())
    places = [float(dot.get("cx", "")) for dot in root.iter(f"{SVG}circle")]
    assert [v0 + (x - x0) / (x1 - x0) * (v1 - v0) for x in places] == pytest.approx(
        [40.0, 55.5], abs=0.05
    )


def test_a_cell_of_a_heat_map_has_its_number_in_a_colour_that_can_be_read() -> None:
    def light(colour: str) -> float:
        channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    rows = [(str(k), [50.0 + k, 50.0 - k, None]) for k in range(-20, 21)]
    root = ET.fromstring(heat_map("t", "d", [("g", "a"), ("g", "b"), ("h", "c")], rows))
    cells = [group for group in root.iter(f"{SVG}g") if group.find(f"{SVG}rect") is not None]
    assert len(cells) == 3 * len(rows)
    for cell in cells:
        dark, bright = sorted(
            light(cell.find(f"{SVG}{name}").get("fill")) for name in ("rect", "text")
        )
        assert (bright + 0.05) / (dark + 0.05) >= 4.5


def test_charts_of_nothing_and_of_one_are_drawn() -> None:
    mark = Mark("m", 50.0, x=7.0)
    for text in (
        interval_plot("t", "d", "x", []),
        interval_plot("t", "d", "x", [mark]),
        heat_map("t", "d", [("g", "a")], []),
        scatter("t", "d", ("x", "y"), [mark, replace(mark, other=True)]),
    ):
        root = ET.fromstring(text)
        assert [root[0].tag, root[1].tag] == [f"{SVG}title", f"{SVG}desc"]
        assert "nan" not in text


def test_two_sites_of_the_same_runs_are_equal_in_any_order_and_every_link_leads_somewhere(
    site: dict[str, str],
) -> None:
    assert site_of(made_runs(220)[::-1]) == site
    for path, page in site.items():
        if path.endswith(".html"):
            for link in Texts(page).links:
                target = (
                    (Path(path).parent / link.partition("#")[0]).as_posix()
                    if not link.startswith("#")
                    else path
                )
                target = target.replace("models/../", "")
                assert target in site or target == "items.html"
                anchor = link.partition("#")[2]
                assert not anchor or target == "items.html" or f'id="{anchor}"' in site[target]


def test_a_board_has_a_csv_and_a_latex_table(site: dict[str, str]) -> None:
    rows = list(csv.reader(site["tables/board-1.csv"].splitlines()))
    assert ({len(row) for row in rows}, rows[8][1]) == ({11}, "-")
    assert [row[0] for row in rows[-2:]] == ["copy (baseline)", "constant (baseline)"]
    latex = site["tables/board-1.tex"]
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == 1
    assert r"\midrule" in latex


def test_the_papers_rows_stand_beside_the_board_and_have_no_rank(site: dict[str, str]) -> None:
    page = site["index.html"]
    assert (
        page.count("paper, other data</td>") >= len(paper_rows()),
        "Llama-3.3-70B-Instruct" in page,
    ) == (True, True)
    assert not any("Llama-3.3" in text for path, text in site.items() if path.startswith("tables/"))


def test_the_sentences_are_made_of_the_figures(site: dict[str, str]) -> None:
    says = " ".join(Texts(site["index.html"]).of("p"))
    assert re.search(r"tells \d+ of 21 pairs apart", says)
    assert "220 clusters of 220 items" in says
    assert "1 not ranked: incomplete" in says
    assert "whether two overlap is no test" in says


def test_names_are_shown_and_never_obeyed() -> None:
    split = made_split(110)
    values = made_values(split, (0.5, 0.4, 0.3, 0.2))
    names = (HOSTILE, "x" * 200_000, "__proto__", "مرحبا 7B")
    runs = [made_source(name, split, values[:, k].tolist()) for k, name in enumerate(names)]
    site_files = site_of(runs)
    assert len([path for path in site_files if path.startswith("models/")]) == 4
    for path, text in site_files.items():
        assert len(text) < 500_000, path
        assert not re.search("[\x00\x1b\u202e]", text), path
        if path.endswith(".html"):
            collected = Texts(text)
            assert not {"script", "img", "onerror", "style="} & collected.elements - {"style"}
            assert "49" not in "".join(collected.of("h1"))
        if path.endswith(".svg"):
            ET.fromstring(text)
    assert "\\u202e" in site_files["index.html"]


def words_of(language: str) -> dict[str, Any]:
    return tomllib.loads(
        (files("h2htalk.site") / "words" / f"{language}.toml").read_text(encoding="utf-8")
    )


def flat(words: dict[str, Any], prefix: str = "") -> dict[str, str]:
    collected = dict[str, str]()
    for key, value in words.items():
        if isinstance(value, dict):
            collected |= flat(value, f"{prefix}{key}.")
        else:
            collected[f"{prefix}{key}"] = str(value)
    return collected


def test_both_languages_have_the_same_words_with_the_same_places() -> None:
    english = flat(words_of("en"))
    chinese = flat(words_of("zh"))
    assert list(english) == list(chinese)
    for key, text in english.items():
        assert sorted(re.findall(r"\{[^}]*\}", text)) == sorted(
            re.findall(r"\{[^}]*\}", chinese[key])
        ), key


# Names of data, of files and of the paper, which are the same in every language.
NAMES = {
    "S",
    "J",
    "R",
    "SS",
    "BLEU",
    "ROUGE",
    "SVG",
    "CSV",
    "TEX",
    "Table",
    "Holm",
    "p",
    "constant",
    "copy",
}
NAMES |= {
    "made",
    "L",
    *(subtask.title for subtask in SUBTASKS.values()),
    *(subtask.column for subtask in SUBTASKS.values()),
}


def test_chinese_pages_have_no_english_headings_of_ours() -> None:
    site_files = site_of(made_runs(110), "zh")
    for path, page in site_files.items():
        if path.endswith(".html"):
            assert '<html lang="zh">' in page
            headings = Texts(page).of("h2", "h3", "column", "summary", "figcaption", "nav", "label")
            assert len(headings) > 10
            words = set(re.findall(r"[A-Za-z][A-Za-z0-9]*", unescape("\n".join(headings))))
            assert words - NAMES == set(), path


def test_a_cost_says_what_is_not_known_of_it() -> None:
    w = words_of("en")["board"]
    for money, expected in (
        ({"usd_paid": "1.234"}, "1.23"),
        ({"usd_paid": "0.00001"}, "< 0.0001"),
        ({"usd_paid": "1", "usd_possible": "0.1", "usd_open": "0.2"}, "1.00 + at most 0.3000"),
        ({"usd_paid": "1", "usd_possible": None}, "1.00 + unknown"),
        ({"usd_paid": None}, "unknown"),
    ):
        keys = {
            name: None if dollars is None else Decimal(dollars) for name, dollars in money.items()
        }
        assert cost_text({"answers": Totals(2, 2, **keys)}, w) == expected
    assert cost_text({}, w) == "-"


def test_a_model_page_has_what_the_test_says_of_each_other_model(site: dict[str, str]) -> None:
    """The best and the worst of eight, whose skills are .53 and .31."""
    pages = {
        Texts(page).of("h1")[0]: page for path, page in site.items() if path.startswith("models/")
    }
    pairs = pages["ollama:qwen2.5:0.5b"].split('id="pairs"')[1].split("</section>")[0]
    assert (pairs.count("below it"), "claude" in pairs) == (
        6,
        False,
    )  # one is incomplete, so in no pair
    incomplete = pages["anthropic:claude-haiku-4-5"]
    worst = pages["ollama:qwen2.5:0.5b"]
    assert ('id="pairs"' in incomplete, "incomplete" in incomplete) == (False, True)
    assert ("too_long" in worst, "1.20 s median" in worst) == (True, True)


def test_clipped_names_are_as_long_as_they_may_be() -> None:
    assert clipped("a" * 41, 40) == "a" * 39 + "…"
    assert clipped("\u202e" * 10, 12) == "\\u202e\\u202e"[:11] + "…"
    assert clipped("short") == "short"


def test_a_site_without_runs_has_the_papers_rows_and_one_run_alone_no_rank() -> None:
    site_files = site_of([])
    assert list(site_files) == ["index.html"]
    assert (
        "Llama-3.3-70B-Instruct" in site_files["index.html"],
        "items.html" in site_files["index.html"],
    ) == (
        True,
        False,
    )
    assert "无从排名" in site_of(made_runs(110)[:1], "zh")["index.html"]
