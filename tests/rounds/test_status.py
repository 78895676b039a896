"""Status of rounds, and what the terminal shows of it."""

from __future__ import annotations

from pathlib import Path

from command_line import h2htalk_here
from rounds_made import answer, begin, crowd, split
from spreadsheet_rounds import fill, item, opened, workbook_path

from h2htalk.curation.show import show
from h2htalk.rounds.lifecycle import close_round, round_status
from h2htalk.rounds.status import ProgressRow, list_rounds, progress_table, rounds_table, status_lines
from h2htalk.text.tables import Table

CROWD = {"subtask": "Everyday reply", "keep": "Keep", "quality": "4: good"}


def lines(table: Table) -> list[list[str]]:
    """The printed lines of a table, split at white space."""
    return [line.split() for line in table.to_terminal().splitlines()]


def test_progress_by_language_and_annotator(tmp_path: Path) -> None:
    items = [item(n) for n in range(3)] + [item(n, "zh") for n in range(2)]
    round = opened(tmp_path, "crowd", items, annotators="anna,en;bert,en zh", overlap=1, name="mixed")
    (bert,) = (one for one in round_status(round.path).progress if (one.annotator, one.language) == ("bert", "zh"))
    assert bert == ProgressRow("bert", "zh", items=2, done=0, open=2, started=0, skipped=0)
    round = opened(tmp_path, "crowd", items[:3], annotators="anna,en;bert,en")
    fill(workbook_path(round, "bert"), {1: CROWD, 2: {"keep": "Keep"}, 3: {"skip": "yes"}})
    status = round_status(round.path)
    assert lines(progress_table(status)) == [
        ["annotator", "language", "items", "done", "open", "started", "skipped"],
        ["all", "en", "3", "0", "3", "1", "1"],
        ["anna", "en", "3", "0", "3", "0", "0"],
        ["bert", "en", "3", "1", "1", "1", "1"],
    ]
    assert list(status_lines(status)) == [
        "round: crowd round on spreadsheets, open",
        "items: 0 of 3 done",
        "assignments: 1 of 5 completed, 1 skipped; 4 new annotations collected",
        "1 item cannot reach the overlap: no further eligible annotator is left",
    ]
    # A list does not ask the platform, so it does not know of partly filled rows.
    listed = next(one for one in list_rounds(tmp_path) if one.name == str(round.path))
    assert not any(row.started for row in listed.progress)
    assert "started" not in lines(progress_table(listed))[0]
    assert lines(rounds_table([listed]))[1][1:] == ["crowd", "spreadsheets", "open", "3", "0", "1", "of", "5"]


def test_each_mistake_can_be_listed(tmp_path: Path) -> None:
    path = begin(tmp_path, "crowd", count=10, people=2, overlap=2)
    answer(path, lambda *_: crowd("perhaps"))
    assert len(h2htalk_here("round", "status", path).stderr.splitlines()) == 2
    done = h2htalk_here("round", "status", path, "--mistakes")
    assert done.returncode == 2
    assert done.stderr.count("'perhaps' is not a valid answer") == len(done.stderr.splitlines()) == 20


def test_a_round_shows_its_items_and_their_decisions(tmp_path: Path) -> None:
    path = begin(tmp_path, count=2)
    assert "no decision yet" in "\n".join(show(str(path)))
    answer(path, split("keep"))
    close_round(path)
    text = "\n".join(show(str(path)))
    assert "keep: keep (majority, 3 of 3)" in text
    assert "2 of 2 records" in text
