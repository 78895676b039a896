"""A release and the Hub's double for the client in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hub_double import HubDouble
from hubs_made import hub_here
from releases_made import make_release


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubDouble]:
    with hub_here(tmp_path, monkeypatch) as hub:
        yield hub


@pytest.fixture
def release(tmp_path: Path) -> Path:
    return make_release(tmp_path / "release")
