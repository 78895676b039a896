"""Rows of one message: a table or JSON lines with a conversation, a speaker, a text and a time in each row.

Databases and logs of applications are exported so. The columns have the names that `columns` gives, or one of the
usual ones (`turns.toml`). Rows of a conversation are in the order of their times where all have one, of their numbers
where they have these (`turn`, `index`, `id`), else in that of the file; a table that has the newest row first is turned
round. Columns such as `type`, `deleted` and `status` say which rows are no text of a speaker.

Replika has no export of its own; the public scripts alan-couzens/replika_stuff and Hotohori/replika_backup
(chat_backup.py) write such tables: `Timestamp,From,Text,Reaction,ID` with `Me` and `Rep`, the later one with the newest
row first and line ends as `\n`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from h2htalk.curation.gather.exports.dates import is_clock, read_times
from h2htalk.curation.gather.exports.messages import Chat, ChatMessage, Kind
from h2htalk.curation.gather.exports.tables.cells import (
    cell_text,
    plain_value,
    speaker_in,
    value_at,
)
from h2htalk.curation.gather.exports.tables.columns import (
    REQUIRED,
    find_columns,
    plain_column,
    says_deleted,
    words,
)
from h2htalk.curation.gather.formats import RefusedItem, read_name
from h2htalk.curation.gather.records import Record
from h2htalk.curation.role_names import INSTRUCTION_ROLES, TOOL_ROLES
from h2htalk.data.scenario import Role

_NO_CONVERSATION = ("", "None")  # an empty cell, and what Python writes for it
_REPLIKA = ("timestamp", "from", "text", "reaction", "id")
_REPLIKA_ROLES: Mapping[str, Role] = {"Me": "user", "Rep": "companion"}


@dataclass(slots=True)
class _Rows:
    """The rows of a conversation."""

    line: int | None
    messages: list[ChatMessage] = field(default_factory=list)
    times: list[object] = field(default_factory=list)
    orders: list[object] = field(default_factory=list)
    numbers: list[object] = field(default_factory=list)
    seen: set[tuple[object, ...]] = field(default_factory=set)
    system: list[str] = field(default_factory=list)
    person: str | None = None
    names: dict[str, str] = field(default_factory=dict)  # of speakers whose role the table says
    other_rows: int = 0  # of events, which have no text


def looks_like(first: Mapping[str, Any]) -> bool:
    """Whether a record is a row of one message."""
    columns = find_columns(list(first), {})
    return all(name in columns for name in REQUIRED)


def is_message(record: Mapping[str, Any], named: Mapping[Any, str]) -> bool:
    """Whether a row is read as a text of a speaker. `named`: columns that the owner names."""
    columns = find_columns(list(map(str, record)), named)
    if "speaker" not in columns:
        return False
    speaker, _ = _speaker(record, columns, named)
    return _kind(record, columns, speaker) == "text"


def read(
    rows: Iterable[Record],
    given: Mapping[Any, str],
    date_order: str = "",
    leave_out: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Iterator[Chat | RefusedItem]:
    """The conversations of some rows, in the order in which they begin. `given`: columns that the owner names;
    `leave_out`: values of columns, of rows that are no messages."""
    conversations: dict[str | None, _Rows] = {}
    columns_of: dict[tuple[str, ...], dict[str, str]] = {}
    has_message = False
    for _, line, record in rows:
        if isinstance(record, RefusedItem):
            yield record
            continue
        if not isinstance(record, Mapping):
            yield RefusedItem("broken", "a row that is no object")
            continue
        keys = tuple(map(str, record))
        if keys not in columns_of:
            columns_of[keys] = find_columns(keys, given)
        columns = columns_of[keys]
        missing = [name for name in REQUIRED if name not in columns]
        name = _conversation(record, columns)
        if missing and has_message:
            # Events between messages: that somebody types, or likes a message.
            conversations.setdefault(name, _Rows(line)).other_rows += 1
            continue
        if missing:
            problem = f"the row has no column of the {missing[0]}; name it: columns = {{ {missing[0]} = NAME }}"
            yield RefusedItem("broken", problem, record)
            continue
        has_message = True
        held = conversations.setdefault(name, _Rows(line))
        before = len(held.messages)
        _add(held, record, columns, given, leave_out)
        held.messages[before:] = [replace(message, line=line) for message in held.messages[before:]]
    columns_of_rows = {key for keys in columns_of for key in keys}
    for column in leave_out:
        if not {column, column.partition(".")[0]} & columns_of_rows:
            yield RefusedItem(
                "broken", f"leave_out: no row has the column {column}", sorted(columns_of_rows)
            )
    for name, held in conversations.items():
        try:
            yield _chat(name, held, date_order)
        except RefusedItem as refused:
            yield refused


def _value(record: Mapping[str, Any], name: str, columns: Mapping[str, str]) -> Any:
    key = columns.get(name)
    return None if key is None else value_at(record, key)


def _conversation(record: Mapping[str, Any], columns: Mapping[str, str]) -> str | None:
    """The conversation of a row; None where its cell is empty, or the table has no such column."""
    value = plain_value(_value(record, "conversation", columns))
    name = "" if value is None else str(value)
    return None if name.strip() in _NO_CONVERSATION else name


def _is_number(value: object) -> bool:
    value = plain_value(value)
    return (
        isinstance(value, int | float | str)
        and re.fullmatch(r"\d{1,15}(?:\.\d+)?", str(value).strip()) is not None
    )


def _add(
    rows: _Rows,
    record: Mapping[str, Any],
    columns: Mapping[str, str],
    given: Mapping[Any, str],
    leave_out: Mapping[str, Sequence[str]],
) -> None:
    """Add a row to its conversation."""
    content, has_others = cell_text(_value(record, "text", columns))
    speaker, name = _speaker(record, columns, given)
    if name:
        rows.names[speaker] = name
    if _is_replika(record):
        content = content.replace("\\n", "\n")
    rows.person = rows.person or read_name(_value(record, "person", columns))
    number = read_name(plain_value(_value(record, "number", columns)))
    time = _moment(record, columns)
    kind = _kind(record, columns, speaker)
    if _is_left_out(record, leave_out):
        kind = "named"
    elif kind == "text" and has_others and not content.strip():
        kind = "media"
    # A row that a table holds twice, as joins of tables write it.
    identity = (number, speaker, content, str(time))
    if number is not None and identity in rows.seen:
        kind = "duplicate"
    rows.seen.add(identity)
    if speaker.lower() in INSTRUCTION_ROLES and kind == "system" and not rows.messages and content:
        rows.system.append(content)
        return
    edited = _is_set(_value(record, "edited", columns))
    rows.messages.append(
        ChatMessage(speaker=speaker, text=content, kind=kind, is_edited=edited and kind == "text")
    )
    rows.times.append(time)
    rows.orders.append(plain_value(_value(record, "order", columns)))
    rows.numbers.append(number)


def _is_replika(record: Mapping[str, Any]) -> bool:
    return (
        len(record) == len(_REPLIKA) and tuple(plain_column(str(key)) for key in record) == _REPLIKA
    )


def _speaker(
    record: Mapping[str, Any], columns: Mapping[str, str], given: Mapping[Any, str]
) -> tuple[str, str]:
    """The speaker of a row; where the table says which role it is, that role, and what the table calls it."""
    key = columns["speaker"]
    written = value_at(record, key)
    name, called = speaker_in(written)
    if "speaker" in given or called:
        return name, called
    if _is_replika(record) and name in _REPLIKA_ROLES:
        return _REPLIKA_ROLES[name], name
    plain = plain_column(key)
    if plain in words()["roles"]["companion"]:
        return "companion" if _is_set(written) else "user", name
    if plain in words()["roles"]["user"]:
        return "user" if _is_set(written) else "companion", name
    return name, ""


def _moment(record: Mapping[str, Any], columns: Mapping[str, str]) -> object:
    """The time of a row, of two columns where one of the day stands beside one of the time of the day."""
    time = plain_value(_value(record, "time", columns))
    day = _value(record, "day", columns)
    if isinstance(day, str) and day.strip() and isinstance(time, str) and is_clock(time):
        return f"{day.strip()} {time.strip()}"
    return time


def _is_set(value: object) -> bool:
    """Whether a column such as `deleted` says yes."""
    value = plain_value(value)
    if isinstance(value, bool | int | float):
        return bool(value)
    return isinstance(value, str) and value.strip().casefold() not in words()["values"]["unset"]


def _is_left_out(record: Mapping[str, Any], leave_out: Mapping[str, Sequence[str]]) -> bool:
    """Whether a row has a value that the owner says is of no message."""
    for column, values in leave_out.items():
        value = plain_value(value_at(record, column))
        if str(value).strip() in values or ("*" in values and _is_set(value)):
            return True
    return False


def _kind(record: Mapping[str, Any], columns: Mapping[str, str], speaker: str) -> Kind:
    """What a row is: a text of its speaker, or why it is none."""
    values = words()["values"]
    if _is_set(_value(record, "deleted", columns)):
        return "deleted"
    name = speaker.strip().casefold()
    if not speaker or name in INSTRUCTION_ROLES or name in values["program"]:
        return "system"
    if name in TOOL_ROLES:
        return "tool"
    if _is_set(_value(record, "hidden", columns)):
        return "hidden"
    written = _value(record, "kind", columns)
    kind = written.strip().casefold().partition("/")[0] if isinstance(written, str) else ""
    bare = re.sub(r"[\s_-]|message$|msg$", "", kind)
    for name_of_kind in ("media", "system", "tool"):
        if bare in values[name_of_kind]:
            return name_of_kind
    status = _value(record, "status", columns)
    if isinstance(status, str) and (
        status.strip().casefold() in values["unseen"] or says_deleted(status)
    ):
        return "deleted"
    return "text"


def _chat(name: str | None, rows: _Rows, date_order: str) -> Chat:
    """The chat of some rows. Raises RefusedItem where the order of day and month is not known and decides theirs."""
    times = read_times(rows.times, date_order, may_go_back=True)
    messages = [
        replace(message, time=time) for message, time in zip(rows.messages, times, strict=True)
    ]
    messages, is_turned = _in_order(messages, rows)
    messages += [ChatMessage("", "", kind="system")] * rows.other_rows
    return Chat(
        messages=tuple(messages),
        id=name,
        line=rows.line,
        person=rows.person,
        is_one_dialogue=name is not None,
        system="\n".join(rows.system) or None,
        names=rows.names,
        is_turned=is_turned,
    )


def _in_order(messages: list[ChatMessage], rows: _Rows) -> tuple[list[ChatMessage], bool]:
    """The messages with the oldest first, and whether the table has the newest first."""
    numbers: Sequence[object] = rows.orders
    if not all(map(_is_number, numbers)):
        numbers = rows.numbers
    has_numbers = all(map(_is_number, numbers))
    keys = [float(str(number)) if has_numbers else 0.0 for number in numbers]
    times = [message.time for message in messages]
    if None not in times:
        values: list[Any] = list(zip(times, keys, strict=True))
    elif has_numbers:
        values = list(keys)
    else:
        return messages, False
    forward = sum(later > earlier for earlier, later in pairwise(values))
    backward = sum(later < earlier for earlier, later in pairwise(values))
    is_turned = backward > forward
    pairs = list(zip(values, messages, strict=True))
    if is_turned:
        pairs.reverse()
    # Rows of one minute stay in their order.
    pairs.sort(key=lambda pair: pair[0])
    return [message for _, message in pairs], is_turned
