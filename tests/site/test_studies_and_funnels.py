"""What the index shows of studies over models and of funnels: the studies' own figures, and counts without texts."""

from __future__ import annotations

import csv
import re
import xml.etree.ElementTree as ET
from itertools import chain
from pathlib import Path

import pytest
from test_board_pages import HOSTILE, NAMES, SVG, Texts

from h2htalk.benchmark.studies.run_study import run_study
from h2htalk.curation.erase import erase
from h2htalk.curation.stage_folder import Rejected
from h2htalk.data.files import read_json_object, write_json
from h2htalk.data.links import read_links
from h2htalk.errors import ConfigError, DataError
from h2htalk.site.build import build_site
from h2htalk.site.context import Context, read_words
from h2htalk.site.pages import write_boards
from h2htalk.site.sources import Sources, read_sources
from support.byte_search import files_with
from support.curations import dialogue, gathered
from support.releases import make_release
from support.studies import HARMFUL, REPLY, cases_of, judge_of, spec, write_script


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    """Two models in each kind of study, and one of them once more with another judge."""
    base = tmp_path_factory.mktemp("studies")
    paths = []
    cases = []
    for split in ("high_risk", "instructions", "arcs"):
        cases += cases_of(split, "en")
    judge = judge_of(cases)
    for study, arms, limit in (
        ("sap", ("sap", "none"), 4),
        ("instructions", ("full",), 48),
        ("memory", ("none",), 3),
    ):
        for name, text, judged in (
            ("kind", REPLY["en"], "one"),
            ("cold", HARMFUL, "one"),
            ("cold", HARMFUL, "two"),
        ):
            paths.append(base / f"{study}-{name}-{judged}")
            options = {
                "judge": write_script(base / f"{judged}.jsonl", judge),
                "arms": arms,
                "limit": limit,
            }
            run_study(
                spec(
                    study,
                    write_script(base / f"{name}.jsonl", text),
                    paths[-1],
                    language="en",
                    **options,
                )
            )
    return read_sources(paths)


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(text.splitlines()))[1:]


def test_every_cell_of_a_table_over_models_is_of_the_study_itself(sources: Sources) -> None:
    site = write_boards(Context(sources, read_words("en"), "en", "H2HTalk"))
    compared = 0
    labels = []
    for number in (1, 2, 5, 6):
        labels += rows_of(site[f"tables/studies-{number}.csv"])
    for _, study_result in sources.studies:
        for arm, *cells in (
            study_result.tables()[0].rows if study_result.study.spec.study != "instructions" else ()
        ):
            points_of_chart = [
                row[1:]
                for row in labels
                if row[0].endswith(arm) and (study_result.model in row[0] or row[0] == arm)
            ]
            assert cells in points_of_chart
            compared += 1
    assert compared == 3 * (8 + 5)
    note = "Not comparable with the first group of its kind: other judge (scripted:two"
    assert sum(note in text for text in Texts(site["index.html"]).of("p")) == 3


def test_lines_and_axes_stand_where_the_numbers_of_their_tables_say(sources: Sources) -> None:
    site = write_boards(Context(sources, read_words("zh"), "zh", "H2HTalk"))
    names = ("studies-1-sap-1", "studies-1-none-1", "studies-3-radar-1")
    tables = []
    for name in names:
        rows = rows_of(site[f"tables/{name}.csv"])
        tables.append(list(chain.from_iterable(row[1:] for row in rows)))
    lines, _, axes = (ET.fromstring(site[f"figures/{name}.svg"]) for name in names)
    y = {
        (line.text or ""): float(line.get("y", "")) - 4
        for line in lines
        if line.get("text-anchor") == "end"
    }
    bars = [
        100 * (y["0"] - float(dot.get("cy", ""))) / (y["0"] - y["100"])
        for dot in lines.iter(f"{SVG}circle")
    ]
    assert bars == pytest.approx([float(cell.split()[0]) for cell in tables[0]], abs=0.1)
    models = [
        axis.get("points", "").split()[:-1] for axis in axes if axis.get("stroke-width") == "2"
    ]
    corners = chain.from_iterable(model for model in models if len(model) > 1)
    places = [tuple(map(float, corner.split(","))) for corner in corners]
    shares = [100 * ((x - 380) ** 2 + (y - 170) ** 2) ** 0.5 / 126 for x, y in places]
    assert shares == pytest.approx([float(cell.split()[0]) for cell in tables[2]], abs=0.1)
    page = Texts(site["index.html"])
    shown_texts = {*page.of("td", "span")}
    for cell in chain.from_iterable(tables):
        assert {*re.split(r" \(|\)", cell.replace(" to ", " – "))[:2]} <= shown_texts
    headings = "\n".join(page.of("column", "h3", "nav", "summary"))
    words = set(re.findall("[A-Za-z]+", headings))
    assert words - NAMES <= {"SAP"}


