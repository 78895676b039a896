"""One item's story, and taking a person out again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from curation_made import dialogue, dropping, gathered, keeping, stage

from h2htalk.curation.curate import summaries
from h2htalk.curation.erase import erase, purge
from h2htalk.curation.explain import explain, story
from h2htalk.curation.stages import Opener, run_stage
from h2htalk.curation.workspace import STAGES, Workspace
from h2htalk.data.files import write_json
from h2htalk.errors import ConfigError, DataError

EMILY = "made-p0001"
MADE = [
    dialogue(1, "My tea is cold.", "Warm it up.", person=EMILY),
    dialogue(2, "The rain is sad.", "It will pass.", person=EMILY),
    dialogue(3),
    dialogue(4, "I am sad.", "Tell me."),
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
    assert {event.id for event in explain(workspace, EMILY)} == {"made-000001", "made-000002"}


def test_an_unknown_id_is_an_error(workspace: Workspace) -> None:
    with pytest.raises(DataError, match="no stage knows 'made-9'"):
        explain(workspace, "made-9")


@pytest.mark.parametrize("asked", [EMILY, "Emily Carter", "made-000001"])
def test_a_person_is_taken_out_of_every_stage_and_table(workspace: Workspace, asked: str) -> None:
    calls = workspace.stage("safety").path / "calls" / "part-00000.jsonl"
    calls.parent.mkdir()
    lines = [{"id": f"{name}:dialogue_base/rubric", "text": "x"} for name in ("made-000001", "made-000003")]
    calls.write_text("".join(json.dumps(line) + "\n" for line in lines))
    erased = erase(workspace, asked)
    gone = {"made-000001"} if asked == "made-000001" else {"made-000001", "made-000002", EMILY}
    assert set(erased.ids) == gone
    everything = "".join(p.read_text() for p in workspace.path.rglob("*.jsonl") if p.name != "erased.jsonl")
    assert "My tea is cold" not in everything
    assert not any(name in everything for name in gone)
    assert "made-000003" in everything
    assert erased.raw


def test_counts_add_up_after_it(workspace: Workspace) -> None:
    erase(workspace, EMILY)
    assert [(s.stage, s.counts.read, s.counts.kept, s.counts.rejected) for s in summaries(workspace)] == [
        ("gather", 2, 2, 0),
        ("anonymize", 2, 2, 0),
        ("safety", 2, 1, 1),
    ]


def test_who_was_taken_out_does_not_come_back(workspace: Workspace) -> None:
    erase(workspace, EMILY)
    workspace.stage("safety").remove()
    run_stage(stage("safety", Opener(keeping)), workspace, processes=1)
    assert [r["id"] for r in workspace.stage("safety").records()] == ["made-000003", "made-000004"]
    with pytest.raises(DataError, match="was taken out"):
        explain(workspace, "made-000001")


def test_taking_out_twice_is_harmless_and_a_stranger_is_an_error(workspace: Workspace) -> None:
    first = erase(workspace, "made-000003")
    assert erase(workspace, "made-000003").ids == first.ids
    with pytest.raises(DataError, match="nobody of id 'made-000099'"):
        erase(workspace, "made-000099")


# --- purge ------------------------------------------------------------------------------------------------------


def test_purge_waits_for_the_last_stage(workspace: Workspace) -> None:
    with pytest.raises(ConfigError, match="06-reviewed is not finished"):
        purge(workspace)
    assert workspace.key_path.exists()


def test_purge_leaves_what_was_reviewed_and_nothing_raw(workspace: Workspace) -> None:
    for name in list(STAGES)[3:]:
        run_stage(stage(name, Opener(keeping)), workspace, processes=1)
    write_json(workspace.stage("review").path / "summary.json", {})
    purge(workspace)
    assert not workspace.key_path.exists()
    assert not list((workspace.stage("gather").path).rglob("*.jsonl"))
    assert [r["id"] for r in workspace.stage("review").records()] == ["made-000001", "made-000003"]
    with pytest.raises(ConfigError, match="was purged"):
        workspace.open_key()
