"""The table of raw formats: what a record becomes, and how a raw conversation becomes a dialogue (`clean`).

Keys of a record that `columns` maps have our names here.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

from h2htalk.data.languages import Language
from h2htalk.data.scenario import COMPLEXITIES, INTERACTIONS, ROLES, Role, Turn
from h2htalk.text.language_data import language_patterns, read_data

RoleNames = Mapping[str, Role]
# Names of roles, keys and tags in raw files, what `columns` may name, and advice where a format does not fit.
_NAMES = read_data(Path(__file__).with_suffix(".toml"))
_KEYS, _TAGS, ADVICE = _NAMES["keys"], _NAMES["tags"], _NAMES["advice"]
ROLE_NAMES: RoleNames = {name: role for role in ROLES for name in _NAMES["roles"][role]}
_METADATA = {
    "system": re.compile(r"(?s)\s*\S.*"),
    "date": re.compile(r"\d{4}-\d{2}-\d{2}"),
    "emotion": re.compile(r"[a-z]{1,24}"),
    "interaction": re.compile("|".join(INTERACTIONS)),
    "complexity": re.compile("|".join(COMPLEXITIES)),
}
_DATE = re.compile(r"\s*(\d{4})\s*[-/.年]\s*(\d{1,2})\s*[-/.月]\s*(\d{1,2})\s*日?\s*")

USER_NAMES = ("name", "user_name", "username", "nickname")  # keys under which files give the user's name
Turns = tuple[tuple[Role, str], ...]


class RefusedItem(Exception):
    """An item that cannot be a dialogue: the reason to count by, and numbers that say where; never its text."""

    def __init__(self, reason: str, **evidence: int) -> None:
        super().__init__(reason)
        self.reason, self.evidence = reason, evidence


@dataclass(frozen=True, slots=True)
class RawDialogue:
    """A conversation as its file has it, with our roles; `metadata`: `system`, `date`, `emotion`, `interaction`,
    `complexity` and the user's names (`read_user_names`), where the file has them."""

    messages: Turns
    raw_id: str | None = None
    person: str | None = None  # the user that the file names; replaced by a number
    question: str | None = None  # that several dialogues answer, as the file identifies it
    metadata: Mapping[str, str | list[str]] = field(default_factory=dict)
    language: Language | None = None  # of the record, where it has its own
    licence: str | None = None
    tags: tuple[str, ...] = ()  # counted in the summary (`undated`)


def read_messages(record: Any, roles: RoleNames = ROLE_NAMES) -> RawDialogue:
    """A conversation of messages: a list of them, or an object with one (`messages`, `conversations`, ...).

    A message is an object with `role` (`from`, `speaker`) and `content` (`value`, `text`; text, or a list of text
    parts), or an exchange: `input` and `output` (`query` and `response`), with `system` before them.

    Raises RefusedItem: `broken` (no list of such objects), `role` (unknown, or instructions after a turn), `tool` (a
    call of a tool, or its result), `not_text` (a picture or sound), `empty`.
    """
    record = {"messages": record} if isinstance(record, list) else record
    if not isinstance(record, Mapping):
        raise RefusedItem("broken")
    turns, system = _turns(_first(record, _KEYS["messages"]), roles)
    own = record.get("system")
    system = own if isinstance(own, str) and own.strip() else system
    person, metadata = read_name(_first(record, _KEYS["person"])), {"system": system} if system else {}
    return RawDialogue(turns, read_name(record.get("id")), person, metadata=metadata)


def read_dialogue(record: Any, roles: RoleNames = ROLE_NAMES) -> RawDialogue:
    """This package's own records: messages beside `language`, `licence`, `provenance` and known `metadata`."""
    if not isinstance(record, Mapping):
        raise RefusedItem("broken")
    raw, licence = read_messages(record, roles), read_name(record.get("licence"))
    held = map(record.get, ("provenance", "metadata"))
    provenance, metadata = (value if isinstance(value, Mapping) else {} for value in held)
    # Other metadata than later stages read may be personal data that no stage would find.
    texts = ((key, metadata.get(key)) for key in _METADATA)
    return replace(
        raw,
        person=read_name(provenance.get("person")),
        question=read_name(provenance.get("question")),
        metadata={key: text for key, text in texts if isinstance(text, str) and _METADATA[key].fullmatch(text)},
        language=record.get("language"),
        licence=None if licence == "unknown" else licence,
    )


