"""Erased ids, the table of kinds of folders that are made from a workspace, and the one way in which items leave them.

A new kind is one record here, and the class that it names. While an erasure works on a folder, and after a kill, the
folder holds the file `.erasing`: its readers call `require_erased`.
"""

from __future__ import annotations

import os
import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from h2htalk.data.files import read_jsonl, refuse_links, remove_file, replacing, write_jsonl, write_text
from h2htalk.data.responses import CALLS, read_parquet
from h2htalk.errors import DataError, H2HTalkError

Record = Mapping[str, Any]

# --- Whose words a record holds ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ErasedIds:
    """What was erased: `ids` of dialogues and persons; `items` on them, by id, whose records may not tell of them."""

    ids: frozenset[str]
    items: frozenset[str] = frozenset()

    def covers(self, record: Record) -> bool:
        """Whether a record holds words of an erased id: by its own ids, those of the record in it, or of replies."""
        return any(not self.ids.isdisjoint(_beginnings(name)) for name in ids_in(record))

    def covers_item(self, item_id: str, record: Record | None) -> bool:
        """Whether an item rests on an erased id: by its record, and where that does not tell of replies, by its id."""
        if record is not None and self.covers(record):
            return True
        tells = record is not None and ("messages" in record or len([*_parts(record)]) > 1)
        return not tells and not (self.ids | self.items).isdisjoint(_beginnings(item_id))


def own_ids(record: Record) -> frozenset[str]:
    """The ids of those whose words a record or reply holds: its own, its dialogue's, its person's."""
    provenance = record.get("provenance") or {}
    ids = (record.get("id"), record.get("dialogue"), provenance.get("dialogue"), provenance.get("person"))
    return frozenset(item for item in ids if item is not None)


def ids_in(record: Record) -> frozenset[str]:
    """The ids of everybody whose words a record holds, replies of others included."""
    return frozenset().union(*map(own_ids, _parts(record)))


def _parts(record: Record) -> Iterator[Record]:
    """A record, the one in it, and the replies of others (references of scenarios are texts)."""
    for one in (record, record.get("record"), record.get("scenario")):
        if isinstance(one, Mapping):
            metadata = one.get("metadata") or {}
            yield one
            for replies in (metadata.get("alternatives"), metadata.get("references"), one.get("references")):
                yield from (reply for reply in replies or () if isinstance(reply, Mapping))


def _beginnings(name: str) -> set[str]:
    """An id with those that it begins with: `DIALOGUE:subtask/pair-1-2/ab`, `DIALOGUE:subtask#keep`."""
    item = name.split("/", 1)[0].split("#", 1)[0]
    return {name, name.rsplit("/", 2)[0], item, item.split(":", 1)[0]}


# --- Files of a folder ------------------------------------------------------------------------------------------------

MARK = ".erasing"
BEGUN = "begun\n"  # in the mark of a folder whose files were changed
ERASED = "erased.jsonl"  # the items that were erased from a folder, a line each, with their `id`
_erasing_here: set[str] = set()  # the folders from which this process erases now
# What stays of a call whose item is erased: what was paid is not undone.
MONEY = {"reserved", "call", "stage", "asked", "samples", "bound", "worst", "batch", "prices"}
MONEY |= {"cost", "reason", "usage", "usd"}


def read_erased(path: Path) -> dict[str, Record]:
    """Read a file of erased items, by id; none without it. Raises DataError."""
    lines: dict[str, Record] = {}
    for where, line in read_jsonl(path) if path.is_file() else ():
        if not isinstance(line.get("id"), str):
            raise DataError(f"{where}: needs the id of an erased item; restore it")
        lines[line["id"]] = line
    return lines


def require_erased(folder: Path) -> None:
    """Raise DataError where an erasure from a folder is not finished, unless it is this process that erases there."""
    if os.path.lexists(folder / MARK) and os.path.realpath(folder) not in _erasing_here:
        raise DataError(f"{folder}: an erasure was interrupted here; start the same `h2htalk curate erase` again")


def filter_file(path: Path, stays: Callable[[Record], bool]) -> None:
    """Remove the records of a JSONL or Parquet file for which `stays` is false."""
    is_parquet = path.suffix == ".parquet"
    records = [record for _, record in (read_parquet(path) if is_parquet else read_jsonl(path, torn_tail=True))]
    kept = list(map(stays, records))
    if all(kept):
        return
    if is_parquet:
        import pyarrow.parquet as pq

        # Opened here: pyarrow takes no path that is not UTF-8.
        with replacing(path) as temporary, path.open("rb") as source, temporary.open("wb") as target:
            pq.write_table(pq.read_table(source).filter(kept), target)
    else:
        left = map(_without_text, records, kept) if path.name == CALLS else compress(records, kept)
        write_jsonl(path, filter(None, left))


