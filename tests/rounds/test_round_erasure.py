"""Erase items from rounds: nothing of them is left, everything else still verifies and counts."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from argilla_double import ITEMS, SAYS, ArgillaDouble, named, spec_in
from byte_search import files_with
from curation_made import finished
from rounds_made import NAMES, adjudicated, answer, candidate, decisions, events, expert, spec_of, split
from spreadsheet_rounds import edited, fill, keys_of, places, session_of, workbook_path

from h2htalk.data.erasure.folder_kinds import ErasedIds, erase
from h2htalk.data.files import write_jsonl
from h2htalk.rounds.lifecycle import close_round, open_round, round_status
from h2htalk.rounds.outcome import read_outcome
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import Care

WORDS = "cinnamon porridge"
EMILY = ErasedIds(frozenset({"d-2", "p-2"}))


def said(number: int) -> str:
    return f"I burnt the {WORDS}, again." if number == 2 else f"I watered the tomatoes {number} times."


def made(number: int, *, crisis: bool = False, **more: Any) -> dict[str, Any]:
    """A candidate of dialogue `d-N` and person `p-N`."""
    provenance = {"source": "made", "dialogue": f"d-{number}", "person": f"p-{number}"}
    turns = [{"role": "user", "content": said(number)}]
    record = candidate(f"d-{number}:dialogue_base", "accept") | {"provenance": provenance, **more}
    scenario = record["scenario"] | {"provenance": provenance, "subtask": "dialogue_base", "inputs": {"history": turns}}
    if crisis:
        scenario["metadata"] = {"safety": {"risk": "high", "tags": ["crisis.ideation"]}}
    return record | {"scenario": scenario}


def item(number: int) -> str:
    return f"d-{number}:dialogue_base"


GONE = item(2)


def typed(name: str, annotator: str) -> Mapping[str, str]:
    """Everybody keeps all items but the second, and comments on Emily's."""
    comment = f"Not everybody burns {WORDS}." if name == GONE else ""
    return expert("keep" if name != item(1) else "drop") | {"comment": comment}


def opened(folder: Path, count: int = 4, kind: str = "expert", people: int = 2, **more: Any) -> Path:
    """An open round on candidates 0 to `count`; the third is Emily's, and about a crisis."""
    workspace = finished(folder / "work", "review", [made(n, crisis=n == 2) for n in range(count)])
    care = {"care": {"session_items": 20, "crisis_share": 0.9}}
    open_round(spec_of(kind, workspace.path, people, **care, **more), folder / kind)
    return folder / kind


def test_a_closed_round_loses_the_item_and_nothing_else(tmp_path: Path) -> None:
    closed = opened(tmp_path)
    answer(closed, typed)
    close_round(closed)
    folder, before = RoundFolder(closed), decisions(closed)
    annotations, paid = folder.annotations(), (closed / "private" / "payment.csv").read_text()
    assert len(files_with(closed, WORDS)) >= 6
    sheet = closed / "spreadsheets" / "annalena.xlsx"
    sent = sheet.read_bytes()
    result = erase(closed, EMILY)
    assert (result.removed, result.items, result.unfinished) == (1, frozenset({GONE}), False)
    assert files_with(closed, WORDS) == []
    assert "annalena, bogumil: ask them to delete their copies" in result.messages[0]
    outcome = read_outcome(closed)
    assert {key: (one.label, one.rule) for key, one in outcome.decisions.items()} == {
        key: (one["label"], one["rule"]) for key, one in before.items() if key[0] != GONE
    }
    assert outcome.annotations == {key: one for key, one in annotations.items() if key[0] != GONE}
    assert sorted(outcome.sources) == [item(0), item(1), item(3)]
    (event,) = events(closed, "erased")
    assert event["items"] == 1
    # Work that was done stays paid.
    close_round(closed)
    assert (closed / "private" / "payment.csv").read_text() == paid
    assert erase(closed, EMILY).removed == 0
    # A spreadsheet that comes back into a closed round: nobody read it, so its rows stayed.
    assert "loses these items with the next `h2htalk round status" in result.messages[-1]
    sheet.write_bytes(sent)
    assert files_with(closed, WORDS) == ["spreadsheets/annalena.xlsx"]
    assert round_status(closed).state == "closed"
    assert files_with(closed, WORDS) == []
    read_outcome(closed)


