"""Character.AI: dumps of histories (`histories`, `msgs`) and of chats (`turns` with `candidates`).

After importCAIChat of SillyTavern (src/endpoints/chats.js) and irsat000/CAI-Tools: a message of a history has
`src.is_human` and `text`; a turn of a newer chat has an `author`, and answers of which `primary_candidate_id` was
chosen; turns stand with the newest first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from h2htalk.curation.gather.exports.assistants.trees import conversations_of
from h2htalk.curation.gather.exports.export_files import ExportFile
from h2htalk.curation.gather.exports.messages import Chat, ChatMessage
from h2htalk.curation.gather.formats import RefusedItem
from h2htalk.data.scenario import Role

PATTERNS = ("*.json",)


def looks_like(head: str) -> bool:
    """Whether a text begins as a dump of Character.AI."""
    is_history = '"histories"' in head and '"msgs"' in head
    return head.lstrip()[:1] in ("[", "{") and (is_history or '"primary_candidate_id"' in head)


def read(file: ExportFile) -> Iterator[Chat | RefusedItem]:
    """The chats of a file."""
    value = file.json()
    if isinstance(value, Mapping) and isinstance(value.get("histories"), Mapping):
        value = value["histories"]
    for record in conversations_of(value, "histories", "chats"):
        yield _chat(record)


def _chat(record: object) -> Chat | RefusedItem:
    held = record if isinstance(record, Mapping) else {}
    if isinstance(held.get("msgs"), list):
        messages = [
            _of_history(message) for message in held["msgs"] if isinstance(message, Mapping)
        ]
    elif isinstance(held.get("turns"), list):
        turns = [turn for turn in held["turns"] if isinstance(turn, Mapping)]
        messages = _in_order([_of_turn(turn) for turn in turns])
    else:
        return RefusedItem(
            "broken", "no `msgs` or `turns`, as dumps of Character.AI have them", held
        )
    roles: dict[str, Role] = {}
    for message in messages:
        roles[message.speaker] = "user" if message.speaker.startswith("user:") else "companion"
    names = {name: name.partition(":")[2] for name in roles}
    user = next((names[name] for name in roles if roles[name] == "user"), "")
    name = held.get("external_id") or held.get("chat_id")
    return Chat(
        messages=tuple(messages),
        id=None if name is None else str(name),
        roles=roles,
        person=user or None,
        is_one_dialogue=True,
        names=names,
        user_name=user or None,
    )


def _speaker(author: object, name: object) -> str:
    is_human = isinstance(author, Mapping) and bool(author.get("is_human"))
    return f"{'user' if is_human else 'companion'}:{name if isinstance(name, str) else ''}"


def _of_history(message: Mapping[str, Any]) -> ChatMessage:
    source = message.get("src")
    name = source.get("name") if isinstance(source, Mapping) else None
    text = message.get("text")
    return ChatMessage(_speaker(source, name), text if isinstance(text, str) else "")


def _of_turn(turn: Mapping[str, Any]) -> ChatMessage:
    """A turn with the answer that was chosen."""
    author = turn.get("author")
    name = author.get("name") if isinstance(author, Mapping) else None
    candidates = [one for one in turn.get("candidates") or () if isinstance(one, Mapping)]
    chosen = [
        one for one in candidates if one.get("candidate_id") == turn.get("primary_candidate_id")
    ]
    text = (chosen or candidates or [{}])[0].get("raw_content")
    return ChatMessage(
        _speaker(author, name),
        text if isinstance(text, str) else "",
        time=_time(turn.get("create_time")),
    )


def _time(value: object) -> datetime | None:
    try:
        return (
            datetime.fromisoformat(value).replace(tzinfo=None) if isinstance(value, str) else None
        )
    except ValueError:
        return None


def _in_order(messages: list[ChatMessage]) -> list[ChatMessage]:
    """The messages with the oldest first; without times in the reverse of the file, as the program lists them."""
    times = [message.time for message in messages]
    if None in times:
        return messages[::-1]
    return sorted(messages, key=lambda message: message.time or datetime.min)
