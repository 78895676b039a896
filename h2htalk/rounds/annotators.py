"""Annotators: who may be asked what. Names stay in the round's private folder, everywhere else a salted hash stands."""

from __future__ import annotations

import csv
import hashlib
import hmac
import io
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.errors import RoundError, quoted

COLUMNS = ("name", "languages", "crisis")
# Who has not said yes is spared: nobody is asked to read of crises by a gap in a list.
_YES = {"yes": True, "no": False, "": False}
MAX_NAME = 60


@dataclass(frozen=True, slots=True)
class Annotator:
    """Somebody who answers.

    Attributes:
        id: a salted hash of the name, 12 hexadecimal digits; what answers and decisions carry.
        name: as the manager knows them: their spreadsheet's file name, or their user name in Argilla.
        languages: that they read.
        crisis: whether they want to see items that speak of a crisis.
        here: False once they dropped out; what they answered stays.
    """

    id: str
    name: str
    languages: tuple[Language, ...]
    crisis: bool = True
    here: bool = True


def annotator_id(name: str, salt: bytes) -> str:
    """The salted hash of a name, 12 hexadecimal digits (HMAC-SHA-256 under the round's private salt)."""
    return hmac.new(salt, name.encode(), hashlib.sha256).hexdigest()[:12]


def read_annotators(path: Path, salt: bytes) -> tuple[Annotator, ...]:
    """Annotators of a CSV file with the columns `name`, `languages` (`en`, `zh`, or both) and `crisis` (`yes` or `no`).

    Columns may be parted by commas, semicolons or tabs, as spreadsheet programs of different countries write them;
    others than these three are not looked at. Whoever has no `yes` under `crisis` sees no such items.

    Returns:
        In the file's order.

    Raises:
        RoundError: the file cannot be read, a column is missing, nobody is listed, or a row is wrong; names file and
            line.
    """
    (_, first), *rows = _rows(path) or [(1, [])]
    head = [cell.strip().casefold() for cell in first]
    missing = [name for name in COLUMNS[:2] if name not in head]
    if missing:
        raise RoundError(
            f"{path}: the list of annotators needs the columns name and languages, and crisis where "
            "items speak of one; "
            f"its first row is {quoted(', '.join(head))}, without {' and '.join(missing)}"
        )
    twice = [name for name in COLUMNS if head.count(name) > 1]
    if twice:
        raise RoundError(f"{path}: the column {twice[0]} is there twice; keep one")
    listed = [
        (dict(zip(head, row, strict=False)), f"{path}:{line}")
        for line, row in rows
        if any(cell.strip() for cell in row)
    ]
    if not listed:
        raise RoundError(
            f"{path}: the list of annotators names nobody; a line an annotator stands below its first row"
        )
    annotators = tuple(_annotator(row, where, salt) for row, where in listed)
    _refuse_twins(annotators, path)
    return annotators


def _rows(path: Path) -> list[tuple[int, list[str]]]:
    """Line number and cells of a CSV file in UTF-8, its separator taken from the first line. Raises RoundError."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        first = text.partition("\n")[0]
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=first.count))
        return [(reader.line_num, row) for row in reader]
    except FileNotFoundError:
        raise RoundError(
            f"{path}: no list of annotators is there; that of a pilot is written when it is closed, if anybody passed"
        ) from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RoundError(f"{path}: the list of annotators cannot be read as CSV in UTF-8: {error}") from error


def placeholder_annotators(count: int, languages: Sequence[Language], salt: bytes) -> tuple[Annotator, ...]:
    """`count` annotators a language whose names are numbers, for a round that names none: `en-01`, `en-02`, ..."""
    names = [(f"{language}-{n:02}", language) for language in languages for n in range(1, count + 1)]
    return tuple(Annotator(annotator_id(name, salt), name, (language,)) for name, language in names)


def _annotator(row: Mapping[str, str], where: str, salt: bytes) -> Annotator:
    name = (row.get("name") or "").strip()
    spoken = (row.get("languages") or "").replace(",", " ").replace("+", " ").split()
    crisis = (row.get("crisis") or "").strip().lower()
    if not name or len(name) > MAX_NAME or not name.isprintable() or not _plain(name):
        raise RoundError(
            f"{where}: name is {quoted(name)}; use up to {MAX_NAME} letters, digits, dots, hyphens and underscores: "
            "it becomes a file's and a user's name"
        )
    unknown = [one for one in spoken if one not in LANGUAGES]
    if not spoken or unknown:
        raise RoundError(
            f"{where}: languages is {quoted(row.get('languages'))}; choose from {', '.join(LANGUAGES)}"
        )
    if crisis not in _YES:
        raise RoundError(f"{where}: crisis is {quoted(crisis)}; write yes or no")
    read = cast(tuple[Language, ...], tuple(dict.fromkeys(spoken)))
    return Annotator(annotator_id(name, salt), name, read, _YES[crisis])


def join(known: Sequence[Annotator], joined: Sequence[Annotator], path: Path) -> dict[str, Annotator]:
    """By name, annotators of a round and those who join it: who is in both has their new languages and wishes.

    Args:
        known: of the round.
        joined: as read from `path`.

    Raises:
        RoundError: somebody joins under the name of another, but for its case.
    """
    both = {annotator.name: annotator for annotator in known} | {
        annotator.name: annotator for annotator in joined
    }
    _refuse_twins(list(both.values()), path)
    return both


def _plain(name: str) -> bool:
    return all(sign.isalnum() or sign in "._-" for sign in name) and name[0].isalnum()


def _refuse_twins(annotators: Sequence[Annotator], path: Path) -> None:
    """Two names that one file system or server takes for the same would share a spreadsheet."""
    seen: dict[str, str] = {}
    for annotator in annotators:
        folded = unicodedata.normalize("NFC", annotator.name).casefold()
        if folded in seen:
            raise RoundError(
                f"{path}: {quoted(annotator.name)} and {quoted(seen[folded])} are one name; rename one, or write it as "
                "before"
            )
        seen[folded] = annotator.name
