"""Telegram Desktop's export as machine-readable JSON: one chat (`result.json`), or all of an account.

After Telegram/SourceFiles/export/output/export_output_json.cpp of telegramdesktop/tdesktop: `text` is a string or an
array of strings and objects with `text`; `type` is `message`, `service` or `unsupported`; deleted accounts have the
name null. Versions before 2022 have no `date_unixtime` and no `text_entities`, number people (`from_id: 123`), and
write `edited` in 1970 for messages that nobody edited. A command to a bot (`/start`) is no message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from h2htalk.curation.gather.exports.export_files import ExportFile
from h2htalk.curation.gather.exports.messages import Chat, ChatMessage, Kind, plain_name
from h2htalk.curation.gather.formats import RefusedItem

PATTERNS = ("*.json",)
# Types of chats in which two write: `saved_messages` are the owner's own, others are groups and channels.
_COMMANDS = re.compile(
    r"(?:/\w{1,40}(?:@\w{1,40})?\s*)+(?:\S{1,64})?"
)  # and what a link gave `/start`
_OF_TWO = ("personal_chat", "bot_chat", "private_chat")
_OF_MANY = (
    "private_group",
    "private_supergroup",
    "public_supergroup",
    "private_channel",
    "public_channel",
)
# What a program wrote again, such as jq, has no space after the colon.
_CHAT_TYPE = re.compile(rf'"type"\s*:\s*"(?:{"|".join((*_OF_TWO, *_OF_MANY, "saved_messages"))})"')


def looks_like(head: str) -> bool:
    """Whether a text begins as an export of Telegram."""
    bare = head.lstrip()
    is_chat = _CHAT_TYPE.search(bare[:600]) is not None
    return bare.startswith("{") and (
        (is_chat and '"messages"' in bare) or '"personal_information"' in bare[:600]
    )


def read(file: ExportFile) -> Iterator[Chat | RefusedItem]:
    """The chats of an export, without those that are not between two."""
    value = file.json()
    if not isinstance(value, Mapping):
        yield RefusedItem("broken", "the file holds no object, as an export of Telegram does")
        return
    chats = _chats(value)
    if not chats:
        wanted = "no chats: export them from Telegram Desktop as machine-readable JSON"
        yield RefusedItem("broken", wanted, value)
        return
    for chat in chats:
        yield (
            _chat(chat)
            if isinstance(chat, Mapping)
            else RefusedItem("broken", "a chat that is no object")
        )


def _chats(value: Mapping[str, Any]) -> Sequence[Any]:
    """The one chat of a file, or those of an account, and those that it has left."""
    if isinstance(value.get("messages"), list):
        return [value]
    lists = [value.get(key) for key in ("chats", "left_chats")]
    return [chat for held in lists if isinstance(held, Mapping) for chat in held.get("list") or ()]


def _chat(chat: Mapping[str, Any]) -> Chat | RefusedItem:
    kind = chat.get("type")
    if kind == "saved_messages":
        return RefusedItem("one_speaker", "saved messages of the owner")
    records = chat.get("messages")
    if not isinstance(records, list):
        return RefusedItem("broken", "the chat has no list of messages", chat)
    names: dict[str, str] = {}
    messages = []
    for record in records:
        if isinstance(record, Mapping):
            message = _message(record, names)
            messages.append(message)
    chat_id = chat.get("id")
    is_group = isinstance(kind, str) and kind not in _OF_TWO
    return Chat(
        messages=tuple(messages),
        id=None if chat_id is None else str(chat_id),
        is_group=is_group,
        names=names,
    )


def _message(record: Mapping[str, Any], names: dict[str, str]) -> ChatMessage:
    """A message of a chat; `names`: the names of speakers by their ids, which it adds to."""
    name = record.get("from")
    identity = record.get("from_id")
    # Names change, and are null for deleted accounts; ids stay.
    if identity is not None:
        speaker = str(identity)
    elif isinstance(name, str):
        speaker = plain_name(name)
    else:
        speaker = ""
    if isinstance(name, str) and name.strip():
        names[speaker] = plain_name(name)
    text = _text(record.get("text"))
    return ChatMessage(
        speaker=speaker,
        text=text,
        time=_time(record.get("date")),
        kind=_kind(record, text, speaker),
        is_edited=_is_edited(record),
        number=None if record.get("id") is None else str(record["id"]),
    )


def _kind(record: Mapping[str, Any], text: str, speaker: str) -> Kind:
    if record.get("type") == "unsupported":
        return "media"
    if record.get("type") != "message" or not speaker:
        return "system"
    # Also where the account that it is from was deleted: null.
    if "forwarded_from" in record:
        return "forwarded"
    if not text.strip():
        return "media"
    if any(key in record for key in ("poll", "contact_information")):
        return "media"
    return "command" if _COMMANDS.fullmatch(text.strip()) else "text"


def _text(text: object) -> str:
    """The text of a message: its parts follow each other as they are."""
    if isinstance(text, str):
        return text
    parts = text if isinstance(text, list) else []
    texts = [part.get("text") if isinstance(part, Mapping) else part for part in parts]
    return "".join(part for part in texts if isinstance(part, str))


def _time(date: object) -> datetime | None:
    try:
        return datetime.fromisoformat(date) if isinstance(date, str) else None
    except ValueError:
        return None


def _is_edited(record: Mapping[str, Any]) -> bool:
    edited = _time(record.get("edited"))
    return edited is not None and edited.year > 1971
