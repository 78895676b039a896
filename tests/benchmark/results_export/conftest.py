"""Finished runs, of which each test gets a copy."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

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


def spec_in(folder: Path) -> EvaluateSpec:
    model = scripted(folder, *ANSWERS)
    return EvaluateSpec(model=model, split="mini@1", out=str(folder / "run"), language="en", embedder="minilm")


@pytest.fixture(scope="session")
def _run_with_s(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """English items with S, twice sampled; one answer ends with half a character."""
    spec = replace(spec_in(tmp_path_factory.mktemp("s")), samples=2, temperature=0.7)
    evaluate(spec)
    shard = RunFolder(spec.out_path).shard
    shard.write_text(shard.read_text().replace("HALF", "\\ud83d"))
    score(spec.out_path)
    return spec.out_path


@pytest.fixture(scope="session")
def _lexical_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Items of both languages, without an embedder."""
    spec = replace(spec_in(tmp_path_factory.mktemp("lexical")), language=None, embedder="none")
    evaluate(spec)
    return spec.out_path


@pytest.fixture
def run_with_s(_run_with_s: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(_run_with_s, tmp_path / "run-s"))


@pytest.fixture
def lexical_run(_lexical_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(_lexical_run, tmp_path / "run-lexical"))


@pytest.fixture(scope="session")
def _small_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two items a subtask, without an embedder."""
    spec = replace(spec_in(tmp_path_factory.mktemp("small")), language=None, limit=22, embedder="none")
    evaluate(spec)
    return spec.out_path


@pytest.fixture
def small_run(_small_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(_small_run, tmp_path / "run-small"))
