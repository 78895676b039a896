"""Cells of CSV files: read back exactly, and never computed by a spreadsheet."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.text.escaping import csv_text, harmless_cell

SIGNS = "=+-@＝＋－＠"


def read(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


# --- One text ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("before", ["", " ", "\u3000", "\xa0 \u2003"])
def test_a_text_that_begins_like_a_formula_gets_a_quote_also_after_white_space(before: str, sign: str) -> None:
    assert harmless_cell(f"{before}{sign}1") == f"'{before}{sign}1"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\t=1", r"\t=1"),
        ("\r=1", r"\r=1"),
        ("\n@a", r"\n@a"),
        ("\x00=1", r"\x00=1"),
        ("\ufeff=1", r"\ufeff=1"),
        ("\u202e=1", r"\u202e=1"),
        ("\ud800", r"\ud800"),
        (" \t=1", r" \t=1"),
        ("=a\nb", r"'=a\nb"),
    ],
)
def test_what_is_invisible_but_acts_stands_as_its_escape(text: str, shown: str) -> None:
    assert harmless_cell(text) == shown


@pytest.mark.parametrize("text", ["", " ", "Qwen2.5-7B", "a=b", "喝茶", "'=1", "🧑‍🚀 hi", "1+1", "(laughs) - no"])
def test_any_other_text_stays_as_it_is(text: str) -> None:
    assert harmless_cell(text) == text


@given(st.text(st.sampled_from([*SIGNS, *"a1'\"\t\r\n\x00\x85\u3000 \u202e\ud800🙂"])) | st.text())
def test_no_text_begins_a_formula_and_a_second_time_changes_nothing(text: str) -> None:
    cell = harmless_cell(text)
    assert cell.lstrip()[:1] not in {*SIGNS, "\t", "\r", "\n"}
    assert not set(cell) & set("\t\r\n\x00\u202e\ud800")
    assert harmless_cell(cell) == cell


# --- A table ----------------------------------------------------------------------------------------------------


def test_the_first_line_names_the_columns_and_nothing_is_an_empty_cell() -> None:
    text = csv_text(("word", "n", "spread", "clear"), [("茶, “hot”", 3, None, True), ("a", 0, 0.1, False)])
    assert text == 'word,n,spread,clear\n"茶, “hot”",3,,yes\na,0,0.1,no\n'


def test_a_heading_is_a_text_too_and_a_negative_number_a_number() -> None:
    assert csv_text(["=x", "y"], [[-1, -0.5]]) == "'=x,y\n-1,-0.5\n"


@given(st.text())
def test_any_text_makes_one_cell_of_one_row(text: str) -> None:
    rows = read(csv_text(("x", "y"), [(text, 1)]))
    assert rows == [["x", "y"], [harmless_cell(text), "1"]]
