"""Passages as a reader has them: who says what, and after what.

The same words are harmless from one mouth and not from the other, and harmless as an answer to one message and not as
an answer to another. So what was read is known by the speaker, by the words and by the message just before them.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from h2htalk.data.scenario import Role, Turn

_TEXT_DIGEST = 8  # bytes
# Whoever had two passages with one hash could have the second one taken for read.
_PASSAGE_DIGEST = 16


def text_hash(text: str) -> str:
    """The hash of a text: 16 hexadecimal digits, the same for every spelling of its white space (in form NFC)."""
    return _digest([text], _TEXT_DIGEST, b"h2htalk read")


def _digest(texts: Iterable[str], size: int, purpose: bytes) -> str:
    folded = [" ".join(unicodedata.normalize("NFC", text).split()) for text in texts]
    data = "\n".join(folded).encode("utf-8", "surrogatepass")  # a folded text has no line break
    return hashlib.blake2b(data, digest_size=size, person=purpose).hexdigest()


@dataclass(frozen=True, slots=True)
class SpokenPassage:
    """A message, another input or a reference.

    Attributes:
        role: who says it; an input that is no message counts as the user's.
        text: what is said.
        before: the message just before it, or what a reference answers; empty where there is nothing.
    """

    role: Role
    text: str
    before: str = ""

    @property
    def hash(self) -> str:
        """32 hexadecimal digits, the same for every spelling of the white space."""
        return _digest([self.role, self.before, self.text], _PASSAGE_DIGEST, b"h2htalk passage")

    @property
    def hash_as_first(self) -> str:
        """The hash that it has where an item begins with it: who read more before it has read it there too."""
        return SpokenPassage(role=self.role, text=self.text).hash


def conversation_passages(turns: Iterable[Turn]) -> list[SpokenPassage]:
    """The passages of a conversation, without empty messages."""
    passages: list[SpokenPassage] = []
    before = ""
    for turn in turns:
        if turn.content.strip():
            passages.append(SpokenPassage(role=turn.role, text=turn.content, before=before))
            before = turn.content
    return passages


def item_passages(
    turns: Sequence[Turn], inputs: Iterable[str], replies: Iterable[str]
) -> list[SpokenPassage]:
    """The passages of an item: its conversation, its other inputs, then the replies to them.

    A reply answers the last message; without a conversation, all the inputs together.
    """
    passages = conversation_passages(turns)
    others = [text for text in inputs if text.strip()]
    answered = passages[-1].text if passages else "\n".join(others)
    passages += [SpokenPassage(role="user", text=text) for text in others]
    passages += [
        SpokenPassage(role="companion", text=text, before=answered)
        for text in replies
        if text.strip()
    ]
    return passages
