"""Which of two duplicates is the better to keep."""

from __future__ import annotations

from typing import NamedTuple

from h2htalk.data.scenario import Dialogue

# A complete reply ends with one of these, or with a sign that is no letter (emoji).
_ENDS = frozenset(".!?。！？…~～♪」』”’\"')）】]》>*")


class Quality(NamedTuple):
    """Compared field by field: the smallest is the best; ids are unique, so no two are equal."""

    review: bool  # safety could not decide
    turns: int  # negative number of turns
    cut: bool  # ends with the user, or within a sentence
    reply: int  # negative number of characters of the companion's turns
    id: str


def quality(dialogue: Dialogue) -> Quality:
    """The quality of a dialogue, a function of the dialogue alone.

    A dialogue on which safety decided is better; then one with more turns, with a complete ending, with longer replies;
    then the one with the smaller id.
    """
    replies = [turn.content for turn in dialogue.messages if turn.role == "companion"]
    return Quality(
        dialogue.metadata.get("safety", {}).get("action") == "review",
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
