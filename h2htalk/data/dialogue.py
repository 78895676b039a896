"""Dialogues: ordered turns between a user and a companion."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from h2htalk.data.languages import LANGUAGES as LANGUAGES
from h2htalk.data.languages import Language as Language
from h2htalk.errors import DataError, quoted

Role = Literal["user", "companion"]
ROLES: tuple[Role, ...] = ("user", "companion")
# Open fields (provenance, metadata) may nest this deep: far below the depth at which Python's JSON writer gives up.
MAX_DEPTH = 64


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation: the speaker's role and the text."""

    role: Role
    content: str

    @classmethod
    def from_dict(cls, raw: object, where: str) -> Turn:
        """Read `{"role", "content"}`; `where` opens the message of a DataError."""
        if not isinstance(raw, Mapping):
            raise DataError(f"{where}: a message must be an object with role and content")
        role, content = raw.get("role"), raw.get("content")
        if role not in ROLES:
            raise DataError(f"{where}: role is {quoted(role)}; it must be 'user' or 'companion'")
        if not isinstance(content, str) or not content.strip():
            raise DataError(f"{where}: content must be text that is not empty")
        return cls(cast(Role, role), content)

    def to_dict(self) -> dict[str, str]:
        return {"role": self.role, "content": self.content}


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A conversation with its language, provenance and licence."""

    id: str
    language: Language
    messages: tuple[Turn, ...]
    provenance: Mapping[str, Any] = field(default_factory=dict)
    licence: str = "unknown"
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], where: str = "dialogue") -> Dialogue:
        """Read `{"id", "language", "messages": [{"role", "content"}]}`.

        Raises:
            DataError: a field is missing or of the wrong kind; the message starts with `where`.
        """
        if not isinstance(raw, Mapping):
            raise DataError(f"{where}: a dialogue must be a JSON object")
        dialogue_id = read_id(raw, where)
        where = f"{where}: {dialogue_id}"
        messages = raw.get("messages")
        if not isinstance(messages, list) or not messages:
            raise DataError(f"{where}: messages must be a list that is not empty")
        turns = tuple(Turn.from_dict(m, f"{where}: message {i}") for i, m in enumerate(messages, 1))
        return cls(
            id=dialogue_id,
            language=read_language(raw, where),
            messages=turns,
            provenance=read_mapping(raw, "provenance", where),
            licence=str(raw.get("licence", "unknown")),
            metadata=read_mapping(raw, "metadata", where),
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "language": self.language,
            "messages": [turn.to_dict() for turn in self.messages],
            "provenance": dict(self.provenance),
            "licence": self.licence,
            "metadata": dict(self.metadata),
        }


def read_id(raw: Mapping[str, Any], where: str) -> str:
    """Read the record's `id`: printable NFC text without outer white space, so that equal ids look equal."""
    value = raw.get("id")
    if (
        not isinstance(value, str)
        or not value
        or value != value.strip()
        or not value.isprintable()
        or not unicodedata.is_normalized("NFC", value)
    ):
        raise DataError(
            f"{where}: id must be printable text in Unicode's form NFC, not empty, without white space around it; "
            f"it is {quoted(value)}"
        )
    return value


def read_language(raw: Mapping[str, Any], where: str) -> Language:
    """Read the record's `language`, one of LANGUAGES."""
    value = raw.get("language")
    if value not in LANGUAGES:
        raise DataError(f"{where}: language is {quoted(value)}; choose from {', '.join(LANGUAGES)}")
    return str(value)


def read_mapping(raw: Mapping[str, Any], key: str, where: str) -> dict[str, Any]:
    """Read an optional object field; absent means empty."""
    value = raw.get(key, {})
    if not isinstance(value, Mapping):
        raise DataError(f"{where}: {key} must be an object, not {type(value).__name__}")
    _require_json(value, MAX_DEPTH, f"{where}: {key}")
    return dict(value)


def notes_crisis(metadata: Mapping[str, Any]) -> bool:
    """Whether the safety stage noted a crisis, a possible one, or harm by the companion, in metadata."""
    safety = metadata.get("safety")
    if not isinstance(safety, Mapping):
        return False
    grave = any(str(tag).startswith(("companion.", "sexual.minors")) for tag in safety.get("tags", ()))
    return grave or safety.get("risk", "none") != "none" or bool(safety.get("possible_crisis"))


def notes_explicit(metadata: Mapping[str, Any]) -> bool:
    """Whether the safety stage noted sexual content in metadata."""
    safety = metadata.get("safety")
    return isinstance(safety, Mapping) and any(str(tag).startswith("sexual.") for tag in safety.get("tags", ()))


def _require_json(value: object, levels: int, where: str) -> None:
    """Raise DataError unless JSON can hold a value: what is read must be written again, and hashed, unchanged."""
    if value is None or isinstance(value, (str, bool, int)):
        return
    if isinstance(value, float):
        if not math.isfinite(value):
            raise DataError(f"{where} holds the number {value}, which JSON cannot; write null or text instead")
        return
    if not isinstance(value, (Mapping, list)):
        raise DataError(f"{where} holds a {type(value).__name__}, which JSON cannot; write text instead")
    if levels == 0:
        raise DataError(f"{where} is nested more than {MAX_DEPTH} levels deep; flatten it")
    if isinstance(value, Mapping) and not all(isinstance(key, str) for key in value):
        raise DataError(f"{where} holds a key that is not text")
    for item in value.values() if isinstance(value, Mapping) else value:
        _require_json(item, levels - 1, where)
