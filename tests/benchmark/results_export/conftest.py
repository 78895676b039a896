"""Finished runs, of which each test gets a copy."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import scripted

from h2htalk.benchmark.evaluate import evaluate
from h2htalk.benchmark.score_run import score
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.data.run_folder import RunFolder

ANSWERS = (
    {"id": "*", "text": "I hear you. (sits down) Tell me about your day."},
    {"id": "mini-en-dialogue-base-01", "text": "<think>Hm.</think>Half a face: HALF"},
)
KINDS: dict[str, dict[str, Any]] = {
    "s": {"language": "en", "embedder": "minilm", "samples": 2, "temperature": 0.7},
    "lexical": {},
    "small": {"limit": 22},
}


@pytest.fixture(scope="session")
def _runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    common = EvaluateSpec(model=scripted(folder, *ANSWERS), split="mini@1", out="x", embedder="none")
    for name, settings in KINDS.items():
        evaluate(replace(common, out=str(folder / name), **settings))
    shard = RunFolder(folder / "s").shard
    shard.write_text(shard.read_text().replace("HALF", "\\ud83d"))
    score(folder / "s")
    return folder


@pytest.fixture
def run_with_s(_runs: Path, tmp_path: Path) -> Path:
    """English items with S, twice sampled; one answer ends with half a character."""
    return shutil.copytree(_runs / "s", tmp_path / "run-s")


@pytest.fixture
def lexical_run(_runs: Path, tmp_path: Path) -> Path:
    """Items of both languages, without an embedder."""
    return shutil.copytree(_runs / "lexical", tmp_path / "run-lexical")


@pytest.fixture
def small_run(_runs: Path, tmp_path: Path) -> Path:
    """Two items a subtask, without an embedder."""
    return shutil.copytree(_runs / "small", tmp_path / "run-small")
