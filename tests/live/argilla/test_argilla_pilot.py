"""A pilot on a real server: gold items for everybody, then a round for those who passed."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from argilla_annotators import item_of, made_items, signed_in, write_items
from argilla_stack import OWNER_KEY, Stack

from h2htalk.rounds.lifecycle import close_round, open_round, round_status
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import Care, RoundSpec

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]

# Annotators, and their accuracy.
LIST = "name,languages,crisis\npilot-a,en zh,yes\npilot-b,en zh,no\npilot-c,en zh,yes\n"
SKILLS = {"pilot-a": 1.0, "pilot-b": 1.0, "pilot-c": 0.0}
SAYS: dict[str, Any] = {"subtask": "none", "keep": "drop", "quality": 3}
CARE = Care(session_items=20, crisis_share=0.5)


def test_annotators_who_pass_a_pilot_get_the_next_round(
    stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARGILLA_API_URL", stack.url)
    monkeypatch.setenv("ARGILLA_API_KEY", OWNER_KEY)
    (tmp_path / "people.csv").write_text(LIST)
    gold = [{**item, "gold": {"keep": "drop"}} for item in made_items(12, "crowd", crises=6)]
    spec = RoundSpec(
        kind="crowd", items=str(write_items(tmp_path / "gold.jsonl", gold)), where="argilla",
        annotators=str(tmp_path / "people.csv"), care=CARE,
    )  # fmt: skip
    open_round(spec, tmp_path / "pilot")
    pilot = RoundFolder(tmp_path / "pilot")
    annotators = signed_in(stack.url, pilot.private / "argilla_logins.csv", SKILLS)
    hard = {item["id"] for item in gold if item.get("crisis")}
    for annotator in annotators:
        met = set()
        for dataset in annotator.datasets("pilot-"):
            waiting = annotator.pending(dataset)
            met |= {item_of(record) for record in waiting}
            says = SAYS if annotator.skill else SAYS | {"keep": "keep"}
            annotator.hand_in((record["id"], says, "submitted") for record in waiting)
        # All annotators get all items that they are eligible for.
        assert met == {item["id"] for item in gold} - (hard if annotator.name == "pilot-b" else set())
    status = round_status(pilot.path)
    assert (status.missing, status.skipped, status.mistakes) == ({}, 0, ())
    # Nobody reads here: the only thing to look at is the annotators.
    assert all(note.startswith("look at the answers of pilot-") for note in status.notes), status.notes
    close_round(pilot.path)
    passed = pilot.private / "qualified.csv"
    with passed.open(encoding="utf-8", newline="") as file:
        assert [row["name"] for row in csv.DictReader(file)] == ["pilot-a", "pilot-b"]

    real = RoundSpec(
        kind="crowd", items=str(write_items(tmp_path / "real.jsonl", made_items(4, "crowd", crises=99))),
        where="argilla", annotators=str(passed), overlap=2, care=CARE,
    )  # fmt: skip
    open_round(real, tmp_path / "afterwards")
    said = {annotator.name: len(annotator.work_through("afterwards", "crowd")) for annotator in annotators}
    assert said == {"pilot-a": 4, "pilot-b": 4, "pilot-c": 0}
    status = round_status(tmp_path / "afterwards")
    assert (status.completed, status.missing, status.notes) == (8, {}, ())
    close_round(tmp_path / "afterwards")
