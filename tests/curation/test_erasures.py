"""What is remembered of who was taken out, and an erasure that somebody else finishes."""

from __future__ import annotations

from pathlib import Path

import pytest
from curation_made import dialogue, gathered

from h2htalk.curation.erase import erase, finish_erasure
from h2htalk.curation.erasures import Pending, marks_of
from h2htalk.curation.workspace import Workspace
from h2htalk.data.files import read_jsonl, write_jsonl

MADE = [
    dialogue(1, "My tea is cold.", "Warm it up."),
    dialogue(2, "The rain is sad.", "It will pass."),
    dialogue(3),
]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """The raw file calls 1 and 2 the same, and 3 something else."""
    made = gathered(tmp_path, MADE)
    audit = made.stage("gather").file("audit", "part-00000")
    calls = {"made-000001": "talk", "made-000002": "talk", "made-000003": "other"}
    lines = [
        {**record, "raw": {**record["raw"], "id": calls[record["id"]]}} for _, record in read_jsonl(audit)
    ]
    write_jsonl(audit, lines)
    return made


@pytest.mark.parametrize(("asked", "raw_id", "shared"), [(1, "talk", True), (3, "other", False)])
def test_what_somebody_who_stays_is_called_too_is_no_mark(
    workspace: Workspace, asked: int, raw_id: str, shared: bool
) -> None:
    """Gathered again, dialogue 2 would have gone with 1."""
    erase(workspace, f"made-{asked:06}")
    words = [[turn["role"], turn["content"]] for turn in MADE[asked - 1]["messages"]]  # type: ignore[attr-defined]
    marks = workspace.erasures().marks
    key = workspace.open_key()
    assert (marks_of(key, "made", raw_id, None, None) <= marks) != shared
    assert marks_of(key, "made", None, None, words) <= marks


def pending(workspace: Workspace, *lines: dict[str, object]) -> None:
    key = workspace.open_key()
    made = Pending.of("made-000001", key, ids=("made-000001",), copies=(), raw=(), lines=lines)
    made.write(workspace.pending_path)


def test_who_finishes_it_clears_what_a_kill_left_of_parts(workspace: Workspace) -> None:
    """Between the two a run may have been killed: a part without its mark holds words that nobody rewrites."""
    pending(workspace, {"id": "made-000001"})
    safety = workspace.stage("safety")
    left = [safety.file("kept", "part-00000"), safety.path / "kept" / ".part-00001.jsonl.77"]
    for path in left:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('{"text":"My tea is cold"}\n')
    finish_erasure(workspace)
    assert not any(path.exists() for path in left)
    assert not workspace.pending_path.exists()


def test_a_line_is_remembered_once_and_beside_one_of_another_file(workspace: Workspace) -> None:
    """The same id of a file that changed since is somebody else, and was taken out too."""
    of_before = {"id": "made-000001", "of": "messages/aa", "marks": ["1", "2"]}
    of_now = {"id": "made-000001", "of": "messages/bb", "marks": ["3"]}
    path = workspace.path / "erased.jsonl"
    write_jsonl(path, [of_before])
    for _ in range(2):
        pending(workspace, of_now, dict(reversed(of_before.items())))
        finish_erasure(workspace)
        assert [record for _, record in read_jsonl(path)] == [of_before, of_now]
