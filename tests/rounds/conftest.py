"""Small servers of both kinds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.doubles.argilla_double import OWNER_KEY, ArgillaDouble
from support.doubles.label_studio_double import TOKEN, LabelStudioDouble


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ArgillaDouble]:
    """The server, with address and key in the environment, and without pauses before retries."""
    pytest.importorskip("argilla")
    monkeypatch.setattr("h2htalk.rounds.argilla.client.time.sleep", lambda seconds: None)
    with ArgillaDouble() as double:
        monkeypatch.setenv("ARGILLA_API_URL", double.url)
        monkeypatch.setenv("ARGILLA_API_KEY", OWNER_KEY)
        yield double


@pytest.fixture
def label_studio(monkeypatch: pytest.MonkeyPatch) -> Iterator[LabelStudioDouble]:
    """A small Label Studio server, with address and key in the environment."""
    monkeypatch.setattr("h2htalk.rounds.argilla.client.time.sleep", lambda seconds: None)
    with LabelStudioDouble() as double:
        monkeypatch.setenv("LABEL_STUDIO_URL", double.url)
        monkeypatch.setenv("LABEL_STUDIO_API_KEY", TOKEN)
        yield double
