"""Items that cannot reach the overlap: annotators skip, leave, or do not read crises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from argilla_double import ArgillaDouble
from argilla_made import SAYS, named
from argilla_made import opened as opened_on_server
from command_line import h2htalk_here
from rounds_made import Typist, answer, begin, crowd, decisions, events, expert
from spreadsheet_rounds import item

from h2htalk.data.files import write_jsonl
from h2htalk.errors import RoundError
from h2htalk.rounds.lifecycle import close_round, open_round, reopen_round, round_status
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import Care, make_spec
from h2htalk.rounds.status import status_lines


def skipping(name: str, *annotators: str, otherwise: Typist = lambda *_: expert()) -> Typist:
    """Everybody annotates, and some skip one item."""
    return lambda one, who: {"skip": "yes"} if one == name and who in annotators else otherwise(one, who)


def test_a_skip_does_not_prevent_closing_if_everybody_annotates(tmp_path: Path) -> None:
    """One skip blocked closing, because there was nobody else to ask."""
    path = begin(tmp_path, overlap=4, people=4)
    answer(path, skipping("en-item-1", "bogumil"))
    status = round_status(path)
    assert (status.missing, status.exhausted, status.items_done) == ({}, {"en-item-1": 1}, 4)
    assert "1 item cannot reach the overlap: no further eligible annotator is left" in list(status_lines(status))
    closed, _ = close_round(path)
    assert "1 item has fewer annotations than the overlap of 4: 3 (1 item)" in closed.notes
    event = events(path, "closed")[-1]
    assert (event["incomplete"], event["missing"], event["below_overlap"]) == (False, 0, {"3": 1})
    assert [decisions(path)[f"en-item-{n}", "keep"]["votes"] for n in range(4)] == [4, 3, 4, 4]


def test_leaving_without_a_replacement(tmp_path: Path) -> None:
    """It was refused, so that a round whose annotators left could only be closed with --force."""
    path = begin(tmp_path, overlap=2, people=2, count=2)
    answer(path, lambda *_: expert(), only=("annalena",))
    _, messages = reopen_round(path, without=["bogumil"])
    assert messages[0] == "nothing to hand out: no eligible annotator is left for 2 items"
    assert [event["left"] for event in events(path, "annotators")]
    with pytest.raises(RoundError, match="nothing was changed"):
        reopen_round(path)
    closed, _ = close_round(path)
    assert "2 items have fewer annotations than the overlap of 2: 1 (2 items)" in closed.notes
    with pytest.raises(RoundError, match="nothing was changed"):
        reopen_round(path, without=["annalena"])


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


def test_an_item_for_nobody_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RoundError, match=r"no annotator is eligible for 2 items.*about a crisis \(yes under crisis"):
        with_crises(tmp_path / "r", 3, 3, overlap=2)


def test_a_server_mixes_crises_with_other_items(server: ArgillaDouble, tmp_path: Path) -> None:
    """A session has one number of annotators; grouped by it, crises would be together, and refused."""
    items = [{"id": f"i{n}", "language": "en", "prompt": "Good morning.", "crisis": n == 0} for n in range(6)]
    round = opened_on_server(tmp_path, items=items, overlap=3, care=Care(session_items=20, crisis_share=0.2))
    (first,) = round.assignment_sets()
    assert (len(first.groups), first.requested["i0"], first.requested["i1"]) == (1, 2, 3)
    assert server.dataset("round-set1-en-01")["distribution"]["min_submitted"] == 3
    for n in range(6):
        for name in ("ann", "cem", "ben")[: 2 if n == 0 else 3]:
            server.respond("round-set1-en-01", named(round, f"i{n}"), name, **SAYS)
    closed, _ = close_round(round.path)
    assert "1 item has fewer annotations than the overlap of 3: 2 (1 item)" in closed.notes
