"""Texts of others in CSV and Markdown: read back exactly, never computed by a spreadsheet, shown as they are."""

from __future__ import annotations

import csv
import html
import io
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from h2htalk.text.escaping import (
    Markdown,
    code_block,
    csv_text,
    escape_markdown,
    harmless_cell,
    paragraphs,
    printable,
)

SIGNS = "=+-@＝＋－＠"


FORMULAS = [f"{before}{sign}1" for before in ("", " ", "\u3000", "\xa0 \u2003") for sign in SIGNS]
# What is invisible but acts stands as its escape.
ESCAPED = {
    "\t=1": r"\t=1",
    "\n@a": r"\n@a",
    "\u202e=1": r"\u202e=1",
    "\ud800": r"\ud800",
    "=a\nb": r"'=a\nb",
}
PLAIN = ["", " ", "Qwen2.5-7B", "a=b", "喝茶", "'=1", "🧑‍🚀 hi", "1+1", "(laughs) - no"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [*((one, f"'{one}") for one in FORMULAS), *ESCAPED.items(), *((one, one) for one in PLAIN)],
)
def test_what_begins_like_a_formula_also_after_white_space_gets_a_quote(
    text: str, shown: str
) -> None:
    assert harmless_cell(text) == shown


@given(st.text(st.sampled_from([*SIGNS, *"a1'\"\t\r\n\x00\x85\u3000 \u202e\ud800🙂"])) | st.text())
def test_no_text_begins_a_formula_and_a_second_time_changes_nothing(text: str) -> None:
    cell = harmless_cell(text)
    assert cell.lstrip()[:1] not in {*SIGNS, "\t", "\r", "\n"}
    assert not set(cell) & set("\t\r\n\x00\u202e\ud800")
    assert harmless_cell(cell) == cell


def test_the_first_line_names_the_columns_and_nothing_is_an_empty_cell() -> None:
    assert csv_text(["=x", "y"], [[-1, -0.5]]) == "'=x,y\n-1,-0.5\n"
    text = csv_text(
        ("word", "n", "spread", "clear"), [("茶, “hot”", 3, None, True), ("a", 0, 0.1, False)]
    )
    assert text == 'word,n,spread,clear\n"茶, “hot”",3,,yes\na,0,0.1,no\n'


@given(st.text())
def test_any_text_makes_one_cell_of_one_row(text: str) -> None:
    rows = list(csv.reader(io.StringIO(csv_text(("x", "y"), [(text, 1)]))))
    assert rows == [["x", "y"], [harmless_cell(text), "1"]]


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
@given(
    value=st.text(
        alphabet=st.sampled_from("ab1 _*`|\\<>&[]()!#+-=.:~$\n\t{%\"'花\u202e"), min_size=1
    )
)
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


def test_words_and_addresses_stay_readable_and_nothing_is_escaped_twice() -> None:
    for text in (
        "dialogue_base",
        "CC-BY-4.0",
        "2026-01-02",
        "https://lab.example.org/a_b",
        "李雷 O'Neil (1990)",
    ):
        assert escape_markdown(text) == text
    assert escape_markdown(12345) == "12,345"
    assert isinstance(escape_markdown("a*b"), Markdown)
    assert escape_markdown(escape_markdown("a*b")) == "a\\*b"
    assert rendered(paragraphs("one\nline\n \n# two\n")) == "<p>one line</p>\n<p># two</p>"


@given(st.text(alphabet=st.sampled_from("a`~ \n<&*"), min_size=1))
def test_nothing_ends_a_block_of_code(text: str) -> None:
    text = f"x{text}x"
    found = re.fullmatch(r"<pre><code>(.*)\n</code></pre>", rendered(code_block(text)), re.DOTALL)
    assert html.unescape(found[1]) == text
