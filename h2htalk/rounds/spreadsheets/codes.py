"""Codes of spreadsheets: what identifies a file whatever its name is."""

from __future__ import annotations

import hashlib
import hmac
import zipfile
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from h2htalk.data.imports.zip_members import read_member

if TYPE_CHECKING:
    from h2htalk.rounds.round_folder import RoundState

# Larger workbooks, in bytes of all parts when unpacked, are not read, and none is written.
MAX_UNPACKED = 64 << 20


def spreadsheet_code(round_name: str, salt: bytes, number: int, annotator: str) -> str:
    """Return the code of an annotator's (id) part of an assignment set: a keyed hash of round, set and annotator."""
    message = "\0".join((round_name, str(number), annotator)).encode(errors="backslashreplace")
    return hmac.new(salt, message, hashlib.sha256).hexdigest()[:16]


def spreadsheet_codes(state: RoundState, annotator: str) -> tuple[str, ...]:
    """Return the codes of all spreadsheets that an annotator (id) may have got. Raise DataError."""
    salt = state.folder.salt()
    return tuple(spreadsheet_code(state.name, salt, one.number, annotator) for one in state.sets)


def holds_code(path: Path, codes: Collection[str]) -> bool:
    """Return whether a workbook, of whichever type it was saved as, holds one of these codes.

    A *Strict Open XML Spreadsheet* or an OpenDocument is not read, and holds the same answers and comments.
    """
    wanted = [code.encode() for code in codes]
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if sum(member.file_size for member in members) > MAX_UNPACKED:
                return False
            for member in members:
                content = read_member(archive, member)
                if any(code in content for code in wanted):
                    return True
    # zipfile raises these for other bytes, a password, or an unknown compression.
    except (OSError, zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError):
        pass
    return False
