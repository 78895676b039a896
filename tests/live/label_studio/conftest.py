"""A real Label Studio server, shared by the tests of this folder because it starts slowly."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from label_studio_server import PROGRAM, TOKEN, LabelStudio


@pytest.fixture(scope="session")
def server() -> Iterator[LabelStudio]:
    """A running server; a test that kills it starts it again."""
    if not PROGRAM.exists():
        pytest.skip("needs a Label Studio server: run `make live-label-studio`, which installs it")
    memory = Path("/dev/shm")
    home = Path(tempfile.mkdtemp(prefix="h2htalk-", dir=memory if os.access(memory, os.W_OK) else None))
    made = LabelStudio(home)
    try:
        yield made.start()
    finally:
        made.stop()
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def connected(server: LabelStudio, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set address and owner's key in the environment."""
    monkeypatch.setenv("LABEL_STUDIO_URL", server.url)
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", TOKEN)
