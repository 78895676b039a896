"""CSV that is read back exactly, and that a spreadsheet never computes."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.analysis.csv_tables import Table, csv_text


def read(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def test_the_first_line_names_the_columns_and_nothing_is_an_empty_cell() -> None:
    table = Table(
        "t", ("word", "count", "spread", "clear"), (("茶, “hot”", 3, None, True), ("a", 0, 0.1, False))
    )
    assert csv_text(table) == 'word,count,spread,clear\n"茶, “hot”",3,,yes\na,0,0.1,no\n'


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_read_back_as_it_was(value: float) -> None:
    assert float(read(csv_text(Table("t", ("x", "y"), ((value, 1),))))[1][0]) == value


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+1", "-1", "@x", " =1", "＝1", "＋", "－x", "＠", "\t=1", "\r=1", "\n=1", "'=1", "\ufeff=1"],
)
def test_no_text_begins_a_formula(text: str) -> None:
    cell = read(csv_text(Table("t", ("x", "y"), ((text, 1),))))[1][0]
    assert cell.lstrip()[0] not in "=+-@＝＋－＠\t\r"


@given(st.text())
def test_any_text_makes_one_cell_of_one_row(text: str) -> None:
    rows = read(csv_text(Table("t", ("x", "y"), ((text, 1),))))
    assert len(rows) == 2
    assert len(rows[1]) == 2
    assert not set(rows[1][0]) & set("\t\r\n\x00")
