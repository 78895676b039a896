"""The page of an item inside a page like Argilla's, in a real browser: it follows the theme around it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from h2htalk.rounds.argilla import datasets
from h2htalk.rounds.items import Item
from h2htalk.rounds.settings import RoundSpec
from h2htalk.rounds.texts.interface import notice_help_lines

pytestmark = pytest.mark.live

# What Argilla 2.8 puts before a custom field: it copies the theme of its page when the frame is loaded.
COPY_THEME = (
    "<script>document.documentElement.setAttribute('data-theme', "
    "parent.document.documentElement.getAttribute('data-theme'));</script>"
)
CRISIS = {
    "id": "x",
    "language": "en",
    "crisis": True,
    "context": {"memories": "Her sister calls on Sundays."},
    "prompt": "I do not want to go on any more.",
    "response": "Who could sit with you tonight?",
    "reference": "I hear you.",
}
# The luminance of a colour as the browser computes it: rgb(r, g, b).
LUMINANCE = """(element, property) => {
  const [r, g, b] = getComputedStyle(element)[property].match(/[0-9.]+/g).map(value => {
    const part = Number(value) / 255;
    return part <= 0.03928 ? part / 12.92 : Math.pow((part + 0.055) / 1.055, 2.4);
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}"""


def contrast(frame: Any, text: str, ground: str) -> float:
    """The contrast (WCAG 2) of the text of an element on the background of another."""
    front = frame.locator(text).first.evaluate(LUMINANCE, "color")
    back = frame.locator(ground).first.evaluate(LUMINANCE, "backgroundColor")
    return (max(front, back) + 0.05) / (min(front, back) + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_an_item_is_as_dark_as_the_page_around(
    watched: Callable[..., Any], tmp_path: Path, theme: str
) -> None:
    """It stayed white in a dark page, and its help lines were behind a bar."""
    shown = datasets.page("en", notice_help_lines(RoundSpec("crowd", "x"), "en"))
    record = json.dumps({"fields": {"item": datasets.displayed(Item.from_dict(CRISIS))}})
    inner = json.dumps(f"{COPY_THEME}<script>const record = {record};</script>{shown}").replace(
        "</", "<\\/"
    )
    other = "dark" if theme == "light" else "light"
    # As on the server: the theme is changed later, while the frame is open.
    (tmp_path / "around.html").write_text(
        f'<!doctype html><html data-theme="{other}"><meta charset="utf-8"><body><form><input></form>'
        f'<iframe style="width: 600px; border: 0"></iframe><script>document.querySelector("iframe").srcdoc = {inner};'
        "</script></body></html>",
        encoding="utf-8",
    )
    page = watched(tmp_path / "around.html")
    frame = page.frame_locator("iframe")
    frame.get_by_role("button", name="Show the text").click()
    page.evaluate("theme => document.documentElement.setAttribute('data-theme', theme)", theme)
    page.wait_for_timeout(200)
    ground = frame.locator("#h2h").evaluate(LUMINANCE, "backgroundColor")
    assert ground < 0.05 if theme == "dark" else ground > 0.9
    pairs = {
        ".consent": "#h2h", ".notice p": ".notice", ".help li": ".notice", ".passage h2": ".passage",
        ".passage p": ".passage", ".by-user p": ".by-user", ".judged h2": ".judged", ".judged p": ".judged",
        ".proposed h2": ".proposed", ".proposed p": ".proposed",
    }  # fmt: skip
    contrasts = {text: contrast(frame, text, behind) for text, behind in pairs.items()}
    assert min(contrasts.values()) >= 4.5, contrasts
    assert "116 123" in frame.locator(".notice").inner_text()
