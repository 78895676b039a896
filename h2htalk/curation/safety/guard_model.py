"""Ask a guard model about undecided dialogues: any chat model that replies in the form of Qwen3Guard.

`vllm:Qwen/Qwen3Guard-Gen-4B`, `server:MODEL@URL`, or a hosted model. A reply in another form is undecided, never safe.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from h2htalk.chat.protocol import Message, Reply, Request, Sampling
from h2htalk.curation.safety.evidence import Evidence
from h2htalk.data.scenario import Dialogue
from h2htalk.text.language_data import read_data

Safety = Literal["safe", "unsafe", "controversial", "undecided"]

_LONGEST_REPLY = 2000  # characters; a guard replies with a few lines
_CODES = Path(__file__).with_name("guard_categories.toml")
_WORDS: Mapping[str, Safety] = {"safe": "safe", "unsafe": "unsafe", "controversial": "controversial"}
_SAFETY = re.compile(r"^\s*Safety:[ \t]*(\w+)[ \t]*$", re.MULTILINE)
_CATEGORIES = re.compile(r"^\s*Categories:[ \t]*(.*)$", re.MULTILINE)
# The last messages of a dialogue that a guard reads, and characters of each: the contexts of guards are short.
MESSAGES, LONGEST = 40, 4000


@dataclass(frozen=True, slots=True)
class Verdict:
    """A guard's verdict, and our codes of its categories by the guard's names."""

    safety: Safety
    categories: Mapping[str, str] = field(default_factory=dict)


UNDECIDED = Verdict("undecided")


def request(dialogue: Dialogue) -> Request:
    """The dialogue as chat messages; the guard's own template adds the policy."""
    roles: Mapping[str, Literal["user", "assistant"]] = {"user": "user", "companion": "assistant"}
    turns = dialogue.messages[-MESSAGES:]
    while len(turns) > 1 and turns[0].role == "companion":  # templates require the user to begin
        turns = turns[1:]
    messages = tuple(Message(roles[turn.role], turn.content[:LONGEST]) for turn in turns)
    return Request(dialogue.id, messages, Sampling(temperature=0.0, max_tokens=64, thinking=0))


def was_sent(dialogue: Dialogue, one: Evidence) -> bool:
    """Whether a request holds all that a piece of evidence is about: its span, its message, or the dialogue."""
    lengths = [one.end or len(turn.content) for turn in dialogue.messages]
    first = len(lengths) - len(request(dialogue).messages)
    about = range(len(lengths)) if one.turn < 0 else (one.turn,)
    return all(at >= first and lengths[at] <= LONGEST for at in about)


def read_verdict(reply: Reply) -> Verdict:
    """Read `Safety: WORD` and `Categories: NAMES` of a reply.

    Undecided in all other cases: a cut reply, no verdict, two verdicts, an unknown word or category, `Unsafe` without
    a category.
    """
    words, listed = _SAFETY.findall(reply.text), _CATEGORIES.findall(reply.text)
    if reply.finish_reason != "stop" or len(reply.text) > _LONGEST_REPLY or len(words) != 1 or len(listed) != 1:
        return UNDECIDED
    codes, safety = read_data(_CODES)["categories"], _WORDS.get(words[0].lower(), "undecided")
    names = [name for part in listed[0].split(",") if (name := part.strip()) and name.lower() != "none"]
    if safety == "undecided" or (safety == "safe") == bool(names) or any(name.lower() not in codes for name in names):
        return UNDECIDED
    return Verdict(safety, {name: codes[name.lower()] for name in names if codes[name.lower()]})
