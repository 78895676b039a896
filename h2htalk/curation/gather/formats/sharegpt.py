"""`sharegpt`: `{"id", "conversations": [{"from": "human", "value"}]}`, in one array or one a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from h2htalk.curation.gather.json_items import read_objects
from h2htalk.curation.gather.raw_items import Item, OnRead, RawDialogue, RefusedItem, own_name
from h2htalk.curation.gather.speaker_roles import person_of, turns_of


def read(path: Path, on_read: OnRead) -> Iterator[Item]:
    """Every item of a file; raises DataError for what cannot be counted."""
    return read_objects(path, on_read, dialogue_of)


def dialogue_of(record: Any) -> RawDialogue:
    """A record's dialogue; its instructions stand in `system`, or in a first message from `system`.

    Raises:
        RefusedItem: see `turns_of`.
    """
    if not isinstance(record, Mapping):
        raise RefusedItem("broken")
    turns, first = turns_of(record.get("conversations", record.get("conversation")))
    own = record.get("system")
    system = own if isinstance(own, str) and own.strip() else first
    named = own_name(person_of(record))
    return RawDialogue(
        turns, own_name(record.get("id")), named, metadata={"system": system} if system else {}
    )
