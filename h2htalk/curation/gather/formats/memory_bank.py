"""`memory_bank`: `{USER: {"name", "history": {DATE: [{"query", "response"}]}}}`; one dialogue for each user and
date.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

from h2htalk.curation.gather.json_items import members
from h2htalk.curation.gather.raw_items import OnRead, RawDialogue, RawItem, RefusedItem, read_name
from h2htalk.curation.gather.speaker_roles import read_text
from h2htalk.data.scenario import Role

_DATE = re.compile(r"\s*(\d{4})\s*[-/.年]\s*(\d{1,2})\s*[-/.月]\s*(\d{1,2})\s*日?\s*")
_SPEAKERS: tuple[tuple[Role, str], ...] = (("user", "query"), ("companion", "response"))


def read(path: Path, on_read: OnRead) -> Iterator[RawItem]:
    """Read every day of every user, numbered through the file; a user without a history is one refused item.

    Raises:
        DataError: the file cannot be read, or is not one JSON object; names file and line.
    """
    row = 0
    for line, key, user in members(path, on_read):
        for content in _days(key, user):
            row += 1
            yield RawItem(row, line, content.at_line(line) if isinstance(content, RefusedItem) else content)


def _days(key: str | None, user: Any) -> Iterator[RawDialogue | RefusedItem]:
    history = user.get("history") if isinstance(user, Mapping) else None
    if not isinstance(history, Mapping):
        yield RefusedItem("broken")
        return
    if not history:
        yield RefusedItem("empty")
    person = read_name(user.get("name")) or read_name(key)
    named = {"name": person} if person else {}
    for day, exchanges in history.items():
        when = iso_date(day)
        metadata, tags = ({"date": when, **named}, ()) if when else (named, ("undated",))
        try:
            yield RawDialogue(_turns(exchanges), None, person, metadata=metadata, tags=tags)
        except RefusedItem as refused:
            yield refused


def _turns(exchanges: object) -> tuple[tuple[Role, str], ...]:
    if not isinstance(exchanges, list):
        raise RefusedItem("broken")
    turns: list[tuple[Role, str]] = []
    for exchange in exchanges:
        for role, key in _SPEAKERS:
            turns.append((role, read_text(exchange, key, len(turns) + 1)))
    return tuple(turns)


def iso_date(text: str) -> str | None:
    """`2023-04-27` of `2023-04-27`, `2023/4/27` or `2023年4月27日`; None for anything else."""
    match = _DATE.fullmatch(text[:40])
    if match is None:
        return None
    try:
        return date(*map(int, match.groups())).isoformat()
    except ValueError:
        return None
