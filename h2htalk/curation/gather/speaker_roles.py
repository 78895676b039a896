"""Messages of chat records: who speaks, under the many names that files have for it, and what is said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from h2htalk.curation.gather.raw_items import RefusedItem
from h2htalk.data.dialogue import Role

_USERS = """user human client seeker usr person patient visitor customer help_seeker helpseeker
用户 来访者 求助者 咨询者 患者"""
_COMPANIONS = """companion assistant counselor counsellor supporter gpt bot chatbot model ai system_ai therapist
listener helper chatgpt bing bard 助手 伴侣 咨询师 支持者 心理咨询师 倾听者"""
ROLE_NAMES: Mapping[str, Role] = {
    **dict.fromkeys(_USERS.split(), "user"),
    **dict.fromkeys(_COMPANIONS.split(), "companion"),
}
_INSTRUCTIONS = frozenset({"system", "developer"})
_TOOLS = frozenset({"tool", "function", "tool_call", "function_call", "tool_calls", "observation"})
_ROLE_KEYS, _CONTENT_KEYS = ("role", "from", "speaker"), ("content", "value", "text")
_TEXT_PARTS = frozenset({"text", "input_text", "output_text"})

Turns = tuple[tuple[Role, str], ...]


def turns_of(messages: object) -> tuple[Turns, str | None]:
    """The turns of a list of messages, and the instructions (system, developer) that stand before them.

    A message is an object with `role` (`from`, `speaker`) and `content` (`value`, `text`); content may be a list of
    text parts.

    Raises:
        RefusedItem: `broken` (no list of such objects), `role` (unknown, or instructions in mid-conversation),
            `tool` (a call of a tool, or its answer), `not_text` (a picture or sound), `empty`.
    """
    if not isinstance(messages, list):
        raise RefusedItem("broken")
    turns: list[tuple[Role, str]] = []
    instructions: list[str] = []
    for number, message in enumerate(messages, 1):
        if not isinstance(message, Mapping):
            raise RefusedItem("broken", message=number)
        role = _role(message, number)
        if role is not None:
            turns.append((role, _content(message, number)))
        elif turns:
            raise RefusedItem("role", message=number)
        else:
            instructions.append(_content(message, number))
    return tuple(turns), "\n".join(instructions) or None


def _role(message: Mapping[str, Any], number: int) -> Role | None:
    """Whose message it is; None for instructions."""
    named = next((message[key] for key in _ROLE_KEYS if key in message), None)
    if not isinstance(named, str):
        raise RefusedItem("role", message=number)
    name = named.strip().lower()
    if name in _TOOLS or message.get("tool_calls") or message.get("function_call"):
        raise RefusedItem("tool", message=number)
    if name in _INSTRUCTIONS:
        return None
    if name not in ROLE_NAMES:
        raise RefusedItem("role", message=number)
    return ROLE_NAMES[name]


def _content(message: Mapping[str, Any], number: int) -> str:
    content = next((message[key] for key in _CONTENT_KEYS if key in message), None)
    if content is None:
        raise RefusedItem("empty", message=number)
    if isinstance(content, list):
        return "\n".join(_part(part, number) for part in content)
    if not isinstance(content, str):
        raise RefusedItem("broken", message=number)
    return content


def _part(part: object, number: int) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        raise RefusedItem("broken", message=number)
    kind, text = part.get("type", "text"), part.get("text")
    if not isinstance(kind, str):
        raise RefusedItem("broken", message=number)
    if kind in ("tool_use", "tool_result", "tool_call"):
        raise RefusedItem("tool", message=number)
    if kind not in _TEXT_PARTS:
        raise RefusedItem("not_text", message=number)
    if not isinstance(text, str):
        raise RefusedItem("broken", message=number)
    return text


def person_of(record: Mapping[str, Any]) -> object:
    """Whom a record names as its user, where it does."""
    return next((record[key] for key in ("person", "user_id", "user", "client_id") if key in record), None)
