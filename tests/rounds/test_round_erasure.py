"""Items that are erased and annotators whose answers are removed: nothing of them counts, everything else does."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from h2htalk.data.erasure.folder_kinds import ErasedIds, erase
from h2htalk.data.files import write_jsonl
from h2htalk.errors import RoundError
from h2htalk.rounds.lifecycle import (
    close_round,
    open_round,
    remove_annotator,
    reopen_round,
    round_status,
)
from h2htalk.rounds.outcome import read_outcome
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import Care
from support.byte_search import files_with
from support.command_line import h2htalk_here
from support.curations import finished
from support.doubles.argilla_double import DATASET, ITEMS, SAYS, ArgillaDouble, named, spec_in
from support.doubles.argilla_double import opened as opened_on_server
from support.kills import interrupted_at
from support.rounds import (
    NAMES,
    adjudicated,
    answer,
    begin,
    candidate,
    decisions,
    events,
    expert,
    files_of,
    people,
    progress_of,
    spec_of,
    split,
)
from support.spreadsheet_rounds import edited, fill, keys_of, places, session_of, workbook_path

WORDS = "cinnamon porridge"
EMILY = ErasedIds(frozenset({"d-2", "p-2"}))


def said(number: int) -> str:
    return (
        f"I burnt the {WORDS}, again." if number == 2 else f"I watered the tomatoes {number} times."
    )


def made(number: int, *, crisis: bool = False, **more: Any) -> dict[str, Any]:
    """A candidate of dialogue `d-N` and person `p-N`."""
    provenance = {"source": "made", "dialogue": f"d-{number}", "person": f"p-{number}"}
    turns = [{"role": "user", "content": said(number)}]
    record = candidate(f"d-{number}:dialogue_base", "accept") | {"provenance": provenance, **more}
    scenario = record["scenario"] | {
        "provenance": provenance,
        "subtask": "dialogue_base",
        "inputs": {"history": turns},
    }
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


def opened(
    folder: Path, count: int = 4, kind: str = "expert", people: int = 2, **more: Any
) -> Path:
    """An open round on candidates 0 to `count`; the third is Emily's, and about a crisis."""
    workspace = finished(folder / "work", "review", [made(n, crisis=n == 2) for n in range(count)])
    care = {"care": {"session_items": 20, "crisis_share": 0.9}}
    open_round(spec_of(kind, workspace.path, people, **care, **more), folder / kind)
    return folder / kind


def test_a_closed_round_loses_the_item_and_nothing_else(tmp_path: Path) -> None:
    closed = opened(tmp_path)
    answer(closed, typed)
    close_round(closed)
    folder = RoundFolder(closed)
    before = decisions(closed)
    annotations = folder.annotations()
    paid = (closed / "private" / "payment.csv").read_text()
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
    folder = RoundFolder(path)
    spec = RoundFolder(path).spec()
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
    assert [
        note
        for note in status.notes
        if "bogumil.xlsx: it held items that were erased since" in note
    ]
    assert (status.mistakes, status.completed, files_with(path, WORDS)) == ((), 6, [])
    open_round(spec, path)  # although its workspace still holds the item
    assert (round_status(path).items, files_with(path, WORDS)) == (3, [])
    close_round(path)
    assert len(read_outcome(path).annotations) == 2 * 3 * 5


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
def test_workbooks_that_annotators_changed_hold_nothing_of_an_erased_item(
    tmp_path: Path, change: str
) -> None:
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
        assert (result.unfinished, "not searched for erased items" in result.messages[-1]) == (
            True,
            True,
        )
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
    write_jsonl(
        source, [{"id": name, "language": "en", "prompt": name} for name in ("d-2", "d-22", "x")]
    )
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


