"""Opening rounds: refusals, interruptions, and changes by another process."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rounds_made import NAMES, answer, begin, expert, files_of, people, progress_of, refused, split
from spreadsheet_rounds import item, rows_of, write_rows

from h2htalk.data.files import write_jsonl
from h2htalk.errors import DataError, RoundError
from h2htalk.rounds.annotations import Annotation
from h2htalk.rounds.item_sources import ItemSource, read_items
from h2htalk.rounds.lifecycle import close_round, open_round, reopen_round, round_status
from h2htalk.rounds.round_folder import RoundFolder, guideline_files, now
from h2htalk.rounds.settings import RoundSpec, make_spec
from h2htalk.rounds.spreadsheets.platform import SpreadsheetPlatform
from h2htalk.rounds.status import list_rounds


def spec_of(folder: Path, numbers: range, name: str = "items") -> RoundSpec:
    write_jsonl(folder / f"{name}.jsonl", [item(n) for n in numbers])
    annotators = people(folder / "people.csv", *NAMES[:3])
    return make_spec("expert", str(folder / f"{name}.jsonl"), {"annotators": str(annotators)})


@pytest.mark.parametrize("same", [False, True])
def test_concurrent_openings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, same: bool) -> None:
    """The second overwrote the items and annotators of the first, which it had not seen."""
    first = spec_of(tmp_path, range(3))
    second = replace(first) if same else spec_of(tmp_path, range(10, 13), "others")
    path = tmp_path / "round"
    there: dict[str, bytes] = {}

    def slow(name: str, *given: Any) -> ItemSource:
        items = read_items(name, *given)
        if not there:
            there["lock"] = b""
            open_round(first, path)
            there.update(files_of(path))
        return items

    monkeypatch.setattr("h2htalk.rounds.lifecycle.read_items", slow)
    if same:
        assert open_round(second, path)[0].state == "open"
    else:
        with pytest.raises(RoundError, match="opened with another items"):
            open_round(second, path)
    there.pop("lock")
    assert files_of(path) == there
    answer(path, lambda *_: expert())
    close_round(path)


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


def test_status_after_an_interrupted_opening(tmp_path: Path) -> None:
    path = begin(tmp_path)
    (path / "events.jsonl").unlink()
    status = round_status(path)
    assert (status.state, progress_of(status)) == ("partly opened", {})
    assert "opening was interrupted; complete it with `h2htalk round open expert" in status.notes[-1]


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


def test_nobody_gets_an_item_that_they_annotated_without_an_assignment(tmp_path: Path) -> None:
    path = begin(tmp_path, overlap=2, people=3, count=1)
    round = RoundFolder(path)
    seated = {assignment.annotator for assignment in round.assignment_sets()[0].assignments}
    (other,) = (annotator.id for annotator in round.annotators() if annotator.id not in seated)
    round.add_annotations([Annotation(round.name, "en-item-0", other, "accuracy", 4, now())])
    answer(path, split("keep", "drop"))
    round_status(path)
    with pytest.raises(RoundError, match="no eligible annotator is left"):
        reopen_round(path)


def test_leaving_a_complete_closed_round_does_not_reopen_it(tmp_path: Path) -> None:
    path = begin(tmp_path, overlap=2, people=3)
    answer(path, lambda *_: expert())
    close_round(path)
    before = (path / "decisions.jsonl").read_bytes()
    reopen_round(path, without=["annalena"])
    assert RoundFolder(path).state == "closed"
    assert (path / "decisions.jsonl").read_bytes() == before
    assert not list(path.glob("*before*"))


def test_opening_a_closed_round_names_the_command_that_continues_it(tmp_path: Path) -> None:
    path = begin(tmp_path, overlap=2, people=3)
    answer(path, lambda *_: expert())
    close_round(path)
    before = files_of(path)
    for count in (4, 5):
        with pytest.raises(RoundError, match=rf"this round is closed; continue it with `h2htalk round reopen {path}`"):
            begin(tmp_path, overlap=2, people=3, count=count)
    assert files_of(path) == before


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


@pytest.mark.parametrize("read", ["assignment_sets", "annotators", "annotation_lines"])
def test_a_list_of_rounds_while_one_is_reopened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: str) -> None:
    """A list does not lock: it read the annotators, then assignments of one who was not yet among them."""
    path = begin(tmp_path, count=3, people=2, overlap=2)
    answer(path, lambda *_: expert(), only=("annalena",))
    round_status(path)
    more = people(tmp_path / "more.csv", "chen_wei")
    real, calls = getattr(RoundFolder, read), [0]

    def reads(folder: RoundFolder) -> object:
        calls[0] += 1
        if calls[0] == 1:
            reopen_round(path, without=["bogumil"], annotators=more)
            answer(path, lambda *_: expert(), only=("chen_wei",))
            round_status(path)
        return real(folder)

    monkeypatch.setattr(RoundFolder, read, reads)
    assert [one.state for one in list_rounds(tmp_path)] == ["open"]
    assert calls[0]


def test_guidelines_that_are_links_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "guidelines"
    folder.mkdir()
    for name in ("zh.md", "en.md", "notes.md"):
        (folder / name).write_text("Read this.")
    assert guideline_files(tmp_path) == [folder / "en.md", folder / "zh.md"]
    (folder / "zh.md").unlink()
    (folder / "zh.md").symlink_to("/etc/hostname")
    with pytest.raises(DataError, match=r"guidelines/zh\.md: must not be a symbolic link"):
        guideline_files(tmp_path)
    folder.rename(tmp_path / "real")
    folder.symlink_to(tmp_path / "real")
    with pytest.raises(DataError, match="guidelines: must not be a symbolic link"):
        guideline_files(tmp_path)
