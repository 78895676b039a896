"""Make a dialogue of a raw conversation: two speakers, complete, readable, of bounded size.

A conversation is refused as

* `empty`: it has no message, or one without text;
* `encoding`: bytes that are not UTF-8, or half a character;
* `control`: a NUL;
* `too_long`: a message of more than 100,000 characters;
* `one_speaker`: all messages are of one speaker;
* `truncated`: the last message stops in the middle of a sentence (`breaks_off`).

A dialogue may begin with either speaker, and end with the user. Line ends become `\\n`; direction overrides and other
control characters are removed and counted; consecutive messages of one speaker become one message of several lines.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from h2htalk.curation.gather.formats import SURROGATE, RawDialogue, RefusedItem
from h2htalk.data.languages import Language
from h2htalk.data.scenario import Role, Turn
from h2htalk.text.language_data import language_patterns

LONGEST_MESSAGE = 100_000  # characters
# Marks, embeddings, overrides and isolates that change the direction of text.
_DIRECTION = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_CONTROL = re.compile("[\x01-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_UNWANTED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class Cleaned:
    """The turns and metadata of a dialogue; `removed`: the removed characters by kind (`direction`, `control`)."""

    messages: tuple[Turn, ...]
    metadata: Mapping[str, str | list[str]]
    removed: Mapping[str, int]


def clean(raw: RawDialogue, language: Language) -> Cleaned:
    """Clean a raw dialogue; raises RefusedItem for the reasons in this module's docstring."""
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
    return Cleaned(messages, metadata, dict(sorted(removed.items())))


def _readable(text: str, removed: Counter[str], **where: int) -> str:
    """The text without control characters, which act on a reader's screen."""
    if len(text) > LONGEST_MESSAGE:
        raise RefusedItem("too_long", **where, characters=len(text))
    if not text.isascii() and SURROGATE.search(text):
        raise RefusedItem("encoding", **where)
    if _UNWANTED.search(text) is None:
        return text
    if "\x00" in text:
        raise RefusedItem("control", **where)
    text, directions = _DIRECTION.subn("", text.replace("\r\n", "\n").replace("\r", "\n"))
    text, controls = _CONTROL.subn(" ", text)
    removed.update({"direction": directions} if directions else {})
    removed.update({"control": controls} if controls else {})
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
