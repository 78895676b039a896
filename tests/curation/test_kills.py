"""`kill -9` twice in every stage: the same bytes in the end, and only calls in flight are repeated."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from h2htalk.curation.curate import summaries
from h2htalk.curation.stages import STAGES
from h2htalk.curation.workspace import Workspace
from support.curations import all_bytes, source
from support.doubles.providers import ProviderServer, price_file

pytestmark = pytest.mark.live

IN_FLIGHT = 32  # calls of one stage at once (`CallSettings.concurrency`)
KILLS = 2
EXAMPLES = Path(__file__).parents[2] / "examples"
SPEC = f"""
workspace = "workspace"
part = 8
processes = 2
prices = "prices.toml"
{source("made_en", EXAMPLES / "raw_en.jsonl", "dialogues", "limit = 60")}
{source("made_zh", EXAMPLES / "raw_zh.jsonl", "dialogues", "limit = 60").replace('"en"', '"zh"')}
[compose]
model = "openai:gpt-test"
references = 1

[review]
model = "anthropic:claude-test"
samples = 2
"""


def made(folder: Path) -> Path:
    """A new project."""
    folder.mkdir()
    (folder / "prices.toml").write_text(price_file())
    spec = folder / "curate.toml"
    spec.write_text(SPEC)
    return spec


def start(spec: Path, server: ProviderServer) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "h2htalk", "curate", "run", str(spec)]
    return subprocess.Popen(
        command, env=server.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def progress(folder: Path) -> int:
    """A number that grows while a stage runs: its parts and the lines of its calls."""
    lines = sum(len(path.read_bytes().splitlines()) for path in folder.glob("calls.jsonl"))
    return len(list(folder.glob("parts/*.json"))) + len(list(folder.glob("work/**/*"))) + lines


def kill_within(stage: Path, spec: Path, server: ProviderServer, beyond: int) -> bool:
    """Start, and kill when the stage has made progress; False where it finished first."""
    running = start(spec, server)
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline and running.poll() is None:
        if (stage / "stage.json").exists() and progress(stage) > beyond:
            break
        time.sleep(0.002)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    return not (stage / "summary.json").exists()


@pytest.mark.timeout(1500)
def test_kills_in_every_stage(tmp_path: Path) -> None:
    with ProviderServer(latency=0.02) as server:
        control = made(tmp_path / "control")
        assert start(control, server).wait() == 0
        whole = Workspace(tmp_path / "control" / "workspace")
        paid = len(server.charged())

        spec = made(tmp_path / "killed")
        killed = Workspace(tmp_path / "killed" / "workspace")
        killed.path.mkdir()
        # Surrogates and fences depend on the key.
        for name in ("secret.key", "workspace.json"):
            shutil.copy(whole.path / name, killed.path / name)
        caught = 0
        for name in STAGES:
            folder = killed.stage(name).path
            for _ in range(KILLS):
                if (folder / "summary.json").exists():
                    break
                caught += kill_within(folder, spec, server, progress(folder))
        assert start(spec, server).wait() == 0
        again = len(server.charged()) - paid

    for name in STAGES:
        assert all_bytes(killed.stage(name)) == all_bytes(whole.stage(name)), name
    assert [s.counts for s in summaries(killed)] == [s.counts for s in summaries(whole)]
    assert caught >= len(STAGES)
    assert paid <= again <= paid + 2 * KILLS * IN_FLIGHT
