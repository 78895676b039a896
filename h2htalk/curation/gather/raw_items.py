"""An item of a raw file: a dialogue as it stands there, or why it cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from h2htalk.data.dialogue import Role
from h2htalk.data.languages import Language

# Called with the number of bytes read from a raw file, for progress.
OnRead = Callable[[int], object]


class RefusedItem(Exception):
    """An item that cannot be a dialogue: the reason to count by, and numbers that say where; never its text."""

    def __init__(self, reason: str, **evidence: int) -> None:
        super().__init__(reason)
        self.reason, self.evidence = reason, evidence


@dataclass(frozen=True, slots=True)
class RawDialogue:
    """A conversation as its file has it, roles already ours.

    Attributes:
        messages: (role, text), in order; texts are as they came.
        raw_id: what the file calls it.
        person: whom the file names as its user; numbered by `gather`, never written on.
        question: the question that several dialogues answer, by the file's word for it.
        metadata: `system`, `date`, `emotion`, `interaction`, `complexity`, where the file has them.
        language, licence: the record's own, where it has them; else its source's.
        tags: counted in the summary (`gap`, `undated`).
    """

    messages: tuple[tuple[Role, str], ...]
    raw_id: str | None = None
    person: str | None = None
    question: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    language: Language | None = None
    licence: str | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a file: `row` numbers it from 1 in the file's own way, `line` is where it begins."""

    row: int
    line: int
    found: RawDialogue | RefusedItem


def own_name(value: object) -> str | None:
    """An id or a person as files write it: text or a whole number; None where there is none."""
    if isinstance(value, str):
        return value.strip() or None
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None
