"""The history of an item goes on in the rounds and releases that were made from its workspace."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from chain_made import candidate, closed, crowd_round, spec_of
from command_line import h2htalk
from curation_made import finished
from releases_made import make_release, scenario
from rounds_made import answer, crowd, expert

from h2htalk.curation.history import Event, explain, format_history
from h2htalk.curation.workspace import Workspace
from h2htalk.data.files import write_jsonl
from h2htalk.data.links import add_link
from h2htalk.data.releases.release_folder import data_file
from h2htalk.errors import DataError
from h2htalk.rounds.lifecycle import close_round, open_round


def history(folder: Path, item: str) -> list[Event]:
    """What followed the stages."""
    return [event for event in explain(Workspace(folder / "work"), item) if event.stage in ("round", "release")]


def of_round(folder: Path, item: str, name: str) -> dict[str, Any]:
    (event,) = (event for event in history(folder, item) if event.details.get("round") == name)
    return {"state": event.what, **event.details}


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crowd round, the adjudication of its tie, a closed expert round and an open safety round."""
    folder = tmp_path_factory.mktemp("chain")
    path = crowd_round(folder)
    open_round(spec_of("adjudication", path, 1), folder / "ties")
    closed(folder / "ties", {"label": "keep"})
    close_round(path, adjudication=folder / "ties")
    open_round(spec_of("expert", path, 3), folder / "expert")
    scores = {"annalena": "4", "bogumil": "5", "chen_wei": "5"}
    comment = {"comment": "A remark about somebody."}
    answer(folder / "expert", lambda _, annotator: expert(score=scores[annotator]) | comment)
    close_round(folder / "expert")
    open_round(spec_of("safety", folder / "expert"), folder / "safety")
    answer(folder / "safety", lambda *_: {"perception": "5", "violation": "no"}, only=("annalena",))
    return folder


def test_votes_means_decisions_and_who_decided(chain: Path) -> None:
    """Nothing told what became of an item after the last stage."""
    tied = of_round(chain, "c-3", "crowd")
    assert (tied["state"], tied["kind"]) == ("closed", "crowd")
    assert tied["keep"] == {"votes": {"drop": 1, "keep": 1}, "decision": "keep", "rule": "adjudication", "by": "ties"}
    assert tied["subtask"] == {"votes": {"dialogue_base": 2}, "decision": "dialogue_base", "rule": "majority"}
    assert tied["quality"] == {"mean": "4.00", "ratings": 2}
    assert of_round(chain, "c-3", "ties")["label"] == {"votes": {"keep": 1}, "decision": "keep", "rule": "majority"}
    judged = of_round(chain, "c-3", "expert")
    assert (judged["keep"]["votes"], judged["accuracy"]) == ({"keep": 3}, {"mean": "4.67", "ratings": 3})
    assert of_round(chain, "c-3", "safety")["state"] == "open"
    dropped = [event.details["round"] for event in history(chain, "c-0")]
    assert dropped == ["crowd"]


def test_the_text_of_the_history(chain: Path) -> None:
    done = h2htalk("curate", "explain", chain / "work", "c-3")
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert [line for line in lines if line.startswith("round")] == [
        "round      closed    c-3",
        "round      closed    c-3#keep",
        "round      closed    c-3",
        "round      open      c-3",
    ]
    assert f"{'':10}   votes: drop 1, keep 1" in lines
    assert f"{'':10}   by: ties" in lines
    assert "remark" not in done.stdout


def test_folders_that_are_gone_or_unreadable_are_said(tmp_path: Path) -> None:
    path = crowd_round(tmp_path)
    open_round(spec_of("expert", path), tmp_path / "expert")
    add_link(tmp_path / "work", "release", tmp_path / "release-1")
    shutil.rmtree(tmp_path / "expert")
    events = [(event.stage, event.id, event.what) for event in history(tmp_path, "c-2")]
    assert events == [
        ("round", "c-2", "closed"),
        ("round", "expert", "missing"),
        ("release", "release-1", "missing"),
    ]
    assert str(tmp_path / "expert") in format_history(history(tmp_path, "c-2"))
    write_jsonl(path / "decisions.jsonl", [{}])
    crowd_event, *others = history(tmp_path, "c-2")
    assert (crowd_event.id, crowd_event.what) == ("crowd", "unreadable")
    assert "close the round again" in crowd_event.details["error"]
    assert [event.id for event in others] == ["expert", "release-1"]
    with (tmp_path / "work" / "links.jsonl").open("a") as file:
        file.write("{}\n")
    with pytest.raises(DataError, match=r"links.jsonl:3"):
        explain(Workspace(tmp_path / "work"), "c-2")


def test_links_in_a_circle(tmp_path: Path) -> None:
    path = crowd_round(tmp_path)
    add_link(path, "round", path)
    add_link(path, "release", tmp_path / "work")
    assert [event.what for event in history(tmp_path, "c-2")] == ["closed", "missing"]


def test_releases_that_hold_the_item(tmp_path: Path) -> None:
    crowd_round(tmp_path)
    for name, items in (("first", ["c-1", "c-2"]), ("second", ["c-3"])):
        scenarios = [scenario(n, id=item) for n, item in enumerate(items)]
        add_link(tmp_path / "work", "release", make_release(tmp_path / name, {"test": scenarios}, name=name))
    found = [(event.id, dict(event.details)) for event in history(tmp_path, "c-1") if event.stage == "release"]
    assert found == [("c-1", {"release": "first", "version": "1.0.0", "config": "en", "split": "test"})]
    broken = tmp_path / "first" / data_file("en", "test")
    broken.write_bytes(b"PAR1")
    assert [event.what for event in history(tmp_path, "c-3")] == ["closed", "unreadable", "released"]


def test_a_dialogue_has_the_rounds_of_its_candidates(tmp_path: Path) -> None:
    record = candidate("made-000001:dialogue_schedule", "accept")
    record |= {"provenance": {"dialogue": "made-000001"}}
    other = candidate("made-000011:dialogue_schedule", "accept")
    work = finished(tmp_path / "work", "review", [record, other]).path
    open_round(spec_of("crowd", work), tmp_path / "crowd")
    closed(tmp_path / "crowd", crowd())
    assert [event.id for event in history(tmp_path, "made-000001")] == ["made-000001:dialogue_schedule"]