def test_workbooks_of_all_kinds(tmp_path: Path) -> None:
    """Filled-in workbooks, a copy that was renamed, one that comes back later, and a file of another program."""
    path = opened(tmp_path)
    folder, spec = RoundFolder(path), RoundFolder(path).spec()
    anna, bogumil = (workbook_path(folder, name) for name in NAMES[:2])
    for book in (anna, bogumil):
        at = places(folder, book.stem)
        fill(book, {at[item(n)]: typed(item(n), "") for n in range(4)})
    shutil.copy(bogumil, tmp_path / "sent.xlsx")
    with edited(bogumil) as book:
        for sheet in book.worksheets:
            for row in sheet.iter_rows():
                for cell in row:
                    cell.hyperlink = None  # as some programs do
    bogumil.rename(bogumil.with_name("Bogumil's answers.xlsx"))
    bogumil.with_name("notes.docx").write_bytes(b"my notes")
    bogumil.with_name("broken.xlsx").write_bytes(b"PK")
    result = erase(path, EMILY)
    assert files_with(path, WORDS) == []
    assert result.unfinished
    assert "ask them to delete their copies" in result.messages[0]
    assert "not searched for erased items: " in result.messages[1]
    for name in ("broken.xlsx", "notes.docx"):
        assert name in result.messages[1]
        bogumil.with_name(name).unlink()
    assert not erase(path, EMILY).unfinished
    status = round_status(path)
    assert (status.mistakes, status.completed) == ((), 6)
    bogumil.with_name("Bogumil's answers.xlsx").unlink()
    shutil.copy(tmp_path / "sent.xlsx", bogumil)
    assert files_with(path, WORDS) == ["spreadsheets/bogumil.xlsx"]
    status = round_status(path)
    assert [note for note in status.notes if "bogumil.xlsx: it held items that were erased since" in note]
    assert (status.mistakes, status.completed, files_with(path, WORDS)) == ((), 6, [])
    open_round(spec, path)  # although its workspace still holds the item
    assert (round_status(path).items, files_with(path, WORDS)) == (3, [])
    close_round(path)
    assert len(read_outcome(path).annotations) == 2 * 3 * 4


def moved_text(book: Any, other: int) -> None:
    """The erased item's text is on sheets that people add, beside the table, and in a comment on another item."""
    sheet, row = session_of(book, other)
    book.create_sheet("Notes")["C7"] = f"- {said(2)}"
    book["Guidelines"]["B2"] = sheet.cell(row, 30).value = said(2)
    sheet.cell(row, keys_of(sheet).index("comment") + 1).value = f"Is that like: {said(2)}?"


def renumbered(book: Any, numbers: list[int | None]) -> None:
    for sheet in book.worksheets:
        if "skip" in keys_of(sheet) or sheet.title == "Texts":
            for row in range(2, sheet.max_row + 1):
                cell = sheet.cell(row, 1)
                cell.value = numbers[cell.value - 1] if isinstance(cell.value, int) else cell.value


@pytest.mark.parametrize("change", ["moved", "sorted", "emptied", "codes", "no codes"])
def test_workbooks_that_annotators_changed_hold_nothing_of_an_erased_item(tmp_path: Path, change: str) -> None:
    """Text stayed where the numbers were sorted or emptied, or on a sheet of notes, and the erasure was finished."""
    path = opened(tmp_path, people=1)
    book_path = workbook_path(RoundFolder(path), NAMES[0])
    at = places(RoundFolder(path), NAMES[0])
    fill(book_path, {at[item(n)]: typed(item(n), "") for n in range(4)})
    with edited(book_path) as book:
        if change == "moved":
            moved_text(book, at[item(1)])
        elif change == "no codes":
            del book["codes"]
        elif change == "codes":
            for row in range(2, 6):
                book["codes"].cell(row, 1).value = None
        else:
            renumbered(book, [4, 3, 2, 1] if change == "sorted" else [None] * 4)
    result = erase(path, EMILY)
    if "codes" in change:
        assert (result.unfinished, "not searched for erased items" in result.messages[-1]) == (True, True)
        return
    assert (files_with(path, WORDS), result.unfinished) == ([], False)
    status = round_status(path)
    assert status.completed == (3 if change == "moved" else 0)
    assert len(status.mistakes) == (change != "moved")


