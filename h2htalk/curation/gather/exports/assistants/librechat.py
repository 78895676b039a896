"""LibreChat's export of a conversation as JSON: `messages`, or with *recursive* a tree of them.

After client/src/hooks/Conversations/useExportConversation.ts of danny-avila/LibreChat: `isCreatedByUser` says whose a
message is; newer versions have parts in `content` beside or instead of `text`. With *export all branches* the list has
every answer that was made again: the branch of the last message counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from h2htalk.curation.gather.exports.assistants.trees import (
    branch_of,
    conversations_of,
    nodes_by_id,
)
from h2htalk.curation.gather.exports.export_files import ExportFile
from h2htalk.curation.gather.exports.messages import Chat, ChatMessage
from h2htalk.curation.gather.formats import RefusedItem
from h2htalk.data.scenario import Role

PATTERNS = ("*.json",)
_USER, _COMPANION = "user", "assistant"
_ROLES: Mapping[str, Role] = {_USER: "user", _COMPANION: "companion"}
_REASONING = ("think", "thinking", "reasoning")


def looks_like(head: str) -> bool:
    """Whether a text begins as an export of LibreChat."""
    return head.lstrip()[:1] in ("[", "{") and (
        '"isCreatedByUser"' in head or '"messagesTree"' in head
    )


def read(file: ExportFile) -> Iterator[Chat | RefusedItem]:
    """The conversations of a file: one, as the program writes it, or a list of such."""
    for conversation in conversations_of(file.json()):
        yield _chat(conversation, file)


def _chat(conversation: object, file: ExportFile) -> Chat | RefusedItem:
    held = conversation if isinstance(conversation, Mapping) else {}
    records = held.get("messagesTree") or held.get("messages")
    if not isinstance(records, list):
        return RefusedItem("broken", "no `messages`, as the export of LibreChat has it", held)
    messages = _flat(records)
    nodes = nodes_by_id(messages, "messageId")
    has_parents = any(node.get("parentMessageId") in nodes for node in nodes.values())
    branch: list[Any] = (
        branch_of(nodes, next(reversed(nodes), None), "parentMessageId")
        if has_parents
        else messages
    )
    name = held.get("conversationId")
    return Chat(
        messages=tuple(message for record in branch for message in _messages(record)),
        id=None if name is None else str(name),
        roles=_ROLES,
        person=file.owner(),
        is_one_dialogue=True,
    )


def _flat(records: list[Any]) -> list[Mapping[str, Any]]:
    """The messages of a tree, each before its children; the last one is that of the last branch."""
    flat: list[Mapping[str, Any]] = []
    waiting = list(reversed(records))
    while waiting:
        record = waiting.pop()
        if isinstance(record, Mapping):
            flat.append(record)
            children = record.get("children")
            if isinstance(children, list):
                waiting += reversed(children)
    return flat


def _messages(record: Mapping[str, Any]) -> Iterator[ChatMessage]:
    """A message, and what is no text of it."""
    speaker = _USER if record.get("isCreatedByUser") else _COMPANION
    content = record.get("content")
    parts = (
        [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []
    )
    texts: list[str] = []
    for part in parts:
        if part.get("type") in _REASONING:
            yield ChatMessage(speaker, "", kind="reasoning")
        elif part.get("type") == "tool_call":
            yield ChatMessage(speaker, "", kind="tool")
        elif part.get("type") == "text":
            text = part.get("text")
            value = text.get("value") if isinstance(text, Mapping) else text
            texts.append(value if isinstance(value, str) else "")
    text = record.get("text")
    words = "\n".join(filter(None, texts)) or (text if isinstance(text, str) else "")
    is_error = record.get("error") is True
    yield ChatMessage(speaker, words, kind="system" if is_error else "text")
