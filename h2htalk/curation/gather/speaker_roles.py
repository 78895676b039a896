"""Messages of chat records: the speaker, under the many names that files use, and the text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from h2htalk.curation.gather.raw_items import RefusedItem
from h2htalk.data.scenario import Role

_USERS = """user human client seeker usr person patient visitor customer help_seeker helpseeker
用户 来访者 求助者 咨询者 患者"""
_COMPANIONS = """companion assistant counselor counsellor supporter gpt bot chatbot model ai system_ai therapist
listener helper chatgpt bing bard 助手 伴侣 咨询师 支持者 心理咨询师 倾听者"""
RoleNames = Mapping[str, Role]
ROLE_NAMES: RoleNames = {**dict.fromkeys(_USERS.split(), "user"), **dict.fromkeys(_COMPANIONS.split(), "companion")}
_INSTRUCTIONS = frozenset({"system", "developer"})
_TOOLS = frozenset({"tool", "function", "tool_call", "function_call", "tool_calls", "observation"})
_ROLE_KEYS, _CONTENT_KEYS = ("role", "from", "speaker"), ("content", "value", "text")
_TEXT_PARTS = frozenset({"text", "input_text", "output_text"})

Turns = tuple[tuple[Role, str], ...]


def read_turns(messages: object, roles: RoleNames = ROLE_NAMES) -> tuple[Turns, str | None]:
    """The turns of a list of messages, and the instructions (system, developer) before them.

    A message is an object with `role` (`from`, `speaker`) and `content` (`value`, `text`); content may be a list of
    text parts.

    Raises:
        RefusedItem: `broken` (no list of such objects), `role` (unknown, or instructions after a turn), `tool` (a call
            of a tool, or its result), `not_text` (a picture or sound), `empty`.
    """
    if not isinstance(messages, list):
        raise RefusedItem("broken")
    turns: list[tuple[Role, str]] = []
    instructions: list[str] = []
    for number, message in enumerate(messages, 1):
        if not isinstance(message, Mapping):
            raise RefusedItem("broken", message=number)
        role = _role(message, number, roles)
        if role is not None:
            turns.append((role, _content(message, number)))
        elif turns:
            raise RefusedItem("role", message=number)
        else:
            instructions.append(_content(message, number))
    return tuple(turns), "\n".join(instructions) or None


def read_text(record: object, key: str, number: int) -> str:
    """The text of one message under a key; raises RefusedItem: `empty` where it is missing, or `broken`."""
    if not isinstance(record, Mapping):
        raise RefusedItem("broken", message=number)
    text = record.get(key)
    if text is None:
        raise RefusedItem("empty", message=number)
    if not isinstance(text, str):
        raise RefusedItem("broken", message=number)
    return text


def _role(message: Mapping[str, Any], number: int, roles: RoleNames) -> Role | None:
    """The role of a message; None for instructions."""
    name = next((message[key] for key in _ROLE_KEYS if key in message), None)
    if not isinstance(name, str):
        raise RefusedItem("role", message=number)
    name = name.strip().lower()
    if name in roles and name not in ROLE_NAMES:
        return roles[name]
    if name in _TOOLS or message.get("tool_calls") or message.get("function_call"):
        raise RefusedItem("tool", message=number)
    if name in _INSTRUCTIONS:
        return None
    if name not in roles:
        raise RefusedItem("role", message=number)
    return roles[name]


def _content(message: Mapping[str, Any], number: int) -> str:
    key = next((key for key in _CONTENT_KEYS if key in message), "content")
    content = message.get(key)
    if isinstance(content, list):
        return "\n".join(_part(part, number) for part in content)
    return read_text(message, key, number)


def _part(part: object, number: int) -> str:
    if isinstance(part, str):
        return part
    kind = part.get("type", "text") if isinstance(part, Mapping) else None
    if not isinstance(part, Mapping) or not isinstance(kind, str):
        raise RefusedItem("broken", message=number)
    if kind in ("tool_use", "tool_result", "tool_call"):
        raise RefusedItem("tool", message=number)
    if kind not in _TEXT_PARTS:
        raise RefusedItem("not_text", message=number)
    text = part.get("text")
    if not isinstance(text, str):
        raise RefusedItem("broken", message=number)
    return text
