"""Workbooks as voters send them back: read cell by cell, never computed, and never larger in memory than a ballot.

Office Open XML (ECMA-376), by local names: what Excel, LibreOffice, WPS and Google's sheets write, strict or not.
A reader of our own, as a library's opens a bomb, pads a lone cell in the last row to a million rows, or does not tell
merged cells.
"""

from __future__ import annotations

import posixpath
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from xml.parsers import expat

from h2htalk.errors import RoundError, quoted
from h2htalk.rounds.spreadsheets.files import MAX_FILE
from h2htalk.rounds.spreadsheets.parts import MAX_CELLS, Sheet, SheetReader, TextReader

# Of all parts of a file that are read, unpacked (bytes).
MAX_UNPACKED = 128 << 20
_OLD_FORMAT = b"\xd0\xcf\x11\xe0"
# The end of a zip file's list of parts, and how long that list may be (bytes): a ballot has some hundred parts.
_END, _END_SIZE, MAX_LIST = b"PK\x05\x06", 22, 1 << 20
_CHUNK = 1 << 16


class Workbook:
    """The sheets of a file, each read when it is asked for. Use it in a `with`."""

    def __init__(self, path: Path) -> None:
        """Open a file. Raises RoundError: it is no workbook, too large, protected, or broken; without its name."""
        _refuse_what_is_no_workbook(path)
        self._left = MAX_UNPACKED
        self._cells_left = MAX_CELLS
        self._strings: list[str] | None = None
        self._strings_part = ""
        try:
            self._zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, OSError, ValueError, EOFError) as error:
            raise RoundError(
                "it is no whole workbook (cut off, or of another kind); have it sent again"
            ) from error
        try:
            self._parts = self._find_sheets()
        except RoundError:
            self._zip.close()
            raise

    def __enter__(self) -> Workbook:
        return self

    def __exit__(self, *error: object) -> None:
        self._zip.close()

    @property
    def names(self) -> list[str]:
        """The sheets' names, in their order."""
        return list(self._parts)

    def sheet(self, name: str) -> Sheet:
        """Read a sheet. Raises RoundError: it is broken, or holds more than a ballot does; KeyError."""
        reader = SheetReader(self._shared_strings, self._cells_left)
        self._parse(self._parts[name], reader.start, reader.end, reader.text)
        self._cells_left -= len(reader.sheet.cells)
        return reader.sheet

    # --- Parts ----------------------------------------------------------------------------------------------------

    def _find_sheets(self) -> dict[str, str]:
        if "xl/workbook.xml" not in self._zip.NameToInfo:
            raise RoundError("it is no workbook of Excel's kind; save it as .xlsx")
        targets: dict[str, str] = {}
        sheets: dict[str, str] = {}

        def relation(name: str, attributes: Mapping[str, str]) -> None:
            if name == "Relationship":
                target = posixpath.normpath(posixpath.join("/xl", attributes.get("Target", "")))[1:]
                targets[attributes.get("Id", "")] = target
                if attributes.get("Type", "").endswith("/sharedStrings"):
                    self._strings_part = target

        def sheet(name: str, attributes: Mapping[str, str]) -> None:
            if name == "sheet":
                by = next(
                    (value for key, value in attributes.items() if key.endswith("/relationships id")), ""
                )
                sheets[attributes.get("name", "")] = by

        self._parse("xl/_rels/workbook.xml.rels", relation)
        self._parse("xl/workbook.xml", sheet)
        return {name: targets.get(by, "") for name, by in sheets.items()}

    def _shared_strings(self) -> list[str]:
        if self._strings is None:
            strings: list[str] = []
            reader = TextReader(strings, MAX_CELLS)
            if self._strings_part:
                self._parse(self._strings_part, reader.start, reader.end, reader.text)
            self._strings = strings
        return self._strings

    def _parse(
        self,
        part: str,
        start: Callable[[str, Mapping[str, str]], None],
        end: Callable[[str], None] | None = None,
        text: Callable[[str], None] | None = None,
    ) -> None:
        """Feed a part through the parser piece by piece; every byte counts against what a ballot may hold."""
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler = lambda name, attributes: start(name.rpartition(" ")[2], attributes)
        if end is not None:
            parser.EndElementHandler = lambda name: end(name.rpartition(" ")[2])
        if text is not None:
            parser.CharacterDataHandler = text
        # No workbook has a document type; entities come by it, which unfold to more than they are.
        parser.StartDoctypeDeclHandler = _refuse_doctype
        try:
            with self._zip.open(part) as stream:
                while piece := stream.read(_CHUNK):
                    self._left -= len(piece)
                    if self._left < 0:
                        raise RoundError(
                            f"it unpacks to more than {MAX_UNPACKED >> 20} MiB; no ballot is so large"
                        )
                    parser.Parse(piece, False)
                parser.Parse(b"", True)
        except KeyError as error:
            raise RoundError(
                f"its part {quoted(part)} is missing; open it, save it again as .xlsx"
            ) from error
        except (zipfile.BadZipFile, zlib.error, expat.ExpatError, OSError, EOFError, ValueError) as error:
            raise RoundError(f"its part {quoted(part)} is broken; open it, save it again as .xlsx") from error
        except (RuntimeError, NotImplementedError) as error:
            raise RoundError(
                "it is packed with a password or in an unusual way; save it again as .xlsx"
            ) from error


def _refuse_doctype(*found: object) -> None:
    raise RoundError("it holds a document type, which no workbook does; nothing of it is read")


def _refuse_what_is_no_workbook(path: Path) -> None:
    """By size and first and last bytes, before anything is unpacked or listed."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(8)
            if size <= MAX_FILE:
                file.seek(max(0, size - _END_SIZE - 0xFFFF))
                tail = file.read()
    except OSError as error:
        raise RoundError(
            f"it cannot be read: {error.strerror or error}; is it open in another program?"
        ) from error
    if size == 0:
        raise RoundError("it is empty; have it sent again")
    if size > MAX_FILE:
        raise RoundError(f"it has {size >> 20:,} MiB; no ballot has more than {MAX_FILE >> 20}")
    if head.startswith(_OLD_FORMAT):
        raise RoundError(
            "it has a password, or is in Excel's old form (.xls); save it as .xlsx without a password"
        )
    at = tail.rfind(_END)
    if not head.startswith(b"PK") or at < 0 or len(tail) < at + _END_SIZE:
        raise RoundError("it is no whole workbook (cut off, or of another kind); have it sent again")
    if (
        int.from_bytes(tail[at + 12 : at + 16], "little") > MAX_LIST
        or b"PK\x06\x07" in tail[max(0, at - 20) : at]
    ):
        raise RoundError("it has more parts than any ballot; nothing of it is read")
