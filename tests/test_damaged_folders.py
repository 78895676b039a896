"""Folders with one place damaged: every command that reads them ends with one line and a documented exit code.

`H2HTALK_DAMAGES=500` damages each folder as often; a finding names its seed.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from support.damage import damage_value
from support.damaged_folders import TARGETS
from support.damaged_runs import Target, findings, run_command, words_of

DAMAGES = int(os.environ.get("H2HTALK_DAMAGES", "4"))


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_a_damaged_folder_ends_a_command_in_one_line(
    target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "made-up-key-1234")
    whole = tmp_path / "whole"
    whole.mkdir()
    target.make(whole)
    found = [
        f"{one.target} {one.seed}: {one.damage}: {one.command}: {one.outcome.cause}"
        for one in findings(target, whole, tmp_path, range(DAMAGES))
    ]
    assert not found, "\n".join(found)


def test_the_runner_sees_a_traceback_and_an_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A runner that finds nothing proves nothing."""
    assert run_command(words_of("split list", tmp_path), tmp_path).cause == ""
    assert run_command(words_of("split info ROOT/none", tmp_path), tmp_path).code == 2
    monkeypatch.setattr("support.damaged_runs.main", lambda: [].pop())
    assert "IndexError" in run_command(["runs"], tmp_path).cause


def test_the_same_seed_does_the_same_damage() -> None:
    def damages() -> list[tuple[str, str]]:
        draw = random.Random(7)
        return [damage_value({"a": [1, {"b": "c"}], "d": None}, draw) for _ in range(50)]

    assert damages() == damages()
    assert len({text for text, _ in damages()}) > 20
