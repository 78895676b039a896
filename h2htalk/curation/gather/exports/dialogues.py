"""The common rules by which a chat of any program becomes dialogues.

* Two speak: a chat of more is a group and refused, as the others did not agree to be a companion's user.
* Who the companion is, the program says or the owner (`companion = "NAME"`); nobody guesses.
* Lines of the program, media, deleted and forwarded messages are left out and counted; an edited message is read as it
  was edited.
* A chat of years is cut where both were silent for a while; no part is left with one speaker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from h2htalk.curation.gather.exports.messages import Chat, ChatMessage, plain_name, same_name
from h2htalk.curation.gather.formats import RawDialogue, RefusedItem, joined_place
from h2htalk.curation.role_names import ROLE_NAMES
from h2htalk.data.scenario import Role
from h2htalk.errors import ConfigError, counted, listed, quoted

# Counted beside the kinds of messages that are left out.
EDITED = "edited"
TURNED = "turned"  # messages of chats that the file has with the newest first
JOINED = "joined"  # lines of a log that go on with the message before them
REMARK = "remark"
_EXAMPLES = 3  # lines that are shown


class UnknownCompanionError(ConfigError):
    """Nobody says which of two `speakers` is the companion."""

    def __init__(self, message: str, speakers: Sequence[str]) -> None:
        super().__init__(message)
        self.speakers = tuple(speakers)


@dataclass(frozen=True, slots=True)
class ChatRules:
    """What the owner says about the chats of a source."""

    source: str  # its name, for messages
    companion: str = ""
    companions: tuple[str, ...] = ()  # names that anonymize keeps
    roles: Mapping[str, Role] | None = (
        None  # of speakers, by the names that the file uses, in lower case
    )
    silence: float = 12.0  # hours, after which a new dialogue begins


def dialogues_of(chat: Chat, rules: ChatRules) -> Iterator[RawDialogue | RefusedItem]:
    """The dialogues of a chat, or why it is none. Raises ConfigError where nobody says who the companion is."""
    texts = [
        message for message in chat.messages if message.kind == "text" and message.text.strip()
    ]
    speakers = list(dict.fromkeys(message.speaker for message in texts))
    if chat.is_group or len(speakers) > 2:
        yield RefusedItem(
            "group",
            "a chat of more than two people is no dialogue with a companion; leave it out",
            _shown(chat, speakers),
        )
        return
    if not texts:
        yield RefusedItem("empty", "the chat has no message with text")
        return
    if len(speakers) < 2:
        yield RefusedItem("one_speaker", "all messages are of one speaker", _shown(chat, speakers))
        return
    roles = _roles(chat, speakers, rules, texts)
    if isinstance(roles, RefusedItem):
        yield roles
        return
    yield from _parts(chat, texts, roles, rules)


def _roles(
    chat: Chat, speakers: Sequence[str], rules: ChatRules, texts: Sequence[ChatMessage]
) -> Mapping[str, Role] | RefusedItem:
    """Who the two speakers of a chat are, or why it is refused."""
    known = {**ROLE_NAMES, **(rules.roles or {})}
    roles: dict[str, Role] = {}
    for speaker in speakers:
        if role := chat.roles.get(speaker) or known.get(speaker.strip().lower()):
            roles[speaker] = role
    if rules.companion:
        named = [name for name in speakers if _is_named(name, rules.companion, chat)]
        if len(named) == 1:
            return {name: "companion" if name in named else "user" for name in speakers}
        if len(roles) < len(speakers) or chat.roles:
            return RefusedItem(
                "companion",
                "the companion says nothing in this chat; companion = NAME names one of its speakers",
                _shown(chat, speakers),
            )
    if set(roles.values()) == {"user", "companion"}:
        return roles
    if len(roles) == 1 and rules.roles:
        other: Role = "user" if "companion" in roles.values() else "companion"
        return {name: roles.get(name, other) for name in speakers}
    if len(roles) == len(speakers):
        return RefusedItem(
            "one_speaker", "both speakers have the same role", _shown(chat, speakers)
        )
    counts = Counter(message.speaker for message in texts)
    shown = _shown(chat, speakers)
    described = [
        f"{quoted(name)} ({counted(counts[speaker], 'message')})"
        for speaker, name in zip(speakers, shown, strict=True)
    ]
    raise UnknownCompanionError(
        f"source {rules.source!r}: say who the companion is: two speak, {listed(described)}; "
        f"write one of them into the source, such as companion = {quoted(shown[-1])}",
        shown,
    )


def _shown(chat: Chat, speakers: Sequence[str]) -> list[str]:
    """The names of speakers as people know them."""
    return [chat.names.get(speaker, speaker) for speaker in speakers]


def _is_named(speaker: str, companion: str, chat: Chat) -> bool:
    return same_name(speaker, companion) or same_name(chat.names.get(speaker, speaker), companion)


def _parts(
    chat: Chat, texts: Sequence[ChatMessage], roles: Mapping[str, Role], rules: ChatRules
) -> Iterator[RawDialogue]:
    """A dialogue for each part of a chat between two silences."""
    left_out = Counter(_left_out(message) for message in chat.messages)
    left_out.pop("", None)
    if edited := sum(message.is_edited for message in texts):
        left_out[EDITED] = edited
    if chat.is_turned:
        left_out[TURNED] = len(chat.messages)
    if chat.joined:
        left_out[JOINED] = len(chat.joined)
    shown = {JOINED: chat.joined[:_EXAMPLES], REMARK: chat.remarks[:_EXAMPLES]}
    user = next(name for name in roles if roles[name] == "user")
    person = chat.person or (user if user.strip().lower() not in ROLE_NAMES else None)
    names = _names_to_replace(chat, roles, rules)
    parts = [list(texts)] if chat.is_one_dialogue else _cut(texts, timedelta(hours=rules.silence))
    settled = None
    if len(parts) > 1 and len({message.speaker for message in parts[-1]}) < 2:
        # It belongs to the part before it, and to the next one in an export with an answer to it.
        last_part = parts.pop()
        settled = len(parts[-1])
        parts[-1] += last_part
    for number, part in enumerate(parts, 1):
        metadata: dict[str, str | list[str]] = {}
        if chat.system:
            metadata["system"] = chat.system
        if names:
            metadata["name"] = names if len(names) > 1 else names[0]
        raw_id = chat.id
        # The number of a message stays when older ones are deleted, where the place of a part does not.
        part_id = part[0].number or (number if len(parts) > 1 else None)
        if raw_id is not None and part_id is not None and not chat.is_one_dialogue:
            raw_id = f"{raw_id}/{part_id}"
        places = tuple(_place(chat, message) for message in part)
        yield RawDialogue(
            messages=tuple((roles[message.speaker], message.text) for message in part),
            raw_id=raw_id,
            person=person,
            metadata=metadata,
            left_out=dict(sorted(left_out.items())) if number == 1 else {},
            examples={kind: lines for kind, lines in shown.items() if lines} if number == 1 else {},
            place=joined_place(places),
            places=places,
            settled=settled if number == len(parts) else None,
        )


def _place(chat: Chat, message: ChatMessage) -> dict[str, int | str]:
    """Where a message of a chat stands in its file: for its owner, who has to find it there."""
    place: dict[str, int | str] = {}
    if chat.id is not None:
        place["conversation"] = chat.id
    if message.line is not None:
        place["line"] = message.line
        place["last_line"] = message.line if message.last_line is None else message.last_line
    if message.number is not None:
        place["first_message"] = message.number
        place["last_message"] = message.number
    return place


# What programs and owners write in the place of a name.
_NO_NAMES = frozenset((
    *("me", "you", "i", "myself", "rep", "unknown", "stranger", "anonymous", "true", "false", "yes", "no"),
    *("我", "你", "对方", "本人", "匿名"),
))  # fmt: skip


def _names_to_replace(chat: Chat, roles: Mapping[str, Role], rules: ChatRules) -> list[str]:
    """The names of both speakers, who may be people: anonymize replaces those that the owner does not keep."""
    if chat.roles:
        return [chat.user_name] if chat.user_name else []
    kept = [plain_name(name).casefold() for name in rules.companions]
    # A role is no name, but a table may have one beside it.
    named = [name for name in roles if name in chat.names or name.strip().lower() not in ROLE_NAMES]
    shown = [plain_name(chat.names.get(name, name)) for name in named]
    return [
        name
        for name in shown
        if _is_name(name) and name.lower() not in ROLE_NAMES and name.casefold() not in kept
    ]


def _is_name(name: str) -> bool:
    """Whether a speaker's name is one, or a telephone number, and no number of a database."""
    is_word = sum(sign.isalpha() for sign in name) >= 2 or any(
        "\u4e00" <= sign <= "\u9fff" for sign in name
    )
    digits = sum(sign.isdigit() for sign in name)
    return name.casefold() not in _NO_NAMES and (is_word or digits >= 7)


def _left_out(message: ChatMessage) -> str:
    """Why a message is no turn; empty for one that is."""
    if message.kind != "text":
        return message.kind
    return "" if message.text.strip() else "empty"


def _cut(texts: Sequence[ChatMessage], silence: timedelta) -> list[list[ChatMessage]]:
    """The parts of a chat, each but the last one with both speakers: a part of one speaker goes on with the next."""
    parts: list[list[ChatMessage]] = [[]]
    for message in texts:
        last = parts[-1][-1] if parts[-1] else None
        is_late = (
            last is not None
            and last.time is not None
            and message.time is not None
            and message.time - last.time > silence
        )
        if is_late and len({one.speaker for one in parts[-1]}) == 2:
            parts.append([])
        parts[-1].append(message)
    return parts
