"""One item's story, stage by stage."""

from __future__ import annotations

from pathlib import Path

import pytest
from curation_made import dialogue, dropping, gathered, keeping, stage

from h2htalk.curation.explain import explain, story
from h2htalk.curation.pipeline import Opener, run_stage
from h2htalk.curation.workspace import Workspace
from h2htalk.errors import DataError

EMILY = "made-p0001"
MADE = [
    dialogue(1, "My tea is cold.", "Warm it up.", person=EMILY),
    dialogue(2, "The rain is sad.", "It will pass.", person=EMILY),
    dialogue(3),
]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    made = gathered(tmp_path, MADE)
    run_stage(stage("anonymize", Opener(keeping)), made, processes=1)
    run_stage(stage("safety", Opener(dropping, ("sad",))), made, processes=1)
    return made


def test_the_story_of_a_dialogue_goes_stage_by_stage(workspace: Workspace) -> None:
    events = explain(workspace, "made-000002")
    assert [(event.stage, event.what) for event in events] == [
        ("gather", "kept"),
        ("anonymize", "kept"),
        ("safety", "rejected"),
    ]
    told = story(events)
    assert "reason: says sad" in told
    assert "The rain" not in told


def test_the_story_of_a_person_is_that_of_every_dialogue(workspace: Workspace) -> None:
    """What `erase` took for a name, `explain` had never heard of."""
    assert {event.id for event in explain(workspace, EMILY)} == {"made-000001", "made-000002"}
    assert explain(workspace, "Emily Carter") == explain(workspace, EMILY)


def test_an_unknown_id_is_an_error(workspace: Workspace) -> None:
    with pytest.raises(DataError, match="nobody of id 'made-9' was gathered"):
        explain(workspace, "made-9")
    with pytest.raises(DataError, match="no curation has begun here"):
        explain(Workspace(workspace.path / "nosuch"), "made-000001")


def test_the_story_says_whose_answers_are_carried(tmp_path: Path) -> None:
    """A dialogue went on with other people's words, and nothing said whose and under which licence."""
    answer = {
        "id": "made-000002",
        "text": "Buy a new one.",
        "licence": "CC0-1.0",
        "provenance": {"source": "b"},
    }
    made = {**dialogue(1), "metadata": {"alternatives": [answer]}}
    made |= {"references": [{"text": "Buy a new one.", "origin": "answer:made-000002"}]}
    told = story(explain(gathered(tmp_path, [made]), "made-000001"))
    assert "id made-000002, source b, licence CC0-1.0" in told
    assert "origin answer:made-000002" in told
    assert "Buy" not in told