def read_answer(record: Any) -> RawDialogue:
    """A row of questions and answers: one dialogue, linked to others by its question; tags of HTML are removed."""
    if not isinstance(record, Mapping):
        raise RefusedItem("broken")
    row = {str(key).strip().lower().replace(" ", ""): value for key, value in record.items()}
    parts = [_KEYS[part] for part in ("title", "question", "answer")]
    if not any(key in row for key in parts[2]) or not any(key in row for key in (*parts[0], *parts[1])):
        raise RefusedItem("broken")
    title, text, answer = (plain_text(str(_first(row, keys) or "")).strip() for keys in parts)
    asked = text if title in text else f"{title}\n{text}".strip()
    turns: Turns = (("user", asked), ("companion", answer))
    person, question = (read_name(_first(row, _KEYS[key])) for key in ("person", "question_id"))
    return RawDialogue(turns, person=person, question=question or asked)


def read_days(key: str, user: Any) -> Iterator[RawDialogue | RefusedItem]:
    """The dialogues of a user of a memory bank, `{"name", "history": {DATE: [{"query", "response"}]}}`, one a day."""
    history = user.get("history") if isinstance(user, Mapping) else None
    if not isinstance(history, Mapping) or not history:
        yield RefusedItem("empty" if history == {} else "broken")
        return
    person = read_name(user.get("name")) or read_name(key)
    named = {"name": person} if person else {}
    for day, exchanges in history.items():
        match = _DATE.fullmatch(day[:40])
        try:
            when = date(*map(int, match.groups())).isoformat() if match else None
        except ValueError:
            when = None
        metadata, tags = ({"date": when, **named}, ()) if when else (named, ("undated",))
        try:
            yield RawDialogue(_turns(exchanges, ROLE_NAMES)[0], None, person, metadata=metadata, tags=tags)
        except RefusedItem as refused:
            yield refused


MEMORY_BANK, QUESTION_ANSWERS = "memory_bank", "question_answers"
# Name -> reader of a record, with the names of roles where its messages name them.
WITH_ROLES: Mapping[str, Callable[..., RawDialogue]] = {"messages": read_messages, "dialogues": read_dialogue}
READERS: Mapping[str, Callable[..., Any]] = {**WITH_ROLES, QUESTION_ANSWERS: read_answer, MEMORY_BANK: read_days}
# Our names of the keys that a format reads, for `columns`.
COLUMNS: Mapping[str, str] = _NAMES["columns"]


def read_user_names(record: Any, keys: Iterable[str] = ()) -> dict[str, str | list[str]]:
    """The user's names in a record, its `metadata` or `user`, which anonymize replaces; `keys`: beside `USER_NAMES`."""
    names: dict[str, dict[str, None]] = {}
    places = [record, *map(record.get, ("metadata", "user"))] if isinstance(record, Mapping) else []
    for place in (place for place in places if isinstance(place, Mapping)):
        for key in (key for key in (*USER_NAMES, *keys) if key in place):
            given = place[key] if isinstance(place[key], list) else [place[key]]
            names.setdefault(key, {}).update(dict.fromkeys(filter(None, map(read_name, given))))
    several = {key: list(each) for key, each in names.items() if each}
    return {key: each if len(each) > 1 else each[0] for key, each in several.items()}


def read_name(value: object) -> str | None:
    """An id or a person as files write it: text or a whole number; None where there is none."""
    if isinstance(value, str):
        return value.strip() or None
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _first(record: Mapping[str, Any], keys: Iterable[str]) -> Any:
    """The value of the first of some keys that a record has; None where it has none."""
    return next((record[key] for key in keys if key in record), None)


# Known names only: `<3` and `x < y` are text.
_BREAKING = re.compile(rf"</?(?:{'|'.join(_TAGS['block'])})(?:\s[^<>]*)?/?>[ \t]*", re.IGNORECASE)
_OTHER = re.compile(rf"</?(?:{'|'.join(_TAGS['inline'] + _TAGS['hidden'])})(?:\s[^<>]*)?/?>|<!--", re.IGNORECASE)
SURROGATE = re.compile("[\ud800-\udfff]")
_BLANK_LINES = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")


