"""The history of one item, stage by stage."""

from __future__ import annotations

from pathlib import Path

import pytest
from curation_made import dialogue, dropping, gathered, keeping, stage

from h2htalk.curation.history import explain, format_history
from h2htalk.curation.run import RuleFactory, run_stage
from h2htalk.curation.workspace import Workspace

EMILY = "made-p0001"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    dialogues = [
        dialogue(1, "My tea is cold.", "Warm it up.", person=EMILY),
        dialogue(2, "The rain is sad.", "It will pass.", person=EMILY),
        dialogue(3),
    ]
    workspace = gathered(tmp_path, dialogues)
    run_stage(stage("anonymize", RuleFactory(keeping)), workspace, processes=1)
    run_stage(stage("safety", RuleFactory(dropping, ("sad",))), workspace, processes=1)
    return workspace


def test_the_history_of_a_dialogue(workspace: Workspace) -> None:
    events = explain(workspace, "made-000002")
    stages = [("gather", "kept"), ("anonymize", "kept"), ("safety", "rejected")]
    assert [(event.stage, event.what) for event in events] == stages
    assert "reason: says sad" in format_history(events)
    assert "The rain" not in format_history(events)


def test_the_history_of_a_person_is_that_of_all_their_dialogues(workspace: Workspace) -> None:
    assert {event.id for event in explain(workspace, EMILY)} == {"made-000001", "made-000002"}
    assert explain(workspace, "Emily Carter") == explain(workspace, EMILY)


def test_the_origin_of_replies_is_shown(tmp_path: Path) -> None:
    provenance = {"source": "b"}
    answer = {
        "id": "made-000002",
        "text": "Buy a new one.",
        "licence": "CC0-1.0",
        "provenance": provenance,
    }
    record = {**dialogue(1), "metadata": {"alternatives": [answer]}}
    record |= {"references": [{"text": "Buy a new one.", "origin": "answer:made-000002"}]}
    text = format_history(explain(gathered(tmp_path, [record]), "made-000001"))
    assert "id made-000002, source b, licence CC0-1.0" in text
    assert "origin answer:made-000002" in text
    assert "Buy" not in text
