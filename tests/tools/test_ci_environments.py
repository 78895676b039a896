"""Which of the environments that take long a run of `.ci/run` tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
from ci_environments import COMMITS, ENVIRONMENTS, drawn, last_drawn, plan, record_file, recorded

TARGETS = [environment.target for environment in ENVIRONMENTS]


def commit(repository: Path, path: str, text: str) -> None:
    file = repository / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    identity = [
        "-c",
        "user.name=h2htalk",
        "-c",
        "user.email=h2htalk@example.org",
        "-c",
        "commit.gpgsign=false",
    ]
    for arguments in (["add", "--all"], [*identity, "commit", "--quiet", "--message", text]):
        subprocess.run(["git", *arguments], cwd=repository, check=True, capture_output=True)


def head_of(repository: Path) -> str:
    return subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=repository, text=True).strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    for number in range(COMMITS + 1):
        commit(folder, "docs/page.md", f"Sentence {number}")
    return folder


def test_landings_of_an_even_number_of_commits_reach_every_environment(repository: Path) -> None:
    """The count of commits drew one of six environments, so that three of them were never reached."""
    reached: set[str] = set()
    for landing in range(80):
        for part in range(2):
            commit(repository, "docs/page.md", f"Landing {landing}, part {part}")
        rows = {target: choice for target, choice, *_ in plan(repository, {})}
        running = [target for target, choice in rows.items() if choice == "run"]
        assert running == [drawn(head_of(repository)).target]
        reached.update(running)
        if reached == set(TARGETS):
            break
    assert reached == set(TARGETS)


def test_what_the_last_commits_touched_runs_beside_the_draw(repository: Path) -> None:
    commit(repository, "h2htalk/rounds/status.py", "A change of rounds")
    running = {
        target: reason for target, choice, reason, _ in plan(repository, {}) if choice == "run"
    }
    assert {"live-argilla", "live-label-studio"} <= running.keys()
    assert "touched what it covers" in running["live-argilla"]
    assert running.keys() <= {
        "live-argilla",
        "live-label-studio",
        drawn(head_of(repository)).target,
    }


def test_a_history_that_is_too_short_tests_everything(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    commit(tmp_path, "docs/page.md", "The first commit")
    assert [choice for _, choice, *_ in plan(tmp_path, {})] == ["run"] * len(TARGETS)


def test_each_environment_says_when_it_was_tested_last(repository: Path, tmp_path: Path) -> None:
    history = last_drawn(repository)
    assert history
    for target, _, _, when in plan(
        repository, {"live-scale": "2026-11-02 10:00 UTC at 0123456789"}
    ):
        if target == "live-scale":
            assert when == "ran last 2026-11-02 10:00 UTC at 0123456789"
        elif target in history:
            assert history[target] in when
        else:
            assert "none of the last" in when


def test_a_run_is_recorded_on_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    script = Path(__file__).parents[2] / "tools" / "ci_environments.py"
    for target in ("live-vllm", "live-scale", "live-vllm"):
        subprocess.run(
            [sys.executable, script, "--record", target], check=True, env=dict(os.environ)
        )
    runs = recorded(record_file())
    assert runs.keys() == {"live-vllm", "live-scale"}
    assert " UTC at " in runs["live-vllm"]
