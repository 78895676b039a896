"""Every command's tables fit a terminal of 80 columns."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import h2htalk_here
from judged_made import answered_run, judge_file
from runs_made import baseline_run
from studies_made import cases_of, judge_of, studied
from tables import table

from h2htalk.text.tables import Table, _width


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("a-folder-with-a-rather-long-name")
    for name, baseline in (("a", "constant"), ("b", "copy-last-turn"), ("c", "random-reference")):
        baseline_run(folder / name / "run", baseline)
    for study, split in (("sap", "high_risk"), ("instructions", "instructions"), ("memory", "arcs")):
        studied(folder / study, study, judge=judge_of(cases_of(split, "en")[:4]), limit=2)
    (folder / "judged").mkdir()
    answered_run(folder / "judged", [f"Answer number {n}, which is of some length." for n in range(12)])
    return folder


@pytest.mark.parametrize("command", table("cli", "commands"))
def test_tables_have_at_most_80_columns(command: str, made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables of a study had 260."""
    shown, form = list[str](), Table.to_terminal

    def recorded(table: Table, gap: int = 2, width: int = 0) -> str:
        shown.append(form(table, gap, width))
        return shown[-1]

    monkeypatch.chdir(made)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(Table, "to_terminal", recorded)
    done = h2htalk_here(
        *(judge_file(made / "judged" / "run", lambda item: 3) if word == "JUDGE" else word for word in command.split())
    )
    assert done.returncode in (0, 3, 4), done.stderr
    assert shown
    lines = [line for text in shown for line in text.splitlines()]
    assert [line for line in lines if _width(line) > 80] == []
    assert set(lines) - {""} <= {line.rstrip() for line in done.stdout.splitlines()}  # each line as it was made
