"""Claude's export: `conversations.json` with `chat_messages`, or one conversation of its API.

After the converters nesterone/research and socketteer/Claude-Conversation-Exporter: older exports have `text` alone,
later ones parts in `content` (text, thinking, tools), of which `text` is a summary with notes about parts that are not
shown. Where messages name their parents, the branch of `current_leaf_message_uuid` counts, or of the last message.
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

PATTERNS = ("conversations*.json", "claude*.json")
_ROLES: Mapping[str, Role] = {"human": "user", "user": "user", "assistant": "companion"}


def looks_like(head: str) -> bool:
    """Whether a text begins as an export of Claude."""
    return '"chat_messages"' in head and head.lstrip()[:1] in ("[", "{")


def read(file: ExportFile) -> Iterator[Chat | RefusedItem]:
    """The conversations of a file."""
    for conversation in conversations_of(file.json(), "conversations"):
        yield _chat(conversation, file)


def _chat(conversation: object, file: ExportFile) -> Chat | RefusedItem:
    records = conversation.get("chat_messages") if isinstance(conversation, Mapping) else None
    if not isinstance(conversation, Mapping) or not isinstance(records, list):
        names = conversation if isinstance(conversation, Mapping) else ()
        return RefusedItem(
            "broken", "no list of `chat_messages`, as conversations.json of Claude has it", names
        )
    nodes = nodes_by_id(records, "uuid")
    last = conversation.get("current_leaf_message_uuid") or next(reversed(nodes), None)
    parents = [node.get("parent_message_uuid") for node in nodes.values()]
    branch = (
        branch_of(nodes, last, "parent_message_uuid")
        if any(parent in nodes for parent in parents)
        else records
    )
    account = conversation.get("account")
    owner = account.get("uuid") if isinstance(account, Mapping) else None
    name = conversation.get("uuid")
    return Chat(
        messages=tuple(message for record in branch for message in _messages(record)),
        id=None if name is None else str(name),
        roles=_ROLES,
        person=str(owner) if owner else file.owner(),
        is_one_dialogue=True,
    )


def _messages(record: object) -> Iterator[ChatMessage]:
    """A message, and what is no text of it."""
    sender = record.get("sender") if isinstance(record, Mapping) else None
    if not isinstance(record, Mapping) or not isinstance(sender, str) or sender not in _ROLES:
        return
    content = record.get("content")
    parts: list[Mapping[str, Any]] = [part for part in content or () if isinstance(part, Mapping)]
    texts = [
        str(part["text"])
        for part in parts
        if part.get("type") == "text" and isinstance(part.get("text"), str)
    ]
    for part in parts:
        if part.get("type") in ("thinking", "redacted_thinking"):
            yield ChatMessage(sender, "", kind="reasoning")
        elif part.get("type") in ("tool_use", "tool_result"):
            yield ChatMessage(sender, "", kind="tool")
    text = record.get("text")
    if not parts and isinstance(text, str):
        texts = [text]
    yield ChatMessage(sender, "\n".join(filter(None, texts)))