def release(folder: Path, stage: str, kept_count: int = 5, **refused: int) -> Path:
    path = make_release(folder)
    facts = {"funnel": [{"stage": stage, "read": 8, "kept": kept_count}], "refused": refused}
    write_json(path / "release.json", read_json_object(path / "release.json") | {"facts": facts})
    return path


def test_a_funnel_shows_counts_and_reasons_and_an_erasure_makes_it_again(tmp_path: Path) -> None:
    workspace = gathered(tmp_path / "curation", [dialogue(k) for k in range(1, 5)])
    site = tmp_path / "site"
    workspace.stage("gather").write(
        "part-00009", [[Rejected("made-000009", "too_short")]], "gather"
    )
    workspace.stage("gather").finish()
    build_site([workspace.path, release(tmp_path / "made", "people", tied=3)], site)
    first, second = (rows_of((site / f"tables/funnel-{k}.csv").read_text())[0] for k in (1, 2))
    assert first == ["gather", "conversations", "5", "4", "1", "20.0 %", "too_short 1"]
    assert second == ["people", "items", "8", "5", "3", "37.5 %", "tied 3"]
    page = Texts((site / "index.html").read_text())
    assert {*first, *second} <= {*page.of("td", "th")}
    assert "made: test data of a benchmark" in (site / "index.html").read_text()  # the canary
    assert [link.kind for link in read_links(workspace.path)] == ["site"]
    assert list(read_links(tmp_path / "made")) == []
    assert [folder.kind for folder in erase(workspace, "made-000001").folders] == ["site"]
    assert rows_of((site / "tables/funnel-1.csv").read_text())[0][2:5] == ["4", "3", "1"]
    assert not files_with(site, "slept badly") + files_with(site, "made-000001")


@pytest.mark.parametrize("text", ["/home/ada/raw", "10.0.0.7:8000", "sk-abcdefghij0123456789KLMN"])
def test_a_funnel_with_a_path_an_address_or_a_key_is_not_published(
    tmp_path: Path, text: str
) -> None:
    for number, written_site in enumerate(
        (release(tmp_path / "0", text), release(tmp_path / "1", "people", **{text: 1}))
    ):
        with pytest.raises(ConfigError, match="must not be published"):
            build_site([written_site], tmp_path / f"site-{number}")
    with pytest.raises(DataError, match="kept"):
        build_site([release(tmp_path / "2", text, -1)], tmp_path / "site")


def test_names_of_stages_and_reasons_are_shown_and_never_obeyed(tmp_path: Path) -> None:
    releases = [
        release(tmp_path / "made", HOSTILE),
        release(tmp_path / "2", "people", **{HOSTILE: 3}),
    ]
    build_site(releases, tmp_path / "site")
    assert (
        not {"script", "img", "onerror"}
        & Texts((tmp_path / "site/index.html").read_text()).elements
    )
    assert (
        ET.fromstring((tmp_path / "site/figures/funnel-1.svg").read_text())[1].tag == f"{SVG}desc"
    )
