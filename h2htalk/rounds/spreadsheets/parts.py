"""The parts of a workbook as its XML tells them: cells, shared texts, merged ranges (ECMA-376, SpreadsheetML)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from h2htalk.errors import RoundError

# Of all sheets of a file, cells that hold something; shared texts.
MAX_CELLS = 200_000
_REFERENCE = re.compile(r"([A-Z]{1,3})([0-9]{1,7})")
_ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")


@dataclass(frozen=True, slots=True)
class Cell:
    """What a cell holds; of a formula what it last came to."""

    value: str | int | float | bool
    formula: bool = False


@dataclass(slots=True)
class Sheet:
    """The cells of a sheet that hold something, by (row, column) from 1; `merged` ranges as the file names them.

    `protected`: whether only cells that are meant for it can be changed.
    """

    cells: dict[tuple[int, int], Cell] = field(default_factory=dict)
    merged: list[str] = field(default_factory=list)
    protected: bool = False


class TextReader:
    """Shared strings: each `si`, its runs joined, without the reading aids over Chinese or Japanese signs."""

    def __init__(self, strings: list[str], most: int) -> None:
        self._strings, self._most = strings, most
        self._held: list[str] = []
        self._inside = False
        self._aid = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "si":
            self._held = []
        elif name == "rPh":
            self._aid = True
        elif name == "t":
            self._inside = not self._aid

    def end(self, name: str) -> None:
        if name == "t":
            self._inside = False
        elif name == "rPh":
            self._aid = False
        elif name == "si":
            if len(self._strings) >= self._most:
                raise RoundError(f"it holds more than {self._most:,} texts; no ballot has so many")
            self._strings.append(unescaped("".join(self._held)))

    def text(self, data: str) -> None:
        if self._inside:
            self._held.append(data)


class SheetReader:
    """The cells of one sheet."""

    def __init__(self, strings: Callable[[], list[str]], most: int) -> None:
        self.sheet = Sheet()
        self._strings, self._most = strings, most
        self._at = (0, 0)
        self._kind = "n"
        self._held: list[str] = []
        self._inside = self._aid = self._formula = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "c":
            row, column = self._at
            self._at = _position(attributes["r"]) if "r" in attributes else (row, column + 1)
            self._kind = attributes.get("t", "n")
            self._held, self._formula = [], False
        elif name in ("v", "t"):
            self._inside = not self._aid
        elif name == "f":
            self._formula = True
        elif name == "rPh":
            self._aid = True
        elif name == "row":
            number = attributes.get("r", "")
            self._at = (int(number) if number.isdecimal() else self._at[0] + 1, 0)
        elif name == "mergeCell" and len(self.sheet.merged) < self._most:
            self.sheet.merged.append(attributes.get("ref", ""))
        elif name == "sheetProtection":
            self.sheet.protected = attributes.get("sheet") in ("1", "true")

    def end(self, name: str) -> None:
        if name in ("v", "t"):
            self._inside = False
        elif name == "rPh":
            self._aid = False
        elif name == "c":
            text = "".join(self._held)
            if text or self._formula:
                if len(self.sheet.cells) >= self._most:
                    raise RoundError(f"it holds more than {MAX_CELLS:,} filled cells; no ballot has so many")
                self.sheet.cells[self._at] = Cell(self._value(text), self._formula)

    def text(self, data: str) -> None:
        if self._inside:
            self._held.append(data)

    def _value(self, text: str) -> str | int | float | bool:
        if self._kind == "s":
            strings = self._strings()
            if not text.isdecimal() or int(text) >= len(strings):
                raise RoundError("a cell names a text that is not there; open it, save it again as .xlsx")
            return strings[int(text)]
        if self._kind == "b":
            return text == "1"
        if self._kind == "n" and text:
            number = float(text)
            return int(number) if number.is_integer() else number
        return unescaped(text)


def _position(reference: str) -> tuple[int, int]:
    """Row and column, from 1, of "C7"; raises ValueError."""
    found = _REFERENCE.fullmatch(reference)
    if found is None:
        raise ValueError(f"no cell: {reference}")
    column = 0
    for letter in found[1]:
        column = column * 26 + ord(letter) - 64
    return int(found[2]), column


def address(row: int, column: int) -> str:
    """A cell's name: `address(7, 3)` is "C7"."""
    letters = ""
    while column:
        column, rest = divmod(column - 1, 26)
        letters = chr(65 + rest) + letters
    return f"{letters}{row}"


def merged_rows(reference: str) -> range:
    """The rows of a merged range "B3:C5"; none where it names no cells."""
    first, _, last = reference.partition(":")
    try:
        return range(_position(first)[0], _position(last or first)[0] + 1)
    except ValueError:
        return range(0)


def unescaped(text: str) -> str:
    """A text with `_x000A_` as the character it stands for (ST_Xstring); NUL and half characters stay escaped."""

    def character(match: re.Match[str]) -> str:
        code = int(match[1], 16)
        return match[0] if code == 0 or 0xD800 <= code < 0xE000 else chr(code)

    return _ESCAPED.sub(character, text) if "_x" in text else text
