"""Open WebUI's export of chats: a list of `chat` objects, of one person or, by an administrator, of all.

After open-webui (src/lib/components/chat: `history.messages`, `history.currentId`) and the converter
yetanotherchris/openwebui-importer. Versions of 2024 have `chat.messages` alone. Reasoning stands in the text between
`<details type="reasoning">` and `</details>`, which gather takes out.
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
from h2htalk.curation.gather.exports.messages import Chat, ChatMessage, Kind
from h2htalk.curation.gather.formats import RefusedItem
from h2htalk.data.scenario import Role

PATTERNS = ("chat-export*.json", "all-chats-export*.json", "*chat*.json")
_ROLES: Mapping[str, Role] = {"user": "user", "assistant": "companion"}


def looks_like(head: str) -> bool:
    """Whether a text begins as an export of Open WebUI."""
    is_chat = '"chat"' in head and (
        '"currentId"' in head or '"childrenIds"' in head or '"user_id"' in head
    )
    return is_chat and '"messages"' in head and head.lstrip()[:1] in ("[", "{")


def read(file: ExportFile) -> Iterator[Chat | RefusedItem]:
    """The chats of a file."""
    for record in conversations_of(file.json(), "chats"):
        yield _chat(record, file)


def _chat(record: object, file: ExportFile) -> Chat | RefusedItem:
    chat = record.get("chat") if isinstance(record, Mapping) else None
    if not isinstance(record, Mapping) or not isinstance(chat, Mapping):
        names = record if isinstance(record, Mapping) else ()
        return RefusedItem("broken", "no `chat`, as the export of Open WebUI has it", names)
    history = chat.get("history")
    nodes = nodes_by_id(history.get("messages"), "id") if isinstance(history, Mapping) else {}
    branch: list[Any] = (
        branch_of(nodes, history.get("currentId"), "parentId")
        if isinstance(history, Mapping)
        else []
    )
    messages = branch or chat.get("messages")
    system = chat.get("system")
    name = record.get("id")
    owner = record.get("user_id")
    return Chat(
        messages=tuple(
            _message(message) for message in messages or () if isinstance(message, Mapping)
        ),
        id=None if name is None else str(name),
        roles=_ROLES,
        person=str(owner) if owner else file.owner(),
        is_one_dialogue=True,
        system=system if isinstance(system, str) and system.strip() else None,
    )


def _message(record: Mapping[str, Any]) -> ChatMessage:
    role = str(record.get("role") or "")
    content = record.get("content")
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, Mapping)]
        content = "\n".join(part for part in parts if isinstance(part, str))
    kind: Kind = "text" if role in _ROLES else "tool" if role == "tool" else "system"
    return ChatMessage(role, content if isinstance(content, str) else "", kind=kind)
