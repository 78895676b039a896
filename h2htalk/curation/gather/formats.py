"""The table of raw formats: what a record becomes, and how a raw conversation becomes a dialogue (`clean`).

Keys of a record that `columns` maps have our names here.
"""

from __future__ import annotations

import json
import re
import unicodedata
from ast import literal_eval
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import islice
from pathlib import Path
from typing import Any

from h2htalk.curation.role_names import (
    INSTRUCTION_ROLES,
    ROLE_NAMES,
    TOOL_ROLES,
    USER_NAMES,
    RoleNames,
)
from h2htalk.data.languages import Language
from h2htalk.data.replies.reasoning import split_reasoning
from h2htalk.data.scenario import COMPLEXITIES, INTERACTIONS, Role, Turn
from h2htalk.text.language_data import language_patterns, read_data
from h2htalk.text.parsing.html_text import SURROGATE, plain_text

# Names of keys and tags in raw files, what `columns` may name, and advice where a format does not fit.
_NAMES = read_data(Path(__file__).with_suffix(".toml"))
_KEYS, ADVICE = _NAMES["keys"], _NAMES["advice"]
_METADATA = {
    "system": re.compile(r"(?s)\s*\S.*"),
    "date": re.compile(r"\d{4}-\d{2}-\d{2}"),
    "emotion": re.compile(r"[a-z]{1,24}"),
    "interaction": re.compile("|".join(INTERACTIONS)),
    "complexity": re.compile("|".join(COMPLEXITIES)),
}
_DATE = re.compile(r"\s*(\d{4})\s*[-/.年]\s*(\d{1,2})\s*[-/.月]\s*(\d{1,2})\s*日?\s*")

_MOST_NAMES = 12  # of keys and roles that a refusal names
_LONGEST_NAME = 60  # characters
_LONGEST_LITERAL = 500_000  # characters of a list as Python prints it; its tree takes a hundred times as much memory
Turns = tuple[tuple[Role, str], ...]
REASONING = "reasoning"  # the tag of a dialogue without the reasoning that its file had


@dataclass(frozen=True, slots=True)
class MessageKeys:
    """The keys of a message that hold its role and its content; the first one that it has counts."""

    role: tuple[str, ...] = tuple(_KEYS["role"])
    content: tuple[str, ...] = tuple(_KEYS["content"])

    @classmethod
    def of_columns(cls, columns: Mapping[Any, str]) -> MessageKeys:
        """The keys that `columns` of a source names, and the usual ones for the others."""
        named = {name: (columns[name],) for name in MESSAGE_COLUMNS if name in columns}
        return cls(**named)


