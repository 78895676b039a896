"""What the terminal says of a round."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from spreadsheet_rounds import fill, item, opened, stems, workbook_path

from h2htalk.rounds.closing import close_round
from h2htalk.rounds.status import Status, list_rounds, status
from h2htalk.rounds.terminal import annotators_table, decisions_table

CROWD = {"subtask": "Everyday reply", "keep": "Keep", "quality": "4: good"}


def lines(table: Any) -> list[list[str]]:
    """A table as it is printed, its rows cut into words."""
    console = Console(width=200, force_terminal=False)
    with console.capture() as caught:
        console.print(table)
    return [line.split() for line in caught.get().splitlines()]


def test_a_annotator_s_row_says_what_they_were_given_and_what_lies_half_filled(tmp_path: Path) -> None:
    round = opened(tmp_path, "crowd", [item(n) for n in range(3)], annotators="anna,en;bert,en")
    fill(workbook_path(round, "bert"), {1: CROWD, 2: {"keep": "Keep"}, 3: {"skip": "yes"}})
    found = status(round.path)
    assert (found.given, found.started) == ({"anna": 3, "bert": 3}, {"bert": 1})
    assert lines(annotators_table(found)) == [
        ["annotator", "given", "answered", "half", "filled", "skipped"],
        ["anna", "3", "0"],
        ["bert", "3", "1", "1", "1"],
    ]
    # A look that asks no platform knows of no half-filled rows.
    assert [list(one.started) for one in list_rounds(tmp_path)] == [[]]


def test_annotators_who_were_given_nothing_take_one_row() -> None:
    """A list of ten thousand people, of whom a round asked twelve, filled the screen ten thousand lines long."""
    who = {f"v{n}": (0, 0) for n in range(1_200)} | {"ann": (0, 0), "bo": (0, 1)}
    found = Status(
        "r",
        "crowd",
        "spreadsheets",
        "open",
        1,
        1,
        0,
        0,
        0,
        who,
        {"a": 0},
        {"a": 1},
        given={"ann": 2, "cy": 1},
    )
    assert lines(annotators_table(found))[1:] == [
        ["ann", "2", "0"], ["bo", "0", "1"], ["1,200", "given", "nothing"],
    ]  # fmt: skip


def test_why_there_is_no_alpha_fits_its_column(tmp_path: Path) -> None:
    round = opened(tmp_path, "crowd", [item(1)], annotators="anna,en;bert,en")
    for stem in stems(round):
        fill(workbook_path(round, stem), {1: CROWD})
    _, settled = close_round(round.path)
    told = lines(decisions_table(round.path, settled))
    assert [row[-3:] for row in told[1:]] == [["one", "label", "only"]] * 3
    assert "agreement cannot be told" in (round.path / "agreement.json").read_text(encoding="utf-8")
