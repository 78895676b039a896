"""JSON of raw files: one value a line, or one array or object that is read piece by piece.

A broken line is one refused item. In an array nothing tells where a broken value ends, so the items after it cannot be
counted: this is an error, with file and line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from h2htalk.curation.gather.raw_files import open_raw, raw_lines, raw_text, text_of
from h2htalk.curation.gather.raw_items import OnRead, RawDialogue, RawItem, RefusedItem
from h2htalk.data.files import MAX_LINE
from h2htalk.errors import DataError

# Makes a dialogue of a value; raises RefusedItem.
ReadRecord = Callable[[Any], RawDialogue]
_SPACE = " \t\r\n"
_SPACES = re.compile(f"[{_SPACE}]*")
# A value cut by the end of the buffer fails at most this many characters before it (`-Infinity`, `\ud83d\ude00`).
_TAIL = 16


def _whole_number(text: str) -> int | None:
    """The number; None for one of thousands of digits, which Python refuses to read and no dialogue needs."""
    return int(text) if len(text) < 1000 else None


# Control characters in strings are refused later, with a reason of their own; other tools write NaN for null.
_DECODER = json.JSONDecoder(strict=False, parse_constant=lambda name: None, parse_int=_whole_number)


def read_objects(read_record: ReadRecord, path: Path, on_read: OnRead) -> Iterator[RawItem]:
    """Read the items of a JSONL file or of one JSON array; rows are lines or elements.

    Raises:
        DataError: the file cannot be read, or its array is broken; names file and line.
    """
    if _first_character(path) == "[":
        for row, (line, _, value) in enumerate(members(path, on_read), 1):
            yield RawItem(row, line, _attempt(read_record, value, line))
        return
    for number, raw in raw_lines(path, on_read):
        if raw is None or raw.strip():
            yield RawItem(number, number, _read_line(raw, number, read_record))


def read_values(read_record: ReadRecord, values: Iterable[Any]) -> Iterator[RawItem]:
    """The items of values that were read elsewhere, numbered from 1."""
    for row, value in enumerate(values, 1):
        yield RawItem(row, row, _attempt(read_record, value, row))


def _read_line(raw: bytes | None, number: int, read_record: ReadRecord) -> RawDialogue | RefusedItem:
    try:
        text = text_of(raw, number).strip(_SPACE)
        value, end = _DECODER.raw_decode(text)
    except RefusedItem as refused:
        return refused
    except (ValueError, RecursionError):
        return RefusedItem("broken", line=number)
    return _attempt(read_record, value, number) if end == len(text) else RefusedItem("broken", line=number)


def _attempt(read_record: ReadRecord, value: Any, line: int) -> RawDialogue | RefusedItem:
    try:
        return read_record(value)
    except RefusedItem as refused:
        return refused.at_line(line)


def _first_character(path: Path) -> str:
    with open_raw(path) as file:
        while chunk := file.read(4096):
            if text := chunk.strip():
                return chr(text[0])
    return ""


def members(path: Path, on_read: OnRead) -> Iterator[tuple[int, str | None, Any]]:
    """`(line, key, value)` of each member of the one array (key is None) or object in a file.

    Raises:
        DataError: it is neither, is broken, or a member is longer than 64 Mi characters; names file and line.
    """
    buffer = _Buffer(path, on_read)
    opening = buffer.take("[{")
    closing = {"[": "]", "{": "}"}[opening]
    if buffer.peek() == closing:
        buffer.take(closing)
    else:
        separator = ","
        while separator == ",":
            buffer.skip_space()
            line = buffer.line
            key = None
            if opening == "{":
                key = buffer.value()
                if not isinstance(key, str):
                    raise buffer.broken("a key must be text")
                buffer.take(":")
            yield line, key, buffer.value()
            separator = buffer.take("," + closing)
    if buffer.peek():
        raise buffer.broken("text after its end")


class _Buffer:
    """The part of a file that is being parsed, and the line of the next character."""

    def __init__(self, path: Path, on_read: OnRead) -> None:
        self._path, self._pieces = path, raw_text(path, on_read)
        self._text, self._at, self.line = "", 0, 1
        self._started = self._ended = False

    def _fill(self) -> bool:
        """Read as much again as the buffer holds, so that a long value is parsed a few times and not a thousand."""
        if self._ended:
            return False
        rest = self._text[self._at :]
        if len(rest) > MAX_LINE:
            raise self.broken(f"one member is longer than {MAX_LINE >> 20} Mi characters")
        try:
            piece = self._pieces.send(len(rest) if self._started else None)
        except StopIteration:
            self._ended = True
            return False
        self._started = True
        self._text, self._at = rest + piece, 0
        return True

    def _advance(self, end: int) -> None:
        self.line += self._text.count("\n", self._at, end)
        self._at = end

    def skip_space(self) -> None:
        while True:
            match = _SPACES.match(self._text, self._at)
            assert match is not None  # it also matches the empty text
            self._advance(match.end())
            if self._at < len(self._text) or not self._fill():
                return

    def peek(self) -> str:
        """The next character that is not white space; empty at the end."""
        self.skip_space()
        return self._text[self._at : self._at + 1]

    def take(self, choices: str) -> str:
        """The next character, which must be one of the choices."""
        character = self.peek()
        if not character or character not in choices:
            raise self.broken(f"expected {' or '.join(choices)}" if character else "it is cut off")
        self._at += 1
        return character

    def value(self) -> Any:
        """The next JSON value."""
        self.skip_space()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                unended = error.msg.startswith("Unterminated")
                hopeless = error.pos < len(self._text) - _TAIL and not unended
                if hopeless or not self._fill():
                    self._advance(min(error.pos, len(self._text)))
                    cut = unended or error.pos >= len(self._text.rstrip())
                    raise self.broken("it is cut off" if cut else error.msg) from error
                continue
            except RecursionError as error:
                raise self.broken("it is nested too deep") from error
            # A number may continue after the buffer; any other value has an end of its own.
            if end < len(self._text) or not self._fill():
                self._advance(end)
                return value

    def broken(self, why: str) -> DataError:
        return DataError(
            f"{self._path}:{self.line}: broken JSON: {why}; repair or remove this item, as the items after it cannot "
            "be counted"
        )
