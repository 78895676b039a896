"""A stage: parts through a rule, counted, resumed, the same bytes whatever happened."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from curation_made import all_bytes, dialogue, dropping, gathered, keeping, stage

from h2htalk.curation.outcomes import Kept, PartRule, Rejected, each
from h2htalk.curation.pipeline import Incomplete, Opener, Stage, run_stage
from h2htalk.curation.stage_folder import Counts, remove_for_good
from h2htalk.curation.workspace import Workspace
from h2htalk.data.files import write_json
from h2htalk.errors import ConfigError, DataError, H2HTalkError

SAD = dialogue(4, "I am so sad about the rain.", "Tell me about the rain.")
MADE = [dialogue(n) for n in range(1, 4)] + [SAD] + [dialogue(n, "Hello", "Hi", "Bye") for n in range(5, 9)]


def test_kept_and_rejected_are_all_that_was_read(tmp_path: Path) -> None:
    workspace = gathered(tmp_path, MADE)
    counts = run_stage(stage("anonymize", Opener(dropping, ("sad",))), workspace, processes=1)
    assert counts == Counts(8, 7, 1, 7, 0, {"says sad": 1}, {"review": 4})
    folder = workspace.stage("anonymize")
    assert [r["id"] for r in folder.records("rejected")] == ["made-000004"]
    assert next(iter(folder.records("rejected")))["stage"] == "anonymize"
    assert json.loads((folder.path / "summary.json").read_text()) == counts.to_dict()


@pytest.mark.parametrize("processes", [1, 2])
def test_processes_and_parts_done_before_change_no_byte(tmp_path: Path, processes: int) -> None:
    whole, torn = gathered(tmp_path / "a", MADE), gathered(tmp_path / "b", MADE)
    made = stage("anonymize", Opener(dropping, ("sad",)))
    run_stage(made, whole, processes=1)
    run_stage(made, torn, processes=1)
    folder = torn.stage("anonymize")
    folder.mark("part-00001").unlink()
    folder.file("kept", "part-00001").write_text('{"torn')
    left = folder.path / "kept" / ".part-00001.jsonl.999"
    left.write_text('{"id": "somebody"')
    run_stage(made, torn, processes=processes)
    assert not left.exists()
    assert all_bytes(folder) == all_bytes(whole.stage("anonymize"))


def test_a_finished_stage_is_not_made_again(tmp_path: Path) -> None:
    workspace = gathered(tmp_path, MADE)
    made = stage("anonymize", Opener(dropping, ("sad",)))
    run_stage(made, workspace, processes=1)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("part-*")}
    run_stage(stage("anonymize", Opener(_raising)), workspace, processes=1)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("part-*")} == before


def _raising() -> PartRule:
    raise AssertionError("a rule was opened although nothing was missing")


def test_other_settings_are_an_error_that_names_them(tmp_path: Path) -> None:
    workspace = gathered(tmp_path, MADE)
    run_stage(stage("anonymize", Opener(keeping), ner="none", allow=["Nora"]), workspace, processes=1)
    with pytest.raises(ConfigError, match=r"another setting of ner; .* --again anonymize"):
        run_stage(stage("anonymize", Opener(keeping), ner="bundled", allow=["Nora"]), workspace, processes=1)
    with pytest.raises(ConfigError, match="another version of its rule"):
        run_stage(stage("anonymize", Opener(keeping), 2, ner="none", allow=["Nora"]), workspace, processes=1)


def test_one_dialogue_may_become_several_and_counts_once(tmp_path: Path) -> None:
    workspace = gathered(tmp_path, MADE[:4])
    counts = run_stage(stage("anonymize", Opener(_splitting)), workspace, processes=1)
    assert (counts.read, counts.kept, counts.rejected, counts.written, counts.dropped) == (4, 3, 1, 6, 3)


def _splitting() -> PartRule:
    """Two candidates and a rejected one of each; of the sad one nothing but the rejected one."""

    def rule(record: object) -> list[Kept | Rejected]:
        assert isinstance(record, dict)
        kept = [Kept({**record, "id": f"{record['id']}:{n}"}) for n in range(2)]
        return [*(kept if record["id"] != "made-000004" else []), Rejected(f"{record['id']}:2", "contract")]

    return each(rule)


def test_a_part_whose_calls_failed_waits_and_the_others_are_made(tmp_path: Path) -> None:
    workspace = gathered(tmp_path, MADE)
    failing = Stage("anonymize", 1, {}, Opener(_failing), alone=True)
    with pytest.raises(Incomplete, match="2 calls failed") as caught:
        run_stage(failing, workspace)
    assert caught.value.exit_code == 3
    folder = workspace.stage("anonymize")
    assert folder.parts() == ["part-00000", "part-00002"]
    assert not (folder.path / "summary.json").exists()
    assert run_stage(Stage("anonymize", 1, {}, Opener(keeping), alone=True), workspace).read == 8


def _failing() -> PartRule:
    def rule(records: object, part: str) -> list[list[Kept]]:
        if part == "part-00001":
            raise Incomplete("2 calls failed")
        assert isinstance(records, list)
        return [[Kept(record)] for record in records]

    return rule


def test_a_rule_that_forgets_a_record_is_a_bug_and_nothing_is_written(tmp_path: Path) -> None:
    workspace = gathered(tmp_path, MADE)
    with pytest.raises(AssertionError, match="every record"):
        run_stage(stage("anonymize", Opener(_forgetting)), workspace, processes=1)
    assert workspace.stage("anonymize").parts() == []


def _forgetting() -> PartRule:
    return lambda records, part: [[Kept(record)] for record in records[1:]]


@pytest.mark.parametrize("processes", [1, 2])
def test_what_was_not_handed_on_is_missed(tmp_path: Path, processes: int) -> None:
    """Lines that were gone from a file were gone: the next stage read fewer than the one before had written."""
    workspace = gathered(tmp_path, MADE)
    path = workspace.stage("gather").file("kept", "part-00001")
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(H2HTalkError, match=r"part-00001\.jsonl: has 2 lines, but 3 were written"):
        run_stage(stage("anonymize", Opener(keeping)), workspace, processes=processes)
    assert not (workspace.stage("anonymize").path / "summary.json").exists()


# --- Made again ---------------------------------------------------------------------------------------------------


def test_a_removed_stage_keeps_what_was_paid_for(tmp_path: Path) -> None:
    """Answers, costs and open batches went with the stage, and were paid for a second time."""
    workspace = gathered(tmp_path, MADE)
    run_stage(stage("anonymize", Opener(keeping)), workspace, processes=1)
    folder = workspace.stage("anonymize")
    paid = [folder.path / name for name in ("calls/part-00000.jsonl", "costs/x.jsonl", "batches/jobs.jsonl")]
    for path in paid:
        write_json(path, {})
    folder.remove()
    assert sorted(path for path in folder.path.rglob("*") if path.is_file()) == sorted(paid)


@pytest.mark.parametrize("steps", range(6))
def test_a_removal_that_stops_halfway_leaves_no_part_to_other_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    """`stage.json` went first, and the next run took the parts that were left for its own."""
    workspace = gathered(tmp_path, MADE)
    run_stage(stage("anonymize", Opener(dropping, ("sad",)), word="sad"), workspace, processes=1)
    folder, left = workspace.stage("anonymize"), iter(range(steps))

    def remove(path: Path) -> None:
        if next(left, None) is None:
            raise DataError("killed")
        remove_for_good(path)

    monkeypatch.setattr("h2htalk.curation.stage_folder.remove_for_good", remove)
    with contextlib.suppress(DataError):
        folder.remove()
    monkeypatch.undo()
    other = stage("anonymize", Opener(keeping), word="")
    if folder.path.exists():
        with pytest.raises(ConfigError, match="another setting of word"):
            run_stage(other, workspace, processes=1)
    folder.remove()
    assert run_stage(other, workspace, processes=1).kept == 8


# --- The key ----------------------------------------------------------------------------------------------------


def test_the_key_is_made_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w")
    key = workspace.open_key()
    assert len(key) == 32
    assert workspace.open_key() == key
    assert workspace.key_path.stat().st_mode & 0o077 == 0
    assert key.hex() not in (workspace.path / "workspace.json").read_text()


def test_another_key_or_none_is_refused(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.open_key()
    workspace.key_path.write_text("ab" * 32)
    with pytest.raises(ConfigError, match="is not the key"):
        workspace.open_key()
    workspace.key_path.write_text("short")
    with pytest.raises(ConfigError, match="must hold 32 bytes"):
        workspace.open_key()
    workspace.key_path.unlink()
    with pytest.raises(ConfigError, match="is missing"):
        workspace.open_key()


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    with workspace.locked(), pytest.raises(DataError, match="another process"), Workspace(tmp_path).locked():
        pass
