"""The same people saying the same things give the same decisions, on ballots as on a real server."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from argilla_stack import OWNER_KEY, Stack
from argilla_voters import SimulatedVoter, made_items, signed_in, write_items, write_voters

from h2htalk.data.files import read_jsonl
from h2htalk.rounds.closing import close_round
from h2htalk.rounds.opening import open_round
from h2htalk.rounds.questions import QUESTIONS
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import Care, RoundSpec
from h2htalk.rounds.spreadsheets.assigned_files import read_ballot_round
from h2htalk.rounds.status import status

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]

ITEMS = 30
# Everybody answers everything, crises too: which of them answers what is then no matter of the backend.
SKILLS = {"paper-a": 0.9, "paper-b": 0.8, "paper-c": 0.7, "paper-d": 0.55, "paper-e": 0.4}


def filled_in(round: RoundFolder, voter: SimulatedVoter) -> set[str]:
    """Fill in a voter's CSV ballot with what they think; the items on it."""
    known = read_ballot_round(round)
    (ballot,) = [one for one in known.ballots if one.voter.name == voter.name]
    path = known.folder / f"{ballot.stem}.csv"
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    for row, seat in zip(rows, ballot.seats, strict=True):
        said = voter.answer(seat.item, QUESTIONS["crowd"])
        row.update({question: str(value) for question, value in said.items()})
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return {seat.item for seat in ballot.seats}


def test_ballots_and_a_real_server_come_to_the_same_decisions(
    stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARGILLA_API_URL", stack.url)
    monkeypatch.setenv("ARGILLA_API_KEY", OWNER_KEY)
    items = write_items(tmp_path / "items.jsonl", made_items(ITEMS, "crowd", crises=7))
    people = write_voters(tmp_path / "people.csv", list(SKILLS))
    rounds = {}
    for backend in ("argilla", "ballots"):
        spec = RoundSpec(
            kind="crowd", items=str(items), backend=backend, format="csv", voters=str(people), overlap=len(SKILLS),
            care=Care(sitting=15, crisis_share=0.3),
        )  # fmt: skip
        open_round(spec, tmp_path / f"same-{backend}")
        rounds[backend] = RoundFolder(tmp_path / f"same-{backend}")
    everything = {item.id for item in rounds["argilla"].items()}
    for voter in signed_in(stack.url, rounds["argilla"].private / "argilla_logins.csv", SKILLS):
        assert voter.work_through("same-argilla", "crowd").keys() == everything
        assert filled_in(rounds["ballots"], voter) == everything

    for round in rounds.values():
        found = status(round.path)
        assert (found.answers, found.missing, found.mistakes) == (ITEMS * len(SKILLS), {}, ())
        close_round(round.path)
    online, paper = (
        [record for _, record in read_jsonl(round.path / "decisions.jsonl")] for round in rounds.values()
    )
    keys = ("item", "question", "label", "support", "how", "posterior")
    assert [[one[key] for key in keys] for one in online] == [[one[key] for key in keys] for one in paper]
    assert online == paper
    assert len(paper) == ITEMS * len(QUESTIONS["crowd"])
    assert {one["how"] for one in paper} >= {"majority", "mean", "tie"}
    agreement = [(round.path / "agreement.json").read_bytes() for round in rounds.values()]
    assert agreement[0] == agreement[1]
