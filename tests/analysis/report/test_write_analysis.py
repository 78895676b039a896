"""The folder of an analysis: every table, every figure in three forms, the summary, the page that cannot act."""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from h2htalk.analysis.analyze import Analysis
from h2htalk.analysis.measures.words import WordCount
from h2htalk.analysis.report.analysis_page import page_text
from h2htalk.analysis.report.figure_specs import figure_specs
from h2htalk.analysis.report.write_analysis import replaced, require_output, write_analysis
from h2htalk.analysis.verb_nouns.pairs import VerbNounPair
from h2htalk.data.run_folder import MADE_BY
from h2htalk.errors import ConfigError, DataError
from support.analyses import made_analysis


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    return made_analysis(("zh",), limit=11)


@pytest.fixture(scope="module")
def folder(analysis: Analysis, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("out") / "analysis"
    assert write_analysis(analysis, out, processes=1) == out / "index.html"
    return out


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def summary_of(folder: Path) -> dict[str, Any]:
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    assert isinstance(summary, dict)
    return summary


def test_files_tables_and_summary_hold_what_was_counted(folder: Path, analysis: Analysis) -> None:
    tables = {path.stem for path in (folder / "tables").iterdir()}
    sides = ("instruction", "response")
    assert tables == {
        *("lengths_zh", "histograms_zh", "coverage_zh", "diversity"),
        *(f"{what}_zh_{side}" for what in ("words", "pairs") for side in sides),
    }
    assert {path.suffix for path in (folder / "figures").iterdir()} == {".svg", ".pdf", ".png"}
    figures = {path.stem for path in (folder / "figures").iterdir()}
    assert {"lengths_zh", "lengths_zh_pieces", "coverage_zh"} <= figures
    assert {f"{what}_zh_{side}" for what in ("words", "pairs") for side in sides} <= figures
    # The tables are read back as they were counted.
    (part,) = analysis.split.languages
    words = rows(folder / "tables" / "words_zh_instruction.csv")
    assert [(row["word"], int(row["count"]), int(row["texts"])) for row in words] == [
        (w.word, w.count, w.texts) for w in part.words["instruction"]
    ]
    lengths = rows(folder / "tables" / "lengths_zh.csv")
    assert [float(row["mean"]) for row in lengths] == [s.mean for s in part.lengths.summaries]
    assert [float(row["d90"]) for row in lengths] == [s.deciles[8] for s in part.lengths.summaries]
    cells = rows(folder / "tables" / "coverage_zh.csv")
    assert sum(int(row["scenarios"]) for row in cells) == part.scenarios == 11
    assert len(cells) == len(part.coverage.cells)
    # The summary says what was counted and with what.
    summary = summary_of(folder)
    assert summary["made_by"] == MADE_BY
    assert summary["splits"] == ["0123456789abcdef"]
    settings = summary["made_with"]
    assert settings["split"] == "made 1, fingerprint 0123456789abcdef, 11 of 154 scenarios, fed"
    for key in (
        "parser zh",
        "font zh",
        "words",
        "model tokens",
        "embedder",
        "seed",
        "h2htalk",
        "spacy",
    ):
        assert settings[key]
    chinese = summary["languages"]["zh"]
    assert chinese["scenarios"] == 11
    assert chinese["pairs"]["response"]["most"][0] == {"verb": "泡", "noun": "茶", "count": 1}
    assert chinese["coverage"]["total"] % 9 == 0


@pytest.mark.slow
def test_any_number_of_processes_gives_the_same_bytes(
    folder: Path, analysis: Analysis, tmp_path: Path
) -> None:
    write_analysis(analysis, tmp_path, processes=2)
    for path in folder.rglob("*"):
        if path.is_file():
            assert (tmp_path / path.relative_to(folder)).read_bytes() == path.read_bytes(), (
                path.name
            )


def write(new: Path, text: str, *tables: str) -> None:
    """An analysis with these tables, a picture, and a page of some text."""
    for name in (*(f"tables/{table}.csv" for table in tables), "figures/words.svg", "index.html"):
        (new / name).parent.mkdir(exist_ok=True)
        (new / name).write_text(text)
    (new / "tables").mkdir(exist_ok=True)
    (new / "summary.json").write_text(json.dumps({"made_by": MADE_BY}))


def files_in(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "summary.json"
    }


def test_an_earlier_analysis_is_replaced_and_what_somebody_added_stays(tmp_path: Path) -> None:
    with replaced(tmp_path) as new:
        write(new, "old", "words_en", "words_zh")
    (tmp_path / "notes.txt").write_text("mine")
    with replaced(tmp_path) as new:
        write(new, "new", "words_en")
    written = {"index.html": "new", "figures/words.svg": "new", "tables/words_en.csv": "new"}
    assert files_in(tmp_path) == {**written, "notes.txt": "mine"}


def test_a_failure_changes_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    with replaced(tmp_path / "out") as new:
        write(new, "old")

    def stopped(folder: Path) -> None:
        with replaced(folder) as new:
            (new / "index.html").write_text("half")
            raise KeyboardInterrupt

    (tmp_path / "mine").mkdir()
    for folder in (tmp_path / "out", tmp_path / "never", tmp_path / "mine"):
        with pytest.raises(KeyboardInterrupt):
            stopped(folder)
    assert files_in(tmp_path / "out") == {"index.html": "old", "figures/words.svg": "old"}
    assert sorted(os.listdir(tmp_path)) == ["mine", "out"]


def test_of_two_writers_at_once_the_second_is_refused_and_the_first_keeps_its_work(
    tmp_path: Path,
) -> None:
    with replaced(tmp_path / "out") as new:
        write(new, "first")
        with (
            pytest.raises(DataError, match="another process is writing it"),
            replaced(tmp_path / "out"),
        ):
            pass  # pragma: no cover
    assert set(files_in(tmp_path / "out").values()) == {"first"}
    (tmp_path / "out" / ".analysis" / "tables").mkdir(parents=True)  # left by a kill -9
    with replaced(tmp_path / "out") as new:
        write(new, "second")
    assert sorted(os.listdir(tmp_path / "out")) == [
        "figures",
        "index.html",
        "summary.json",
        "tables",
    ]


@pytest.mark.parametrize("summary", ["not JSON", '{"made_by": "somebody"}'])
def test_a_folder_that_holds_other_things_is_left_alone(
    analysis: Analysis, tmp_path: Path, summary: str
) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    (tmp_path / "summary.json").write_text(summary)
    with pytest.raises(ConfigError, match=r"holds other things \(.*thesis.tex.*name a new folder"):
        write_analysis(analysis, tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["summary.json", "thesis.tex"]


def test_a_place_where_nothing_can_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "far" / "below"):
        with pytest.raises(ConfigError, match="name another one"):
            require_output(folder)
    with (
        pytest.raises((ConfigError, DataError), match="/proc"),
        replaced(Path("/proc/nowhere/out")),
    ):
        pass  # pragma: no cover


HOSTILE = (
    '"><script>alert(1)</script><img src=x onerror=alert(1)>{{ 7*7 }}{% raw %}<!--\u2028\x00\u202e'
)
SVG = """<?xml version="1.0" encoding="utf-8" standalone="no"?>
<svg xmlns="http://www.w3.org/2000/svg" width="241.2pt" height="180pt" viewBox="0 0 241.2 180" version="1.1">
 <style>* { fill: '#fff' }</style>
 <path id="a" d="M 1 2
L 3 4"/>
</svg>
"""


def page(analysis: Analysis, settings: Mapping[str, str] | None = None) -> str:
    specs = figure_specs(analysis)
    pictures = {spec.name: SVG for spec in specs}
    return page_text(analysis, specs, pictures, settings or {"seed": "0"})


class Elements(HTMLParser):
    """Every element of a page with its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def compared_splits() -> Analysis:
    return made_analysis(compared=True, unmeasured=("model tokens (nothing to count with)",))


@pytest.fixture(scope="module")
def text(compared_splits: Analysis) -> str:
    return page(compared_splits)


def test_every_figure_stands_there_with_words_a_table_and_its_files(
    compared_splits: Analysis, text: str
) -> None:
    specs = figure_specs(compared_splits)
    elements = Elements(text)
    assert [figure["id"] for figure in elements.of("figure")] == [
        f"figure-{spec.name}" for spec in specs
    ]
    assert len({spec.name for spec in specs}) == len(specs)
    assert all(len(image["alt"] or "") > 20 for image in elements.of("img"))
    assert len(elements.of("details")) == len(specs)
    links = {link["href"] for link in elements.of("a")}
    for spec in specs:
        assert f"tables/{spec.table.name}.csv" in links
        assert {f"figures/{spec.name}.{kind}" for kind in ("svg", "pdf", "png")} <= links


def test_the_page_needs_nothing_but_itself(text: str) -> None:
    elements = Elements(text)
    assert {tag for tag, _ in elements.tags} & {
        "script",
        "link",
        "iframe",
        "object",
        "form",
        "base",
    } == set()
    assert all(
        (image["src"] or "").startswith("data:image/svg+xml,") for image in elements.of("img")
    )
    targets = [link["href"] or "" for link in elements.of("a")]
    assert all(re.fullmatch(r"#\w+|(?:figures|tables)/\w+\.\w+", target) for target in targets)
    assert "default-src 'none'; img-src data:; style-src 'sha256-" in text
    assert "style" not in {name for _, attributes in elements.tags for name in attributes}
    ids = [attributes["id"] for _, attributes in elements.tags if "id" in attributes]
    assert len(set(ids)) == len(ids), "two elements of one id: a link leads to the wrong one"
    assert {target[1:] for target in targets if target.startswith("#")} <= set(ids)
    outside = re.sub(r'src="data:[^"]*"', "", text)
    for reach in ("url(", "@import", "http:", "https:", "//"):
        assert reach not in outside


def test_hostile_words_and_names_are_text() -> None:
    words = [WordCount(HOSTILE, 9, 9), WordCount("tea", 1, 1)]
    hostile = {
        "name": HOSTILE.replace("\0", ""),
        "pairs": [VerbNounPair(HOSTILE, HOSTILE)],
        "unmeasured": [HOSTILE],
    }
    analysis = replace(made_analysis(("en",), words=words, **hostile), notes=(HOSTILE,))
    text = page(analysis, {HOSTILE: HOSTILE})
    assert '<ul class="notes"><li>' in text
    quiet = page(
        made_analysis(("en",), words=words[1:], pairs=[VerbNounPair("a", "b")], unmeasured=["x"]),
        {"x": "y"},
    )
    count = {tag: len(Elements(quiet).of(tag)) for tag in ("script", "img", "figure", "a", "code")}
    assert {tag: len(Elements(text).of(tag)) for tag in count} == count
    assert "<!--" not in text
    assert "{{ 7*7 }}" in text
    assert not set("\x00\u2028\u202e") & set(text)
