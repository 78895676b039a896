"""What the live tests share: Chromium, pages that are watched, the folder of a server, our own runs."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from support.live.one_model import Ours

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = "headless no-sandbox disable-gpu disable-quic no-first-run disable-background-networking disable-sync"
OWN_MACHINE = ("disable-component-update", "host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium; its event loop runs until a module ends, and no other can run in that time."""
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="drives Chromium: pip install playwright"
    )
    if not CHROMIUM.exists():
        pytest.skip("opens the page in Chromium: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        flags = [f"--{flag}" for flag in (*FLAGS.split(), *OWN_MACHINE)]
        chromium = playwright.chromium.launch(executable_path=str(CHROMIUM), args=flags)
        yield chromium
        chromium.close()


@pytest.fixture
def watched(browser: Any) -> Iterator[Callable[..., Any]]:
    """Open the page of a file, which may ask for nothing else, write nothing to the console and open no dialog."""
    alarms = list[str]()
    pages = list[Any]()

    def opened(path: Path, width: int = 1280, scheme: str = "light") -> Any:
        pages.append(
            page := browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        )
        page.on(
            "dialog", lambda dialog: (alarms.append(f"dialog {dialog.message}"), dialog.dismiss())
        )
        page.on("pageerror", lambda error: alarms.append(f"error {error}"))
        page.on("console", lambda message: alarms.append(f"console {message.text}"))
        page.on(
            "request", lambda r: r.url.startswith(("data:", path.as_uri())) or alarms.append(r.url)
        )
        page.goto(path.as_uri())
        return page

    yield opened
    assert alarms == []
    for page in pages:
        page.close()


@pytest.fixture(scope="session")
def home() -> Iterator[Path]:
    """The folder of a server: in memory if possible, where databases need not wait for the disk at each response.

    It is not in pytest's folder, which only its owner can read: a part of a server may run as another user.
    """
    memory = Path("/dev/shm")
    folder = Path(
        tempfile.mkdtemp(prefix="h2htalk-", dir=memory if os.access(memory, os.W_OK) else None)
    )
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def ours(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ours]:
    """Our own runs of the scripted model, which every harness is held against."""
    from support.live.one_model import run_ours

    return run_ours(tmp_path_factory.mktemp("ours"))
