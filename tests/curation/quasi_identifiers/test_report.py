"""The report of rare combinations: counted per person, with the messages, nothing changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import h2htalk_here
from curation_made import all_files, dialogue, finished

from h2htalk.curation.outcomes import Kept
from h2htalk.curation.quasi_identifiers.report import report_identifiers
from h2htalk.curation.workspace import Workspace
from h2htalk.errors import ConfigError, DataError

PILOT = "I'm 34, I work as a harbour pilot in the north."
NURSE = "I'm 25. I'm a nurse."


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    dialogues = [
        dialogue(1, PILOT, "And?", "I live in Leeds."),
        dialogue(2, NURSE),
        dialogue(3, NURSE, "And?", "I live in Leeds."),
        dialogue(4, "I'm 25."),
        dialogue(5),
    ]
    return finished(tmp_path / "w", "gather", dialogues)


def test_the_smallest_rare_combinations_are_listed_most_kinds_first(workspace: Workspace) -> None:
    report = report_identifiers(workspace)
    age, job, place = ("age", "34"), ("job", "harbour pilot"), ("place", "leeds")
    assert [profile.id for profile in report.profiles] == ["made-000001", "made-000003"]
    assert report.profiles[0].rare == [(age, place), (age, job), (place, job)]
    assert report.profiles[0].values == {age: [1], job: [1], place: [3]}
    # 25 + nurse is shared by two dialogues: only with Leeds it is one person's.
    assert report.profiles[1].rare == [(("age", "25"), place), (place, ("job", "nurse"))]
    assert list(report.counts().values()) == [5, 1, 1, 2, 0, 2, 2]
    shared = report_identifiers(workspace, shared_by=2).profiles
    assert [profile.id for profile in shared] == ["made-000001", "made-000003", "made-000002"]


def test_dialogues_of_one_person_count_once(tmp_path: Path) -> None:
    dialogues = [dialogue(number, NURSE, person="made-p0001") for number in (1, 2)]
    assert len(report_identifiers(finished(tmp_path, "gather", dialogues)).profiles) == 2


def test_surrogates_and_dialogues_without_candidates_are_left_out(tmp_path: Path) -> None:
    start = PILOT.index("34")
    span = {"message": 1, "start": start, "end": start + 2, "type": "DATE_OF_BIRTH"}
    finished(tmp_path, "anonymize", [Kept(dialogue(1, PILOT), audit={"spans": [span]}), dialogue(2, NURSE)])
    assert [profile.id for profile in report_identifiers(Workspace(tmp_path)).profiles] == ["made-000002"]
    finished(tmp_path, "dedup", [dialogue(2, NURSE), dialogue(3, NURSE)])
    assert report_identifiers(Workspace(tmp_path)).counts()["hold a rare combination"] == 0
    candidate = {"id": "made-000002:dialogue_base", "provenance": {"dialogue": "made-000002"}}
    finished(tmp_path, "compose", [candidate])
    report = report_identifiers(Workspace(tmp_path))
    assert (report.stage, [profile.id for profile in report.profiles]) == ("compose", ["made-000002"])


def test_a_wrong_stage_or_number_is_an_error(workspace: Workspace, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no stage 'gater'"):
        report_identifiers(workspace, "gater")
    with pytest.raises(DataError, match="dedup is not finished"):
        report_identifiers(workspace, "dedup")
    with pytest.raises(ConfigError, match="--shared-by 0"):
        report_identifiers(workspace, shared_by=0)
    with pytest.raises(DataError, match="there is no curation"):
        report_identifiers(Workspace(tmp_path / "nosuch"))


def test_the_command_shows_and_writes_and_changes_nothing(workspace: Workspace, tmp_path: Path) -> None:
    before = all_files(workspace.path)
    done = h2htalk_here("curate", "identifiers", workspace.path, "--output", tmp_path / "found.csv")
    assert done.returncode == 0, done.stderr
    assert "nothing was changed" in done.stdout
    assert all_files(workspace.path) == before
    first, second, *others = (tmp_path / "found.csv").read_text(encoding="utf-8").splitlines()
    assert first == "dialogue,kinds,age,place,job,school,date,smallest_rare_combinations"
    rare = "34 + leeds; 34 + harbour pilot; leeds + harbour pilot"
    assert second == f"made-000001,3,34 (1),leeds (3),harbour pilot (1),,,{rare}"
    assert len(others) == 1
