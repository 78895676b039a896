"""Chromium for the tests of pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = "headless no-sandbox disable-gpu disable-quic no-first-run disable-background-networking disable-sync"


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="drives Chromium: pip install playwright")
    if not CHROMIUM.exists():
        pytest.skip("opens the page in Chromium: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=str(CHROMIUM), args=[f"--{flag}" for flag in FLAGS.split()]
        )
        yield chromium
        chromium.close()
