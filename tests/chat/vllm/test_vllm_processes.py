"""The life of vLLM's processes, with a double of its server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from h2htalk.chat.vllm.engine import VLLMServer
from h2htalk.errors import ConfigError
from support.doubles.vllm_double import alive, family, install, wait_until_gone
from support.kills import wait_until

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="reads /proc")

# A parent that forked a process, which holds the pipe to the supervisor open.
PARENT = """
import os, sys, time
from h2htalk.chat.vllm.engine import VLLMServer
print(os.getpid(), flush=True)
server = VLLMServer("vllm:tiny", {}, os.environ)
if os.fork() == 0:
    time.sleep(100)
print("started", flush=True)
time.sleep(100)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    install(tmp_path / "double", monkeypatch)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path / "tmp"


def test_closing_ends_all_processes_and_nobody_else_can_connect(folder: Path) -> None:
    """Its worker is in a session of its own and outlives the server: the supervisor finds it all the same."""
    before = family(os.getpid())
    server = VLLMServer(
        "vllm:tiny", {"enforce_eager": True, "trust_remote_code": False, "seed": 0}, os.environ
    )
    processes = [pid for pid in family(os.getpid()) if pid not in before]
    assert len(processes) >= 3
    assert server.context == 256
    (own,) = folder.iterdir()
    assert (own.stat().st_mode & 0o777, (own / "socket").is_socket()) == (0o700, True)
    words = Path(f"/proc/{processes[1]}/cmdline").read_text().split("\0")
    assert words[5:9] == ["--enforce-eager", "--no-trust-remote-code", "--seed", "0"]
    environment = Path(f"/proc/{processes[1]}/environ").read_text()
    assert "VLLM_NO_USAGE_STATS=1" in environment
    assert f"VLLM_RPC_BASE_PATH={own}" in environment
    server.close()
    server.close()
    assert not any(map(alive, processes))
    assert not list(folder.iterdir())


def test_a_start_that_fails_names_the_cause_and_the_log(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server's last words are only that its engine failed; the engine's own error lies before."""
    monkeypatch.setenv("VLLM_DOUBLE", "fails")
    before = family(os.getpid())
    with pytest.raises(ConfigError) as caught:
        VLLMServer("vllm:tiny", {}, os.environ)
    (log,) = folder.glob("*/vllm.log")
    start = f"vllm:tiny: vLLM cannot start: ValueError: the cache is too small; vLLM's log is {log} and ends:\n"
    message = str(caught.value)
    assert message.startswith(start)
    assert message.endswith("See root cause above.")
    assert family(os.getpid()) == before


@pytest.mark.parametrize(("number", "mode"), [(signal.SIGKILL, ""), (signal.SIGTERM, "slow")])
def test_when_the_parent_is_killed_all_processes_end(
    number: signal.Signals, mode: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_DOUBLE", mode)
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    assert parent.stdout.readline()
    if not mode:
        assert parent.stdout.readline() == "started\n"
    # The supervisor, the server, its worker; and the process that the parent forked.
    wait_until(lambda: len(family(parent.pid)) >= (3 if mode else 4), "processes are missing")
    processes = family(parent.pid)
    forked = [
        pid for pid in processes if b"-c" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    ]
    parent.send_signal(number)
    parent.wait()
    parent.stdout.close()
    wait_until_gone([pid for pid in processes if pid not in forked])
    wait_until(lambda: not list(folder.iterdir()), "its temporary folder is still there")
    for pid in forked:
        os.kill(pid, signal.SIGKILL)
