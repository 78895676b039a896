"""`persona`: `{"conversation": [{"system", "input", "output"}, {"input", "output"}, ...]}`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from h2htalk.curation.gather.json_items import read_objects
from h2htalk.curation.gather.raw_items import Item, OnRead, RawDialogue, RefusedItem, own_name
from h2htalk.data.dialogue import Role


def read(path: Path, on_read: OnRead) -> Iterator[Item]:
    """Every item of a file; raises DataError for what cannot be counted."""
    return read_objects(path, on_read, dialogue_of)


def dialogue_of(record: Any) -> RawDialogue:
    """A record's dialogue. The system prompt is the first one named; a second, other one is refused.

    Raises:
        RefusedItem: `broken`, `empty`, or `role` for a change of system prompt in mid-conversation.
    """
    exchanges = record.get("conversation") if isinstance(record, Mapping) else None
    if not isinstance(exchanges, list):
        raise RefusedItem("broken")
    messages: list[tuple[Role, str]] = []
    systems: list[str] = []
    for number, exchange in enumerate(exchanges, 1):
        if not isinstance(exchange, Mapping):
            raise RefusedItem("broken", message=2 * number - 1)
        system = exchange.get("system") or ""
        if not isinstance(system, str):
            raise RefusedItem("broken", message=2 * number - 1)
        if system.strip() and system not in systems:
            systems.append(system)
        messages.append(("user", _said(exchange, "input", 2 * number - 1)))
        messages.append(("companion", _said(exchange, "output", 2 * number)))
    if len(systems) > 1:
        raise RefusedItem("role")
    metadata = {"system": systems[0]} if systems else {}
    return RawDialogue(tuple(messages), own_name(record.get("id")), metadata=metadata)


def _said(exchange: Mapping[str, Any], key: str, number: int) -> str:
    said = exchange.get(key)
    if said is None:
        raise RefusedItem("empty", message=number)
    if not isinstance(said, str):
        raise RefusedItem("broken", message=number)
    return said
