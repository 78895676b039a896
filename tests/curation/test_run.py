"""A stage: parts through a rule, counted and resumed; the same bytes after any interruption."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict
from pathlib import Path

import pytest
from curation_made import all_bytes, dialogue, dropping, gathered, keeping, stage

from h2htalk.curation.run import RuleFactory, run_stage
from h2htalk.curation.stage_folder import RecordCounts
from h2htalk.curation.workspace import Workspace
from h2htalk.data.erasure.folder_kinds import remove_for_good
from h2htalk.data.files import write_json
from h2htalk.errors import ConfigError, DataError

SAD = dialogue(4, "I am so sad about the rain.", "Tell me about the rain.")
MADE = [dialogue(n) for n in range(1, 4)] + [SAD] + [dialogue(n, "Hello", "Hi", "Bye") for n in range(5, 9)]
KEEPING, DROPPING = RuleFactory(keeping), RuleFactory(dropping, ("sad",))


def test_kept_and_rejected_add_up_to_what_was_read(tmp_path: Path) -> None:
    workspace = gathered(tmp_path, MADE)
    counts = run_stage(stage("anonymize", DROPPING), workspace, processes=1)
    assert counts == RecordCounts(8, 7, 1, 7, 0, {"says sad": 1}, {"review": 4})
    folder = workspace.stage("anonymize")
    assert [(r["id"], r["stage"]) for r in folder.records("rejected")] == [("made-000004", "anonymize")]
    assert json.loads((folder.path / "summary.json").read_text()) == asdict(counts)


@pytest.mark.parametrize("processes", [1, 2])
def test_an_interrupted_stage_ends_with_the_same_bytes(tmp_path: Path, processes: int) -> None:
    whole, torn = gathered(tmp_path / "a", MADE), gathered(tmp_path / "b", MADE)
    run = stage("anonymize", DROPPING)
    run_stage(run, whole, processes=1)
    run_stage(run, torn, processes=1)
    folder = torn.stage("anonymize")
    folder.mark("part-00001").unlink()
    folder.file("kept", "part-00001").write_text('{"torn')
    partial = folder.path / "kept" / ".part-00001.jsonl.999"
    partial.write_text('{"id": "somebody"')
    run_stage(run, torn, processes=processes)
    assert not partial.exists()
    assert all_bytes(folder) == all_bytes(whole.stage("anonymize"))


def test_other_settings_are_an_error_that_names_them(tmp_path: Path) -> None:
    workspace = gathered(tmp_path, MADE)
    run_stage(stage("anonymize", KEEPING, operators={}, allow=["Nora"]), workspace, processes=1)
    with pytest.raises(ConfigError, match=r"another setting of operators; .* --from-stage anonymize"):
        run_stage(stage("anonymize", KEEPING, operators={"URL": "mask"}, allow=["Nora"]), workspace, processes=1)
    with pytest.raises(ConfigError, match="another version of its rule"):
        run_stage(stage("anonymize", KEEPING, 2, operators={}, allow=["Nora"]), workspace, processes=1)


@pytest.mark.parametrize("left", ["lines", "nothing"])
def test_missing_records_of_the_stage_before_are_an_error(tmp_path: Path, left: str) -> None:
    workspace = gathered(tmp_path, MADE)
    path = workspace.stage("gather").file("kept", "part-00001")
    lines = path.read_text().splitlines(keepends=True)
    path.unlink() if left == "nothing" else path.write_text("".join(lines[:-1]))
    with pytest.raises(DataError, match=r"part-00001\.jsonl: has [02] records, but 3 were written"):
        run_stage(stage("anonymize", KEEPING), workspace, processes=1)
    assert not workspace.stage("anonymize").finished


def test_a_removed_stage_keeps_what_was_paid_for(tmp_path: Path) -> None:
    workspace = gathered(tmp_path, MADE)
    run_stage(stage("anonymize", KEEPING), workspace, processes=1)
    folder = workspace.stage("anonymize")
    paid = [folder.path / name for name in ("calls.jsonl", "calls.lock")]
    for path in paid:
        write_json(path, {})
    folder.remove()
    assert sorted(path for path in folder.path.rglob("*") if path.is_file()) == sorted(paid)


@pytest.mark.parametrize("steps", range(6))
def test_a_cut_removal_leaves_nothing_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    """`stage.json` was removed first, and the next run used the parts that were left."""
    workspace = gathered(tmp_path, MADE)
    run_stage(stage("anonymize", DROPPING, word="sad"), workspace, processes=1)
    folder, left = workspace.stage("anonymize"), iter(range(steps))

    def remove(path: Path) -> None:
        if next(left, None) is None:
            raise DataError("killed")
        remove_for_good(path)

    monkeypatch.setattr("h2htalk.curation.stage_folder.remove_for_good", remove)
    with contextlib.suppress(DataError):
        folder.remove()
    monkeypatch.undo()
    other = stage("anonymize", KEEPING, word="")
    if folder.path.exists():
        with pytest.raises(ConfigError, match="another setting of word"):
            run_stage(other, workspace, processes=1)
    folder.remove()
    assert run_stage(other, workspace, processes=1).kept == 8


def test_the_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w")
    key = workspace.open_key()
    assert len(key) == 32
    assert workspace.open_key() == key
    assert workspace.key_path.stat().st_mode & 0o077 == 0
    assert key.hex() not in (workspace.path / "workspace.json").read_text()
    # Another or missing key is an error.
    workspace = Workspace(tmp_path)
    workspace.open_key()
    for text, message in (("ab" * 32, "is not the key"), ("short", "must hold 32 bytes")):
        workspace.key_path.write_text(text)
        with pytest.raises(ConfigError, match=message):
            workspace.open_key()
    workspace.key_path.unlink()
    with pytest.raises(ConfigError, match="is missing"):
        workspace.open_key()
