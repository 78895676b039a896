"""Annotators: their languages and consent. Names stay in the round's private folder; other files hold salted hashes."""

from __future__ import annotations

import csv
import hashlib
import hmac
import io
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.errors import RoundError, quoted

COLUMNS = ("name", "languages", "crisis")
# An empty cell is no consent to read about crises.
_CONSENT = {"yes": True, "no": False, "": False}
MAX_NAME = 60


@dataclass(frozen=True, slots=True)
class Annotator:
    """A person who annotates.

    Attributes:
        id: salted hash of the name, 12 hexadecimal digits; used in annotations and decisions.
        name: the name of their spreadsheet, or their user name in Argilla.
        languages: languages that they read.
        crisis: whether they agreed to read items about a crisis.
        active: False after they left the round; their annotations stay.
    """

    id: str
    name: str
    languages: tuple[Language, ...]
    crisis: bool = True
    active: bool = True


def annotator_id(name: str, salt: bytes) -> str:
    """Return the salted hash of a name: 12 hexadecimal digits of HMAC-SHA-256 under the round's private salt."""
    return hmac.new(salt, name.encode(), hashlib.sha256).hexdigest()[:12]


def read_annotators(path: Path, salt: bytes) -> tuple[Annotator, ...]:
    """Read annotators from a CSV file with the columns `name`, `languages` (`en`, `zh`, or both) and `crisis`.

    Columns are separated by commas, semicolons or tabs; other columns are ignored. Annotators without `yes` in
    `crisis` get no items about a crisis.

    Returns:
        In the order of the file.

    Raises:
        RoundError: the file cannot be read, lacks a column, lists nobody, or has an invalid row (with file and line).
    """
    (_, first), *rows = _read_rows(path) or [(1, [])]
    header = [cell.strip().casefold() for cell in first]
    missing = [name for name in COLUMNS[:2] if name not in header]
    if missing:
        raise RoundError(
            f"{path}: a list of annotators needs the columns name and languages (and crisis, if items are about one); "
            f"its first row is {quoted(', '.join(header))}, without {' and '.join(missing)}"
        )
    repeated = [name for name in COLUMNS if header.count(name) > 1]
    if repeated:
        raise RoundError(f"{path}: the column {repeated[0]} occurs twice; remove one")
    annotators = tuple(
        _read_annotator(dict(zip(header, row, strict=False)), f"{path}:{line}", salt)
        for line, row in rows
        if any(cell.strip() for cell in row)
    )
    if not annotators:
        raise RoundError(f"{path}: the list of annotators is empty; add one line for each annotator")
    _require_distinct_names(annotators, path)
    return annotators


def _read_rows(path: Path) -> list[tuple[int, list[str]]]:
    """Return line number and cells of each row of a CSV file in UTF-8; the first line determines the separator."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        first = text.partition("\n")[0]
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=first.count))
        return [(reader.line_num, row) for row in reader]
    except FileNotFoundError:
        raise RoundError(
            f"{path}: this list of annotators does not exist; closing a pilot writes qualified.csv only if somebody "
            "passed"
        ) from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RoundError(f"{path}: the list of annotators cannot be read as CSV in UTF-8: {error}") from error


def placeholder_annotators(count: int, languages: Sequence[Language], salt: bytes) -> tuple[Annotator, ...]:
    """Make `count` annotators for each language, named `en-01`, `en-02`, ..., for a round without a list."""
    names = [(f"{language}-{n:02}", language) for language in languages for n in range(1, count + 1)]
    return tuple(Annotator(annotator_id(name, salt), name, (language,)) for name, language in names)


def _read_annotator(row: Mapping[str, str], where: str, salt: bytes) -> Annotator:
    name = (row.get("name") or "").strip()
    languages = (row.get("languages") or "").replace(",", " ").replace("+", " ").split()
    crisis = (row.get("crisis") or "").strip().lower()
    if not name or len(name) > MAX_NAME or not name.isprintable() or not _is_valid_name(name):
        raise RoundError(
            f"{where}: name is {quoted(name)}; use up to {MAX_NAME} letters, digits, dots, hyphens and underscores, "
            "because it becomes a file name or a user name"
        )
    if not languages or not set(languages) <= set(LANGUAGES):
        raise RoundError(f"{where}: languages is {quoted(row.get('languages'))}; choose from {', '.join(LANGUAGES)}")
    if crisis not in _CONSENT:
        raise RoundError(f"{where}: crisis is {quoted(crisis)}; write yes or no")
    known = tuple(dict.fromkeys(languages))
    return Annotator(annotator_id(name, salt), name, known, _CONSENT[crisis])


def merge_annotators(known: Sequence[Annotator], listed: Sequence[Annotator], path: Path) -> dict[str, Annotator]:
    """Return the annotators of a round and of a new list by name; the list replaces languages and consent.

    Args:
        known: annotators of the round.
        listed: annotators read from `path`.

    Raises:
        RoundError: two names differ only in case.
    """
    merged = {annotator.name: annotator for annotator in (*known, *listed)}
    _require_distinct_names(list(merged.values()), path)
    return merged


def _is_valid_name(name: str) -> bool:
    return all(character.isalnum() or character in "._-" for character in name) and name[0].isalnum()


def _require_distinct_names(annotators: Sequence[Annotator], path: Path) -> None:
    """Raise RoundError if a file system or server could take two names for the same: they would share a spreadsheet."""
    seen: dict[str, str] = {}
    for annotator in annotators:
        folded = unicodedata.normalize("NFC", annotator.name).casefold()
        if folded in seen:
            raise RoundError(
                f"{path}: {quoted(annotator.name)} and {quoted(seen[folded])} differ only in case; rename one, or "
                "write it as before"
            )
        seen[folded] = annotator.name
