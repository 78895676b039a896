"""The public functions of `h2htalk`: what there is, that nothing loads before it is used, and that examples run."""

from __future__ import annotations

import doctest
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import h2htalk
from h2htalk.benchmark.judge.rubric import rubric_of
from h2htalk.errors import ConfigError

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
    *(
        "load_split",
        "evaluate",
        "load_run",
        "leaderboard",
        "compare",
        "correlate",
        "plan",
        "export_results",
    ),
    *(
        "verify_results",
        "curate",
        "check_guard",
        "open_round",
        "close_round",
        "analyze",
        "judge_run",
        "judge_probe",
    ),
    *("open_adjudication", "close_adjudication", "run_study", "score_study"),
    *("load_study", "gate"),
)
# Shown by the tutorial of releases, whose commands a test runs.
IN_A_TUTORIAL = {"build_release", "check_release"}


def write_curation(folder: Path) -> None:
    turns = [
        {"role": role, "content": f"It rained all day, turn {n}."}
        for n, role in enumerate(("user", "assistant"))
    ]
    (folder / "chats.jsonl").write_text(json.dumps({"id": "1", "messages": turns}) + "\n")
    (folder / "curate.toml").write_text(CURATION)
    (folder / "replies.jsonl").write_text(json.dumps({"id": "*", "text": "I am here."}) + "\n")
    (folder / "judge.jsonl").write_text(
        json.dumps({"id": "*", "text": rubric_of("itinerary_basic").example()}) + "\n"
    )


def test_the_package_has_the_functions_that_the_commands_call() -> None:
    functions = {name for name in h2htalk.__all__ if name.islower() and not name.startswith("_")}
    assert functions == set(EXAMPLES) | IN_A_TUTORIAL
    assert dir(h2htalk) == sorted(h2htalk.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'evalute'"):
        h2htalk.evalute  # noqa: B018


def test_importing_the_package_loads_nothing_else() -> None:
    code = "import sys, h2htalk; print(*[m for m in sys.modules if m.startswith('h2htalk')])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert sorted(done.stdout.split()) == ["h2htalk", "h2htalk.version"]


def test_every_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_curation(tmp_path)
    runner = doctest.DocTestRunner()
    for name in EXAMPLES:
        (example,) = doctest.DocTestFinder(recurse=False).find(
            getattr(h2htalk, name), name, globs={}
        )
        assert example.examples, f"{name} has no example"
        shown: list[str] = []
        assert runner.run(example, out=shown.append).failed == 0, "".join(shown)


RUN = {
    "model": "baseline:constant",
    "split": "mini@1",
    "out": "run",
    "embedder": "none",
    "limit": 22,
}


def round_of(**change: Any) -> Callable[[], object]:
    spec = h2htalk.RoundSpec(**{"kind": "crowd", "items": "mini@1", **change})
    return lambda: h2htalk.open_round(spec, "round")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (round_of(kind="crwd"), "RoundSpec: kind: must be 'crowd', "),
        (
            lambda: h2htalk.open_round(h2htalk.RoundSpec("crowd", "mini@1"), " "),
            "out: ' ' is not a path",
        ),
        (
            lambda: h2htalk.EvaluateSpec(**RUN, subtasks="dialogue_base"),
            "--subtask: must be a list",
        ),
        (lambda: h2htalk.load_run(None), "path: None is not a path"),
        (
            lambda: h2htalk.export_results("run", "zip", "b"),
            "--to 'zip': choose from eval-results, every",
        ),
        (lambda: h2htalk.curate("curate.toml", processes="2"), "processes: must be a whole number"),
    ],
)
def test_a_wrong_argument_is_one_line_and_writes_nothing(
    call: Callable[[], object], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "curate.toml").write_text(CURATION)
    with pytest.raises(ConfigError) as raised:
        call()
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)
    assert [path.name for path in tmp_path.iterdir()] == ["curate.toml"]
