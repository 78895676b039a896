"""A judged run, of which each test gets a copy."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from support.judged_runs import command, evaluated, judge_file


@pytest.fixture(scope="package")
def _judged_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = evaluated(tmp_path_factory.mktemp("judged") / "run")
    command("judge", "run", run, "--judge", judge_file(run))
    return run


@pytest.fixture
def run(_judged_once: Path, tmp_path: Path) -> Path:
    return shutil.copytree(_judged_once, tmp_path / "run")
