"""An analysis replaces an earlier one and nothing else, and a reader never sees half of it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from h2htalk.data.analysis_folder import MADE_BY, replaced, require_folder
from h2htalk.errors import ConfigError, DataError


def write(new: Path, **files: str) -> None:
    """An analysis of some files; `a__b` is the file b in the folder a."""
    names = {name.replace("__", "/").replace("_dot_", "."): text for name, text in files.items()}
    for name, text in names.items():
        (new / name).parent.mkdir(exist_ok=True)
        (new / name).write_text(text)
    (new / "summary.json").write_text(json.dumps({"made_by": MADE_BY, "files": sorted(names)}))


def files_in(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "summary.json"
    }


def test_an_earlier_analysis_is_replaced_and_what_somebody_added_stays(tmp_path: Path) -> None:
    with replaced(tmp_path) as new:
        write(new, index_dot_html="old", tables__words_zh_dot_csv="old", figures__words_dot_svg="old")
    (tmp_path / "notes.txt").write_text("mine")
    with replaced(tmp_path) as new:
        write(new, index_dot_html="new", figures__words_dot_svg="new")
    assert files_in(tmp_path) == {"index.html": "new", "figures/words.svg": "new", "notes.txt": "mine"}


def test_a_failure_changes_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    with replaced(tmp_path / "out") as new:
        write(new, index_dot_html="old")

    def stopped(folder: Path) -> None:
        with replaced(folder) as new:
            (new / "index.html").write_text("half")
            raise KeyboardInterrupt

    for folder in (tmp_path / "out", tmp_path / "never" / "there"):
        with pytest.raises(KeyboardInterrupt):
            stopped(folder)
    assert files_in(tmp_path / "out") == {"index.html": "old"}
    assert os.listdir(tmp_path) == ["out"]


def test_of_two_writers_at_once_the_second_is_refused_and_the_first_keeps_its_work(tmp_path: Path) -> None:
    with replaced(tmp_path / "out") as new:
        write(new, index_dot_html="first")
        with pytest.raises(DataError, match="another process is writing it"), replaced(tmp_path / "out"):
            pass  # pragma: no cover
    assert files_in(tmp_path / "out") == {"index.html": "first"}
    (tmp_path / "out" / ".analysis-killed" / "tables").mkdir(parents=True)  # by a kill -9
    with replaced(tmp_path / "out") as new:
        write(new, index_dot_html="second")
    assert sorted(os.listdir(tmp_path / "out")) == ["index.html", "summary.json"]


@pytest.mark.parametrize("summary", ["not JSON", '{"made_by": "somebody"}'])
def test_a_folder_that_holds_other_things_is_refused(tmp_path: Path, summary: str) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    (tmp_path / "summary.json").write_text(summary)
    with pytest.raises(ConfigError, match=r"holds other things \(.*thesis.tex.*name a new folder"):
        require_folder(tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_a_summary_cannot_name_files_elsewhere_for_removal(tmp_path: Path) -> None:
    (tmp_path / "victim.csv").write_text("mine")
    (tmp_path / "out" / "tables").mkdir(parents=True)
    listed = ["../victim.csv", str(tmp_path / "victim.csv"), "tables/../../victim.csv", 3, None]
    (tmp_path / "out" / "summary.json").write_text(json.dumps({"made_by": MADE_BY, "files": listed}))
    with replaced(tmp_path / "out") as new:
        write(new, index_dot_html="page")
    assert (tmp_path / "victim.csv").read_text() == "mine"


def test_a_place_where_nothing_can_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "far" / "below"):
        with pytest.raises(ConfigError, match="name another one"):
            require_folder(folder)
    with pytest.raises((ConfigError, DataError), match="/proc"), replaced(Path("/proc/nowhere/out")):
        pass  # pragma: no cover
