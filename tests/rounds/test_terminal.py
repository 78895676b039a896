"""Lines and tables of rounds on the terminal."""

from __future__ import annotations

from pathlib import Path

from spreadsheet_rounds import fill, item, opened, stems, workbook_path

from h2htalk.rounds.lifecycle import close_round, round_status
from h2htalk.rounds.status import ProgressRow, Status, list_rounds
from h2htalk.rounds.terminal import decisions_table, progress_table, rounds_table, status_lines
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


def test_annotators_without_items_share_one_row() -> None:
    """A list of ten thousand annotators, of whom twelve had items, filled ten thousand lines."""
    rows = (ProgressRow("", "en", 1, 0, 1, 0, 0), ProgressRow("ann", "en", 2, 0, 2, 0, 0))
    table = lines(progress_table(Status("r", progress=rows, idle=1_200)))
    assert table[-1] == ["1,200", "annotators", "without", "items"]
    assert len(table) == 4


def test_annotators_of_a_server_and_those_who_left_have_no_number_of_items() -> None:
    table = lines(progress_table(Status("r", progress=(ProgressRow("ann (left)", "zh", None, 3, None, 0, 1),))))
    assert table[1] == ["ann", "(left)", "zh", "-", "3", "-", "1"]


def test_the_reason_for_undefined_alpha_fits_its_column(tmp_path: Path) -> None:
    round = opened(tmp_path, "crowd", [item(1)], annotators="anna,en;bert,en")
    for stem in stems(round):
        fill(workbook_path(round, stem), {1: CROWD})
    _, decisions = close_round(round.path)
    table = lines(decisions_table(round.path, decisions))
    assert [row[-3:] for row in table[1:]] == [["one", "label", "only"]] * 3
    assert "agreement is undefined" in (round.path / "agreement.json").read_text(encoding="utf-8")
