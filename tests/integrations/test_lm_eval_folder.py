"""The folder of lm-eval's tasks."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from h2htalk.cli import app


def test_the_command_prints_the_folder_of_the_tasks() -> None:
    result = CliRunner().invoke(app, ["integrations", "lm-eval"])
    assert result.exit_code == 0
    (line,) = result.stdout.splitlines()
    folder = Path(line)
    assert {path.name for path in folder.glob("*.yaml")} == {
        "h2htalk_mini.yaml",
        "h2htalk_mini_en.yaml",
        "h2htalk_mini_zh.yaml",
    }
