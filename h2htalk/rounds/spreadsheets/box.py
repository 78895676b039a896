"""What lies in the ballots' folder: whose each file is, and what a voter's files say together."""

from __future__ import annotations

import datetime
import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from h2htalk.errors import counted
from h2htalk.rounds.questions import Value
from h2htalk.rounds.spreadsheets.answers import Reading
from h2htalk.rounds.spreadsheets.csv_reading import read_csv_ballot
from h2htalk.rounds.spreadsheets.files import Ballot, BallotRound
from h2htalk.rounds.spreadsheets.reading import read_workbook
from h2htalk.text.printable import printable

_READERS = {".xlsx": read_workbook, ".csv": read_csv_ballot}
# Other forms in which a filled-in ballot may come back: named, never left out in silence.
_OTHER_FORMS = (
    ".xls",
    ".xlsm",
    ".xlsb",
    ".xltx",
    ".ods",
    ".fods",
    ".numbers",
    ".et",
    ".tsv",
    ".zip",
    ".rar",
    ".7z",
)
# By less than this one machine's clock may be before another's.
_CLOCKS_DIFFER = datetime.timedelta(minutes=5)
_OF_THE_SYSTEM = ("thumbs.db", "desktop.ini", "icon\r")
# What a browser calls a download whose name is taken.
_DOWNLOAD = re.compile(r"(.+?) ?\(\d{1,3}\)")
# Of items in a note so many are named one by one.
_NAMED = 5


