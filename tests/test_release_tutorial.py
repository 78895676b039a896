"""The tutorial of releases, command by command: from raw conversations to the Hub and back into an evaluation."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from h2htalk.data.files import read_json_object
from h2htalk.data.releases.release_folder import release_hash
from h2htalk.data.splits import load_split
from support.doubles.hub_double import HubDouble
from support.hubs import client_environment

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "tutorials" / "release.md"
_BLOCK = re.compile(r"^```\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands() -> list[str]:
    """The commands of the page, in order, but for `pip install`."""
    lines = [
        line
        for block in _BLOCK.findall(PAGE.read_text(encoding="utf-8"))
        for line in block.splitlines()
    ]
    return [line for line in lines if not line.startswith("pip ")]


@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.timeout(1800)
def test_every_command_of_the_tutorial_runs(tmp_path: Path) -> None:
    for name in ("examples", "tools"):
        shutil.copytree(
            ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("workspace", "__pycache__")
        )
    printed: list[tuple[str, str]] = []
    with HubDouble() as hub:
        environment = client_environment(hub, tmp_path, PYTHONPATH=str(ROOT))
        for command in commands():
            words = command.replace("my-lab/", "lab/").split()
            program = ["-m", "h2htalk", *words[1:]] if words[0] == "h2htalk" else words[1:]
            done = subprocess.run(
                [sys.executable, *program],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                timeout=900,
            )
            # Nobody has read the items, which the dry run says.
            wanted = 3 if "release build" in command and "--dry-run" in command else 0
            assert done.returncode == wanted, f"{command}\n{done.stdout}\n{done.stderr}"
            printed.append((command, done.stdout))
    output = dict(printed)
    # The same hash from the build to the run, and the same items.
    release = tmp_path / "release"
    run = tmp_path / "runs" / "embedded"
    shown = [
        text
        for command, text in printed
        if "release build" in command or "release check" in command
    ][1:]
    assert all(release_hash(release) in text for text in shown)
    split = load_split(release)
    asked = load_split(run / "inputs" / "split")
    assert split.fingerprint in next(
        text for command, text in output.items() if "split info" in command
    )
    assert len(split.scenarios) == 24
    assert asked.scenarios == split.select(language="en").scenarios
    assert 0 < len(asked.scenarios) < 24
    stored = read_json_object(run / "run.json")
    assert asked.fingerprint in json.dumps(stored)
    assert "hub:lab/companion-example@v1.0.0" in json.dumps(stored)
    # Ties were decided by the adjudication, and nobody's name left the rounds.
    assert "adjudication" in (tmp_path / "rounds" / "experts" / "decisions.jsonl").read_text(
        encoding="utf-8"
    )
    names = [
        row.split(",")[0]
        for row in (tmp_path / "examples" / "experts.csv").read_text().splitlines()[1:]
    ]
    published = b"".join(path.read_bytes() for path in release.rglob("*") if path.is_file())
    assert not any(name.encode() in published for name in names)
