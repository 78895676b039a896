"""What a reader gives of an export: its chats, each with its messages in order."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from h2htalk.data.scenario import Role

# What a message is; only texts become turns. `forwarded`: words of somebody else; `hidden`: what the program does not
# show; `reasoning`: what a model thought; `command`: what somebody tells a program; `remark`: of whoever keeps a
# log; `named`: what the owner leaves out.
Kind = Literal[
    "text",
    "media",
    "deleted",
    "system",
    "forwarded",
    "hidden",
    "tool",
    "reasoning",
    "broken",
    "command",
    "duplicate",
    "remark",
    "named",
]


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """A message of an export."""

    speaker: str
    text: str
    time: datetime | None = None
    kind: Kind = "text"
    is_edited: bool = False
    line: int | None = None  # of the file, on which it begins
    last_line: int | None = None  # where its text goes on in further lines
    number: str | None = None  # by which its program knows it


@dataclass(frozen=True, slots=True)
class Chat:
    """A chat of an export.

    Attributes:
        messages: in order.
        id: of the chat in the file.
        line: the line of the file on which it begins.
        roles: who a speaker is, where the program says it.
        person: the user, where the program names one.
        is_group: the program says that more than two people may write.
        is_one_dialogue: the program ends a chat where the talk ends; others are cut where both were silent.
        system: the instructions of the companion.
        names: other names of speakers, by which the companion may be named.
        user_name: the user's own name, where `roles` says who the user is.
        is_turned: the file has the newest message first.
        joined: lines of a log that go on with messages, and which its owner should look at.
        remarks: lines of a log that are left out by how it is written.
    """

    messages: tuple[ChatMessage, ...]
    id: str | None = None
    line: int | None = None
    roles: Mapping[str, Role] = field(default_factory=dict)
    person: str | None = None
    is_group: bool = False
    is_one_dialogue: bool = False
    system: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    user_name: str | None = None
    is_turned: bool = False
    joined: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


# Marks, embeddings and isolates that change the direction of text, the byte order mark, and zero-width characters.
MARKS = "\u061c\u200b-\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff"
_MARKS = re.compile(f"[{MARKS}]")
_SPACES = re.compile(r"\s+")  # also narrow and no-break ones


def plain_name(name: str) -> str:
    """A speaker's name without invisible marks; WhatsApp writes `~` before the names that strangers gave themselves."""
    bare = _SPACES.sub(" ", _MARKS.sub("", name)).strip()
    return unicodedata.normalize("NFC", bare.removeprefix("~").strip())


def same_name(one: str, other: str) -> bool:
    """Whether two names are the same, however they are written."""
    return plain_name(one).casefold() == plain_name(other).casefold()
