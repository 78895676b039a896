"""Which records hold words of somebody who was erased, by the ids in them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Any

from h2htalk.data.files import read_jsonl, remove_file, replacing, write_jsonl
from h2htalk.data.responses import CALLS, read_parquet
from h2htalk.errors import DataError

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ErasedIds:
    """What was erased: `ids` of dialogues and persons; `items` on them, by id, whose records may not tell of them."""

    ids: frozenset[str]
    items: frozenset[str] = frozenset()

    def covers(self, record: Record) -> bool:
        """Whether a dialogue, candidate, scenario, case or rejected line holds words of an erased id.

        By its own ids, those of the record in it, or those of replies that others gave (alternatives, references).
        """
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


# In a folder from which an erasure is not finished (`folder_kinds`).
MARK = ".erasing"
BEGUN = "begun\n"  # in the mark of a folder whose files were changed
erasing_here: set[str] = set()  # the folders from which this process erases now
ERASED = "erased.jsonl"  # the items that were erased from a folder, a line each, with their `id`
# What stays of a call whose item is erased: what was paid is not undone.
_MONEY = {"reserved", "call", "stage", "asked", "samples", "bound", "worst", "batch", "prices"}
_MONEY |= {"cost", "reason", "usage", "usd"}


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
    if os.path.lexists(folder / MARK) and os.path.realpath(folder) not in erasing_here:
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
    left = {key: value for key, value in record.items() if key in _MONEY}
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
