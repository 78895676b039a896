"""Escaped values are shown as they are, wherever they stand in a page of Markdown."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from h2htalk.text.escaping import Markdown, code_block, escape_markdown, paragraphs, printable

PLACES = {
    "{}": "<p>{}</p>",
    "# {}": "<h1>{}</h1>",
    "* {}": "<ul>\n<li>{}</li>\n</ul>",
    "before\n\n{}\n\nafter": "<p>before</p>\n<p>{}</p>\n<p>after</p>",
    "| a | b |\n| --- | --- |\n| {} | 2 |": (
        "<table>\n<thead>\n<tr>\n<th>a</th>\n<th>b</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td>{}</td>\n<td>2</td>\n</tr>"
        "\n</tbody>\n</table>"
    ),
}


def rendered(text: str) -> str:
    return MarkdownIt("commonmark", {"html": True}).enable("table").render(text).strip()


@pytest.mark.parametrize("place", PLACES)
@given(value=st.text(alphabet=st.sampled_from("ab1 _*`|\\<>&[]()!#+-=.:~$\n\t{%\"'花\u202e"), min_size=1))
@example(value="1. one\n2. two")
@example(value="---")
@example(value="a | b\n--- | ---")
@example(value="<script>alert(1)</script>")
@example(value="![x](http://127.0.0.1/x.png) [a]: b")
@example(value="{{ 7*7 }} {% raw %}")
def test_a_value_is_shown_as_it_is(place: str, value: str) -> None:
    shown = printable(" ".join(value.split()))
    if shown:
        text = html.escape(shown, quote=False)
        found = rendered(place.format(escape_markdown(value))).replace("&quot;", '"')
        assert found == PLACES[place].format(text)


def test_words_numbers_and_addresses_stay_readable() -> None:
    for text in (
        "dialogue_base",
        "CC-BY-4.0",
        "2026-01-02",
        "3.5",
        "https://lab.example.org/a_b",
        "李雷 O'Neil (1990)",
    ):
        assert escape_markdown(text) == text
    assert escape_markdown(12345) == "12,345"


def test_markdown_is_not_escaped_twice() -> None:
    once = escape_markdown("a*b")
    assert isinstance(once, Markdown)
    assert escape_markdown(once) == "a\\*b"


def test_an_empty_line_begins_a_paragraph() -> None:
    assert rendered(paragraphs("one\nline\n \n# two\n")) == "<p>one line</p>\n<p># two</p>"


@given(st.text(alphabet=st.sampled_from("a`~ \n<&*"), min_size=1))
def test_nothing_ends_a_block_of_code(text: str) -> None:
    text = f"x{text}x"
    found = re.fullmatch(r"<pre><code>(.*)\n</code></pre>", rendered(code_block(text)), re.DOTALL)
    assert found is not None
    assert html.unescape(found[1]) == text
