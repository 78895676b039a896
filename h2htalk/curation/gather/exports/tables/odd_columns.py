"""Columns of a table that may say that some rows are no messages: for `curate look`, which shows them to the owner.

Such a column has few values, of which one is that of most rows, or a date in few rows and nothing in the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from h2htalk.curation.gather.exports.dates import is_moment
from h2htalk.curation.gather.exports.tables.cells import plain_value
from h2htalk.curation.gather.exports.tables.columns import find_columns, says_deleted, words

_MOST_VALUES = 6
_LONGEST = 30  # characters of a value
_MOST_ROWS_SET = 0.3  # of the rows, in which a date is set
_LEAST_USUAL = 0.6  # of the rows, with the most frequent value
_LEAST_ROWS = 8
_READ = (
    "conversation",
    "speaker",
    "text",
    "time",
    "day",
    "order",
    "number",
    "person",
    "kind",
    "deleted",
    "hidden",
)


def odd_columns(
    rows: Sequence[Mapping[str, Any]], given: Mapping[Any, str]
) -> Iterator[tuple[str, Counter[str], str]]:
    """The columns, with the values that are set and how often, and the value of `leave_out` that names the rare rows.

    `given`: the columns that the source names.
    """
    if len(rows) < _LEAST_ROWS:
        return
    known = find_columns(list(rows[0]), given)
    is_read = {known[ours] for ours in _READ if ours in known}
    for key in rows[0]:
        if key in is_read:
            continue
        values = Counter(text for row in rows if (text := _text(row.get(key))))
        if not values or max(map(len, values)) > _LONGEST:
            continue
        count = values.total()
        usual, usual_count = values.most_common(1)[0]
        if count <= _MOST_ROWS_SET * len(rows) and all(map(is_moment, values)):
            yield key, values, "*"
        elif 2 <= len(values) <= _MOST_VALUES and usual_count >= _LEAST_USUAL * count:
            rare = next(value for value in reversed(values) if value != usual)
            if not says_deleted(rare):
                yield key, values, rare
        elif len(values) == 1 and count <= _MOST_ROWS_SET * len(rows):
            yield key, values, "*"


def _text(value: object) -> str:
    """A value as text; empty where it is not set."""
    value = plain_value(value)
    if value is None or isinstance(value, Mapping | list):
        return ""
    text = str(value).strip()
    return "" if text.casefold() in words()["values"]["unset"] else text
