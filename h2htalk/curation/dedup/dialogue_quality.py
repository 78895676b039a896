"""Which of two dialogues that are one is the better to keep."""

from __future__ import annotations

from typing import Any, NamedTuple

from h2htalk.data.dialogue import Dialogue

# A last reply ends with one of these, or with a sign that is no letter (emoji), unless it was cut.
_ENDS = frozenset(".!?。！？…~～♪」』”’\"')）】]》>*")


class Quality(NamedTuple):
    """Compared field by field: the smallest is the best, and no two are equal, as ids are unique."""

    review: bool  # safety could not decide
    turns: int  # negative: more are better
    cut: bool  # ends with the user, or within a sentence
    reply: int  # characters of the companion's turns, negative: more are better
    id: str


def quality(dialogue: Dialogue) -> Quality:
    """How good a dialogue is to keep.

    First one that safety decided upon, as it needs nobody's second look; then more turns, a complete ending, longer
    replies; then the smallest id. A function of the dialogue alone, so no order of rows matters.
    """
    replies = [turn.content for turn in dialogue.messages if turn.role == "companion"]
    return Quality(
        _to_review(dialogue.metadata.get("safety")),
        -len(dialogue.messages),
        not is_complete(dialogue),
        -sum(map(len, replies)),
        dialogue.id,
    )


def is_complete(dialogue: Dialogue) -> bool:
    """Whether the last turn is the companion's and ends like a sentence."""
    last = dialogue.messages[-1]
    end = last.content.rstrip()[-1:]
    return last.role == "companion" and (end in _ENDS or (not end.isalnum() and end not in ",，、;；:：-"))


def _to_review(safety: Any) -> bool:
    return isinstance(safety, dict) and safety.get("action") == "review"
