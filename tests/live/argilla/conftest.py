"""A real Argilla server, shared by the tests of this folder because it starts slowly."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from argilla_stack import OWNER_KEY, Stack, missing


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    """A running server; a test that kills a part of it starts the part again."""
    lacking = missing()
    if lacking:
        pytest.skip(f"needs an Argilla server: {lacking}")
    # Not in pytest's folder, which only its owner can read: the search engine runs as another user if root starts it.
    # In memory if possible: database and index would wait for the disk at each of thousands of responses.
    memory = Path("/dev/shm")
    place = memory if memory.is_dir() and os.access(memory, os.W_OK) else None
    home = Path(tempfile.mkdtemp(prefix="h2htalk-argilla-", dir=place))
    home.chmod(0o755)
    made = Stack(home)
    try:
        yield made.start()
    finally:
        made.stop()
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def signed_in(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set address and owner's key in the environment."""
    monkeypatch.setenv("ARGILLA_API_URL", stack.url)
    monkeypatch.setenv("ARGILLA_API_KEY", OWNER_KEY)
