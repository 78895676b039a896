"""`openai`: `{"messages": [{"role", "content": "..." or [{"type": "text", "text"}]}]}`; tools are refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from h2htalk.curation.gather.formats import messages
from h2htalk.curation.gather.json_items import read_objects
from h2htalk.curation.gather.raw_items import Item, OnRead, RawDialogue, RefusedItem


def read(path: Path, on_read: OnRead) -> Iterator[Item]:
    """Every item of a file; raises DataError for what cannot be counted."""
    return read_objects(path, on_read, dialogue_of)


def dialogue_of(record: Any) -> RawDialogue:
    """A record's dialogue; one that offers tools (`tools`, `functions`) but uses none is a dialogue still.

    Raises:
        RefusedItem: see `speakers.turns_of`.
    """
    if not isinstance(record, Mapping) or "messages" not in record:
        raise RefusedItem("broken")
    return messages.dialogue_of(record)
