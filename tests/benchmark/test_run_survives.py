"""A run survives what breaks: a faulty server, kill -9 at any moment, a second writer, a full disk."""

from __future__ import annotations

import json
import random
import re
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from loopback import LoopbackServer
from splits_made import write_split

from h2htalk.data.run_folder import RunFolder

ITEM = re.compile(r"item\d+")


def start(*words: object, **options: object) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-m",
        "h2htalk",
        "evaluate",
        *map(str, words),
        "--embedder",
        "none",
        "--no-baselines",
    ]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)  # type: ignore[call-overload,no-any-return]


def stored_ids(out: Path) -> Counter[str]:
    """How often each id stands in the run's whole lines as an answer."""
    path = out / "calls.jsonl"
    if not path.exists():
        return Counter()
    lines = path.read_bytes().split(b"\n")[:-1]
    records = [json.loads(line) for line in lines]
    return Counter(record["id"] for record in records if "text" in record)


def asked(server: LoopbackServer) -> Counter[str]:
    """How often each item of the split was asked, by scenario id."""
    counts: Counter[str] = Counter()
    for message, count in server.counts_by_message().items():
        marks = ITEM.findall(message)
        assert marks, message
        counts[f"made-{int(marks[-1].removeprefix('item')):05}"] += count
    return counts


def test_lasting_faults_leave_every_other_item_and_a_restart_asks_only_the_failed(tmp_path: Path) -> None:
    items = 200
    split, out = write_split(tmp_path / "split", items), tmp_path / "run"
    faults = {"http_500": 0.06, "rate_limited": 0.04, "hang": 0.02, "malformed": 0.03}
    with LoopbackServer(faults=faults) as server:
        drawn = Counter(fault for fault in server_faults(server, split, out, 3).values() if fault)
        summary = json.loads((out / "summary.json").read_text())
        assert sum(drawn.values()) >= 20
        assert summary["counts"]["failures"] == {
            {"hang": "timeout", "malformed": "malformed_reply"}.get(fault, fault): count
            for fault, count in sorted(drawn.items())
        }
        assert summary["counts"]["scored"] == items - sum(drawn.values())
        before = asked(server)
        server.mend()
        server_faults(server, split, out, 0)
        again = asked(server) - before
        assert sum(again.values()) == sum(drawn.values())
        assert not json.loads((out / "summary.json").read_text())["incomplete"]


def server_faults(server: LoopbackServer, split: Path, out: Path, code: int) -> dict[str, str | None]:
    run = start(server.spec, "--split", split, "--out", out, "--timeout", 1)
    stdout, stderr = run.communicate(timeout=120)
    assert run.returncode == code, stderr
    assert ("INCOMPLETE" in stdout) == (code == 3)
    return server.faults_by_message()


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
def test_kill_9_at_20_random_moments_loses_nothing_and_repeats_only_what_was_in_flight(
    tmp_path: Path,
) -> None:
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
            deadline = time.monotonic() + 20
            while asked(server) == counts and time.monotonic() < deadline and run.poll() is None:
                time.sleep(0.01)
            time.sleep(draw.uniform(0, 0.08))
            run.send_signal(signal.SIGKILL)
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


def test_a_second_process_on_the_same_run_is_refused(tmp_path: Path) -> None:
    split, out = write_split(tmp_path / "split", 60), tmp_path / "run"
    with LoopbackServer(latency=0.2) as server:
        first = start(server.spec, "--split", split, "--out", out, "--concurrency", 4)
        while not stored_ids(out):
            assert first.poll() is None
            time.sleep(0.02)
        server.latency = 60  # the first is at work until it is killed
        second = start(server.spec, "--split", split, "--out", out, "--concurrency", 4)
        _, stderr = second.communicate(timeout=30)
        assert second.returncode == 2
        assert "another process is writing it" in stderr
        assert len(stderr.splitlines()) == 1
        first.kill()
        first.communicate()


def test_ctrl_c_leaves_a_folder_that_goes_on(tmp_path: Path) -> None:
    split, out = write_split(tmp_path / "split", 40), tmp_path / "run"
    with LoopbackServer(latency=0.1) as server:
        run = start(server.spec, "--split", split, "--out", out, "--concurrency", 4)
        while not stored_ids(out):
            assert run.poll() is None
            time.sleep(0.02)
        run.send_signal(signal.SIGINT)
        _, stderr = run.communicate(timeout=30)
        assert run.returncode == 130
        assert "the same command continues" in stderr
        assert "Traceback" not in stderr
        server.latency = 0
        again = start(server.spec, "--split", split, "--out", out)
        _, stderr = again.communicate(timeout=60)
        assert again.returncode == 0, stderr


def limit_file_size() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))


def test_a_full_disk_is_one_clear_line_and_nothing_is_corrupted(tmp_path: Path) -> None:
    split, out = write_split(tmp_path / "split", 20), tmp_path / "run"
    with LoopbackServer(reply="long " * 2000) as server:
        run = start(server.spec, "--split", split, "--out", out, preexec_fn=limit_file_size)
        _, stderr = run.communicate(timeout=60)
        assert run.returncode == 2
        assert "disk is full" in stderr
        assert "Traceback" not in stderr
        kept = stored_ids(out)
        assert 0 < len(kept) < 20
        assert (out / "calls.jsonl").read_bytes().endswith(b"\n")
        again = start(server.spec, "--split", split, "--out", out)
        _, stderr = again.communicate(timeout=60)
        assert again.returncode == 0, stderr
        assert stored_ids(out) == Counter({f"made-{i:05}": 1 for i in range(20)})
