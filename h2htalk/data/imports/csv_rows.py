"""Rows of CSV files that people or their programs wrote, by heading."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from h2htalk.data.files import read_bounded
from h2htalk.errors import DataError


def read_rows(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """The rows of a CSV file by heading, as `file:line`; the first line determines the separator. Raises DataError."""
    lines: list[tuple[str, list[str]]] = []
    try:
        text = read_bounded(path).decode("utf-8-sig")
        first_line = text.partition("\n")[0]
        separator = max(",;\t", key=first_line.count)
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
        for row in reader:
            if any(row):
                cells = [cell.strip() for cell in row]
                lines.append((f"{path}:{reader.line_num}", cells))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: cannot be read as CSV in UTF-8: {error}") from error
    if not lines:
        return
    _, headings = lines[0]
    width = len(set(headings))
    for where, cells in lines[1:]:
        if len(cells) != width:
            raise DataError(f"{where}: {len(cells)} cells, but {width} different headings")
        yield where, dict(zip(headings, cells, strict=True))
