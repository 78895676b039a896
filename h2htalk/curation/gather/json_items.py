"""JSON as raw files have it: one value a line, or one array or object that is read piece by piece.

A broken line is one refused item. Within an array nothing tells where a broken value ends, so that what follows
could not even be counted: that is an error, with file and line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from h2htalk.curation.gather.raw_files import open_raw, raw_lines, raw_text, text_of
from h2htalk.curation.gather.raw_items import Item, OnRead, RawDialogue, RefusedItem
from h2htalk.data.files import MAX_LINE
from h2htalk.errors import DataError

# How a value becomes a dialogue; raises RefusedItem.
DialogueOf = Callable[[Any], RawDialogue]
_SPACE = " \t\r\n"
_SPACES = re.compile(f"[{_SPACE}]*")
# A value cut by the end of the buffer fails at most so many characters before it (`-Infinity`, `\ud83d\ude00`).
_TAIL = 16


def _whole_number(text: str) -> int | None:
    """A number of thousands of digits is nothing that a dialogue needs; Python refuses to read it."""
    return int(text) if len(text) < 1000 else None


# Control characters within strings are let through, to be refused by their own name; NaN is what others write for null.
_DECODER = json.JSONDecoder(strict=False, parse_constant=lambda name: None, parse_int=_whole_number)


def read_objects(path: Path, on_read: OnRead, dialogue_of: DialogueOf) -> Iterator[Item]:
    """The items of a JSONL file, or of one JSON array; rows are lines there and elements here.

    Raises:
        DataError: the file cannot be read, or its array is broken; names file and line.
    """
    if _first_character(path) == "[":
        values = ((row, line, value) for row, (line, _, value) in enumerate(members(path, on_read), 1))
        for row, line, value in values:
            yield Item(row, line, attempt(dialogue_of, value, line))
        return
    for number, raw in raw_lines(path, on_read):
        if raw.strip():
            yield Item(number, number, _line_item(raw, number, dialogue_of))


def _line_item(raw: bytes, number: int, dialogue_of: DialogueOf) -> RawDialogue | RefusedItem:
    try:
        text = text_of(raw, number).strip(_SPACE)
        value, end = _DECODER.raw_decode(text)
    except RefusedItem as refused:
        return refused
    except (ValueError, RecursionError):
        return RefusedItem("broken", line=number)
    return attempt(dialogue_of, value, number) if end == len(text) else RefusedItem("broken", line=number)


def attempt(dialogue_of: DialogueOf, value: Any, line: int) -> RawDialogue | RefusedItem:
    """What a value gives: its dialogue, or why it has none, with the line."""
    try:
        return dialogue_of(value)
    except RefusedItem as refused:
        refused.evidence = {"line": line, **refused.evidence}
        return refused


def _first_character(path: Path) -> str:
    with open_raw(path) as file:
        while chunk := file.read(4096):
            if text := chunk.strip():
                return chr(text[0])
    return ""


def members(path: Path, on_read: OnRead) -> Iterator[tuple[int, str | None, Any]]:
    """`(line, key, value)` of each member of the one array (key is None) or object that a file holds.

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
    """The part of a file that is being parsed, and the line at which it begins."""

    def __init__(self, path: Path, on_read: OnRead) -> None:
        self._path, self._pieces = path, raw_text(path, on_read)
        self._text, self._at, self.line = "", 0, 1
        self._started = self._ended = False

    def _fill(self) -> bool:
        """Read on: as much again as is there, so that a long value is parsed a few times and not a thousand."""
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
            assert match is not None  # it matches nothing, too
            self._advance(match.end())
            if self._at < len(self._text) or not self._fill():
                return

    def peek(self) -> str:
        """The next character that is no white space; empty at the end."""
        self.skip_space()
        return self._text[self._at : self._at + 1]

    def take(self, choices: str) -> str:
        """The next character, which must be one of the choices."""
        found = self.peek()
        if not found or found not in choices:
            raise self.broken(f"expected {' or '.join(choices)}" if found else "it is cut off")
        self._at += 1
        return found

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
            # A number may go on behind the buffer; anything else has its own end.
            if end < len(self._text) or not self._fill():
                self._advance(end)
                return value

    def broken(self, why: str) -> DataError:
        return DataError(
            f"{self._path}:{self.line}: broken JSON: {why}; mend or take out this item, for what follows it "
            f"cannot be told apart"
        )
