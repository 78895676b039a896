"""The workflow of docs/how-to/gate-in-ci.md, run as it is printed but for the line that installs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from email.message import Message
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as xml

import yaml
from http_server import Answer, HttpServer
from loopback import LoopbackServer
from provider_model import fill

DOCS = Path(__file__).parents[3] / "docs/how-to"


class Companion(HttpServer):
    """An application that the adapter of docs/how-to/test-an-app.md fits."""

    def serve(self, method: str, target: str, headers: Message, read: Callable[[], bytes]) -> Answer:
        read()
        if headers.get("Authorization") != "Bearer made-up-key-1234":
            return Answer(401)
        return Answer.json({"data": {"id": "s1"}, "message": {"content": "I hear you, and I am here."}})


def content(asked: dict[str, Any], times: int) -> str:
    """A judge to whom no statement is true and everything deserves the highest score."""
    schema = asked["response_format"]["json_schema"]["schema"]
    parts = fill(schema, schema)
    return json.dumps(
        {name: part | ({"score": 5} if "score" in part else {"answer": False}) for name, part in parts.items()}
    )


def block(page: str, kind: str) -> str:
    found = re.search(rf"^```{kind}\n(.*?)^```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


def test_the_printed_workflow_passes_where_nothing_became_worse(tmp_path: Path) -> None:
    """Its policy limits `cost`, which `study app` does not know: the gate always said no."""
    steps = [one for one in yaml.safe_load(block("gate-in-ci.md", "yaml"))["jobs"]["gate"]["steps"] if "run" in one]
    assert steps.pop(0)["run"] == "pip install h2htalk"
    (tmp_path / "gate.toml").write_text(block("gate-in-ci.md", "toml"))
    (tmp_path / "app.toml").write_text(block("test-an-app.md", "toml"))
    (tmp_path / "bin").mkdir()
    for name, command in (("start-the-companion", ":"), ("bin/h2htalk", f'exec "{sys.executable}" -m h2htalk "$@"')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{command}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "summary.md").write_text("")
    secrets = {"OPENAI_API_KEY": "sk-made-up", "COMPANION_KEY": "made-up-key-1234"}
    made = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(DOCS.parents[1])}
    made["GITHUB_STEP_SUMMARY"] = str(tmp_path / "summary.md")
    with Companion() as app, LoopbackServer(reply=content) as judge:
        for step in steps:
            names = {name: re.findall(r"secrets\.(\w+)", text)[0] for name, text in step.get("env", {}).items()}
            done = subprocess.run(
                ["bash", "-e", "-c", step["run"].replace("http://127.0.0.1:8080", app.url)],
                cwd=tmp_path,
                env={**made, "OPENAI_BASE_URL": judge.url, **{name: secrets[secret] for name, secret in names.items()}},
                capture_output=True,
                text=True,
                timeout=120,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            if "study app" in step["run"]:
                shutil.copytree(tmp_path / "nightly", tmp_path / "released")
    cases = xml.parse(tmp_path / "gate.xml").findall(".//testcase")
    assert len(cases) == 4
    assert not [part.tag for one in cases for part in one if part.tag in ("failure", "skipped", "error")]
    assert (tmp_path / "summary.md").read_text().splitlines()[0].endswith(": passed")
