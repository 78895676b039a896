"""The same annotations lead to the same decisions on spreadsheets and on a real server."""

from __future__ import annotations

from pathlib import Path

import pytest
from argilla_annotators import SimulatedAnnotator, made_items, signed_in, write_annotators, write_items
from argilla_stack import Stack
from spreadsheet_rounds import fill, places, workbook_path

from h2htalk.data.files import read_json_object, read_jsonl
from h2htalk.rounds.lifecycle import close_round, open_round, round_status
from h2htalk.rounds.questions import QUESTIONS
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import Care, RoundSpec

pytestmark = [pytest.mark.live, pytest.mark.timeout(120), pytest.mark.usefixtures("signed_in")]

ITEMS = 30
# All annotate everything, so that the platforms' assignments do not matter.
SKILLS = {"paper-a": 0.9, "paper-b": 0.8, "paper-c": 0.7, "paper-d": 0.55, "paper-e": 0.4}


def filled_in(round: RoundFolder, annotator: SimulatedAnnotator) -> set[str]:
    """Fill in an annotator's spreadsheet, and return its items."""
    numbers = places(round, annotator.name)
    said = {number: annotator.answer(item, QUESTIONS["crowd"]) for item, number in numbers.items()}
    fill(workbook_path(round, annotator.name), said)
    return set(numbers)


def test_spreadsheets_and_a_server_give_the_same_decisions(stack: Stack, tmp_path: Path) -> None:
    items = write_items(tmp_path / "items.jsonl", made_items(ITEMS, "crowd", crises=7))
    people = write_annotators(tmp_path / "people.csv", list(SKILLS))
    rounds = {}
    for where in ("argilla", "spreadsheets"):
        spec = RoundSpec(
            kind="crowd", items=str(items), where=where, annotators=str(people), overlap=len(SKILLS),
            care=Care(session_items=15, crisis_share=0.3),
        )  # fmt: skip
        open_round(spec, tmp_path / f"same-{where}")
        rounds[where] = RoundFolder(tmp_path / f"same-{where}")
    everything = {item.id for item in rounds["argilla"].items()}
    for annotator in signed_in(stack.url, rounds["argilla"].private / "argilla_logins.csv", SKILLS):
        assert annotator.work_through("same-argilla", "crowd").keys() == everything
        assert filled_in(rounds["spreadsheets"], annotator) == everything

    for round in rounds.values():
        status = round_status(round.path)
        assert (status.completed, status.missing, status.mistakes) == (ITEMS * len(SKILLS), {}, ())
        close_round(round.path)
    online, paper = ([record for _, record in read_jsonl(round.path / "decisions.jsonl")] for round in rounds.values())
    assert online == paper
    assert len(paper) == ITEMS * len(QUESTIONS["crowd"])
    assert {one["rule"] for one in paper} >= {"majority", "mean", "tie"}
    agreement = [read_json_object(round.path / "agreement.json") for round in rounds.values()]
    assert agreement[0] == agreement[1]
