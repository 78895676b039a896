"""The text of an export: of a file, or of the one file of a ZIP archive that the program wrote."""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from h2htalk.curation.gather.encodings import UTF8
from h2htalk.curation.gather.formats import RefusedItem
from h2htalk.curation.gather.records import encoding_of, read_bytes
from h2htalk.data.bounded.bounds import EXPORT_VALUES
from h2htalk.data.bounded.json_values import TooManyValues, require_few_values
from h2htalk.data.imports.zip_members import read_member
from h2htalk.errors import DataError, listed

MOST_BYTES = 1 << 30  # of an export, which is held as a whole
_UNFOLDED_A_BYTE = (
    32  # bytes of an export that a byte of a compressed file may unfold to; chats have 3 to 10
)
_SMALL = 1 << 26  # bytes that a compressed file may unfold to whatever its size
ARCHIVE = ".zip"


@dataclass(frozen=True, slots=True)
class ExportFile:
    """A file of a source, with the patterns of the names that its program gives its files."""

    path: Path
    name: str  # its path in the folder of the source; empty where the source is the file itself
    patterns: Sequence[str]
    encoding: str  # empty: its own
    on_read: Callable[[int], object]

    def text(self) -> str:
        """Its text, with the line ends that it has. Raises RefusedItem, DataError."""
        if self.path.suffix.lower() == ARCHIVE:
            return _decoded(self._archived(), self.encoding or UTF8)
        size = self.path.stat().st_size
        if size > MOST_BYTES:
            raise DataError(f"{self.path}: more than 1 GiB; export the chats one by one")
        content = read_bytes(self.path, _most_unfolded(size))
        self.on_read(size)
        return _decoded(content, self.encoding or encoding_of(self.path))

    def owner(self) -> str:
        """A name for whom all chats of an export are of, wherever the files lie: a folder's, or an archive's."""
        place = Path(self.name)
        return str(place if place.suffix.lower() == ARCHIVE else place.parent)

    def json(self) -> Any:
        """Its one JSON value. Raises RefusedItem, DataError."""
        return parse_json(self.text())

    def _archived(self) -> bytes:
        """The one file of an archive that the program named."""
        try:
            with zipfile.ZipFile(self.path) as archive:
                members = [
                    one
                    for one in archive.infolist()
                    if matches(Path(one.filename).name, self.patterns)
                ]
                if len(members) != 1:
                    found = listed([one.filename for one in members]) or "none"
                    wanted = " or ".join(self.patterns)
                    raise DataError(
                        f"{self.path}: the archive must hold one {wanted}, but has {found}; unpack it"
                    )
                size = self.path.stat().st_size
                most = _most_unfolded(size)
                if members[0].file_size > most:
                    raise DataError(
                        f"{self.path}: unfolds to more than {most >> 20:,} MiB; where that is right, unpack it"
                    )
                self.on_read(size)
                return read_member(archive, members[0])
        except (
            zipfile.BadZipFile,
            zlib.error,
            EOFError,
            RuntimeError,
            NotImplementedError,
        ) as error:  # broken, encrypted, or another method
            raise DataError(
                f"{self.path}: the archive cannot be read: {error}; unpack it"
            ) from error


def _most_unfolded(size: int) -> int:
    """How many bytes a file of a size may be decompressed to."""
    return min(MOST_BYTES, max(_SMALL, _UNFOLDED_A_BYTE * size))


def matches(name: str, patterns: Sequence[str]) -> bool:
    """Whether a file's name is one of a program's."""
    return any(fnmatch(name.lower(), pattern) for pattern in patterns)


def _decoded(content: bytes, encoding: str) -> str:
    try:
        return content.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        problem = f"bytes that are not {encoding.upper()}; save the file as UTF-8, or say what it is: encoding = NAME"
        raise RefusedItem("encoding", problem, byte=error.start) from error


# Telegram Desktop writes other control characters as C does: `\x0B`.
_C_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\x([0-9A-Fa-f]{2})")


def parse_json(text: str) -> Any:
    """A JSON value, of strings that may hold control characters. Raises RefusedItem."""
    try:
        require_few_values(text, EXPORT_VALUES)
    except TooManyValues as error:
        raise RefusedItem("too_long", str(error)) from None
    try:
        return json.loads(text, strict=False)
    except json.JSONDecodeError as error:
        problem = f"no JSON: {error.msg}; the file is cut off or was changed, so export it again"
        line = error.lineno
    except RecursionError:
        raise RefusedItem("broken", "no JSON: nested too deeply") from None
    try:
        return json.loads(_C_ESCAPE.sub(r"\1\\u00\2", text), strict=False)
    except (ValueError, RecursionError):
        raise RefusedItem("broken", problem, line=line) from None
