"""Readings that stand in no stage and in no round of a release, as a workspace keeps them.

A guard's of the items and cases of a release itself (`h2htalk release read`), those of dialogues by the people of a
sample (`h2htalk curate sample`), and what a model quoted from dialogues that gives somebody away (`release risk`).

WORKSPACE/
  item_reads.jsonl           a line an item, or dialogue: whose words it holds, and its readings
  release_reads/calls.jsonl  the replies
  exposed.jsonl              the items of the most exposed dialogues, for a round

The line of an item is written before the guard is asked about it: from then on an erasure finds its replies.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from h2htalk.data.erasure.folder_kinds import filter_file
from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.data.readers.exposures import Exposure
from h2htalk.data.readers.reads import Read
from h2htalk.data.records import Id, read_record, strict_record
from h2htalk.data.responses import CALLS
from h2htalk.errors import DataError, quoted

ITEM_READS = "item_reads.jsonl"  # of a workspace
CALLS_FOLDER = "release_reads"
EXPOSED = "exposed.jsonl"  # of a workspace
# In the provenance of a source record: the item is put to people because of what a model quoted from its dialogue.
OF_EXPOSED = "release_risk"
PEOPLE_OF_SAMPLE = "people:safety:"  # before the name of a sample's round
# Between the id of an item and the number of the dialogue that a guard is shown of it.
_PART = "#part-"


@strict_record
class ItemReads:
    """The readings of an item, case or dialogue.

    Attributes:
        id: the item's id.
        of: the ids of everybody whose words it holds.
        reads: the readings by guards, and by the people of samples.
        said: the passages at which something was found, by the hashes of their texts: an edit does not undo a finding.
        exposures: what models quoted from the dialogue that gives its user away.
    """

    id: Id
    of: tuple[str, ...] = ()
    reads: tuple[Read, ...] = ()
    said: Mapping[str, str] = field(default_factory=dict)
    exposures: tuple[Exposure, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The record; `read_item_reads` reads it back."""
        record: dict[str, Any] = {"id": self.id, "of": list(self.of)}
        record |= {"reads": [read.to_dict() for read in self.reads]}
        if self.said:
            record["said"] = dict(sorted(self.said.items()))
        if self.exposures:
            record["exposures"] = [exposure.to_dict() for exposure in self.exposures]
        return record


def part_id(item: str, number: int) -> str:
    """The id of a dialogue that a guard is shown of an item; those of its requests begin with it."""
    return f"{item}{_PART}{number}"


def read_item_reads(workspace: Path) -> dict[str, ItemReads]:
    """What a workspace keeps, by item; nothing without the file.

    Raises DataError, also for a reading of another item, or by a reader whose readings stand elsewhere: the people of a
    round are known by the round.
    """
    path = workspace / ITEM_READS
    lines: dict[str, ItemReads] = {}
    for where, raw in read_jsonl(path) if path.exists() else ():
        line = read_record(ItemReads, raw, where)
        for read in line.reads:
            if read.item != line.id or not (
                read.kind == "guard" or read.reader.startswith(PEOPLE_OF_SAMPLE)
            ):
                raise DataError(
                    f"{where}: needs "
                    f"readings of {quoted(line.id)} by guard:MODEL or {PEOPLE_OF_SAMPLE}ROUND, "
                    f"not of {quoted(read.item)} by {quoted(read.reader)}"
                )
        lines[line.id] = line
    return lines


def write_item_reads(workspace: Path, lines: Mapping[str, ItemReads]) -> None:
    """Replace what a workspace keeps."""
    write_jsonl(workspace / ITEM_READS, [lines[name].to_dict() for name in sorted(lines)])


def mark_exposed(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record of an exposed item, with the mark that a round about such items keeps."""
    return {**record, "provenance": {**record.get("provenance", {}), OF_EXPOSED: True}}


def is_marked_exposed(record: object) -> bool:
    """Whether a source record is one that `release risk` put to people."""
    provenance = record.get("provenance") if isinstance(record, Mapping) else None
    return isinstance(provenance, Mapping) and provenance.get(OF_EXPOSED) is True


def holds_exposed(path: Path) -> bool:
    """Whether a file is one that `release risk` wrote, whatever its name. Raises DataError."""
    if path.suffix != ".jsonl" or not path.is_file():
        return False
    return any(
        is_marked_exposed(line.get("source")) for _, line in itertools.islice(read_jsonl(path), 1)
    )


def add_read(line: ItemReads, read: Read) -> ItemReads:
    """The line of an item with another reading.

    It replaces a part of itself: one of the same reader and question that says nothing that it does not say.
    """
    earlier = [stored for stored in line.reads if not _is_part(stored, read)]
    return replace(line, reads=(*earlier, read))


def _is_part(stored: Read, read: Read) -> bool:
    for name in ("reader", "prompt", "served_by"):
        if getattr(stored, name) != getattr(read, name):
            return False
    contents = ("findings", "known_by", "passages")
    return all(set(getattr(stored, name)) <= set(getattr(read, name)) for name in contents)


def erase_item_reads(workspace: Path, covers: Callable[[Mapping[str, Any]], bool]) -> None:
    """Remove the readings of items that hold words of somebody who is erased, and the replies about them.

    `covers` says whether a record holds such words, by its ids. The replies go first: doing it again after a kill finds
    the same items.
    """
    gone = set()
    for name, line in read_item_reads(workspace).items():
        if any(covers({"id": holder}) for holder in (name, *line.of)):
            gone.add(name)
    calls = workspace / CALLS_FOLDER / CALLS
    if calls.exists():
        filter_file(calls, lambda call: _item_of(call) not in gone and not covers(call))
    exposed = workspace / EXPOSED
    if exposed.exists():
        filter_file(
            exposed, lambda line: line["item"]["id"] not in gone and not covers(line["source"])
        )
    path = workspace / ITEM_READS
    if path.exists():
        filter_file(path, lambda line: line["id"] not in gone)


def _item_of(call: Mapping[str, Any]) -> str:
    """The item that a stored reply is about; nothing of a line that is about money."""
    return str(call.get("id", "")).rpartition(_PART)[0]
