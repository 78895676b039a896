"""`xtuner`: `{"conversation": [{"system", "input", "output"}, {"input", "output"}, ...]}`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from h2htalk.curation.gather.raw_items import RawDialogue, RefusedItem, read_name
from h2htalk.curation.gather.speaker_roles import read_text
from h2htalk.data.scenario import Role


def read_record(record: Any) -> RawDialogue:
    """A record's dialogue, with its one system prompt.

    Raises:
        RefusedItem: `broken`, `empty`, or `role` for a second system prompt.
    """
    exchanges = record.get("conversation") if isinstance(record, Mapping) else None
    if not isinstance(exchanges, list):
        raise RefusedItem("broken")
    messages: list[tuple[Role, str]] = []
    systems: list[str] = []
    for number, exchange in enumerate(exchanges, 1):
        system = exchange.get("system") or "" if isinstance(exchange, Mapping) else None
        if not isinstance(system, str):
            raise RefusedItem("broken", message=2 * number - 1)
        if system.strip() and system not in systems:
            systems.append(system)
        messages.append(("user", read_text(exchange, "input", 2 * number - 1)))
        messages.append(("companion", read_text(exchange, "output", 2 * number)))
    if len(systems) > 1:
        raise RefusedItem("role")
    metadata = {"system": systems[0]} if systems else {}
    return RawDialogue(tuple(messages), read_name(record.get("id")), metadata=metadata)
