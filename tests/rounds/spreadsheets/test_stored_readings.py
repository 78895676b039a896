"""Reading spreadsheets again: unchanged files are not parsed, and the time grows with the number of answers."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from rounds_made import answer, begin, crowd
from spreadsheet_rounds import collect, edited, fill, item, opened, workbook_path

from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.lifecycle import round_status
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.spreadsheets import returned_files, stored_readings

FULL = {"subtask": "Everyday reply", "keep": "Keep", "quality": "4: good"}


@pytest.fixture
def round(tmp_path: Path) -> RoundFolder:
    """Two workbooks: one is filled in, one has a mistake and a note."""
    made = opened(tmp_path, "safety", [item(n) for n in range(2)], annotators="anna,en;bert,en")
    row = {"perception": 5, "violation": "no"}
    fill(workbook_path(made), {1: row, 2: row | {"violations:privacy": "yes", "violation": "yes"}})
    fill(workbook_path(made, "bert"), {1: row | {"skip": "yes"}, 2: {"perception": "best"}})
    return made


def parsed(round: RoundFolder, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that a collection parses; what it collects must not differ from a first one's."""
    names: list[str] = []
    read = returned_files.read_xlsx

    def reading(path: Path, *given: object) -> object:
        names.append(path.name)
        return read(path, *given)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(returned_files, "read_xlsx", reading)
        collected = collect(round)
    (round.private / stored_readings.FILE).unlink()
    assert collect(round) == collected
    return names


def test_unchanged_files_are_not_parsed(round: RoundFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """20 workbooks were parsed again for every status."""
    assert len(collect(round).annotations) == 6
    assert parsed(round, monkeypatch) == []
    fill(workbook_path(round), {1: {"perception": 1}})
    assert parsed(round, monkeypatch) == ["anna.xlsx"]
    workbook_path(round, "bert").rename(workbook_path(round, "bert (1)"))
    assert parsed(round, monkeypatch) == ["bert (1).xlsx"]
    with edited(workbook_path(round)) as book:
        book["Session 1"]["E3"].value = "none"
    assert parsed(round, monkeypatch) == ["anna.xlsx"]


def test_files_are_parsed_again_after_a_change_of_the_round(
    round: RoundFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    collect(round)
    round.write_records("private/annotators.jsonl", [*round.annotators(), Annotator("0" * 12, "carl", ("en",))])
    assert len(parsed(round, monkeypatch)) == 2
    monkeypatch.setattr(stored_readings, "__version__", "99")
    assert len(parsed(round, monkeypatch)) == 2


@pytest.mark.parametrize("content", ["", "{}", '{"key": 1', "\0"])
def test_a_damaged_store_is_made_again(round: RoundFolder, content: str) -> None:
    expected = collect(round)
    path = round.private / stored_readings.FILE
    path.write_text(content)
    assert collect(round) == expected
    assert path.read_text() != content
    assert path.stat().st_mode & 0o077 == 0


def test_a_reading_of_a_file_that_is_gone_is_dropped(round: RoundFolder) -> None:
    collect(round)
    workbook_path(round).unlink()
    collect(round)
    assert "anna" not in (round.private / stored_readings.FILE).read_text()


def test_the_time_grows_with_the_number_of_answers(tmp_path: Path) -> None:
    """All stored answers were searched for each row: the second status took six times as long as the first."""

    def seconds() -> float:
        start = time.process_time()
        round_status(path)
        return time.process_time() - start

    path = begin(tmp_path, "crowd", count=300, people=6, overlap=6)
    answer(path, lambda *_: crowd())
    first = seconds()
    for file in (path / "spreadsheets").glob("*.xlsx"):
        fill(file, {1: {"quality": "3"}})
    assert seconds() < 1.5 * first + 0.2


def test_an_empty_file_is_a_mistake(round: RoundFolder) -> None:
    workbook_path(round).write_bytes(b"")
    (mistake, *_) = collect(round).mistakes
    assert mistake.endswith("the file is empty; ask for it again")
