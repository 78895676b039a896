"""A run survives what breaks: a faulty server, kill -9 at any moment, a second writer, a full disk."""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from kills import wait_for
from loopback import LoopbackServer
from splits_made import write_split

from h2htalk.data.run_folder import RunFolder

ITEM = re.compile(r"item\d+")


def start(*words: object, **options: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "h2htalk", "evaluate", *map(str, words), "--embedder", "none", "--no-baselines"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)  # type: ignore[call-overload,no-any-return]


def stored_ids(out: Path) -> Counter[str]:
    """How often each id stands in the run's whole lines as an answer."""
    path = out / "calls.jsonl"
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return Counter(record["id"] for record in map(json.loads, lines) if "text" in record)


def asked(server: LoopbackServer) -> Counter[str]:
    """How often each item of the split was asked, by scenario id."""
    counts: Counter[str] = Counter()
    for message, count in server.counts_by_message().items():
        counts[f"made-{int(ITEM.findall(message)[-1].removeprefix('item')):05}"] += count
    return counts


def test_a_server_that_stops_answering_pauses_the_run_and_the_same_command_goes_on(tmp_path: Path) -> None:
    split, out = write_split(tmp_path / "split", 60), tmp_path / "run"
    command = ("--split", split, "--out", out, "--concurrency", 4, "--timeout", 0.5)

    def answers_ten(payload: object, count: int) -> str:
        return "I am here." if not hanging or server.requests <= 10 else "hang"

    with LoopbackServer(reply=answers_ten) as server:
        for hanging in (True, True, False):
            run = start(server.spec, *command)
            stdout, stderr = run.communicate(timeout=60)
            assert run.returncode == (3 if hanging else 0), stderr
            assert ("warning: paused: http://127.0.0.1" in stdout, "INCOMPLETE" in stdout) == (hanging, hanging)
    assert stored_ids(out) == Counter({f"made-{i:05}": 1 for i in range(60)})


@pytest.mark.slow
def test_kill_9_at_20_random_moments_loses_nothing_and_repeats_only_what_was_in_flight(tmp_path: Path) -> None:
    concurrency, kills = 8, 20
    split, out = write_split(tmp_path / "split", 600), tmp_path / "run"
    draw = random.Random(20)
    command = ("--split", split, "--out", out, "--concurrency", concurrency)
    with LoopbackServer(latency=0.02) as server:
        done = 0
        while done < kills:
            finished, counts = stored_ids(out), asked(server)
            run = start(server.spec, *command)
            # A moment after the first answer of this start, or anywhere in it.
            wait_for(run, lambda: asked(server).total(), counts.total() + 1)
            time.sleep(draw.uniform(0, 0.08))
            run.kill()
            run.communicate()
            done += 1
            now = stored_ids(out)
            assert finished - now == Counter(), "an answer that was stored is gone"
            assert max(now.values(), default=0) <= 1
            repeated = sum((asked(server) - Counter(dict.fromkeys(asked(server), 1))).values())
            assert repeated <= done * concurrency
            for item in finished:
                assert asked(server)[item] == counts[item], "a stored item was asked again"
        last = start(server.spec, *command)
        _, stderr = last.communicate(timeout=60)
        assert last.returncode == 0, stderr
    assert stored_ids(out) == Counter({f"made-{i:05}": 1 for i in range(600)})
    assert len(RunFolder(out).answers()) == 600


def test_ctrl_c_leaves_a_folder_that_goes_on(tmp_path: Path) -> None:
    split, out = write_split(tmp_path / "split", 40), tmp_path / "run"
    with LoopbackServer(latency=0.1) as server:
        run = start(server.spec, "--split", split, "--out", out, "--concurrency", 4)
        wait_for(run, lambda: len(stored_ids(out)))
        run.send_signal(signal.SIGINT)
        _, stderr = run.communicate(timeout=30)
        assert run.returncode == 130
        assert "the same command continues" in stderr
        assert "Traceback" not in stderr
        server.latency = 0
        again = start(server.spec, "--split", split, "--out", out)
        _, stderr = again.communicate(timeout=60)
        assert again.returncode == 0, stderr
