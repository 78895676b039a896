"""Chat records with a list of messages: `messages`, `openai_messages` and `sharegpt`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from h2htalk.curation.gather.raw_items import RawDialogue, RefusedItem, read_name
from h2htalk.curation.gather.speaker_roles import ROLE_NAMES, RoleNames, read_turns

_LISTS = ("messages", "dialog", "dialogue", "conversation")
_PERSONS = ("person", "user_id", "user", "client_id")


def read_messages(record: Any, roles: RoleNames = ROLE_NAMES) -> RawDialogue:
    """`{"id", "messages": [{"role": "client", "content"}]}`, or the list alone; also under `dialog` or `conversation`.

    `roles` gives the role of each name of a speaker, in lower case.

    Raises:
        RefusedItem: see `read_turns`.
    """
    return _read({"messages": record} if isinstance(record, list) else record, _LISTS, roles)


def read_openai(record: Any, roles: RoleNames = ROLE_NAMES) -> RawDialogue:
    """`{"messages": [{"role", "content": "..." or [{"type": "text", "text"}]}]}`.

    A record that offers tools (`tools`, `functions`) but calls none is a dialogue. Raises RefusedItem as `read_turns`.
    """
    if not isinstance(record, Mapping) or "messages" not in record:
        raise RefusedItem("broken")
    return _read(record, _LISTS, roles)


def read_sharegpt(record: Any, roles: RoleNames = ROLE_NAMES) -> RawDialogue:
    """`{"id", "system", "conversations": [{"from": "human", "value"}]}`. Raises RefusedItem as `read_turns`."""
    return _read(record, ("conversations", "conversation"), roles)


def _read(record: object, lists: tuple[str, ...], roles: RoleNames) -> RawDialogue:
    if not isinstance(record, Mapping):
        raise RefusedItem("broken")
    turns, system = read_turns(next((record[key] for key in lists if key in record), None), roles)
    own = record.get("system")
    if "conversations" in lists and isinstance(own, str) and own.strip():
        system = own
    person = next((record[key] for key in _PERSONS if key in record), None)
    metadata = {"system": system} if system else {}
    return RawDialogue(turns, read_name(record.get("id")), read_name(person), metadata=metadata)
