"""`messages`: `{"id", "messages": [{"role": "client", "content"}]}`, one a line or in one array."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from h2htalk.curation.gather.json_items import read_objects
from h2htalk.curation.gather.raw_items import Item, OnRead, RawDialogue, RefusedItem, own_name
from h2htalk.curation.gather.speaker_roles import person_of, turns_of

_LISTS = ("messages", "dialog", "dialogue", "conversation")


def read(path: Path, on_read: OnRead) -> Iterator[Item]:
    """Every item of a file; raises DataError for what cannot be counted."""
    return read_objects(path, on_read, dialogue_of)


def dialogue_of(record: Any) -> RawDialogue:
    """A record's dialogue: its list of messages under `messages` (`dialog`, `conversation`), or the list itself.

    Raises:
        RefusedItem: see `turns_of`.
    """
    if isinstance(record, list):
        record = {"messages": record}
    if not isinstance(record, Mapping):
        raise RefusedItem("broken")
    turns, system = turns_of(next((record[key] for key in _LISTS if key in record), None))
    named = own_name(person_of(record))
    return RawDialogue(
        turns, own_name(record.get("id")), named, metadata={"system": system} if system else {}
    )
