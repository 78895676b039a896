"""The files that a call passes through: `tools/trace_files.py`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_every_window_is_found_in_the_package() -> None:
    tool = Path(__file__).parents[2] / "tools" / "trace_files.py"
    done = subprocess.run([sys.executable, tool], capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    counts = [int(line.split()[0]) for line in done.stdout.splitlines()]
    assert len(counts) == 9
    assert min(counts) > 2
