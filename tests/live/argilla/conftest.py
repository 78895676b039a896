"""A real Argilla server for the tests of this folder; one for all of them, as it takes a while to come up."""

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
    """A server that runs; a test that kills a part of it starts that part again."""
    lacking = missing()
    if lacking:
        pytest.skip(f"needs an Argilla server: {lacking}")
    # Not in pytest's folder, which only its owner may enter: the search engine is another user where root starts it.
    # In memory where that is at hand: database and index wait for the disk at each of thousands of answers.
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
    """Commands find the server, with its owner's key."""
    monkeypatch.setenv("ARGILLA_API_URL", stack.url)
    monkeypatch.setenv("ARGILLA_API_KEY", OWNER_KEY)
