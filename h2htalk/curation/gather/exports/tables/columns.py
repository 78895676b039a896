"""Which column of a table with one message a row holds what: by its name, and for `curate look` by what is in it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any

from h2htalk.curation.gather.exports.dates import is_moment
from h2htalk.curation.gather.exports.tables.cells import plain_value
from h2htalk.text.language_data import read_data

# What `columns` of a source may name; the others are found by their usual names alone.
NAMED = ("conversation", "speaker", "text", "time", "order", "person")
REQUIRED = ("speaker", "text")
_MOST_SPEAKERS = 6
_LONGEST_SPEAKER = 40  # characters
_LEAST_ROWS = 4  # of which columns are guessed
_LEAST_MOMENTS = 0.9  # of the values of a column of the time
_LEAST_LENGTH = 4.0  # characters of a text, on average


@cache
def words() -> Mapping[str, Any]:
    """Names of columns, and values of some of them."""
    return read_data(Path(__file__).with_name("turns.toml"))


@lru_cache(maxsize=4096)
def plain_column(name: str) -> str:
    """A column's name in lower case, without accents, spaces and marks."""
    text = unicodedata.normalize("NFKD", name).casefold()
    return "".join(sign for sign in text if sign.isalnum())


@cache
def _positions(ours: str) -> Mapping[str, int]:
    return {plain_column(name): position for position, name in enumerate(words()["names"][ours])}


def find_columns(keys: Sequence[str], given: Mapping[Any, str]) -> dict[str, str]:
    """Our names -> the columns of a table. `given`: those that the owner names, which count alone."""
    columns: dict[str, str] = {}
    for ours in words()["names"]:
        if ours in given:
            # `from.name` is within the object of the column `from`.
            if given[ours] in keys or given[ours].partition(".")[0] in keys:
                columns[ours] = given[ours]
            continue
        positions = _positions(ours)
        known = [key for key in keys if plain_column(key) in positions]
        if known:
            columns[ours] = min(known, key=lambda key: positions[plain_column(key)])
    if "deleted" not in columns and (by_stem := [key for key in keys if says_deleted(key)]):
        columns["deleted"] = by_stem[0]
    if columns.get("day") == columns.get("time"):
        columns.pop("day", None)
    return columns


def says_deleted(text: str) -> bool:
    """Whether a column's name, or the value of a status, begins as one that says that a message was taken back."""
    stems = words()["stems"]
    bare = plain_column(text)
    before = next((begin for begin in stems["before"] if bare.startswith(begin)), "")
    return bare.startswith(tuple(stems["deleted"])) or bare.removeprefix(before).startswith(
        tuple(stems["deleted"])
    )


def guess_time(rows: Sequence[Mapping[str, Any]]) -> str | None:
    """The column of the time by what is in it; None where there is none, or one is known by its name."""
    known = find_columns(list(rows[0]), {})
    if "time" in known:
        return None
    others = [key for key in rows[0] if key not in known.values()]
    texts = {key: _texts(rows, key) for key in others}
    return next((key for key in others if _are_moments(texts[key], len(rows))), None)


def _are_moments(texts: Sequence[str], count: int) -> bool:
    return len(texts) >= _LEAST_MOMENTS * count and _share_of_moments(texts) >= _LEAST_MOMENTS


def guess_columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The columns of the speaker, the text and the time by what is in them; empty where these are not told apart."""
    if len(rows) < _LEAST_ROWS:
        return {}
    known = find_columns(list(rows[0]), {})
    values = {key: _texts(rows, key) for key in rows[0]}
    times = [
        key for key, texts in values.items() if texts and _share_of_moments(texts) >= _LEAST_MOMENTS
    ]
    texts = [key for key in values if key not in times and _is_text(values[key])]
    text = known.get("text") or max(texts, key=lambda key: mean(map(len, values[key])), default="")
    speakers = [key for key in values if key not in (text, *times) and _is_speaker(values[key])]
    speaker = known.get("speaker") or min(
        speakers, key=lambda key: _is_code(values[key][0]), default=""
    )
    if not text or not speaker:
        return {}
    columns = {"speaker": speaker, "text": text}
    if times and "time" not in known:
        columns["time"] = times[0]
    return {ours: key for ours, key in columns.items() if known.get(ours) != key}


def _texts(rows: Sequence[Mapping[str, Any]], key: str) -> list[str]:
    held = (plain_value(row.get(key)) for row in rows)
    return [str(value).strip() for value in held if value is not None and str(value).strip()]


def _share_of_moments(texts: Sequence[str]) -> float:
    return sum(map(is_moment, texts)) / len(texts)


def _is_text(texts: Sequence[str]) -> bool:
    """Whether most values differ, and are words rather than numbers."""
    if len(texts) < _LEAST_ROWS or mean(map(len, texts)) < _LEAST_LENGTH:
        return False
    wordy = sum(
        bool(re.search(r"[^\W\d_]{2}|[\u4e00-\u9fff]", text)) and not _is_code(text)
        for text in texts
    )
    return len(set(texts)) > 0.6 * len(texts) and wordy > 0.6 * len(texts)


def _is_code(text: str) -> bool:
    """Whether a value is an id: a number, or a long word of letters and digits, which say less than a name."""
    has_digits = any(sign.isdigit() for sign in text)
    return text.isdigit() or (has_digits and re.fullmatch(r"[\w-]{8,}", text) is not None)


def _is_speaker(texts: Sequence[str]) -> bool:
    """Whether few short values come again and again."""
    distinct = set(texts)
    if not 2 <= len(distinct) <= _MOST_SPEAKERS or len(texts) < 2 * len(distinct):
        return False
    changes = sum(before != after for before, after in pairwise(texts))
    # The one who speaks changes often; a conversation's number or a day seldom does.
    return max(map(len, distinct)) <= _LONGEST_SPEAKER and changes >= 0.3 * (len(texts) - 1)
