"""A small Argilla server, if the client is installed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from argilla_double import ArgillaDouble
from argilla_made import running


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ArgillaDouble]:
    pytest.importorskip("argilla")
    with running(monkeypatch) as double:
        yield double
