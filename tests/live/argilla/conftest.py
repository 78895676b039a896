"""A real Argilla server, shared by the tests of this folder because it starts slowly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.live.argilla_server import OWNER_KEY, Stack, missing
from support.live.real_servers import running


@pytest.fixture(scope="session")
def stack(home: Path) -> Iterator[Stack]:
    """A running server; a test that kills a part of it starts the part again."""
    if lacking := missing():
        pytest.skip(f"needs an Argilla server: {lacking}")
    made = Stack(home)
    with running(made, ARGILLA_API_URL=made.url, ARGILLA_API_KEY=OWNER_KEY):
        yield made
