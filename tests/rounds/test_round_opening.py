"""Opening rounds: refusals, interruptions, and changes by another process."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from rounds_made import answer, begin, expert, progress_of, refused
from spreadsheet_rounds import item, rows_of, write_rows

from h2htalk.data.files import write_jsonl
from h2htalk.errors import RoundError
from h2htalk.rounds.lifecycle import close_round, open_round, round_status
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import make_spec
from h2htalk.rounds.spreadsheets.platform import SpreadsheetPlatform


def test_a_refused_opening_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It left a started round; with other settings it was refused, and it had no annotators."""
    refused(tmp_path)
    path = tmp_path / "round"
    assert not path.exists()

    def fails(self: SpreadsheetPlatform, folder: RoundFolder) -> None:
        raise RoundError("no server")

    with monkeypatch.context() as patch:
        patch.setattr(SpreadsheetPlatform, "check", fails)
        for notes in ((), ("notes.txt",)):
            for name in notes:
                path.mkdir()
                (path / name).write_text("mine")
            with pytest.raises(RoundError, match="no server"):
                begin(tmp_path, overlap=3, people=3)
            assert [one.name for one in path.glob("*")] == list(notes)
    begin(tmp_path, overlap=3, people=3)
    assert len(progress_of(round_status(path))) == 3


@pytest.mark.parametrize(
    ("kind", "fields", "refused"),
    [
        ("safety", {"response": "   "}, True),
        ("adjudication", {"response": " \n"}, True),
        ("safety", {"response": "", "labels": ["keep", "drop"]}, True),
        ("safety", {"response": "Good.", "labels": ["keep", "drop"]}, False),
        ("adjudication", {"response": "", "labels": ["keep", "drop"]}, False),
    ],
)
def test_responses_to_judge_are_required(tmp_path: Path, kind: str, fields: dict[str, Any], refused: bool) -> None:
    """A blank response was accepted, and labels excused a safety round from responses."""
    write_jsonl(tmp_path / "items.jsonl", [item(1, **fields)])
    spec = make_spec(kind, str(tmp_path / "items.jsonl"), {})
    if not refused:
        assert open_round(spec, tmp_path / "round")[0].state == "open"
        return
    with pytest.raises(RoundError, match="en-item-1 has no response"):
        open_round(spec, tmp_path / "round")
    assert not (tmp_path / "round").exists()


# --- Changes by another process -----------------------------------------------------------------------------------


def before_the_lock(monkeypatch: pytest.MonkeyPatch, other: Callable[[], object]) -> None:
    """Let another process act once, just before a call locks the round."""
    real, due = RoundFolder.locked, [other]

    def locked(folder: RoundFolder) -> AbstractContextManager[None]:
        if due:
            due.pop()()
        return real(folder)

    monkeypatch.setattr(RoundFolder, "locked", locked)


def test_a_round_that_is_closed_before_status_locks_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`status` had read that the round was open, and stored annotations after its closing."""
    path = begin(tmp_path, count=2, overlap=2)
    answer(path, lambda *_: expert())
    round_status(path)

    def closed_and_changed() -> None:
        close_round(path)
        file = path / "spreadsheets" / "annalena.xlsx"
        write_rows(file, [row | {"keep": "drop"} for row in rows_of(file)])

    before_the_lock(monkeypatch, closed_and_changed)
    status = round_status(path)
    assert (status.state, status.new) == ("closed", 0)
    close_round(path)
