"""A real Label Studio server, shared by the tests of this folder because it starts slowly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.live.label_studio_server import PROGRAM, TOKEN, LabelStudio
from support.live.real_servers import running


@pytest.fixture(scope="session")
def server(home: Path) -> Iterator[LabelStudio]:
    """A running server; a test that kills it starts it again."""
    if not PROGRAM.exists():
        pytest.skip("needs a Label Studio server: run `make live-label-studio`, which installs it")
    made = LabelStudio(home)
    with running(made, LABEL_STUDIO_URL=made.url, LABEL_STUDIO_API_KEY=TOKEN):
        yield made
