"""Dialogues: ordered turns between a user and a companion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field, with_config

from h2htalk.data.languages import Language as Language
from h2htalk.data.records import STRICT, Id, Open, Text, adapter, read_record

Role = Literal["user", "companion"]
ROLES: tuple[Role, ...] = ("user", "companion")


@with_config(STRICT)
@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation: the speaker's role and the text."""

    role: Role
    content: Text

    def to_dict(self) -> dict[str, str]:
        return {"role": self.role, "content": self.content}


@with_config(STRICT)
@dataclass(frozen=True, slots=True)
class Dialogue:
    """A conversation with its language, provenance and licence."""

    id: Id
    language: Language
    messages: Annotated[tuple[Turn, ...], Field(min_length=1)]
    provenance: Open = field(default_factory=dict)
    licence: Text = "unknown"
    metadata: Open = field(default_factory=dict)

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], where: str = "dialogue") -> Dialogue:
        """Read `{"id", "language", "messages": [{"role", "content"}]}`. Raises DataError (`read_record`)."""
        return read_record(cls, raw, where, as_python=True)

    def to_dict(self) -> dict[str, Any]:
        return adapter(Dialogue).dump_python(self, mode="json")  # type: ignore[no-any-return]


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
