"""Tables as CSV; what becomes of a cell is told in tests/text/test_cells.py."""

from __future__ import annotations

from h2htalk.analysis.report.tables import Table, csv_text


def test_the_first_line_names_the_columns_and_no_text_is_a_formula() -> None:
    table = Table("t", ("word", "count", "spread", "clear"), (("=1+1", -3, None, True), ("\ta", 0, 0.1, False)))
    assert csv_text(table) == "word,count,spread,clear\n'=1+1,-3,,yes\n\\ta,0,0.1,no\n"
