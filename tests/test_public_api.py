"""The public functions of `h2htalk`: what there is, that nothing loads before it is used, and that examples run."""

from __future__ import annotations

import doctest
import json
import subprocess
import sys
from pathlib import Path

import pytest

import h2htalk

CURATION = """
workspace = "workspace"
[[gather.sources]]
name = "chats"
path = "chats.jsonl"
format = "messages"
language = "en"
licence = "CC0-1.0"
"""
# In an order in which each finds what the one before it left.
EXAMPLES = (
    "load_split",
    "evaluate",
    "load_run",
    "leaderboard",
    "curate",
    "open_round",
    "close_round",
    "analyze",
)


def test_the_package_has_the_functions_that_the_commands_call() -> None:
    functions = {name for name in h2htalk.__all__ if name.islower() and not name.startswith("_")}
    assert functions == set(EXAMPLES)
    assert dir(h2htalk) == sorted(h2htalk.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'evalute'"):
        h2htalk.evalute  # noqa: B018


def test_importing_the_package_loads_nothing_else() -> None:
    code = "import sys, h2htalk; print(*[m for m in sys.modules if m.startswith('h2htalk')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert sorted(done.stdout.split()) == ["h2htalk", "h2htalk.version"]


def test_every_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    turns = [{"role": role, "content": f"It rained all day, turn {n}."} for n, role in enumerate(("user", "assistant"))]
    (tmp_path / "chats.jsonl").write_text(json.dumps({"id": "1", "messages": turns}) + "\n")
    (tmp_path / "curate.toml").write_text(CURATION)
    runner = doctest.DocTestRunner()
    for name in EXAMPLES:
        (example,) = doctest.DocTestFinder(recurse=False).find(getattr(h2htalk, name), name, globs={"Path": Path})
        assert example.examples, f"{name} has no example"
        shown: list[str] = []
        assert runner.run(example, out=shown.append).failed == 0, "".join(shown)


def test_a_run_is_loaded_as_tables(tmp_path: Path) -> None:
    spec = h2htalk.EvaluateSpec(
        model="baseline:random-reference", split="mini", out=str(tmp_path / "run"), limit=22, embedder="none"
    )
    summary = h2htalk.evaluate(spec)
    run = h2htalk.load_run(tmp_path / "run")
    assert run.summary == summary
    scores, items = run.scores(), run.items()
    assert (scores.num_rows, items.num_rows) == (22, 22)
    assert items.column("id").to_pylist() == [s.id for s in run.data.split.scenarios]
    by_id = dict(zip(scores.column("id").to_pylist(), scores.column("lexical").to_pylist(), strict=True))
    for row in items.to_pylist():
        assert row["lexical"] == pytest.approx(by_id[row["id"]])
        assert (len(row["answers"]), row["s"]) == (1, None)