class RefusedItem(Exception):
    """An item that cannot be a dialogue: the reason to count by, and what says why, but never its text.

    Attributes:
        reason: a word to count by.
        problem: what is wrong, in words of this package.
        names: keys, roles or kinds that the file has there. They may name people, so only the private index has them.
        evidence: numbers that say where.
    """

    def __init__(
        self, reason: str, problem: str = "", names: Iterable[object] = (), /, **evidence: int
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.problem = problem
        self.names = tuple(str(name)[:_LONGEST_NAME] for name in islice(names, _MOST_NAMES))
        self.evidence = evidence


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
    left_out: Mapping[str, int] = field(
        default_factory=dict
    )  # messages of a chat that are no turns, by kind
    examples: Mapping[str, tuple[str, ...]] = field(
        default_factory=dict
    )  # some lines of a log, by what became of them
    place: Mapping[str, int | str] = field(
        default_factory=dict
    )  # of a chat's part in its file: its lines or messages
    settled: int | None = (
        None  # messages before those that an export would end with, and a later one may not
    )
    places: tuple[
        Mapping[str, int | str], ...
    ] = ()  # of each message of a chat, of which `place` is the whole
    continues: str | None = (
        None  # the mark of the gathered dialogue that ended where this one begins
    )

    def after(self, count: int, continues: str) -> RawDialogue:
        """The dialogue of the messages after the first `count`, which were gathered as one of the mark `continues`."""
        return replace(
            self,
            messages=self.messages[count:],
            settled=None,
            place=joined_place(self.places[count:]) or self.place,
            places=self.places[count:],
            continues=continues,
        )


def joined_place(places: Sequence[Mapping[str, int | str]]) -> dict[str, int | str]:
    """Where several messages of a chat stand in its file; empty where nothing says it."""
    joined: dict[str, int | str] = {}
    for place in places:
        for name, value in place.items():
            before = joined.get(name)
            is_end = name.startswith("last_")
            if isinstance(before, int) and isinstance(value, int):
                joined[name] = max(before, value) if is_end else min(before, value)
            elif before is None or is_end:
                joined[name] = value
    return joined


def read_messages(
    record: Any, roles: RoleNames = ROLE_NAMES, keys: MessageKeys | None = None
) -> RawDialogue:
    """A conversation of messages: a list of them, or an object with one (`messages`, `conversations`, ...).

    A message is an object with `role` (`from`, `speaker`) and `content` (`value`, `text`; text, or a list of text
    parts), or an exchange: `input` and `output` (`query` and `response`), with `system` before them. The list may be
    the JSON text of one, as tables have it. Parts of reasoning are left out; `keys`: of the role and the content.

    Raises RefusedItem: `broken` (no list of such objects), `role` (unknown, or instructions after a turn), `tool` (a
    call of a tool, or its result), `not_text` (a picture or sound), `empty`.
    """
    record = {"messages": record} if isinstance(record, list) else record
    if not isinstance(record, Mapping):
        raise RefusedItem(
            "broken", f"the item is {_kind_of(record)}, not an object or a list of messages"
        )
    if not any(key in record for key in _KEYS["messages"]):
        problem = f"the record has no key of messages ({', '.join(_KEYS['messages'])})"
        raise RefusedItem("broken", f"{problem}; name it: columns = {{ messages = KEY }}", record)
    messages = _parsed_list(_first(record, _KEYS["messages"]))
    turns, system, has_reasoning = _turns(messages, roles, keys or MessageKeys())
    own = record.get("system")
    system = own if isinstance(own, str) and own.strip() else system
    person, metadata = (
        read_name(_first(record, _KEYS["person"])),
        {"system": system} if system else {},
    )
    tags = (REASONING,) if has_reasoning else ()
    return RawDialogue(turns, read_name(record.get("id")), person, metadata=metadata, tags=tags)


def read_dialogue(
    record: Any, roles: RoleNames = ROLE_NAMES, keys: MessageKeys | None = None
) -> RawDialogue:
    """This package's own records: messages beside `language`, `licence`, `provenance` and known `metadata`."""
    if not isinstance(record, Mapping):
        raise RefusedItem("broken", f"the item is {_kind_of(record)}, not an object")
    raw, licence = read_messages(record, roles, keys), read_name(record.get("licence"))
    held = map(record.get, ("provenance", "metadata"))
    provenance, metadata = (value if isinstance(value, Mapping) else {} for value in held)
    # Other metadata than later stages read may be personal data that no stage would find.
    texts = ((key, metadata.get(key)) for key in _METADATA)
    return replace(
        raw,
        person=read_name(provenance.get("person")),
        question=read_name(provenance.get("question")),
        metadata={
            key: text
            for key, text in texts
            if isinstance(text, str) and _METADATA[key].fullmatch(text)
        },
        language=record.get("language"),
        licence=None if licence == "unknown" else licence,
    )


def read_answer(record: Any) -> RawDialogue:
    """A row of questions and answers: one dialogue, linked to others by its question; tags of HTML are removed."""
    if not isinstance(record, Mapping):
        raise RefusedItem(
            "broken", f"the item is {_kind_of(record)}, not a row with names of columns"
        )
    row = {str(key).strip().lower().replace(" ", ""): value for key, value in record.items()}
    parts = [_KEYS[part] for part in ("title", "question", "answer")]
    for part, keys in (("question", (*parts[0], *parts[1])), ("answer", parts[2])):
        if not any(key in row for key in keys):
            problem = f"the row has no column of the {part} ({', '.join(keys)})"
            raise RefusedItem(
                "broken", f"{problem}; name it: columns = {{ {part} = NAME }}", record
            )
    title, text, answer = (plain_text(str(_first(row, keys) or "")).strip() for keys in parts)
    asked = text if title in text else f"{title}\n{text}".strip()
    turns: Turns = (("user", asked), ("companion", answer))
    person, question = (read_name(_first(row, _KEYS[key])) for key in ("person", "question_id"))
    return RawDialogue(turns, person=person, question=question or asked)


def read_days(key: str, user: Any) -> Iterator[RawDialogue | RefusedItem]:
    """The dialogues of a user of a memory bank, `{"name", "history": {DATE: [{"query", "response"}]}}`, one a day."""
    history = user.get("history") if isinstance(user, Mapping) else None
    if not isinstance(history, Mapping) or not history:
        if history == {}:
            yield RefusedItem("empty", "the user has no days")
        else:
            names = user if isinstance(user, Mapping) else ()
            yield RefusedItem("broken", "the user has no `history` of days", names)
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
            turns = _turns(exchanges, ROLE_NAMES, MessageKeys())[0]
            yield RawDialogue(turns, None, person, metadata=metadata, tags=tags)
        except RefusedItem as refused:
            yield refused


MEMORY_BANK, QUESTION_ANSWERS = "memory_bank", "question_answers"
# Name -> reader of a record, with the names of roles where its messages name them.
WITH_ROLES: Mapping[str, Callable[..., RawDialogue]] = {
    "messages": read_messages,
    "dialogues": read_dialogue,
}
READERS: Mapping[str, Callable[..., Any]] = {
    **WITH_ROLES,
    QUESTION_ANSWERS: read_answer,
    MEMORY_BANK: read_days,
}
# Our names of the keys that a format reads, for `columns`.
COLUMNS: Mapping[str, str] = _NAMES["columns"]
MESSAGE_COLUMNS = ("role", "content")  # of them, those that are keys of a message


def text_parts() -> tuple[str, ...]:
    """The kinds of the parts of a message that are text."""
    return tuple(_NAMES["text_parts"])


def reasoning_parts() -> tuple[str, ...]:
    """The kinds of the parts of a message in which a model thinks."""
    return tuple(_NAMES["reasoning_parts"])


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


def _kind_of(value: object) -> str:
    """What a JSON value is, in words."""
    kinds = {
        type(None): "null",
        bool: "a truth value",
        int: "a number",
        float: "a number",
        str: "text",
        list: "a list",
    }
    return kinds.get(type(value), "an object")


def _parsed_list(messages: object) -> object:
    """The messages of a cell of a table: JSON text, or a list as Python prints it (`pandas.DataFrame.to_csv`)."""
    if not isinstance(messages, str) or not messages.lstrip().startswith("["):
        return messages
    try:
        return json.loads(messages, strict=False)
    except (ValueError, RecursionError) as error:
        problem = (
            f"the messages are text that is no JSON: {getattr(error, 'msg', 'nested too deeply')}"
        )
    try:
        return literal_eval(messages) if len(messages) <= _LONGEST_LITERAL else messages
    # What the parser raises for broken, deep or hostile source text.
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        raise RefusedItem("broken", problem) from None


def _turns(messages: object, roles: RoleNames, keys: MessageKeys) -> tuple[Turns, str | None, bool]:
    """The turns of a list of messages, the instructions (system, developer) before them, and whether parts of
    reasoning were left out."""
    if not isinstance(messages, list):
        raise RefusedItem("broken", f"the messages are {_kind_of(messages)}, not a list")
    turns: list[tuple[Role, str]] = []
    instructions: list[str] = []
    has_reasoning = False
    is_html = _holds_html(messages, keys)
    for number, message in enumerate(_messages(messages, keys), 1):
        if not isinstance(message, Mapping):
            raise RefusedItem(
                "broken", f"the message is {_kind_of(message)}, not an object", message=number
            )
        name = _role_name(message, keys, number)
        if name not in roles or name in ROLE_NAMES:
            if name in TOOL_ROLES or message.get("tool_calls") or message.get("function_call"):
                raise RefusedItem("tool", "a call of a tool, or its result", message=number)
            if name not in roles and name not in INSTRUCTION_ROLES:
                problem = (
                    'an unknown role; say who it is: roles = { NAME = "companion" }, or "user"'
                )
                raise RefusedItem("role", problem, [_first(message, keys.role)], message=number)
            if name not in roles and turns:
                raise RefusedItem(
                    "role", "instructions after the first turn", [name], message=number
                )
        text, without_reasoning = _content(message, keys, number)
        has_reasoning |= without_reasoning
        if is_html:
            text = _html_text(text)
        if name in roles:
            turns.append((roles[name], text))
        else:
            instructions.append(text)
    return tuple(turns), "\n".join(instructions) or None, has_reasoning


def _role_name(message: Mapping[str, Any], keys: MessageKeys, number: int) -> str:
    """The role of a message as its file writes it, in lower case."""
    name = _first(message, keys.role)
    if isinstance(name, str):
        return name.strip().lower()
    if name is not None:
        raise RefusedItem("role", f"the role is {_kind_of(name)}, not text", message=number)
    problem = f"the message has no key of its role ({', '.join(keys.role)}); name it: columns = {{ role = KEY }}"
    raise RefusedItem("role", problem, message, message=number)


def _messages(messages: list[Any], keys: MessageKeys) -> Iterator[Any]:
    """The messages, an exchange as two of them; its instructions before them where they are new."""
    known = None
    for one in messages:
        exchange = isinstance(one, Mapping) and next(
            (pair for pair in _KEYS["exchanges"] if pair[0] in one), None
        )
        if not exchange or any(key in one for key in keys.role):
            yield one
            continue
        if (system := one.get("system")) and system != known:
            yield {keys.role[0]: "system", keys.content[0]: system}
            known = system
        for role, key in zip(("user", "companion"), exchange, strict=True):
            yield {keys.role[0]: role, keys.content[0]: one.get(key)}


def _content(message: Mapping[str, Any], keys: MessageKeys, number: int) -> tuple[str, bool]:
    """The text of a message, and whether parts of reasoning were left out."""
    content = _first(message, keys.content)
    if content is None:
        raise RefusedItem(
            "empty", f"the message has no {' or '.join(keys.content)}", message, message=number
        )
    texts = []
    has_reasoning = False
    for part in content if isinstance(content, list) else [content]:
        text = part
        if isinstance(part, Mapping):
            kind = part.get("type", "text")
            if kind in ("tool_use", "tool_result", "tool_call"):
                raise RefusedItem("tool", "a call of a tool, or its result", message=number)
            if isinstance(kind, str) and kind in _NAMES["reasoning_parts"]:
                has_reasoning = True
                continue
            if isinstance(kind, str) and kind not in _NAMES["text_parts"]:
                raise RefusedItem(
                    "not_text", "a part of another kind than text", [kind], message=number
                )
            text = part.get("text") if isinstance(kind, str) else None
        if not isinstance(text, str):
            raise RefusedItem(
                "broken", f"the content is {_kind_of(text)}, not text", message=number
            )
        texts.append(text)
    return "\n".join(texts), has_reasoning


# Dumps of ShareGPT hold the page of a chat: FastChat's clean_sharegpt.py turns each `value` from HTML into Markdown.
_WHOLE_HTML = re.compile(
    r"\s*<(?:div|p|ul|ol|pre|table|blockquote|h[1-6])(?:\s[^<>]*)?>(?s:.*)>\s*", re.IGNORECASE
)
_BUTTON = re.compile(r"<button\b[^<>]*>(?:[^<]|<(?!/button)){0,4000}</button>", re.IGNORECASE)


def _holds_html(messages: list[Any], keys: MessageKeys) -> bool:
    """Whether a message of a conversation is HTML as a whole."""
    contents = (
        _first(message, keys.content) for message in messages if isinstance(message, Mapping)
    )
    return any(
        isinstance(text, str) and text.lstrip()[:1] == "<" and _WHOLE_HTML.fullmatch(text)
        for text in contents
    )


def _html_text(text: str) -> str:
    """The text of a message of such a page, without its buttons (`Copy code`)."""
    return plain_text(_BUTTON.sub("", text))


def without_reasoning(raw: RawDialogue) -> RawDialogue:
    """The dialogue without what models thought before they replied; it then has the tag `reasoning`."""
    messages = tuple(
        (role, _reply(text) if role == "companion" else text) for role, text in raw.messages
    )
    if messages == raw.messages:
        return raw
    return replace(raw, messages=messages, tags=tuple(dict.fromkeys((*raw.tags, REASONING))))


def _reply(text: str) -> str:
    """What a companion said: the text itself where it holds no reasoning."""
    bare = _without_blocks(text) if "</think>" in text else text
    answer, thoughts = split_reasoning(bare)
    return bare if thoughts is None else answer


_QUOTES = frozenset("`'\"“「")


def _without_blocks(text: str) -> str:
    """The text without `<think>` to `</think>`, wherever a block stands that nobody quotes.

    Programs that join messages write blocks in the middle of a text, where `split_reasoning` takes them for a mention.
    """
    kept = []
    end = 0
    while (start := text.find("<think>", end)) >= 0:
        close = text.find("</think>", start)
        if close < 0 or text[max(start - 1, 0) : start] in _QUOTES:
            break
        kept.append(text[end:start])
        end = close + len("</think>")
    return "".join([*kept, text[end:]])


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
        raise RefusedItem("empty", "there is no message")
    removed: Counter[str] = Counter()
    turns: list[tuple[Role, list[str]]] = []
    for number, (role, content) in enumerate(raw.messages, 1):
        text = _readable(content, removed, message=number).strip()
        if not text:
            problem = (
                "nothing but reasoning"
                if REASONING in raw.tags and not content
                else "a message without text"
            )
            raise RefusedItem("empty", problem, message=number)
        if turns and turns[-1][0] == role:
            turns[-1][1].append(text)
        else:
            turns.append((role, [text]))
    if len(turns) < 2:
        raise RefusedItem("one_speaker", "all messages are of one speaker")
    messages = tuple(Turn(role, "\n".join(texts)) for role, texts in turns)
    for number, turn in enumerate(messages, 1):
        if len(turn.content) > LONGEST_MESSAGE:
            raise RefusedItem("too_long", message=number, characters=len(turn.content))
    if breaks_off(messages, language):
        raise RefusedItem("truncated", "the last message stops in the middle of a sentence")
    metadata = {
        key: _readable(value, removed)
        if isinstance(value, str)
        else [_readable(each, removed) for each in value]
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
    closed = sum(
        text[-1] in _CLOSING or unicodedata.category(text[-1]) in _EMOJI for text in others
    )
    return closed >= 0.8 * len(others)
