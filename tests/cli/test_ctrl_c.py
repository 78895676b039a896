"""Ctrl-C ends the command line in seconds, wherever it waits: for models, judges, annotation servers and uploads."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from email.message import Message
from pathlib import Path
from random import Random

import pytest

from h2htalk.cli.output import STOPPED
from h2htalk.data.releases.hub import publish
from h2htalk.interrupts import INTERRUPTED, LONGEST_STOP
from support.doubles.hub_double import HubDouble
from support.doubles.loopback import Answer, HttpServer
from support.hubs import hub_here
from support.interrupts import REPO, Ending, Moment, interrupt_upload
from support.kills import communicate, run_to_end, wait_for

LONGEST_LIFE = LONGEST_STOP + 2.0  # seconds after Ctrl-C
MOMENTS = int(os.environ.get("H2HTALK_CTRL_C", "5"))
AT_ONCE = 4
ROUND = "round open crowd mini@1 --overlap 1 --annotators annotators.csv --out round --where"


class HangingServer(HttpServer):
    """A server that answers nothing, and counts what it was asked."""

    requests = 0

    def serve(self, method: str, target: str, headers: Message, body: bytes) -> Answer | str:
        self.requests += 1
        return "hang"


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("evaluate MODEL --split mini@1 --embedder none --out run", id="model"),
        pytest.param("judge probe MODEL --language en --out probe", id="judge"),
        pytest.param(f"{ROUND} argilla", id="argilla"),
        pytest.param(f"{ROUND} label-studio", id="label-studio"),
    ],
)
def test_a_command_that_waits_for_a_server_ends(command: str, tmp_path: Path) -> None:
    (tmp_path / "annotators.csv").write_text(
        "name,languages,crisis\n"
        + "".join(f"annotator-{number},en zh,yes\n" for number in range(30))
    )
    with HangingServer() as server:
        environment = {
            **os.environ,
            "ARGILLA_API_URL": server.url,
            "ARGILLA_API_KEY": "a-key-of-the-owner-77",
            "LABEL_STUDIO_URL": server.url,
            "LABEL_STUDIO_API_KEY": "a-key-of-the-owner-77",
        }
        words = command.replace("MODEL", f"server:tiny@{server.url}/v1").split()
        process = subprocess.Popen(
            [sys.executable, "-m", "h2htalk", *words],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_for(process, lambda: server.requests)
        assert process.poll() is None, process.communicate()
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, stderr = communicate(process)
        lived = time.monotonic() - sent
    assert (process.returncode, "Traceback" in stderr) == (INTERRUPTED, False), stderr
    assert lived < LONGEST_LIFE


def test_an_upload_that_hangs_ends_at_random_moments_and_the_same_command_completes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some ended with a traceback, as an interrupted import fails with another error, and some after 8 seconds."""
    draw = Random()
    moments = [Moment.draw(draw, seconds_to_upload=3.0) for _ in range(MOMENTS)]
    folders = [tmp_path / str(number) for number in range(MOMENTS)]
    hubs = [HubDouble() for _ in range(MOMENTS)]

    def interrupt(folder: Path, moment: Moment, hub: HubDouble) -> Ending:
        folder.mkdir()
        with hub:
            return interrupt_upload(folder, moment, hub)

    with ThreadPoolExecutor(AT_ONCE) as threads:
        endings = list(threads.map(interrupt, folders, moments, hubs))
    for ending in endings:
        assert ending.lived < LONGEST_LIFE, ending
        # Before the command line begins, Python itself starts, and ends by SIGINT or with an error of its start.
        if ending.began:
            assert (ending.code, "Traceback" in ending.stderr) == (INTERRUPTED, False), ending
    for folder, hub in zip(folders, hubs, strict=True):
        hub.faults.clear()
        with monkeypatch.context() as patch, hub_here(folder / "again", patch, hub):
            publish(folder / "release", REPO)
        repo = hub.dataset(REPO)
        assert (repo.tags, len(repo.commits)) == ({"v1.0.0": repo.head.sha}, 2)


HANGING = """
import os, signal, sys, threading
from concurrent.futures import ThreadPoolExecutor
import h2htalk.cli as cli
import h2htalk.cli.output as output

def hang():
    try:
        os.kill(os.getpid(), signal.SIGINT)
        threading.Event().wait()
    except KeyboardInterrupt:
        HANG

output.LONGEST_STOP = 0.5
cli.app = hang
sys.argv[1:] = []
cli.main()
"""


@pytest.mark.parametrize(
    "hang",
    [
        pytest.param("threading.Event().wait()", id="the interrupt is swallowed"),
        pytest.param(
            "ThreadPoolExecutor(1).submit(threading.Event().wait); raise OSError(5, 'cut')",
            id="error",
        ),
        pytest.param(
            "ThreadPoolExecutor(1).submit(threading.Event().wait); sys.exit(3)", id="exit"
        ),
        pytest.param(
            "threading.Thread(target=threading.Event().wait).start()", id="a thread hangs"
        ),
    ],
)
def test_whatever_becomes_of_the_interrupt_the_command_ends(hang: str) -> None:
    """Destructors and callbacks swallow it; Python waits for threads at its end."""
    code = HANGING.replace("HANG", hang)
    ended = run_to_end([sys.executable, "-c", code])
    assert (ended.returncode, "Traceback" in ended.stderr) == (INTERRUPTED, False), ended.stderr


def test_an_error_after_ctrl_c_is_named() -> None:
    """It is taken for the interrupt's consequence, but may be a defect that shows then."""
    code = HANGING.replace("HANG", "raise ValueError('no such cell')")
    ended = run_to_end([sys.executable, "-c", code])
    assert ended.stderr.splitlines() == [
        "error: while it stopped: ValueError: no such cell",
        STOPPED,
    ]


def test_a_program_that_calls_the_command_line_keeps_its_own_signals() -> None:
    code = """
import signal, sys, threading
from h2htalk.cli import main
sys.argv[1:] = ["--version"]
try:
    main()
except SystemExit:
    pass
assert signal.set_wakeup_fd(-1) == -1
for thread in threading.enumerate():
    if thread.daemon:
        thread.join()
print("went on")
"""
    ended = run_to_end([sys.executable, "-c", code])
    assert (ended.returncode, ended.stdout.splitlines()[-1]) == (0, "went on"), ended.stderr
