"""What a command needs beside a plain installation is looked up before a file is read or a server asked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROBE = Path(__file__).with_name("needs_probe.py")
ROOT = Path(__file__).resolve().parents[2]
EMBEDDED = "h2htalk[embedded]"
LOCAL = "h2htalk[local]"
ROUNDS = "h2htalk[rounds]"
CURATION = "h2htalk[curation]"
OPENAI_KEY = "set OPENAI_API_KEY"
ANTHROPIC_KEY = "set ANTHROPIC_API_KEY"
# Every command that an option or a missing package can keep from its end, with what its message must name. All files
# that they name are there, so that reading one would be seen.
NEEDS: dict[str, str] = {
    "evaluate hf:folder --split split.jsonl --out out": LOCAL,
    "evaluate vllm:folder --split split.jsonl --out out": "h2htalk[vllm]",
    "evaluate embedded --split split.jsonl --out out --embedder none": EMBEDDED,
    "evaluate openai:gpt --split split.jsonl --out out --embedder none": OPENAI_KEY,
    "evaluate anthropic:claude --split split.jsonl --out out --embedder none": ANTHROPIC_KEY,
    "evaluate baseline:constant --split split.jsonl --out out": LOCAL,
    "evaluate baseline:constant --split split.jsonl --out out --embedder minilm": EMBEDDED,
    "evaluate baseline:constant --split split.jsonl --out out --embedder bge-m3:folder": LOCAL,
    "evaluate hf:folder --split split.jsonl --out out --shard 1/2": LOCAL,
    "evaluate openai:gpt --split split.jsonl --out out --shard 1/2": OPENAI_KEY,
    "score folder --embedder minilm": EMBEDDED,
    "import responses replies.jsonl --split split.jsonl --out out --embedder minilm": EMBEDDED,
    "import inspect log.json --out out --embedder minilm": EMBEDDED,
    "import opencompass folder --out out --embedder minilm": EMBEDDED,
    "study sap hf:folder --out out --embedder none --judge server:judge@http://127.0.0.1:9": LOCAL,
    "study sap server:m@http://127.0.0.1:9 --out out --embedder none --judge openai:gpt": OPENAI_KEY,
    "study memory server:m@http://127.0.0.1:9 --split split.jsonl --out out --embedder minilm": EMBEDDED,
    "study instructions vllm:folder --out out": "h2htalk[vllm]",
    "study score folder --embedder minilm": EMBEDDED,
    "study contamination hf:folder --split split.jsonl --out out": LOCAL,
    "study open-round folder --out out": ROUNDS,
    "study close-round folder folder": ROUNDS,
    "adjudicate open folder --out out": ROUNDS,
    "adjudicate close folder folder": ROUNDS,
    "judge run folder --judge hf:folder": LOCAL,
    "judge run folder --judge openai:gpt": OPENAI_KEY,
    "judge probe vllm:folder --out out": "h2htalk[vllm]",
    "judge plan-labels folder --labels 30 --open out": ROUNDS,
    "round open crowd split.jsonl --out out": ROUNDS,
    "round close folder": ROUNDS,
    "curate run curate.toml": CURATION,
    "curate run curate.toml --stage dedup": CURATION,
    "curate run curate.toml --dry-run": CURATION,
    "curate run curate.toml --executor ray": "h2htalk[ray]",
    "release build release.toml --out out": CURATION,
    "release check split.jsonl": CURATION,
    "launch ray suite.toml": "h2htalk[ray]",
    "launch slurm suite.toml --submit": "is not installed here",
    "launch stop suite.toml": "is not installed here",
    "analyze split.jsonl --out out": "h2htalk[analysis]",
    "results export folder --to inspect --out out": "h2htalk[inspect]",
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("needs")
    for name in (
        "split.jsonl",
        "replies.jsonl",
        "log.json",
        "curate.toml",
        "release.toml",
        "suite.toml",
    ):
        (folder / name).write_text("nothing that can be read\n")
    (folder / "folder").mkdir()
    for name in ("run.json", "study.json", "round.json", "config.json"):
        (folder / "folder" / name).write_text("nothing that can be read\n")
    commands = [words.split() for words in NEEDS]
    variables = {
        key: value
        for key, value in os.environ.items()
        if not key.endswith(("_API_KEY", "_BASE_URL"))
    }
    environment = {
        **variables,
        "PYTHONPATH": str(ROOT),
        "PATH": str(folder),
        "HF_HOME": str(folder / "none"),
    }
    program = [sys.executable, str(PROBE), json.dumps(commands)]
    done = subprocess.run(
        program,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(NEEDS, map(json.loads, done.stdout.splitlines()), strict=True))


@pytest.mark.parametrize("command", NEEDS)
def test_what_is_needed_is_named_before_anything_is_read(
    command: str, answers: dict[str, dict[str, Any]]
) -> None:
    """`study open-round` read a study for 14 s before it said that h2htalk[rounds] is missing."""
    answer = answers[command]
    assert (answer["code"], answer["message"].count("\n")) == (2, 1), answer["message"]
    assert NEEDS[command] in answer["message"]
    assert answer["opened"] == []
    assert answer["asked"] == []
    assert answer["seconds"] < 5  # of which nearly all is importing our own modules