@dataclass(slots=True)
class Box:
    """What was found in the folder."""

    known: BallotRound
    mistakes: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    # Of a ballot, its files that could be read, each with when it was changed.
    files: dict[str, list[tuple[Mapping[str, Reading], str]]] = field(default_factory=dict)
    # Of a ballot, its downloads that lie beside it and are not read.
    unread: dict[str, list[str]] = field(default_factory=dict)

    def read_all(self, paths: Sequence[Path]) -> None:
        """Read what lies in the folder. Downloads come last: `eve (1).xlsx` is read where eve.xlsx says nothing."""
        by_stem = {folded(ballot.stem): ballot for ballot in self.known.ballots}
        downloads: dict[str, list[Path]] = {}
        for path in paths:
            found = _DOWNLOAD.fullmatch(folded(path.stem))
            taken = folded(path.stem) in by_stem or path.suffix.lower() not in _READERS or not path.is_file()
            if found and found[1] in by_stem and not taken:
                downloads.setdefault(found[1], []).append(path)
            else:
                self.read(path, by_stem.get(folded(path.stem)))
        for stem, found_paths in downloads.items():
            ballot = by_stem[stem]
            alone = len(found_paths) == 1 and (ballot.stem not in self.files or self.is_blank(ballot))
            if not alone:
                self.unread[ballot.stem] = [self._shown(path) for path in found_paths]
            for path in found_paths:
                self.read(path, ballot if alone else None)
                if alone:
                    self.notes.append(
                        f"{self._shown(path)}: read as {ballot.stem}{path.suffix.lower()}, which is absent or blank; "
                        "give it that name"
                    )

    def _shown(self, path: Path) -> str:
        return f"{self.known.folder.name}/{printable(path.name)}"

    def read(self, path: Path, ballot: Ballot | None) -> None:
        """Read a file as a ballot, or say why not. `ballot`: whose it is by its name; None where that is nobody's."""
        shown = self._shown(path)
        name, suffix = folded(path.name), path.suffix.lower()
        if name.startswith((".", "~$")) or name in _OF_THE_SYSTEM or _is_ours(name):
            return
        if suffix not in _READERS or not path.is_file():
            if path.is_dir() and suffix in (*_OTHER_FORMS, *_READERS):
                self.mistakes.append(
                    f"{shown}: is a folder, and nothing in it is read; put the ballot itself beside the others"
                )
            elif suffix in _OTHER_FORMS or suffix in _READERS:
                self.mistakes.append(
                    f"{shown}: ballots are read from .xlsx and .csv files; save it as one of them"
                )
            else:
                self.notes.append(f"{shown}: no ballot; left alone")
            return
        reading = _READERS[suffix](self.known, ballot, path, shown)
        # Who left the round mends nothing any more; closing must not wait for them.
        left = ballot is not None and not ballot.voter.here
        (self.notes if left else self.mistakes).extend(reading.mistakes)
        self.notes += reading.notes
        if ballot is not None:
            rows = {row.item: row for row in reading.rows}
            self.files.setdefault(ballot.stem, []).append((rows, self._changed_at(path, shown)))

    def _changed_at(self, path: Path, shown: str) -> str:
        """When a file was changed; now, and a note, where it says that it was changed later than that."""
        changed = datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.UTC)
        latest = datetime.datetime.now(datetime.UTC)
        if changed > latest + _CLOCKS_DIFFER:
            self.notes.append(
                f"{shown}: was changed in the future ({changed:%Y-%m-%d %H:%M} UTC), as a wrong clock says; what is "
                "new in it has the time of now"
            )
        return min(changed, latest).isoformat(timespec="seconds")

    def settle(self, ballot: Ballot) -> tuple[int, dict[str, tuple[Mapping[str, Value], str]]]:
        """What a ballot's files say together.

        Returns:
            Half-filled rows; and by item the answers and when they were given. An item whose row is empty in all of
            them has none: it is named only where a row of the ballot is filled in and no download of it lies there
            unread, so that neither a blank copy, whole or not, nor a fresh start beside the answers takes any back. An
            item whose row cannot be counted as it stands is left out. What is stored of items that are left out stays,
            and a note says so.
        """
        files = self.files.get(ballot.stem, [])
        half = 0
        counted: dict[str, tuple[Mapping[str, Value], str]] = {}
        empty: dict[str, str] = {}
        for seat in ballot.seats:
            said = [(rows.get(seat.item), when) for rows, when in files]
            half += any(row is not None and row.state == "half" for row, _ in said)
            answered = [(row, when) for row, when in said if row is not None and row.state == "answered"]
            if answered and self._agree([row for row, _ in answered]):
                counted[seat.item] = (answered[0][0].answers, answered[0][1])
            elif said and all(row is not None and row.state == "empty" for row, _ in said):
                empty[seat.item] = max(when for _, when in said)
        kept = self.known.answered(ballot) - set(counted)
        emptied = kept & set(empty)
        reason = self._why_nothing_goes(ballot, len(emptied))
        if reason is None:
            counted |= {item: ({}, when) for item, when in empty.items()}
        elif emptied:
            self.notes.append(f"{ballot.stem}: {reason}")
        self._tell_kept(ballot, kept - emptied)
        return half, counted

    def _why_nothing_goes(self, ballot: Ballot, emptied: int) -> str | None:
        """Why a ballot's empty rows take nothing back, as a note says it; None where they do.

        Args:
            emptied: items that were answered before, and whose rows are empty now.
        """
        if ballot.stem in self.unread:
            return (
                f"nothing is taken back beside {', '.join(self.unread[ballot.stem])}: a download that is not read may "
                f"hold the answers of {counted(emptied, 'item')} whose rows are empty now. Leave one file under the "
                "ballot's name, and move the others away"
            )
        rows = [row for found, _ in self.files.get(ballot.stem, []) for row in found.values()]
        if any(row.state not in ("empty", "unread") for row in rows):
            return None
        if not self.is_blank(ballot):
            return (
                "no row that can be read is filled in now, so nothing is taken back of "
                f"{counted(emptied, 'item')} whose rows are empty. Put the filled-in ballot back, or a whole one"
            )
        return (
            f"the ballot is empty now; its {counted(emptied, 'stored answer')} still count{'s' * (emptied == 1)}. To "
            "take them back one by one, empty the rows and leave one filled in; put the filled-in ballot back otherwise"
        )

    def _tell_kept(self, ballot: Ballot, kept: Collection[str]) -> None:
        """Name the items that were answered before, and whose rows cannot be counted now."""
        if not kept or ballot.stem not in self.files:
            return
        numbers = [str(number) for number, one in enumerate(ballot.seats, 1) if one.item in kept]
        more = f" and {len(numbers) - _NAMED} more" if len(numbers) > _NAMED else ""
        self.notes.append(
            f"{ballot.stem}: {counted(len(numbers), 'item')} answered before cannot be counted as the rows are now "
            f"(item {', '.join(numbers[:_NAMED])}{more}); the earlier answers still count, until the rows are whole, "
            "skipped or empty"
        )

    def is_blank(self, ballot: Ballot) -> bool:
        """Whether a ballot's files are there and could be read whole, and nothing is filled in in any of them."""
        files = self.files.get(ballot.stem, [])
        return bool(files) and all(
            len(rows) == len(ballot.seats) and all(row.state == "empty" for row in rows.values())
            for rows, _ in files
        )

    def _agree(self, rows: Sequence[Reading]) -> bool:
        """Whether the workbook and the CSV say the same; which of them was changed later decides nothing."""
        for row in rows[1:]:
            if row.answers != rows[0].answers:
                self.mistakes.append(
                    f"{row.where}: says something else than {rows[0].where}; empty one of the two, neither is read"
                )
                return False
        return True


def _is_ours(name: str) -> bool:
    return name.endswith(".texts.txt") or (name.startswith("guidelines-") and name.endswith(".txt"))


def folded(name: str) -> str:
    """A file's name as file systems compare it: some keep no case, some write accents apart."""
    return unicodedata.normalize("NFC", name).casefold()
