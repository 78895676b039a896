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


def test_a_page_without_script_and_pictures_may_only_have_its_style(tmp_path: Path) -> None:
    text = page(tmp_path)
    style = f"style-src '{digest(text, 'style')}'"
    assert policy(text) == ["default-src 'none'", style, "base-uri 'none'", "form-action 'none'"]
    assert "<script" not in text


def test_only_its_own_script_runs_and_only_pictures_that_lie_within_it_are_shown(tmp_path: Path) -> None:
    (tmp_path / "b.js").write_text("const b = 1 < 2;", encoding="utf-8")
    (tmp_path / "a.js").write_text("const a = b;", encoding="utf-8")
    text = page(tmp_path, scripts=("b.js", "a.js"), pictures=True)
    assert f"script-src '{digest(text, 'script')}'" in policy(text)
    assert "img-src data:" in policy(text)
    assert text.index("const b = 1 < 2;") < text.index("const a = b;")
    assert text.index("</main>") < text.index("<script>")
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


def test_the_own_sheet_comes_after_the_shared_one_and_the_keyboard_finds_the_way_past_the_head(tmp_path: Path) -> None:
    text = page(tmp_path)
    assert text.index("--paper:") < text.index("var(--own)")
    links = re.findall(r'href="(#\w+)"', text)
    assert links == ["#content", "#one"]
    assert '<main id="content">' in text


def rules(name: str) -> list[tuple[str, str, dict[str, str]]]:
    """Media (or nothing), selector and declarations of each rule, in the sheet's order."""
    text = re.sub(r"/\*.*?\*/", "", SHEETS[name].read_text(encoding="utf-8"), flags=re.DOTALL)
    found, media = list[tuple[str, str, dict[str, str]]](), ""
    for piece in re.findall(r"@media[^{]*\{|[^{}]+\{[^{}]*\}|\}", text):
        if piece.startswith("@media"):
            media = " ".join(piece.removesuffix("{").split())
        elif piece == "}":
            media = ""
        else:
            selector, _, body = piece.removesuffix("}").partition("{")
            pairs = (declaration.split(":", 1) for declaration in body.split(";") if declaration.strip())
            found.append((media, " ".join(selector.split()), {k.strip(): v.strip() for k, v in pairs}))
    return found


def colours(name: str, media: str = "") -> dict[str, str]:
    """The colours that a sheet names, where the media holds."""
    roots = [said for where, selector, said in rules(name) if (where, selector) == (media, ":root")]
    return {key: value for said in roots for key, value in said.items() if value.startswith("#")}


DARK = "@media (prefers-color-scheme: dark)"
PRINT = "@media print"


@pytest.mark.parametrize("name", SHEETS)
def test_every_colour_has_its_value_for_the_dark_and_for_paper(name: str) -> None:
    assert colours(name, DARK).keys() == colours(name).keys()
    assert colours(name, PRINT).keys() == colours(name).keys()


@pytest.mark.parametrize("name", SHEETS)
def test_what_is_for_a_small_screen_is_not_for_paper(name: str) -> None:
    # A sheet of paper is narrower than 60rem: bars once filled two pages, over the text.
    narrow = {media for media, _, _ in rules(name) if "max-width" in media}
    assert narrow <= {"@media screen and (max-width: 60rem)"}