def plain_text(text: str) -> str:
    """The text without tags of HTML and with its entities decoded; one with bytes that were not UTF-8 is unchanged."""
    if not text.isascii() and SURROGATE.search(text):
        return text
    bare, breaks = _BREAKING.subn("\n", text)
    if _OTHER.search(bare):
        from selectolax.lexbor import LexborHTMLParser

        tree = LexborHTMLParser(bare)
        tree.strip_tags(_TAGS["hidden"], recursive=True)
        bare = tree.text()
    elif not breaks:
        return html.unescape(text)
    else:
        bare = html.unescape(bare)
    return _BLANK_LINES.sub("\n\n", bare).strip()


def _turns(messages: object, roles: RoleNames) -> tuple[Turns, str | None]:
    """The turns of a list of messages, and the instructions (system, developer) before them."""
    if not isinstance(messages, list):
        raise RefusedItem("broken")
    turns: list[tuple[Role, str]] = []
    instructions: list[str] = []
    for number, message in enumerate(_messages(messages), 1):
        if not isinstance(message, Mapping):
            raise RefusedItem("broken", message=number)
        name = _first(message, _KEYS["role"])
        if not isinstance(name, str):
            raise RefusedItem("role", message=number)
        name = name.strip().lower()
        if name not in roles or name in ROLE_NAMES:
            if name in _NAMES["roles"]["tool"] or message.get("tool_calls") or message.get("function_call"):
                raise RefusedItem("tool", message=number)
            if name not in roles and (turns or name not in _NAMES["roles"]["instructions"]):
                raise RefusedItem("role", message=number)
        if name in roles:
            turns.append((roles[name], _content(message, number)))
        else:
            instructions.append(_content(message, number))
    return tuple(turns), "\n".join(instructions) or None


def _messages(messages: list[Any]) -> Iterator[Any]:
    """The messages, an exchange as two of them; its instructions before them where they are new."""
    known = None
    for one in messages:
        exchange = isinstance(one, Mapping) and next((keys for keys in _KEYS["exchanges"] if keys[0] in one), None)
        if not exchange or any(key in one for key in _KEYS["role"]):
            yield one
            continue
        if (system := one.get("system")) and system != known:
            yield {"role": "system", "content": system}
            known = system
        for role, key in zip(("user", "companion"), exchange, strict=True):
            yield {"role": role, "content": one.get(key)}


def _content(message: Mapping[str, Any], number: int) -> str:
    content = _first(message, _KEYS["content"])
    if content is None:
        raise RefusedItem("empty", message=number)
    texts = []
    for part in content if isinstance(content, list) else [content]:
        text = part
        if isinstance(part, Mapping):
            kind = part.get("type", "text")
            if kind in ("tool_use", "tool_result", "tool_call"):
                raise RefusedItem("tool", message=number)
            if isinstance(kind, str) and kind not in _NAMES["text_parts"]:
                raise RefusedItem("not_text", message=number)
            text = part.get("text") if isinstance(kind, str) else None
        if not isinstance(text, str):
            raise RefusedItem("broken", message=number)
        texts.append(text)
    return "\n".join(texts)