def _without_text(record: Record, stays: bool) -> Record:
    """A line of a call store, or what stays of it: the call and its money, nothing where there was none."""
    if stays or "job" in record:
        return record
    left = {key: value for key, value in record.items() if key in MONEY}
    return left | {"erased": True} if "reserved" in left or "call" in left else {}


def remove_for_good(path: Path) -> None:
    """Remove a file or folder if it exists; raises DataError where it stays, as it may hold texts."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        place, why = error.filename or path, error.strerror or error
        raise DataError(f"{place}: cannot be removed: {why}; remove it and start the same command again") from error


def remove_partial_files(folder: Path) -> None:
    """Remove files that a kill left half written, anywhere in a folder: an erasure does not search them."""
    for path in folder.rglob(".*"):
        # A spreadsheet program's lock, and a list of names, hold no text of an item.
        if path.is_file() and not path.name.startswith((".~", ".git")) and path.name != MARK:
            remove_file(path)


# --- Kinds of folders -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FolderErasure:
    """What an erasure did in one folder, or for a version on the Hub."""

    removed: int = 0  # items that it removed now
    items: frozenset[str] = frozenset()  # ids of all that were ever erased from it
    messages: tuple[str, ...] = ()  # what it could not reach
    unfinished: bool = False  # the same erasure must be started again
    name: str = ""
    kind: str = ""  # empty where nothing is there


class ErasableFolder(ABC):
    """What the table cannot say of a folder: how to lock and verify it, and to make again what rests on all items."""

    erased_file = ERASED

    def __init__(self, path: Path) -> None:
        self.path = path

    def locked(self) -> AbstractContextManager[object]:
        """Hold the folder's lock; raises DataError where another process holds it."""
        return nullcontext()

    def erased(self) -> frozenset[str]:
        """The names by which rows know the items that were ever recorded as erased."""
        return frozenset(read_erased(self.path / self.erased_file))

    @abstractmethod
    def items(self) -> Iterable[tuple[str, Record | None]]:
        """The ids of the folder's items with their records. Raises H2HTalkError where it was altered."""

    def record(self, gone: frozenset[str]) -> None:
        """Write down the ids of items before any file changes. Raises H2HTalkError where they cannot be erased."""
        write_jsonl(self.path / self.erased_file, ({"id": name} for name in sorted(self.erased() | gone)))

    def remake(self) -> Iterable[str]:
        """Make again what rests on all items, in a folder without the erased ones; messages of what could not be."""
        return ()

    def outside(self) -> Iterable[str]:
        """Erase from what lies elsewhere; messages of what is out of reach. Raises H2HTalkError for no answer."""
        return ()


@dataclass(frozen=True, slots=True)
class Rows:
    """Files (patterns) whose rows name an item in `fields` (`A.B`: in an object), by the pattern `item` or as it is."""

    files: str
    fields: str = "id"
    item: str = "(.*)"

    def items(self, row: Record) -> set[str]:
        """The items that a row is about."""
        inner = row.get("item")
        given = {**row, "item": None, "item.id": inner.get("id")} if isinstance(inner, Mapping) else row
        names = [str(given[field]) for field in self.fields.split() if given.get(field) is not None]
        return {match[1] if (match := re.fullmatch(self.item, name, re.DOTALL)) else name for name in names}


@dataclass(frozen=True, slots=True)
class FolderKind:
    """A kind of folder."""

    name: str  # in links
    marker: str  # the file that identifies it
    shown_by: str  # a command
    folder: str  # its ErasableFolder
    rows: tuple[Rows, ...]  # files that lose the rows of erased items
    derived: str = ""  # what is deleted because it rests on all items


# An answer is `ITEM/SAMPLE/HASH`, a reply of a study `CASE/PLACE/HASH:QUESTION`.
_JUDGED = Rows("judgements/* adjudication/*", "answer item.id id", "(.*)/[^/]*/[^/]*")

