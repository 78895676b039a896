"""`dialogues`: this package's own records, `{"id", "language", "messages", "provenance", "licence", "metadata"}`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from h2htalk.curation.gather.raw_items import RawDialogue, RefusedItem, read_name
from h2htalk.data.scenario import COMPLEXITIES, INTERACTIONS, Dialogue
from h2htalk.errors import DataError

_EMOTION, _DATE = re.compile(r"[a-z]{1,24}"), re.compile(r"\d{4}-\d{2}-\d{2}")


def read_record(record: Any) -> RawDialogue:
    """A record's dialogue, with its own language and licence, and the metadata that this package knows.

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
