"""ChatGPT's export: `conversations.json`, or `conversations-000.json` and so on, or one conversation of the API.

A conversation is a tree (`mapping`); the branch that ends with `current_node` is the one that its user saw last. After
the converters mitkury/chatgpt-export-parser and pionxzh/chatgpt-exporter (src/api.ts). Older exports have no
`current_node` in some conversations; newer ones have reasoning (`thoughts`, `reasoning_recap`, the channel
`analysis`), instructions of the user (`user_editable_context`), transcribed audio, and marks of citations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from h2htalk.curation.gather.exports.assistants.trees import branch_of
from h2htalk.curation.gather.exports.export_files import ExportFile
from h2htalk.curation.gather.exports.messages import Chat, ChatMessage, Kind
from h2htalk.curation.gather.formats import RefusedItem
from h2htalk.data.scenario import Role

PATTERNS = ("conversations*.json", "conversation_*.json", "chatgpt*.json")
_ROLES: Mapping[str, Role] = {"user": "user", "assistant": "companion"}
_CITATION = re.compile("\ue200[^\ue201]{0,2000}\ue201|【\\d+[†:][^】\n]{0,200}】")
_KINDS: Mapping[str, Kind] = {
    "thoughts": "reasoning",
    "reasoning_recap": "reasoning",
    "user_editable_context": "system",
    "model_editable_context": "system",
    "system_error": "system",
    "code": "tool",
    "execution_output": "tool",
}
_TEXTS = ("text", "multimodal_text")


def looks_like(head: str) -> bool:
    """Whether a text begins as an export of ChatGPT."""
    return '"mapping"' in head and head.lstrip()[:1] in ("[", "{")


def read(file: ExportFile) -> Iterator[Chat | RefusedItem]:
    """The conversations of a file."""
    value = file.json()
    if isinstance(value, Mapping) and isinstance(value.get("conversations"), list):
        value = value["conversations"]
    for conversation in value if isinstance(value, list) else [value]:
        yield _chat(conversation, file)


def _chat(conversation: object, file: ExportFile) -> Chat | RefusedItem:
    if not isinstance(conversation, Mapping):
        return RefusedItem("broken", "a conversation that is no object")
    mapping = conversation.get("mapping")
    if not isinstance(mapping, Mapping) or not mapping:
        if mapping == {}:
            return RefusedItem("empty", "the conversation has no message")
        return RefusedItem(
            "broken", "no `mapping` of messages, as conversations.json has it", conversation
        )
    messages = [
        _message(node["message"]) for node in _branch(conversation, mapping) if node.get("message")
    ]
    name = conversation.get("conversation_id") or conversation.get("id")
    return Chat(
        messages=tuple(message for message in messages if message.speaker),
        id=None if name is None else str(name),
        roles=_ROLES,
        person=file.owner(),
        is_one_dialogue=True,
    )


def _branch(conversation: Mapping[str, Any], mapping: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The nodes from the root to the current one."""
    nodes = {str(key): node for key, node in mapping.items() if isinstance(node, Mapping)}
    current = conversation.get("current_node")
    if not isinstance(current, str) or current not in nodes:
        current = _last_leaf(nodes)
    return branch_of(nodes, current, "parent")


def _last_leaf(nodes: Mapping[str, Mapping[str, Any]]) -> str:
    """The last message that no other one answers, by its time."""
    parents = {parent for node in nodes.values() if isinstance(parent := node.get("parent"), str)}
    leaves = [
        name
        for name in nodes
        if name not in parents and isinstance(nodes[name].get("message"), Mapping)
    ]
    return max(
        leaves, key=lambda name: _seconds(nodes[name]["message"].get("create_time")), default=""
    )


def _seconds(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def _message(record: object) -> ChatMessage:
    """A message; one without a speaker is nobody's."""
    if not isinstance(record, Mapping):
        return ChatMessage("", "")
    author = record.get("author")
    content = record.get("content")
    role = author.get("role") if isinstance(author, Mapping) else None
    if not isinstance(role, str) or not isinstance(content, Mapping):
        return ChatMessage("", "")
    seconds = _seconds(record.get("create_time"))
    text = _CITATION.sub("", _text(content)).strip()
    kind = _kind(record, role, content, text)
    if kind == "system" and not text:
        return ChatMessage("", "")  # the empty message at the root
    return ChatMessage(
        speaker=role,
        text=text,
        time=datetime.fromtimestamp(seconds, tz=UTC).replace(tzinfo=None)
        if 0 < seconds < 1e11
        else None,
        kind=kind,
    )


def _kind(record: Mapping[str, Any], role: str, content: Mapping[str, Any], text: str) -> Kind:
    metadata = record.get("metadata")
    flags = metadata if isinstance(metadata, Mapping) else {}
    kind = str(content.get("content_type") or "text")
    recipient = record.get("recipient") or "all"
    if role == "system":
        return "system"
    if role not in _ROLES or recipient != "all":
        return "tool"
    if kind in _KINDS or record.get("channel") == "analysis":
        return _KINDS.get(kind, "reasoning")
    if flags.get("is_visually_hidden_from_conversation") or flags.get("is_user_system_message"):
        return "hidden"
    return "text" if kind in _TEXTS and text else "media"


def _text(content: Mapping[str, Any]) -> str:
    """The text of a message: its parts of text, and what was said where it is audio."""
    parts = content.get("parts")
    if not isinstance(parts, list):
        text = content.get("text")
        return text if isinstance(text, str) else ""
    texts = [part.get("text") if isinstance(part, Mapping) else part for part in parts]
    return "\n".join(part for part in texts if isinstance(part, str) and part.strip())