def test_ties_and_their_adjudication(tmp_path: Path) -> None:
    """The adjudication of the other tie still fits its round."""
    path = opened(tmp_path)
    tied = {name: split("keep", "drop") for name in (GONE, item(3))}
    answer(path, lambda name, who: tied[name](name, who) if name in tied else expert())
    close_round(path)
    other = adjudicated(path, tmp_path / "ties", lambda *_: {"label": "keep", "comment": WORDS})
    close_round(path, adjudication=other)
    assert "adjudication" in (path / "decisions.jsonl").read_text()
    items = erase(path, EMILY).items
    assert erase(other, EMILY).items == {f"{GONE}#keep"}
    assert files_with(path, GONE) == files_with(other, GONE) == ["private/erased.jsonl"]
    close_round(path, adjudication=other)
    assert read_outcome(path).decisions[item(3), "keep"].rule == "adjudication"
    assert items == {GONE}


def test_references_of_others_and_items_without_a_source(tmp_path: Path) -> None:
    """An item goes where a reference is the erased person's; a line of a file is known by its id."""
    reference = {"text": WORDS, "origin": "answer:d-2", "provenance": {"dialogue": "d-2"}}
    records = [made(n) for n in (0, 1)]
    records[0]["references"].append(reference)
    workspace = finished(tmp_path / "work", "review", records)
    open_round(spec_of("crowd", workspace.path, 1), tmp_path / "crowd")
    assert erase(tmp_path / "crowd", EMILY).items == {item(0)}
    source = tmp_path / "items.jsonl"
    write_jsonl(source, [{"id": name, "language": "en", "prompt": name} for name in ("d-2", "d-22", "x")])
    open_round(spec_of("crowd", source, 1), tmp_path / "plain")
    result = erase(tmp_path / "plain", replace(EMILY, items=frozenset({"x"})))
    assert result.items == {"d-2", "x"}
    assert f"{source}: the round was opened from it" in result.messages[0]


def on_server(base: Path) -> Path:
    """An open round with one item a session."""
    items = [ITEMS[0] | {"prompt": f"I burnt the {WORDS}."}, *ITEMS[1:]]
    open_round(spec_in(base, items, care=Care(session_items=1, crisis_share=1.0)), base / "round")
    return base / "round"


def texts(server: ArgillaDouble) -> str:
    return str(server.datasets)


def test_records_and_responses_leave_the_server(server: ArgillaDouble, tmp_path: Path) -> None:
    path = on_server(tmp_path)
    folder = RoundFolder(path)
    before = {one["name"]: set(one["records"]) for one in server.datasets.values()}
    (name,) = [name for name, records in before.items() if named(folder, "a") in records]
    server.respond(name, named(folder, "a"), "ann", **SAYS)
    round_status(path)
    assert WORDS in texts(server)
    result = erase(path, ErasedIds(frozenset({"a"})))
    assert "1 record deleted with all responses" in result.messages[1]
    assert WORDS not in texts(server)
    assert files_with(path, WORDS) == []
    # Other sessions keep their numbers, and with them their datasets.
    after = {one["name"]: set(one["records"]) for one in server.datasets.values()}
    assert after == {one: records - {named(folder, "a")} for one, records in before.items()}
    for other in set(before) - {name}:
        for record in before[other]:
            server.respond(other, record, "cem", **SAYS)
    status = round_status(path)
    assert (status.mistakes, status.notes, status.completed) == ((), (), 3)
    open_round(RoundFolder(path).spec(), path)
    assert WORDS not in texts(server)


def test_a_server_that_does_not_answer(server: ArgillaDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files lose the item at once, the server when it is back."""
    path, url = on_server(tmp_path), server.url
    monkeypatch.setenv("ARGILLA_API_URL", "http://127.0.0.1:9")
    gone = ErasedIds(frozenset({"a"}))
    result = erase(path, gone)
    assert result.unfinished
    assert "does not answer" in result.messages[1]
    assert files_with(path, WORDS) == []
    monkeypatch.setenv("ARGILLA_API_URL", url)
    assert WORDS in texts(server)
    result = erase(path, gone)
    assert (result.removed, result.items, result.unfinished) == (0, {"a"}, False)
    assert WORDS not in texts(server)
