"""The frame that every page shares: nothing in it can act, and each page's own sheet keeps only what is its own."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from jinja2 import UndefinedError

from h2htalk.text.html_pages import render_page

TEMPLATE = """{% extends "base.html" %}
{% block title %}{{ view.name }}{% endblock %}
{% block head %}<h1>{{ view.name }}</h1>{% endblock %}
{% block sections %}<a href="#one">One</a>{% endblock %}
{% block content %}<section id="one"></section>{% endblock %}
"""
SHEETS = {
    "base": files("h2htalk.text") / "page" / "base.css",
    "analysis": files("h2htalk.analysis.report") / "page" / "page.css",
    "report": files("h2htalk.benchmark.report") / "page" / "page.css",
}


def page(folder: Path, template: str = TEMPLATE, name: str = "mini@1", **options: Any) -> str:
    (folder / "page.html").write_text(template, encoding="utf-8")
    (folder / "page.css").write_text("h1 { color: var(--own); }\n", encoding="utf-8")
    tiles = [{"label": "Items", "value": "<3>", "note": "of 4"}]
    return render_page(folder, {"name": name, "tiles": tiles}, **options)


def policy(text: str) -> list[str]:
    found = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert found
    return found[1].split("; ")


def digest(text: str, tag: str) -> str:
    body = re.search(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
    assert body
    return "sha256-" + base64.b64encode(hashlib.sha256(body[1].encode()).digest()).decode()


def test_only_its_own_style_and_script_and_pictures_that_lie_within_it_act(tmp_path: Path) -> None:
    text = page(tmp_path)
    style = f"style-src '{digest(text, 'style')}'"
    assert policy(text) == ["default-src 'none'", style, "base-uri 'none'", "form-action 'none'"]
    assert "<script" not in text
    (tmp_path / "b.js").write_text("const b = 1 < 2;", encoding="utf-8")
    (tmp_path / "a.js").write_text("const a = b;", encoding="utf-8")
    text = page(tmp_path, scripts=("b.js", "a.js"), pictures=True)
    assert {f"script-src '{digest(text, 'script')}'", "img-src data:"} <= {*policy(text)}
    assert (
        text.index("</main>")
        < text.index("<script>")
        < text.index("const b = 1 < 2;")
        < text.index("const a = b;")
    )
    assert "unsafe" not in " ".join(policy(text))


def test_every_text_is_escaped(tmp_path: Path) -> None:
    hostile = "</title><script>alert(1)</script>{{ 7*7 }}"
    text = page(tmp_path, name=hostile)
    assert "<script" not in text
    assert text.count("{{ 7*7 }}") == 2
    assert '<p class="value">&lt;3&gt;</p>' in text


def test_a_name_that_the_view_lacks_is_an_error_never_an_empty_place(tmp_path: Path) -> None:
    with pytest.raises(UndefinedError, match="nam"):
        page(tmp_path, TEMPLATE.replace("view.name", "view.nam"))


def test_the_own_sheet_comes_after_the_shared_one_and_the_keyboard_finds_the_way_past_the_head(
    tmp_path: Path,
) -> None:
    text = page(tmp_path)
    assert text.index("--paper:") < text.index("var(--own)")
    links = re.findall(r'href="(#\w+)"', text)
    assert links == ["#content", "#one"]
    assert '<main id="content">' in text


@pytest.mark.parametrize("name", SHEETS)
def test_every_colour_has_its_value_for_the_dark_and_for_paper_and_paper_is_no_small_screen(
    name: str,
) -> None:
    sheet = re.sub(r"/\*.*?\*/", "", SHEETS[name].read_text(encoding="utf-8"), flags=re.DOTALL)
    colours: dict[str, set[str]] = {}
    for media, root in re.findall(r"(@media[^{]*\{\s*)?:root\s*\{([^}]*)\}", sheet):
        kind = " ".join(media.removeprefix("@media").split(" {")[0].split())
        colours.setdefault(kind, set()).update(re.findall(r"(--[\w-]+):\s*#", root))
    plain, dark, print_ = (
        colours.get(kind, set()) for kind in ("", "(prefers-color-scheme: dark)", "print")
    )
    assert plain == dark == print_
    assert plain or name != "base"
    # A sheet of paper is narrower than 60rem: bars once filled two pages, over the text.
    narrow = {" ".join(media.split()) for media in re.findall(r"@media[^{]*max-width[^{]*", sheet)}
    assert narrow <= {"@media screen and (max-width: 60rem)"}
