"""An item of a raw file: a dialogue as the file has it, or why it cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from h2htalk.data.languages import Language
from h2htalk.data.scenario import Role

# Called with the number of bytes read from a raw file, for progress.
OnRead = Callable[[int], object]


class RefusedItem(Exception):
    """An item that cannot be a dialogue: the reason to count by, and numbers that say where; never its text."""

    def __init__(self, reason: str, **evidence: int) -> None:
        super().__init__(reason)
        self.reason, self.evidence = reason, evidence

    def at_line(self, line: int) -> RefusedItem:
        """The same, with the line of the item unless it has one."""
        self.evidence = {"line": line, **self.evidence}
        return self


@dataclass(frozen=True, slots=True)
class RawDialogue:
    """A conversation as its file has it, with our roles.

    Attributes:
        messages: (role, text), in order; texts are unchanged.
        raw_id: its id in the file.
        person: the user that the file names; replaced by a number.
        question: the question that several dialogues answer, as the file identifies it.
        metadata: `system`, `date`, `emotion`, `interaction`, `complexity`, the user's names (`read_user_names`),
            where the file has them.
        language, licence: of the record, where it has its own.
        tags: counted in the summary (`gap`, `undated`).
    """

    messages: tuple[tuple[Role, str], ...]
    raw_id: str | None = None
    person: str | None = None
    question: str | None = None
    metadata: Mapping[str, str | list[str]] = field(default_factory=dict)
    language: Language | None = None
    licence: str | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RawItem:
    """One item of a source: `row` numbers it from 1 in the way of the format, `line` is where it begins in `file`.

    `line` is None where the format has no lines, and `file` is empty where the source has only one. `update` is the
    number of the update that found it (`SourceFile`).
    """

    row: int
    line: int | None
    content: RawDialogue | RefusedItem
    file: str = ""
    update: int = 0


# Keys under which files give the user's name.
USER_NAMES = ("name", "user_name", "username", "nickname")


def read_user_names(record: Any, keys: Iterable[str] = ()) -> dict[str, str | list[str]]:
    """The user's names in a record, also in its `metadata` or `user`: metadata that anonymize replaces in all messages.

    `keys` are read beside `USER_NAMES`; several names of a key are a list.
    """
    names: dict[str, dict[str, None]] = {}
    places = [record, *map(record.get, ("metadata", "user"))] if isinstance(record, Mapping) else []
    for place in (place for place in places if isinstance(place, Mapping)):
        for key in (key for key in (*USER_NAMES, *keys) if key in place):
            given = place[key] if isinstance(place[key], list) else [place[key]]
            names.setdefault(key, {}).update(dict.fromkeys(filter(None, map(read_name, given))))
    several = {key: list(each) for key, each in names.items() if each}
    return {key: each if len(each) > 1 else each[0] for key, each in several.items()}


def read_name(value: object) -> str | None:
    """An id or a person as files write it: text or a whole number; None where there is none."""
    if isinstance(value, str):
        return value.strip() or None
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None
