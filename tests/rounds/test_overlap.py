"""Items that cannot reach the overlap, and pilots, in which everybody gets every item."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from command_line import h2htalk_here
from rounds_made import answer, begin, crowd, decisions, events, expert
from spreadsheet_rounds import item, rows_of, spreadsheets

from h2htalk.data.files import write_jsonl
from h2htalk.errors import RoundError
from h2htalk.rounds.annotators import read_annotators
from h2htalk.rounds.lifecycle import close_round, open_round, round_status
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import make_spec
from h2htalk.rounds.status import status_lines


def test_a_skip_does_not_prevent_closing_if_everybody_annotates(tmp_path: Path) -> None:
    """One skip blocked closing, because there was nobody else to ask."""
    path = begin(tmp_path, overlap=4, people=4)
    answer(path, lambda *pair: {"skip": "yes"} if pair == ("en-item-1", "bogumil") else expert())
    status = round_status(path)
    assert (status.missing, status.exhausted, status.items_done) == ({}, {"en-item-1": 1}, 4)
    assert "1 item cannot reach the overlap: no further eligible annotator is left" in list(status_lines(status))
    closed, _ = close_round(path)
    assert "1 item has fewer annotations than the overlap of 4: 3 (1 item)" in closed.notes
    event = events(path, "closed")[-1]
    assert (event["incomplete"], event["missing"], event["below_overlap"]) == (False, 0, {"3": 1})
    assert [decisions(path)[f"en-item-{n}", "keep"]["votes"] for n in range(4)] == [4, 3, 4, 4]


def with_crises(folder: Path, annotators: int, decline: int, **given: Any) -> Path:
    """A round of ten items, two about a crisis, that some annotators decline."""
    folder.mkdir()
    write_jsonl(folder / "items.jsonl", [item(n, crisis=n < 2) for n in range(10)])
    lines = [f"v{n:02},en,{'no' if n < decline else 'yes'}" for n in range(annotators)]
    (folder / "people.csv").write_text("\n".join(["name,languages,crisis", *lines]) + "\n")
    options = {"annotators": str(folder / "people.csv"), "care": {"crisis_share": 0.5}, **given}
    _, messages = open_round(make_spec("crowd", str(folder / "items.jsonl"), options), folder / "round")
    (folder / "messages").write_text("\n".join(messages))
    return folder / "round"


def test_annotators_who_decline_crises_do_not_forbid_an_overlap_of_all(tmp_path: Path) -> None:
    path = with_crises(tmp_path / "r", 20, 2, overlap=20)
    message = "2 items have fewer eligible annotators than the overlap of 20: 18 (2 items)"
    assert (tmp_path / "r" / "messages").read_text().splitlines()[-1] == message
    assert events(path, "opened")[0]["below_overlap"] == {"18": 2}
    (first,) = RoundFolder(path).assignment_sets()
    assert [first.requested[f"en-item-{n}"] for n in range(3)] == [18, 18, 20]
    assert len(first.assignments) == 2 * 18 + 8 * 20
    status = round_status(path)
    assert (sum(status.missing.values()), status.unassigned) == (196, 0)
    answer(path, lambda *_: crowd(), only=tuple(f"v{n:02}" for n in range(20)))
    done = h2htalk_here("round", "close", path)
    assert "2 items have fewer annotations than the overlap of 20: 18 (2 items)" in done.stdout
    assert done.returncode == 0
    # An item for nobody is refused.
    with pytest.raises(RoundError, match=r"no annotator is eligible for 2 items.*about a crisis \(yes under crisis"):
        with_crises(tmp_path / "none", 3, 3, overlap=2)


# With the columns of Prolific, by which participants are paid.
PEOPLE = """name,languages,crisis,{}
annalena,en,yes,5f0a,CODE1
bogumil,zh en,no,6e1b,
chen_wei,zh,yes,,
"""


def test_pilot_gives_all_items_to_all_and_lists_who_passed(tmp_path: Path) -> None:
    """With the default overlap, a pilot of few annotators was refused, or gave each only some items."""
    items = [item(n, spoken, gold={"keep": "keep"}) for spoken in ("en", "zh") for n in range(6)]
    write_jsonl(tmp_path / "gold.jsonl", [items[0] | {"crisis": True}, *items[1:]])
    listed = tmp_path / "people.csv"
    listed.write_text(PEOPLE.format("Participant id,Completion code") + "daraigh,en,yes,,\n", encoding="utf-8")
    path = tmp_path / "pilot"
    open_round(make_spec("crowd", str(tmp_path / "gold.jsonl"), {"annotators": str(listed), "hourly": 9.0}), path)
    assert not any("gold" in str(row) for one in (path / "spreadsheets").iterdir() for row in rows_of(one))
    assignments = {spreadsheet.stem: len(spreadsheet.assignments) for spreadsheet in spreadsheets(RoundFolder(path))}
    assert assignments == {"annalena": 6, "bogumil": 11, "chen_wei": 6, "daraigh": 6}
    assert sum(round_status(path).missing.values()) == 29
    skip, wrong = {"skip": "yes"}, crowd("drop")
    answer(path, lambda *at: skip if at == ("en-item-0", "annalena") else wrong if "daraigh" in at else crowd())
    status = round_status(path)
    assert (status.missing, status.completed, status.skipped) == ({}, 28, 1)
    closed, _ = close_round(path)
    assert "3 of 4 annotators passed the gold items: " in closed.notes[0]
    passed = (path / "private" / "qualified.csv").read_text(encoding="utf-8")
    assert passed == PEOPLE.format("participant_id,completion_code")
    assert len(read_annotators(path / "private" / "qualified.csv", b"salt")) == 3
    payment = (path / "private" / "payment.csv").read_text().splitlines()
    assert payment[:2] == [
        "annotator,items completed,items skipped,minutes,participant id,completion code",
        "annalena,5,1,6.0,5f0a,CODE1",
    ]
    assert (path / "private" / "prolific_bonus.csv").read_text() == "5f0a,0.90\n6e1b,1.65\n"
    assert (path / "private" / "prolific_bonus.csv").stat().st_mode & 0o077 == 0
