"""The folder of an analysis: every table, every figure in three forms, the summary, the page."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import Any

import pytest
from analysis_made import made_analysis

from h2htalk.analysis.analyze import Analysis
from h2htalk.analysis.report.write_analysis import replaced, require_output, write_analysis
from h2htalk.data.run_folder import MADE_BY
from h2htalk.errors import ConfigError, DataError


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
    found = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def test_the_names_of_files_are_those_of_the_documentation(folder: Path) -> None:
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


def test_the_tables_are_read_back_as_they_were_counted(folder: Path, analysis: Analysis) -> None:
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


def test_the_summary_says_what_was_counted_and_with_what(folder: Path) -> None:
    summary = summary_of(folder)
    assert summary["made_by"] == MADE_BY
    assert summary["splits"] == ["0123456789abcdef"]
    made = summary["made_with"]
    assert made["split"] == "made 1, fingerprint 0123456789abcdef, 11 of 154 scenarios, fed"
    for key in ("parser zh", "font zh", "words", "model tokens", "embedder", "seed", "h2htalk", "spacy"):
        assert made[key]
    chinese = summary["languages"]["zh"]
    assert chinese["scenarios"] == 11
    assert chinese["pairs"]["response"]["most"][0] == {"verb": "泡", "noun": "茶", "count": 1}
    assert chinese["coverage"]["total"] % 9 == 0


@pytest.mark.slow
def test_the_same_analysis_gives_the_same_bytes_in_any_number_of_processes(
    folder: Path, analysis: Analysis, tmp_path: Path
) -> None:
    write_analysis(analysis, tmp_path, processes=2)
    for path in folder.rglob("*"):
        if path.is_file():
            assert (tmp_path / path.relative_to(folder)).read_bytes() == path.read_bytes(), path.name


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
    made = {"index.html": "new", "figures/words.svg": "new", "tables/words_en.csv": "new"}
    assert files_in(tmp_path) == {**made, "notes.txt": "mine"}


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


def test_of_two_writers_at_once_the_second_is_refused_and_the_first_keeps_its_work(tmp_path: Path) -> None:
    with replaced(tmp_path / "out") as new:
        write(new, "first")
        with pytest.raises(DataError, match="another process is writing it"), replaced(tmp_path / "out"):
            pass  # pragma: no cover
    assert set(files_in(tmp_path / "out").values()) == {"first"}
    (tmp_path / "out" / ".analysis" / "tables").mkdir(parents=True)  # left by a kill -9
    with replaced(tmp_path / "out") as new:
        write(new, "second")
    assert sorted(os.listdir(tmp_path / "out")) == ["figures", "index.html", "summary.json", "tables"]


@pytest.mark.parametrize("summary", ["not JSON", '{"made_by": "somebody"}'])
def test_a_folder_that_holds_other_things_is_left_alone(analysis: Analysis, tmp_path: Path, summary: str) -> None:
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
    with pytest.raises((ConfigError, DataError), match="/proc"), replaced(Path("/proc/nowhere/out")):
        pass  # pragma: no cover
