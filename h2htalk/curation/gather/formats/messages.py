"""Formats of one object a conversation: `messages`, `openai_messages`, `sharegpt`, `xtuner` and `dialogues`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from h2htalk.curation.gather.raw_items import RawDialogue, RefusedItem, read_name
from h2htalk.curation.gather.speaker_roles import ROLE_NAMES, RoleNames, read_text, read_turns
from h2htalk.data.scenario import COMPLEXITIES, INTERACTIONS, Dialogue, Role
from h2htalk.errors import DataError

_LISTS = ("messages", "dialog", "dialogue", "conversation")
_EMOTION, _DATE = re.compile(r"[a-z]{1,24}"), re.compile(r"\d{4}-\d{2}-\d{2}")
_PERSONS = ("person", "user_id", "user", "client_id")


def read_messages(record: Any, roles: RoleNames = ROLE_NAMES) -> RawDialogue:
    """`{"id", "messages": [{"role": "client", "content"}]}`, or the list alone; also under `dialog` or `conversation`.

    `roles` gives the role of each name of a speaker, in lower case.

    Raises:
        RefusedItem: see `read_turns`.
    """
    return _read_list({"messages": record} if isinstance(record, list) else record, _LISTS, roles)


def read_openai(record: Any, roles: RoleNames = ROLE_NAMES) -> RawDialogue:
    """`{"messages": [{"role", "content": "..." or [{"type": "text", "text"}]}]}`.

    A record that offers tools (`tools`, `functions`) but calls none is a dialogue. Raises RefusedItem as `read_turns`.
    """
    if not isinstance(record, Mapping) or "messages" not in record:
        raise RefusedItem("broken")
    return _read_list(record, _LISTS, roles)


def read_sharegpt(record: Any, roles: RoleNames = ROLE_NAMES) -> RawDialogue:
    """`{"id", "system", "conversations": [{"from": "human", "value"}]}`. Raises RefusedItem as `read_turns`."""
    return _read_list(record, ("conversations", "conversation"), roles)


def _read_list(record: object, lists: tuple[str, ...], roles: RoleNames) -> RawDialogue:
    if not isinstance(record, Mapping):
        raise RefusedItem("broken")
    turns, system = read_turns(next((record[key] for key in lists if key in record), None), roles)
    own = record.get("system")
    if "conversations" in lists and isinstance(own, str) and own.strip():
        system = own
    person = next((record[key] for key in _PERSONS if key in record), None)
    metadata = {"system": system} if system else {}
    return RawDialogue(turns, read_name(record.get("id")), read_name(person), metadata=metadata)


def read_xtuner(record: Any) -> RawDialogue:
    """`{"conversation": [{"system", "input", "output"}, {"input", "output"}, ...]}`, with one system prompt.

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


def read_dialogue(record: Any) -> RawDialogue:
    """This package's own records, `{"id", "language", "messages", "provenance", "licence", "metadata"}`.

    A record keeps its language and licence, and the metadata that this package knows.

    Raises:
        RefusedItem: `empty`, `role` or `broken`.
    """
    if not isinstance(record, Mapping):
        raise RefusedItem("broken")
    if record.get("messages") == []:
        raise RefusedItem("empty")
    try:
        dialogue = Dialogue.from_dict(_known_fields(record))
    except DataError as error:
        raise RefusedItem(_reason(record)) from error
    return RawDialogue(
        tuple((turn.role, turn.content) for turn in dialogue.messages),
        dialogue.id,
        read_name(dialogue.provenance.get("person")),
        read_name(dialogue.provenance.get("question")),
        _known_metadata(dialogue.metadata),
        dialogue.language,
        None if dialogue.licence == "unknown" else dialogue.licence,
    )


def _known_fields(record: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a dialogue and its messages; other people's files have more."""
    known = {one.name: record[one.name] for one in fields(Dialogue) if one.name in record}
    if isinstance(messages := known.get("messages"), list):
        names = ("role", "content")
        known["messages"] = [
            {name: m[name] for name in names if name in m} if isinstance(m, Mapping) else m for m in messages
        ]
    return known


def _reason(record: Mapping[str, Any]) -> str:
    """Why a record is no dialogue, by the reasons of other formats: a blank message is `empty`."""
    messages = record.get("messages")
    objects = [m for m in messages if isinstance(m, Mapping)] if isinstance(messages, list) else []
    if any(isinstance(m.get("content"), str) and not m["content"].strip() for m in objects):
        return "empty"
    if any(m.get("role") not in ("user", "companion") for m in objects):
        return "role"
    return "broken"


def _known_metadata(metadata: Mapping[str, Any]) -> dict[str, str]:
    """The metadata that later stages read; anything else may be personal data that no stage would find."""
    texts = {key: value for key, value in metadata.items() if isinstance(value, str)}
    valid = {
        "system": bool(texts.get("system", "").strip()),
        "date": _DATE.fullmatch(texts.get("date", "")) is not None,
        "emotion": _EMOTION.fullmatch(texts.get("emotion", "")) is not None,
        "interaction": texts.get("interaction") in INTERACTIONS,
        "complexity": texts.get("complexity") in COMPLEXITIES,
    }
    return {key: texts[key] for key, is_valid in valid.items() if is_valid}
