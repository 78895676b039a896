"""A run with vLLM in process is killed half-way: nothing finished is lost, nothing is asked twice, nothing stays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
from vllm_runs import evaluate_command, vllm_processes, wait_until_gone

# Three starts of the engine.
pytestmark = [pytest.mark.live, pytest.mark.timeout(600)]

ITEMS = 22


def start(model: Path, out: Path) -> subprocess.Popen[str]:
    # Two requests at a time: items finish one after the other, as they do in a long run.
    options = ("--limit", ITEMS, "--max-tokens", 24, "--sap", "none", "--engine-option", "max_num_seqs=2")
    return subprocess.Popen(
        evaluate_command(f"vllm:{model}", out, *options),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C is sent to a whole group: not to ours
    )


def stored(out: Path) -> list[bytes]:
    """The whole lines of the answers so far."""
    path = out / "responses" / "part-0.jsonl"
    return path.read_bytes().split(b"\n")[:-1] if path.exists() else []


def wait_for(out: Path, lines: int, run: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 200
    while len(stored(out)) < lines:
        assert run.poll() is None, run.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_ctrl_c_while_the_engine_starts(tiny: Path, tmp_path: Path) -> None:
    """vLLM takes it for the end of its wait, and would wait for ten minutes for processes that are gone."""
    run = start(tiny, tmp_path / "run")
    deadline = time.monotonic() + 100
    while len(processes := vllm_processes(run.pid)) < 3:  # the guard, the engine and its worker
        assert run.poll() is None, run.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(run.pid, signal.SIGINT)
    _, stderr = run.communicate(timeout=60)
    assert run.returncode == 130
    assert "Traceback" not in stderr
    wait_until_gone(processes)


def test_kill_9_and_ctrl_c_half_way_lose_nothing_and_a_restart_asks_only_the_rest(
    smollm2: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    killed = start(smollm2, out)
    wait_for(out, 6, killed)
    processes = vllm_processes(killed.pid)
    assert len(processes) >= 2, "the engine and its worker"
    killed.kill()
    killed.communicate()
    wait_until_gone(processes)
    first = stored(out)
    assert 6 <= len(first) < ITEMS

    interrupted = start(smollm2, out)
    wait_for(out, len(first) + 4, interrupted)
    processes = vllm_processes(interrupted.pid)
    os.killpg(interrupted.pid, signal.SIGINT)
    _, stderr = interrupted.communicate(timeout=60)
    assert interrupted.returncode not in (0, 3)
    assert "Traceback" not in stderr
    wait_until_gone(processes)
    second = stored(out)
    assert second[: len(first)] == first
    assert len(second) < ITEMS

    finished = start(smollm2, out)
    _, stderr = finished.communicate(timeout=250)
    assert finished.returncode == 0, stderr
    third = stored(out)
    assert third[: len(second)] == second
    asked = Counter(json.loads(line)["id"] for line in third)
    assert len(asked) == ITEMS
    assert set(asked.values()) == {1}
    assert not json.loads((out / "summary.json").read_text())["incomplete"]
