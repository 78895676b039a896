"""What makes a raw conversation a dialogue: two speakers, whole, readable, of a size that stages can work on.

A dialogue is refused as

* `empty`: it has no message, or one without text;
* `encoding`: bytes that are not UTF-8, or half a character;
* `control`: a NUL;
* `too_long`: a message of more than 100,000 characters;
* `one_speaker`: only one of the two says anything;
* `truncated`: its last message breaks off in the middle of a sentence (`breaks_off`).

A dialogue may begin with either speaker, and end with the user: thanks need no reply. Line ends become `\\n`;
direction overrides and other control characters are removed and counted; consecutive messages of one speaker become
one, with a line between them.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from h2htalk.curation.gather.raw_files import require_unicode
from h2htalk.curation.gather.raw_items import RawDialogue, RefusedItem
from h2htalk.data.dialogue import Role, Turn
from h2htalk.data.languages import Language

LONGEST_MESSAGE = 100_000  # characters
# Marks, embeddings, overrides and isolates that turn the direction of text.
_DIRECTION = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_CONTROL = re.compile("[\x01-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_UNWANTED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class Cleaned:
    """A dialogue's turns and metadata; `removed` counts characters taken out, by kind (`direction`, `control`)."""

    messages: tuple[Turn, ...]
    metadata: Mapping[str, str]
    removed: Mapping[str, int]


def clean(raw: RawDialogue, language: Language) -> Cleaned:
    """The dialogue of a raw one; raises RefusedItem as this module's docstring says."""
    if not raw.messages:
        raise RefusedItem("empty")
    removed: Counter[str] = Counter()
    turns: list[tuple[Role, list[str]]] = []
    for number, (role, said) in enumerate(raw.messages, 1):
        text = _readable(said, removed, message=number).strip()
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
        _require_size(turn.content, message=number)
    if breaks_off(messages, language):
        raise RefusedItem("truncated")
    metadata = {key: _readable(value, removed) for key, value in raw.metadata.items()}
    return Cleaned(messages, metadata, dict(sorted(removed.items())))


def _require_size(text: str, **where: int) -> None:
    if len(text) > LONGEST_MESSAGE:
        raise RefusedItem("too_long", **where, characters=len(text))


def _readable(text: str, removed: Counter[str], **where: int) -> str:
    """The text without what acts on a reader's screen instead of being read."""
    _require_size(text, **where)
    require_unicode(text, **where)
    if _UNWANTED.search(text) is None:
        return text
    if "\x00" in text:
        raise RefusedItem("control", **where)
    text, directions = _DIRECTION.subn("", text.replace("\r\n", "\n").replace("\r", "\n"))
    text, controls = _CONTROL.subn(" ", text)
    removed.update({"direction": directions} if directions else {})
    removed.update({"control": controls} if controls else {})
    return text


# --- A last message that breaks off ------------------------------------------------------------------------------

# More was to come after these.
_EXPECTING = frozenset(",，、:：;；(（[【《“「『&＆")
# English words that no sentence ends with; and such as end one at times, though not in the writing of one who
# closes sentences with a mark (`what I am afraid of`).
_OPEN = "an the and or because my your our their if whose than"
_FAINT = """a as at but by for from he his i I in into is are was were be been has have had I'm I've it's she that they
to of on very we when where which while who will with would could should can about so"""
_OPEN_WORDS = frozenset(_OPEN.split())
_FAINT_WORDS = frozenset(_FAINT.split())
_LAST_WORD = re.compile(r"[A-Za-z']+\Z")
_SHORTEST_ZH = 12  # a shorter message without a closing mark is an ordinary one (`好的`)
_HAN = re.compile("[\u3400-\u9fff]")
_SENTENCE_END = re.compile(r"[.!?…][\"')\]]*\s|[。！？…]")
_CLOSING = frozenset(".!?…。！？．~～)）]】》\"'”’」』*")


def breaks_off(messages: Sequence[Turn], language: Language) -> bool:
    """Whether the last message stops in the middle of a sentence.

    It does where it ends with a mark or a word after which more must come (`,` `（` `and the`). Where the speaker is
    one who closes sentences with a mark, it does too where it ends with a word that seldom ends one (`I want to`), or,
    in Chinese, with any character.
    """
    text = messages[-1].content.rstrip()
    if text[-1] in _EXPECTING:
        # `:(` and `;(` are faces.
        return not (text[-1] in "([" and text[-2:-1] in (":", ";", "="))
    if language == "zh":
        return len(text) >= _SHORTEST_ZH and _HAN.match(text[-1]) is not None and _punctuates(messages)
    word = _LAST_WORD.search(text[-24:])
    if word is None:
        return False
    return word[0] in _OPEN_WORDS or (word[0] in _FAINT_WORDS and _punctuates(messages))


def _punctuates(messages: Sequence[Turn]) -> bool:
    """Whether the last speaker closes sentences with a mark: nearly all their other messages, or in this very one.

    A last short line is a signature or an address, and says nothing.
    """
    last = messages[-1].content.rstrip()
    if "\n" in last[-_SHORTEST_ZH:]:
        return False
    others = [turn.content.rstrip() for turn in messages[:-1] if turn.role == messages[-1].role]
    closed = sum(map(_closes, others)) if others else _SENTENCE_END.search(last) is not None
    return closed >= 0.8 * max(1, len(others))


def _closes(text: str) -> bool:
    """Whether a text ends as a sentence does: a mark, a closing bracket or quote, or a picture."""
    return text[-1] in _CLOSING or unicodedata.category(text[-1]) in ("So", "Sk", "Mn", "Cf", "Co")
