"""The guard: what a process started is gone when it is gone, kill -9 included; what others started stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from h2htalk.chat.vllm import watchdog
from h2htalk.chat.vllm.processes import LOG_VARIABLE, VLLMProcesses
from h2htalk.errors import ConfigError

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="reads /proc")

# A parent with a guard, and a child that has a child of its own, as an engine has its workers.
PARENT = """
import subprocess, sys, time
from h2htalk.chat.vllm.processes import VLLMProcesses
before = subprocess.Popen(["sleep", "100"])
processes = VLLMProcesses()
nested = "import subprocess, time; p = subprocess.Popen(['sleep', '100']); print(p.pid, flush=True); time.sleep(100)"
with processes.quiet():
    engine = subprocess.Popen([sys.executable, "-c", nested], stdout=subprocess.PIPE, text=True)
worker = engine.stdout.readline().strip()
time.sleep(float(sys.argv[2]))
if sys.argv[1] != "starting":
    processes.ready()
    time.sleep(0.5)
after = subprocess.Popen(["sleep", "100"])
print(before.pid, engine.pid, worker, after.pid, flush=True)
if sys.argv[1] == "close":
    processes.close()
    print("closed", flush=True)
time.sleep(100)
"""


def start(mode: str, wait: float = 0.5, **extra: str) -> tuple[subprocess.Popen[str], list[int]]:
    environment = {key: value for key, value in os.environ.items() if key != LOG_VARIABLE} | extra
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, mode, str(wait)], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert parent.stdout is not None
    return parent, [int(word) for word in parent.stdout.readline().split()]


def gone(pid: int, seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while watchdog.started(pid) is not None:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def finish(parent: subprocess.Popen[str], *pids: int) -> None:
    parent.kill()
    parent.wait()
    assert parent.stdout is not None
    parent.stdout.close()
    for pid in pids:
        if watchdog.started(pid) is not None:
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_when_the_parent_is_killed_its_engine_and_workers_are_too(number: signal.Signals, tmp_path: Path) -> None:
    parent, (before, engine, worker, after) = start("running", TMPDIR=str(tmp_path))
    assert [path.name for path in tmp_path.glob("*/*")] == ["vllm.log"]
    parent.send_signal(number)
    parent.wait()
    assert gone(engine)
    assert gone(worker)
    deadline = time.monotonic() + 5
    while list(tmp_path.iterdir()):
        assert time.monotonic() < deadline, "its temporary folder is still there"
        time.sleep(0.05)
    # Children from before the engine's start and after it are none of the guard's business.
    assert watchdog.started(before)
    assert watchdog.started(after)
    finish(parent, before, after)


def test_a_parent_that_is_killed_while_the_engine_starts_leaves_nothing() -> None:
    parent, (before, engine, worker, after) = start("starting")
    time.sleep(2 * watchdog.LOOK_EVERY)
    parent.kill()
    parent.wait()
    assert gone(engine)
    assert gone(worker)
    finish(parent, before, after)


def test_closing_ends_an_engine_that_did_not_end_by_itself() -> None:
    parent, (before, engine, worker, after) = start("close")
    assert parent.stdout is not None
    assert parent.stdout.readline() == "closed\n"
    assert watchdog.started(engine) is None
    assert watchdog.started(worker) is None
    assert watchdog.started(after)
    finish(parent, before, after)


def test_what_children_and_libraries_print_goes_to_the_log_alone(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(LOG_VARIABLE, raising=False)
    processes = VLLMProcesses()
    log = processes.log
    assert log is not None
    with processes.quiet():
        os.write(1, b"library says so\n")
        subprocess.run(["sh", "-c", "echo child says so >&2"], check=True)
    os.write(1, b"we say so\n")
    assert capfd.readouterr() == ("we say so\n", "")
    assert processes.log_end() == f"; vLLM's log is {log} and ends:\nlibrary says so\nchild says so"
    processes.note_failure(ValueError("because"))
    assert processes.log_end().endswith("ValueError: because")
    processes.close(keep_log=True)
    assert log.exists()
    processes.close()
    assert not log.parent.exists()


def test_an_engine_s_sockets_go_where_they_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VLLM_RPC_BASE_PATH", raising=False)
    processes = VLLMProcesses()
    with processes.own_folder():
        folder = Path(os.environ["VLLM_RPC_BASE_PATH"])
        (folder / "socket").touch()
    assert "VLLM_RPC_BASE_PATH" not in os.environ
    processes.close()
    assert not folder.exists()


def test_without_room_for_temporary_files_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    with pytest.raises(ConfigError, match="set TMPDIR"):
        VLLMProcesses()


def test_who_asks_for_vllm_s_log_sees_it(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LOG_VARIABLE, "INFO")
    processes = VLLMProcesses()
    with processes.quiet():
        os.write(1, b"library says so\n")
    processes.close()
    assert capfd.readouterr().out == "library says so\n"


def test_nothing_is_sent_to_anybody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_NO_USAGE_STATS", "0")
    monkeypatch.setenv("DO_NOT_TRACK", "0")
    VLLMProcesses().close()
    assert (os.environ["VLLM_NO_USAGE_STATS"], os.environ["DO_NOT_TRACK"]) == ("1", "1")