def test_a_server_that_does_not_answer(
    server: ArgillaDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files lose the item at once, the server when it is back."""
    path = on_server(tmp_path)
    url = server.url
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


WHY = "the same answer to everything"
RESULTS = ("decisions.jsonl", "agreement.json", "annotator_statistics.csv")


def spammed(folder: Path, **given: Any) -> Path:
    """An open round of three annotators an item: two keep all but one, bogumil drops every item."""
    path = begin(folder, **{"overlap": 3, "people": 3, **given})

    def typed(name: str, who: str) -> dict[str, str]:
        return (
            expert("drop", "1")
            if who == "bogumil"
            else expert("drop" if name == "en-item-0" else "keep", "4")
        )

    answer(path, typed)
    return path


def id_of(path: Path, name: str = "bogumil") -> str:
    return next(one.id for one in RoundFolder(path).annotators() if one.name == name)


def means(path: Path) -> set[tuple[float, int]]:
    """Mean accuracy and number of ratings of the items."""
    return {
        (r["label"], r["votes"]) for (_, name), r in decisions(path).items() if name == "accuracy"
    }


def results(path: Path) -> dict[str, str]:
    return {name: (path / name).read_text() for name in RESULTS}


def test_removed_answers_do_not_decide(tmp_path: Path) -> None:
    """After `reopen --without bogumil` his answers still decided."""
    path = spammed(tmp_path)
    round_status(path)
    lines = (path / "annotations.jsonl").read_bytes()
    status, messages = remove_annotator(path, "bogumil", why=WHY)
    assert messages == ["the annotations of bogumil on 4 items do not count any more"]
    assert (status.completed, status.missing, len(status.exhausted)) == (8, {}, 4)
    assert "bogumil" not in " ".join(progress_of(status))
    (event,) = events(path, "removed")
    assert (event["annotator"], event["why"], event["closed"]) == (id_of(path), WHY, False)
    close_round(path)
    assert means(path) == {(4.0, 2)}
    assert json.loads((path / "agreement.json").read_text())["keep"]["alpha"] == 1.0
    assert id_of(path) not in (path / "annotator_statistics.csv").read_text()
    with (path / "private" / "payment.csv").open() as file:
        paid = {row["annotator"]: row["items completed"] for row in csv.DictReader(file)}
    assert paid == dict.fromkeys(NAMES[:3], "4")
    assert (path / "annotations.jsonl").read_bytes() == lines
    outcome = read_outcome(path)
    assert id_of(path) not in {annotator for _, annotator, _ in outcome.annotations}


def test_a_closed_round_is_decided_anew(tmp_path: Path) -> None:
    path = spammed(tmp_path, people=4)
    answer(path, lambda *_: expert())
    close_round(path)
    before = results(path)
    votes = means(path)
    status, messages = remove_annotator(path, "bogumil", why=WHY)
    assert (status.state, RoundFolder(path).state) == ("closed", "closed")
    assert messages[1].startswith(
        "the decisions were made anew; earlier results were renamed to decisions.before-2"
    )
    assert means(path) != votes
    assert all(label == 4.0 for label, _ in means(path))
    assert (path / "decisions.before-2.jsonl").read_text() == before["decisions.jsonl"]
    read_outcome(path)
    close_round(path)
    assert results(path)["decisions.jsonl"] != before["decisions.jsonl"]
    # Undone, the results are those of before; nothing is overwritten.
    status, messages = remove_annotator(path, "bogumil", undo=True)
    assert messages[0] == "the annotations of bogumil on 3 items count again"
    assert results(path) == before
    assert len(list(path.glob("decisions.before*"))) == 2
    assert events(path, "restored")[0]["annotator"] == id_of(path)
    read_outcome(path)


def test_a_removal_can_be_undone_in_an_open_round(tmp_path: Path) -> None:
    """Also if the list of annotators was written in between, and somebody had left before."""
    path = spammed(tmp_path, people=4, overlap=4)
    reopen_round(path, without=["chen_wei"])
    listed = RoundFolder(path).annotators()
    for name in ("bogumil", "chen_wei"):
        remove_annotator(path, name, why=WHY)
    reopen_round(path, annotators=people(tmp_path / "more.csv", "emeka_o", "bogumil"))
    assert {one.name for one in RoundFolder(path).annotators() if one.active} == {
        "annalena",
        "daraigh",
        "emeka_o",
    }
    for name in ("bogumil", "chen_wei"):
        remove_annotator(path, name, undo=True)
    assert RoundFolder(path).annotators()[:4] == listed
    assert round_status(path).completed == 16


# Writes: four renamed files, the event, and the results.
@pytest.mark.parametrize("write", [0, 4, 5])
@pytest.mark.parametrize("undo", [False, True])
def test_an_interrupted_removal_can_be_repeated(tmp_path: Path, write: int, undo: bool) -> None:
    path = spammed(tmp_path)
    close_round(path)
    kept = (path / "decisions.jsonl").read_bytes()
    if undo:
        remove_annotator(path, "bogumil", why=WHY)
    interrupted_at(write, partial(remove_annotator, path, "bogumil", why=WHY, undo=undo))
    remove_annotator(path, "bogumil", why=WHY, undo=undo)
    assert means(path) == ({(3.0, 3)} if undo else {(4.0, 2)})
    assert (path / "decisions.before-2.jsonl").read_bytes() == kept
    read_outcome(path)
    again = files_of(path)
    remove_annotator(path, "bogumil", why=WHY, undo=undo)
    assert files_of(path) == again


def test_refusals(tmp_path: Path) -> None:
    path = spammed(tmp_path)
    before = files_of(path)
    with pytest.raises(RoundError, match="unknown annotator nobody; choose from annalena"):
        remove_annotator(path, "nobody", why=WHY)
    with pytest.raises(RoundError, match="give the reason with --why"):
        remove_annotator(path, "bogumil", why=" ")
    assert files_of(path) == before
    done = h2htalk_here("round", "remove-annotator", path, "bogumil", "--why", WHY)
    assert (done.returncode, "annotations of bogumil on 0 items" in done.stdout) == (0, True)
    assert "bogumil" not in (path / "events.jsonl").read_text()


def test_quality_warnings_before_closing(tmp_path: Path) -> None:
    """They were written when a round was closed, when it is too late to ask others."""
    path = begin(tmp_path, overlap=3, people=3, count=30)
    answer(
        path,
        lambda name, who: expert("drop" if who == "bogumil" or name == "en-item-0" else "keep"),
    )
    warnings = [
        note
        for note in round_status(path).notes
        if note.startswith("look at the answers of bogumil: ")
    ]
    assert any("slight agreement: on 30 items, keep agrees" in warning for warning in warnings)
    close_round(path)
    assert (
        "slight agreement: on 30 items, keep agrees"
        in (path / "annotator_statistics.csv").read_text()
    )
    assert set(warnings) <= set(round_status(path).notes)
    remove_annotator(path, "bogumil", why=WHY)
    assert not [
        note for note in round_status(path).notes if "look at the answers of bogumil" in note
    ]


def test_on_a_server(server: ArgillaDouble, tmp_path: Path) -> None:
    """The server counts a removed annotator's responses, so it offers their items to nobody else."""
    round = opened_on_server(tmp_path)
    for name in ("ann", "cem"):
        server.respond(DATASET, named(round, "a"), name, **SAYS)
    server.respond("round-set1-zh-01", named(round, "d"), "cem", **SAYS)
    assert round_status(round.path).completed == 3
    remove_annotator(round.path, "cem", why=WHY)
    # Neither a changed nor a new response, nor an invalid one counts.
    server.respond(DATASET, named(round, "a"), "cem", **{**SAYS, "keep": "drop"})
    server.respond(DATASET, named(round, "b"), "cem", **SAYS)
    server.respond(DATASET, named(round, "c </script>"), "cem", **{**SAYS, "quality": 9})
    status = round_status(round.path)
    assert (status.new, status.completed, status.by_item["a"], status.mistakes) == (0, 1, 1, ())
    assert not [note for note in status.notes if "annotators who left" in note]
    reopen_round(round.path)
    second = server.dataset("round-set2-en-01")["records"]
    assert named(round, "a") in second
    server.respond("round-set2-en-01", named(round, "a"), "ben", **SAYS)
    assert round_status(round.path).by_item["a"] == 2
    remove_annotator(round.path, "cem", undo=True)
    status = round_status(round.path)
    assert (status.by_item["a"], status.by_item["b"], status.by_item["d"]) == (3, 1, 1)
