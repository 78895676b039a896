"""What was read from returned files, kept so that only new and changed files are parsed again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from h2htalk.data.files import sha256_of, write_jsonl
from h2htalk.errors import DataError
from h2htalk.rounds.round_folder import RoundFolder, read_record_lines
from h2htalk.rounds.spreadsheets.assigned_files import require_size
from h2htalk.rounds.spreadsheets.row_answers import RowAnnotations
from h2htalk.version import __version__

# In the private folder. It may be deleted: everything is read again then.
FILE = "read_spreadsheets.jsonl"
# Files of the round that determine what a spreadsheet means.
_CONTEXT = ("round.json", "items.jsonl", "assignment_sets.jsonl", "private/annotators.jsonl")


@dataclass(frozen=True, slots=True)
class FileReading:
    """What a file of the spreadsheet `stem` contains: item -> answers; place, problem and kind of each message."""

    key: str
    stem: str
    rows: Mapping[str, RowAnnotations]
    mistakes: tuple[tuple[str, str, str], ...]
    notes: tuple[tuple[str, str, str], ...]


class StoredReadings:
    """The readings of a round by key: those of the last collection, and in `used` those of this one."""

    def __init__(self, folder: RoundFolder) -> None:
        self._path = folder.private / FILE
        self._context = "\n".join([__version__, *(sha256_of(folder.path / name) for name in _CONTEXT)])
        self.used: dict[str, FileReading] = {}
        try:
            self._stored = {one.key: one for _, one in read_record_lines(self._path, FileReading)}
        except DataError:
            self._stored = {}  # missing or damaged: nothing is lost, the files are read again

    def key(self, path: Path) -> str:
        """Return a fingerprint of a file's name and content, the round, and the version. Raise RoundError, OSError."""
        require_size(path)
        text = f"{self._context}\n{hashlib.sha256(path.read_bytes()).hexdigest()}\n{path.name}"
        return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()

    def find(self, key: str) -> FileReading | None:
        """Return the reading with a key, and keep it."""
        if key in self._stored:
            self.used[key] = self._stored[key]
        return self.used.get(key)

    def save(self) -> None:
        """Store the readings of this collection. Raise DataError."""
        if self.used != self._stored:
            write_jsonl(self._path, map(asdict, self.used.values()))
