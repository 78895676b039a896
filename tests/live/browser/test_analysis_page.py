"""An analysis in a real browser, opened from the disk: all of it is seen, on any screen, and nothing in it acts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from analysis_made import made_analysis

from h2htalk.analysis.measures.words import WordCount
from h2htalk.analysis.report.write_analysis import write_analysis
from h2htalk.analysis.verb_nouns.pairs import VerbNounPair

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

sync_api = pytest.importorskip("playwright.sync_api", reason="drives Chromium: pip install playwright")

pytestmark = pytest.mark.live

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(1)><svg onload=alert(1)>'


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    words = [WordCount(HOSTILE, 9, 3), WordCount("tea", 5, 2)]
    analysis = made_analysis(
        ("en",), name=HOSTILE, words=words, pairs=[VerbNounPair(HOSTILE, "tea"), VerbNounPair("make", "tea")]
    )
    return write_analysis(analysis, tmp_path_factory.mktemp("analysis"), processes=2)


def opened(browser: Browser, path: Path, width: int, scheme: str = "light") -> tuple[Page, list[str]]:
    """The page, and what it did that it must not do."""
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    alarms: list[str] = []
    page.on("dialog", lambda dialog: (alarms.append(f"dialog {dialog.message}"), dialog.dismiss()))
    page.on("pageerror", lambda error: alarms.append(f"error {error}"))
    page.on("console", lambda message: alarms.append(f"console {message.text}"))
    page.on("request", lambda r: r.url.startswith(("data:", path.as_uri())) or alarms.append(r.url))
    page.goto(path.as_uri())
    return page, alarms


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_picture_is_seen_and_nothing_acts_or_sticks_out(
    browser: Browser, path: Path, width: int, scheme: str
) -> None:
    page, alarms = opened(browser, path, width, scheme)
    for details in page.locator("summary").all():
        details.click()
    sizes = page.evaluate("[...document.images].map(i => [i.complete, i.naturalWidth, i.clientWidth])")
    assert len(sizes) == len(list((path.parent / "figures").glob("*.svg")))
    assert all(complete and natural > 100 and shown > 200 for complete, natural, shown in sizes)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("h1").inner_text() == HOSTILE
    assert page.locator("td, th").filter(has_text="onerror").count() > 0
    assert alarms == []
    page.close()
