"""The command line as a user types it, in a process of its own or in this one, and a model of written replies."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

from h2htalk.cli import main
from h2htalk.data.files import write_jsonl
from support.kills import run_to_end

CONSTANT = {"id": "*", "text": "I hear you. Tell me about your day."}


def h2htalk(
    *words: object, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "h2htalk", *map(str, words)]
    return run_to_end(command, cwd=cwd, env=env)


def h2htalk_here(*words: object) -> subprocess.CompletedProcess[str]:
    """The same in this process: for many commands that end before anything heavy is loaded."""
    command = ["h2htalk", *map(str, words)]
    stdout, stderr, code = io.StringIO(), io.StringIO(), 0
    output = contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr)
    with patch.object(sys, "argv", command), output[0], output[1]:
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
    return subprocess.CompletedProcess(command, code, stdout.getvalue(), stderr.getvalue())


def scripted(folder: Path, *lines: dict[str, object]) -> str:
    """The name of a model that answers what the lines say; without any, the same to every item."""
    path = folder / "script.jsonl"
    write_jsonl(path, lines or (CONSTANT,))
    return f"scripted:{path}"
