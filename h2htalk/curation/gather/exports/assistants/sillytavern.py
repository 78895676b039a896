"""SillyTavern's chats: JSON lines, a header with `user_name` and `character_name`, then a message a line.

After src/endpoints/chats.js of SillyTavern: `mes` is the text that is shown, which is the one of `swipes` that
`swipe_id` chose; lines with `is_system` are hidden, notes or the program's. Chub writes swipes and texts as objects
with `message`. Versions of 2023 have `is_name` and times in words, later ones `extra.reasoning` and `swipe_info`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from h2htalk.curation.gather.exports.export_files import ExportFile
from h2htalk.curation.gather.exports.messages import Chat, ChatMessage, Kind
from h2htalk.curation.gather.formats import RefusedItem
from h2htalk.data.scenario import Role

PATTERNS = ("*.jsonl",)
_USER = "user:"
_UNNAMED = ("", "unused", "you", "user")


def looks_like(head: str) -> bool:
    """Whether a text begins as a chat of SillyTavern."""
    first = head.lstrip("\ufeff \r\n").partition("\n")[0]
    is_header = any(f'"{key}"' in first for key in ("user_name", "character_name", "chat_metadata"))
    return first.startswith("{") and (is_header or ('"is_user"' in first and '"mes"' in first))


def read(file: ExportFile) -> Iterator[Chat | RefusedItem]:
    """The one chat of a file."""
    header: Mapping[str, Any] = {}
    messages: list[ChatMessage] = []
    roles: dict[str, Role] = {}
    written = ""  # the first name of the user
    for number, line in enumerate(file.text().split("\n"), 1):
        if not line.strip():
            continue
        record = _record(line)
        if record is None:
            messages.append(ChatMessage("", "", kind="broken"))
        elif "mes" in record or "swipes" in record:
            message = _message(record)
            if message.kind == "text":
                roles[message.speaker] = "user" if record.get("is_user") else "companion"
            if message.speaker == _USER:
                written = written or str(record.get("name") or "").strip()
            messages.append(replace(message, line=number))
        else:
            header = header or record
    if not any(message.kind != "broken" for message in messages):
        yield RefusedItem(
            "broken", "no message of SillyTavern: lines with `name`, `is_user` and `mes`", header
        )
        return
    user = str(header.get("user_name") or "").strip()
    if user.lower() in _UNNAMED:
        user = written
    character = next((name.partition(":")[2] for name in roles if roles[name] == "companion"), "")
    yield Chat(
        messages=tuple(_filled(message, user, character) for message in messages),
        line=1,
        roles=roles,
        person=user if user.lower() not in _UNNAMED else None,
        is_one_dialogue=True,
        names={name: user if name == _USER else name.partition(":")[2] for name in roles},
        user_name=user if user.lower() not in _UNNAMED else None,
    )


def _record(line: str) -> Mapping[str, Any] | None:
    """The object of a line; the program itself reads over lines that are none."""
    try:
        record = json.loads(line, strict=False)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _message(record: Mapping[str, Any]) -> ChatMessage:
    # The user is one person, who may change the name within a chat; characters of different names are a group.
    speaker = (
        _USER if record.get("is_user") else f"companion:{str(record.get('name') or '').strip()}"
    )
    text = _plain(record.get("mes")) or _chosen_swipe(record)
    return ChatMessage(speaker=speaker, text=text, kind=_kind(record))


def _chosen_swipe(record: Mapping[str, Any]) -> str:
    """The text of the answer that was chosen of several."""
    swipes = record.get("swipes")
    chosen = record.get("swipe_id")
    if not isinstance(swipes, list) or not swipes:
        return ""
    if not isinstance(chosen, int) or not 0 <= chosen < len(swipes):
        chosen = len(swipes) - 1
    return _plain(swipes[chosen])


def _plain(text: object) -> str:
    if isinstance(text, Mapping):
        text = text.get("message")
    return text if isinstance(text, str) else ""


def _kind(record: Mapping[str, Any]) -> Kind:
    extra = record.get("extra")
    kind = extra.get("type") if isinstance(extra, Mapping) else None
    if record.get("is_system") or kind in (
        "narrator",
        "comment",
        "assistant_note",
        "generic",
        "help",
        "welcome",
    ):
        return "hidden"
    return "text"


def _filled(message: ChatMessage, user: str, character: str) -> ChatMessage:
    """The message with the names that stand for its two placeholders, as the program shows it."""
    if "{{" not in message.text:
        return message
    text = message.text.replace("{{user}}", user or "you").replace("{{char}}", character)
    return replace(message, text=text)
