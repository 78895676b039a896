"""Ctrl-C at chosen moments of an upload that hangs: the real command line against the double of the Hub."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random

from h2htalk.data.links import read_links
from h2htalk.data.releases.release_folder import read_manifest, verify_files
from support.doubles.hub_double import HubDouble
from support.hubs import client_environment
from support.kills import communicate, wait_until
from support.releases import make_release

REPO = "lab/made"
AFTER_UPLOAD = 3.0  # seconds
# It writes when the command line begins, by the clock that all processes of the machine share: what comes before is
# Python's start, which no program can guard.
TIMED_MAIN = """
import os, sys, time
from h2htalk.cli import main
with open(sys.argv.pop(1), "w") as file:
    file.write(repr(time.monotonic()))
main()
"""


@dataclass(frozen=True)
class Moment:
    """When Ctrl-C comes: `seconds` after the start of the process, or after its first upload began to hang."""

    seconds: float
    after_upload: bool

    @classmethod
    def draw(cls, random: Random, seconds_to_upload: float) -> Moment:
        """Draw a moment from the start to the upload, or, as often, from the upload to `AFTER_UPLOAD` later."""
        if random.random() < 0.5:
            return cls(random.uniform(0, AFTER_UPLOAD), after_upload=True)
        return cls(random.uniform(0, seconds_to_upload), after_upload=False)


@dataclass(frozen=True)
class Ending:
    """How a command ended after Ctrl-C.

    `began`: whether the command line had begun when the signal was sent. `hung`: whether an upload hung then.
    `lived`: seconds from the signal to the end of the process.
    """

    moment: Moment
    began: bool
    hung: bool
    lived: float
    code: int
    stderr: str


def make_release_with_uploads(folder: Path) -> Path:
    """Make a release whose files are sent by several threads, and its private folder."""
    release = make_release(folder / "release")
    (folder / "release.private").mkdir()
    return release


def publish_command(release: Path, begun: Path) -> list[str]:
    words = ["release", "publish", str(release), REPO]
    return [sys.executable, "-c", TIMED_MAIN, str(begun), *words]


def start_publish(hub: HubDouble, folder: Path, release: Path) -> subprocess.Popen[str]:
    """Start a publication in a process of its own, which prints the stacks of its threads on SIGABRT."""
    environment = client_environment(hub, folder, PYTHONFAULTHANDLER="1")
    return subprocess.Popen(
        publish_command(release, folder / "begun"),
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def seconds_to_upload(folder: Path, hub: HubDouble) -> float:
    """Measure the seconds from the start of the process to the first upload, which hangs."""
    release = make_release_with_uploads(folder)
    hub.fault("put", "hang")
    start = time.monotonic()
    with start_publish(hub, folder, release) as process:
        _wait_for_upload(hub, process)
        seconds = time.monotonic() - start
        process.kill()
    return seconds


def _wait_for_upload(hub: HubDouble, process: subprocess.Popen[str]) -> None:
    wait_until(lambda: process.poll() is not None or "put" in hub.points())
    assert process.poll() is None, "the command ended before its first upload"


def interrupt_upload(folder: Path, moment: Moment, hub: HubDouble) -> Ending:
    """Publish a release to a Hub where uploads hang, and send Ctrl-C at a moment.

    Raises AssertionError, with the stacks of all threads, where the process does not end, and where the release or
    the repository is torn.
    """
    release = make_release_with_uploads(folder)
    hub.fault("put", "hang")
    process = start_publish(hub, folder, release)
    if moment.after_upload:
        _wait_for_upload(hub, process)
    time.sleep(moment.seconds)
    hung = "put" in hub.points()
    sent = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, stderr = communicate(process)
    ended = time.monotonic()
    require_untorn(hub, release)
    return Ending(
        moment=moment,
        began=_began(folder / "begun", sent),
        hung=hung,
        lived=ended - sent,
        code=process.returncode,
        stderr=stderr,
    )


def _began(file: Path, sent: float) -> bool:
    """Return whether the command line had begun when the signal was sent."""
    text = file.read_text() if file.exists() else ""
    return bool(text) and float(text) < sent


def require_untorn(hub: HubDouble, release: Path) -> None:
    """Check that the release is whole, and that the repository holds none of it: the upload hangs before the commit."""
    verify_files(release, read_manifest(release))
    repo = hub.repos.get(("dataset", REPO))
    if repo is not None:
        assert repo.tags == {}
        assert list(repo.files()) == [".gitattributes"]
    links = read_links(release.parent / "release.private")  # a torn line would be an error
    assert [link.target for link in links] in ([], [f"hub:{REPO}@v1.0.0"])