_KINDS = (
    FolderKind(
        *("round", "round.json", "round status", "h2htalk.rounds.erasure:ErasableRound"),
        (Rows("*.jsonl", "id item"), Rows("adjudications.jsonl", "tie", "(.*)#[^#]*"), Rows("private/*", "item")),
    ),
    FolderKind(
        *("run", "run.json", "report", "h2htalk.benchmark.score_run:ErasableRun"),
        (Rows("calls.jsonl baselines/* inputs/split/*"), _JUDGED),
        "scores tables report.html judgements/calibration.json judgements/label_plan.json",
    ),
    FolderKind(
        *("attempt", "attempt.json", "merge --out RUN", "h2htalk.scale.shards:ErasableAttempt"),
        (Rows("calls.jsonl baselines/* inputs/split/*"),),
    ),
    FolderKind(
        *("study", "study.json", "study score", "h2htalk.benchmark.studies.run_study:ErasableStudy"),
        (Rows("calls.jsonl inputs/split/*", "item id"), _JUDGED),
        "observations.parquet report.html tables figures",
    ),
    FolderKind(
        *("release", "release.json", "release check", "h2htalk.data.releases.release_folder:ErasableRelease"),
        (Rows("data/*/*", "id item"),),  # votes are on an `item`
        "figures",
    ),
    FolderKind(
        *("site", "site.json", "site RUN... --out", "h2htalk.site.build:ErasableSite"),
        (),
        "index.html items.html models studies data data.parquet figures tables",
    ),
)
FOLDER_KINDS: Mapping[str, FolderKind] = {kind.name: kind for kind in _KINDS}


def kind_of(folder: Path) -> FolderKind | None:
    """The kind of a folder by its marker; None for others."""
    return next((kind for kind in FOLDER_KINDS.values() if os.path.isfile(folder / kind.marker)), None)


def require_folder_kind(folder: Path, name: str) -> None:
    """Raise DataError, naming the command that shows it, for a folder of another kind."""
    if (kind := kind_of(folder)) is not None and kind.name != name:
        what = f"is {'an' if kind.name[0] == 'a' else 'a'} {kind.name}, and this command needs a {name}"
        raise DataError(f"{folder}: {what}; `h2htalk {kind.shown_by} {folder}` shows it")


def require_published_erased(release: Path) -> None:
    """Raise DataError where the workspace of a release is erasing, or has erased, somebody whose words it holds."""
    resolve_name("h2htalk.curation.release.build:require_erased_release")(release)


def erase_stored(url: str, erased: ErasedIds) -> FolderErasure:
    """Remove the items of erased ids from an attempt on object storage."""
    return resolve_name("h2htalk.scale.shards:erase_stored")(url, erased)  # type: ignore[no-any-return]


# --- Erasure from a folder --------------------------------------------------------------------------------------------


def erase(path: Path, erased: ErasedIds) -> FolderErasure:
    """Remove the items of erased ids from a folder of any kind, and complete an erasure that was interrupted."""
    if (kind := kind_of(path)) is None:
        return FolderErasure()
    refuse_links(path)  # a round of others may name any folder by one
    with _marked(path) as begun:
        folder: ErasableFolder = resolve_name(kind.folder)(path)
        with folder.locked():
            messages = _remove(kind, folder) if begun else []
            before, unfinished = folder.erased(), False
            gone = {name for name, row in folder.items() if name in before or erased.covers_item(name, row)}
            if gone:
                write_text(path / MARK, BEGUN)
                folder.record(frozenset(gone))
                messages = _remove(kind, folder)
            try:
                messages += folder.outside() if (items := folder.erased()) else ()
            except H2HTalkError as error:
                unfinished = True
                messages.append(f"not erased there: {error}; then start the same erasure again")
    return FolderErasure(len(gone), items, tuple(messages), unfinished, kind=kind.name)


def _remove(kind: FolderKind, folder: ErasableFolder) -> list[str]:
    """Remove what is recorded as erased. Can be repeated after a kill."""
    if not (names := folder.erased()):
        return []
    remove_partial_files(folder.path)
    for rows in kind.rows:
        for path in (path for pattern in rows.files.split() for path in [*folder.path.glob(pattern)]):
            if path.suffix in (".jsonl", ".parquet"):
                filter_file(path, lambda row, rows=rows: names.isdisjoint(rows.items(row)))  # type: ignore[misc]
    for name in kind.derived.split():
        remove_for_good(folder.path / name)
    return list(folder.remake())


def mark_folder(folder: Path) -> None:
    """Mark a folder from which somebody is to be erased; one that cannot be written cannot be half erased either."""
    if not os.path.lexists(folder / MARK):
        with suppress(DataError):
            write_text(folder / MARK, "")


@contextmanager
def _marked(folder: Path) -> Iterator[bool]:
    """Mark a folder while items leave it; the mark stays where that fails. Yields whether an earlier one had begun."""
    place, mark = os.path.realpath(folder), folder / MARK
    begun = mark.is_file() and mark.read_text(encoding="utf-8") == BEGUN
    mark_folder(folder)
    _erasing_here.add(place)
    try:
        yield begun
        remove_for_good(mark)
    finally:
        _erasing_here.discard(place)
