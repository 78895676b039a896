"""`prompt`: what a model sees, one scenario to read or all of them for another tool, harmless on a terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from splits_made import scenario_records

from h2htalk.benchmark.prompts.prompt_set import prompt_lines
from h2htalk.data.files import write_jsonl

ACTING = "\x1b[2J\x9b31m\x7f\u202e\u2028\U000e0041"


def split_of(folder: Path, ids: list[str], word: str = "") -> str:
    records = scenario_records(len(ids), ("recollection_refinement",))
    for record, scenario_id in zip(records, ids, strict=True):
        record |= {"id": scenario_id, "inputs": {"memories": [f"She said hello{word}"]}}
    write_jsonl(folder / "scenarios.jsonl", records)
    return str(folder)


def test_a_scenario_called_all_can_be_seen_alone_and_every_one_still(tmp_path: Path) -> None:
    """There was no way to see it."""
    split = split_of(tmp_path, ["all", "b"])
    assert next(prompt_lines("all", split, "full")) == "--- system ---"
    assert [json.loads(line)["id"] for line in prompt_lines(None, split, "full")] == ["all", "b"]


@pytest.mark.parametrize("scenario_id", [None, "a"])
def test_what_acts_on_a_terminal_is_escaped(tmp_path: Path, scenario_id: str | None) -> None:
    """The JSON lines held direction overrides, C1 controls and DEL as they were."""
    split = split_of(tmp_path, ["a"], f" {ACTING} 你好")
    lines = list(prompt_lines(scenario_id, split, "full"))
    assert not set("".join(lines)) & set(ACTING) - set("[2J31m")
    if scenario_id is None:
        assert all(line.isascii() and line.isprintable() for line in lines)
        contents = [m["content"] for m in json.loads(lines[0])["messages"]]
        assert any(f" {ACTING} 你好" in content for content in contents)