LONGEST_MESSAGE = 100_000  # characters
# Marks, embeddings, overrides and isolates that change the direction of text.
_DIRECTION = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_CONTROL = re.compile("[\x01-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class Cleaned:
    """The turns and metadata of a dialogue; `removed`: the removed characters by kind (`direction`, `control`)."""

    messages: tuple[Turn, ...]
    metadata: Mapping[str, str | list[str]]
    removed: Mapping[str, int]


def clean(raw: RawDialogue, language: Language) -> Cleaned:
    """Make a dialogue of a raw conversation: two speakers, complete, readable, of bounded size.

    It may begin with either speaker, and end with the user. Line ends become `\\n`; direction overrides and other
    control characters are removed and counted; consecutive messages of one speaker become one of several lines. Raises
    RefusedItem: `empty` (no message, or one without text), `encoding` (bytes that are not UTF-8, or half a character),
    `control` (a NUL), `too_long` (a message of more than 100,000 characters), `one_speaker`, or `truncated` (the last
    message stops in the middle of a sentence, `breaks_off`).
    """
    if not raw.messages:
        raise RefusedItem("empty")
    removed: Counter[str] = Counter()
    turns: list[tuple[Role, list[str]]] = []
    for number, (role, content) in enumerate(raw.messages, 1):
        text = _readable(content, removed, message=number).strip()
        if not text:
            raise RefusedItem("empty", message=number)
        if turns and turns[-1][0] == role:
            turns[-1][1].append(text)
        else:
            turns.append((role, [text]))
    if len(turns) < 2:
        raise RefusedItem("one_speaker")
    messages = tuple(Turn(role, "\n".join(texts)) for role, texts in turns)
    for number, turn in enumerate(messages, 1):
        if len(turn.content) > LONGEST_MESSAGE:
            raise RefusedItem("too_long", message=number, characters=len(turn.content))
    if breaks_off(messages, language):
        raise RefusedItem("truncated")
    metadata = {
        key: _readable(value, removed) if isinstance(value, str) else [_readable(each, removed) for each in value]
        for key, value in raw.metadata.items()
    }
    return Cleaned(messages, metadata, dict(sorted((+removed).items())))


def _readable(text: str, removed: Counter[str], **where: int) -> str:
    """The text without control characters, which act on a reader's screen."""
    if len(text) > LONGEST_MESSAGE:
        raise RefusedItem("too_long", **where, characters=len(text))
    if not text.isascii() and SURROGATE.search(text):
        raise RefusedItem("encoding", **where)
    if "\x00" in text:
        raise RefusedItem("control", **where)
    text, directions = _DIRECTION.subn("", text.replace("\r\n", "\n").replace("\r", "\n"))
    text, controls = _CONTROL.subn(" ", text)
    removed.update(control=controls, direction=directions)
    return text


# No message ends with these, unless they belong to an emoticon.
_EXPECTING = frozenset(":：;；(（[【《“「『&＆")
_EMOTICON = re.compile(r"(?:[:：;；=8xX]['^~-]?[(（\[]|[(（]['^~-]?[:：;；])\Z")
# Many people end a line of chat with a comma.
_COMMAS = frozenset(",，、")
_SHORT_LINE = 12  # characters
_SENTENCE_END = re.compile(r"[.!?…][\"')\]]*\s|[。！？…]")
_CLOSING = frozenset(".!?…。！？．~～)）]】》\"'”’」』*")
_EMOJI = frozenset(("So", "Sk", "Mn", "Cf", "Co"))


def breaks_off(messages: Sequence[Turn], language: Language) -> bool:
    """Whether the last message stops in the middle of a sentence.

    It does where it ends with a mark or a word that ends no sentence (`（` `and the`). Where its speaker closes
    sentences with a mark, it also does where it ends with a comma, a word that seldom ends one (`I want to`) or, in
    Chinese, with any character.
    """
    text = messages[-1].content.rstrip()
    if text[-1] in _EXPECTING:
        return _EMOTICON.search(text, max(len(text) - 3, 0)) is None
    if text[-1] in _COMMAS:
        return _punctuates(messages)
    patterns, end = language_patterns("curation/gather/endings", language), text[-24:]
    if patterns["never"].search(end):
        return True
    return patterns["seldom"].search(end) is not None and _punctuates(messages)


def _punctuates(messages: Sequence[Turn]) -> bool:
    """Whether the last speaker closes sentences with a mark, in nearly all other messages or in this one."""
    last = messages[-1].content.rstrip()
    if "\n" in last[-_SHORT_LINE:]:
        return False
    others = [turn.content.rstrip() for turn in messages[:-1] if turn.role == messages[-1].role]
    if not others:
        return _SENTENCE_END.search(last) is not None
    # Emoji end a sentence too.
    closed = sum(text[-1] in _CLOSING or unicodedata.category(text[-1]) in _EMOJI for text in others)
    return closed >= 0.8 * len(others)
