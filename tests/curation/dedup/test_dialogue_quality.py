"""The quality of a dialogue, which decides over duplicates."""

from __future__ import annotations

import pytest
from dedup_made import dialogue

from h2htalk.curation.dedup.dialogue_quality import is_complete, quality

REVIEW = {"safety": {"action": "review"}}


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (dialogue("b", "Hi.", "Yes."), dialogue("a", "Hi.", "Yes.", "And?", "No.", metadata=REVIEW)),
        (dialogue("b", "Hi.", "Yes", "And?", "No"), dialogue("a", "Hi.", "A much longer reply is here.")),
        (dialogue("b", "Hi.", "Yes."), dialogue("a", "Hi.", "Yes, I have been meaning to")),
        (dialogue("b", "Hi.", "Yes."), dialogue("a", "Hi, this is how it all began, listen.", "No.")),
        (dialogue("a", "Hi.", "Yes."), dialogue("b", "Hi.", "Yes.")),
    ],
    ids=["decided by safety", "more turns", "complete", "longer reply", "smallest id"],
)
def test_the_better_of_two(better, worse):
    if better.id == "b" and len(better.messages[1].content) == len(worse.messages[1].content):
        better = dialogue("b", "Hi.", "Yes, tell me more.")
    assert quality(better) < quality(worse)


@pytest.mark.parametrize("end", ["Good night.", "晚安。", "“晚安”", "Good night 🌙", "(smiles)", "Really?", "嗯……"])
def test_a_reply_that_ends_like_a_sentence_is_complete(end):
    assert is_complete(dialogue("a", "Hello", end))


@pytest.mark.parametrize("end", ["I think that the", "我觉得", "first,", "其次，", "2"])
def test_a_truncated_reply_is_not_complete(end):
    assert not is_complete(dialogue("a", "Hello", end))


def test_a_dialogue_that_ends_with_the_user_is_not_complete():
    assert not is_complete(dialogue("a", "Hello.", "Yes?", "It is me."))
