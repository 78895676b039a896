"""Codes of spreadsheets: what identifies a file whatever its name is."""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from h2htalk.rounds.round_folder import RoundState


def spreadsheet_code(round_name: str, salt: bytes, number: int, annotator: str) -> str:
    """Return the code of an annotator's (id) part of an assignment set: a keyed hash of round, set and annotator."""
    message = "\0".join((round_name, str(number), annotator)).encode(errors="backslashreplace")
    return hmac.new(salt, message, hashlib.sha256).hexdigest()[:16]


def spreadsheet_codes(state: RoundState, annotator: str) -> tuple[str, ...]:
    """Return the codes of all spreadsheets that an annotator (id) may have got. Raise DataError."""
    salt = state.folder.salt()
    return tuple(spreadsheet_code(state.name, salt, one.number, annotator) for one in state.sets)
