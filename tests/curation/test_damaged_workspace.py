"""The small files of a workspace, with something else in them than a stage writes: one line names file and field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from h2htalk.errors import DataError
from support.command_line import h2htalk_here
from support.curations import dialogue, gathered

DAMAGES: list[tuple[str, Any, str]] = [
    ("gather/stage.json", {"settings": {}}, "fingerprint: is missing"),
    (
        "gather/stage.json",
        {"stage": "gather", "version": 1, "settings": [1]},
        "settings: must be an object",
    ),
    ("gather/notes.json", {"a": "text"}, "a: must be an object"),
    ("gather/notes.json", {"a": {"message": 1}}, "a.message: must be text"),
    ("gather/parts/part-00000.json", {}, "record_tags: is missing"),
    ("gather/parts/part-00000.json", {"read": "many"}, "read: must be a whole number"),
    ("gather/parts/part-00000.json", {"read": -1}, "read: must be 0 or more"),
    ("workspace.json", {"erased": "all"}, "erased: must be a whole number"),
    ("tombstones.jsonl", {"id": 1}, "id: must be text"),
    ("tombstones.jsonl", {"id": "a", "marks": [1]}, "marks.1: must be text"),
    ("gather/kept/part-00000.jsonl", {"id": None}, "id: must be text"),
]


@pytest.mark.parametrize(("name", "content", "message"), DAMAGES)
def test_a_damaged_file_of_a_workspace_is_one_line(
    name: str, content: Any, message: str, tmp_path: Path
) -> None:
    """Files of stages were read without a check: KeyError, TypeError and AttributeError with their tracebacks."""
    workspace = gathered(tmp_path / "W", [dialogue(1), dialogue(2)])
    (workspace.path / name).write_text(json.dumps(content) + "\n", encoding="utf-8")
    commands = (
        ("curate", "funnel", workspace.path),
        ("curate", "explain", workspace.path, "made-000001"),
        ("curate", "erase", workspace.path, "made-000001"),
    )
    ended = [h2htalk_here(*words) for words in commands]
    assert {one.returncode for one in ended} <= {0, 2, 3}
    printed = "".join(one.stderr for one in ended)
    assert message in printed
    assert Path(name).name in printed


@pytest.mark.parametrize("name", ["gather/stage.json", "gather/parts/part-00000.json"])
def test_many_damaged_fields_are_one_line(name: str, tmp_path: Path) -> None:
    """A file without fields was one line for each of them."""
    workspace = gathered(tmp_path / "W", [dialogue(1)])
    (workspace.path / name).write_text("{}", encoding="utf-8")
    folder = workspace.stage("gather")
    with pytest.raises(DataError) as caught:
        folder.settings() if name.endswith("stage.json") else folder.counts("part-00000")
    assert "\n" not in str(caught.value)
    assert str(caught.value).count("is missing") >= 5
    assert str(caught.value).count("--from-stage") == 1


def test_the_advice_for_a_damaged_workspace_helps(tmp_path: Path) -> None:
    """The advice was to make the stage again, and that command ended with the same error."""
    workspace = gathered(tmp_path / "W", [dialogue(1), dialogue(2), dialogue(3)])
    erase = ("curate", "erase", workspace.path)
    assert h2htalk_here(*erase, "made-000001").returncode == 0
    facts = workspace.facts()
    (workspace.path / "workspace.json").write_text('{"erased": "all"}', encoding="utf-8")
    refused = h2htalk_here(*erase, "made-000002")
    assert refused.returncode == 2
    assert "--from-stage" not in refused.stderr
    assert "remove it if secret.key is there" in refused.stderr
    (workspace.path / "workspace.json").unlink()
    assert h2htalk_here(*erase, "made-000002").returncode == 0
    assert workspace.facts() == facts | {"erased": 2, "reached": 2}
    assert [record["id"] for record in workspace.stage("gather").records()] == ["made-000003"]
