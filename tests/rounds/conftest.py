"""A small Argilla server, if the client is installed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from argilla_double import OWNER_KEY, ArgillaDouble


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ArgillaDouble]:
    """The server, with address and key in the environment, and without pauses before retries."""
    pytest.importorskip("argilla")
    monkeypatch.setattr("h2htalk.rounds.argilla.client.time.sleep", lambda seconds: None)
    with ArgillaDouble() as double:
        monkeypatch.setenv("ARGILLA_API_URL", double.url)
        monkeypatch.setenv("ARGILLA_API_KEY", OWNER_KEY)
        yield double
