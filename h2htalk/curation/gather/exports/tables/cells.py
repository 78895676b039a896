"""What a cell of a row holds: MongoDB's extended JSON, a text of several parts, a speaker who is an object."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from h2htalk.curation.gather.formats import (
    read_name,
    reasoning_parts,
    text_parts,
)
from h2htalk.curation.role_names import INSTRUCTION_ROLES, ROLE_NAMES, TOOL_ROLES

_TEXT_KEYS = ("text", "content", "value", "body", "parts")
_ROLE_KEYS = ("role", "kind", "type")
_NAME_KEYS = ("name", "displayName", "display_name", "username", "screen_name", "id", "_id")
_DEEPEST = 4  # objects within each other


def plain_value(value: object) -> object:
    """A value of MongoDB's extended JSON (`{"$date": {"$numberLong": "1714672806631"}}`) without its type."""
    while isinstance(value, Mapping) and len(value) == 1 and str(next(iter(value))).startswith("$"):
        value = next(iter(value.values()))
    return value


def value_at(record: Mapping[Any, Any], key: str) -> Any:
    """The value of a column; of one within an object where the name has a point: `from.name`."""
    if key in record or "." not in key:
        return record.get(key)
    value: Any = record
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def cell_text(value: object) -> tuple[str, bool]:
    """The text of a cell, and whether it has parts of other kinds: a list of parts, an object, or JSON of these."""
    texts: list[str] = []
    has_others = _add_text(_parsed(value), texts, 0)
    return "\n".join(texts), has_others


def _parsed(value: object) -> object:
    """The parts that a cell of a table has as JSON; what somebody wrote stays as it is, JSON too."""
    if not isinstance(value, str) or not value.lstrip().startswith(("[{", "{")):
        return value
    try:
        parts = json.loads(value, strict=False)
    except (ValueError, RecursionError):
        return value
    listed = parts if isinstance(parts, list) else [parts]
    is_parts = all(
        isinstance(part, Mapping) and ("type" in part or "content_type" in part) for part in listed
    )
    return parts if is_parts else value


def _add_text(value: object, texts: list[str], depth: int) -> bool:
    """Add the texts of a value to `texts`; whether it holds anything else that is shown."""
    value = plain_value(value)
    if isinstance(value, str):
        texts.append(value)
        return False
    if depth >= _DEEPEST:
        return value is not None
    if isinstance(value, Sequence):
        others = [_add_text(part, texts, depth + 1) for part in value]
        return any(others)
    if not isinstance(value, Mapping):
        return False
    kind = value.get("type", value.get("content_type", "text"))
    if isinstance(kind, str) and kind in reasoning_parts():
        return False
    if isinstance(kind, str) and kind not in text_parts():
        return True
    key = next((key for key in _TEXT_KEYS if key in value), None)
    return _add_text(value[key], texts, depth + 1) if key else True


def speaker_in(value: object) -> tuple[str, str]:
    """The speaker of a cell, and the name beside it where the speaker is a role: of text, or of an object with them."""
    value = plain_value(value)
    if isinstance(value, bool):
        # A truth value is a name that `roles` or `companion` may mean.
        return str(value).lower(), ""
    if not isinstance(value, Mapping):
        return read_name(value) or "", ""
    names = (read_name(plain_value(value.get(key))) for key in _NAME_KEYS)
    name = next((name for name in names if name), "")
    known = (*ROLE_NAMES, *INSTRUCTION_ROLES, *TOOL_ROLES)
    for key in _ROLE_KEYS:
        role = value.get(key)
        if isinstance(role, str) and role.strip().lower() in known:
            return role.strip().lower(), name
    return name, ""
