"""CSV that a spreadsheet opens and never computes."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from h2htalk.text.printable import printable


def csv_text(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A heading line and the rows; None is an empty cell, and no text is a formula."""
    output = io.StringIO()
    writer = csv.writer(output, lineterminator="\n")
    writer.writerow(headings)
    for row in rows:
        writer.writerow(["" if value is None else _cell(value) for value in row])
    return output.getvalue()


def _cell(value: object) -> object:
    return spreadsheet_text(value) if isinstance(value, str) else value


def spreadsheet_text(text: str) -> str:
    """Text that a spreadsheet shows and never computes: a leading = + - @ (also full-width) gets a quote."""
    shown = printable(text)
    return f"'{shown}" if shown.lstrip()[:1] in tuple("=+-@＝＋－＠") else shown
