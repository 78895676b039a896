"""Which two dialogues are duplicates, which of them is better, and what of their texts is compared."""

from __future__ import annotations

import pytest
from dedup_made import dialogue, edited, words
from hypothesis import given
from hypothesis import strategies as st
from tables import table

from h2htalk.curation.dedup.candidate_pairs import MappedDialogues, find_pairs
from h2htalk.curation.dedup.compared_texts import Sides, match, plain, similarity, text_hash
from h2htalk.curation.dedup.contamination import SplitIndex
from h2htalk.curation.dedup.signatures import map_part, quality, signature

A, B, C = words("a", 20), words("b", 20), words("c", 20)
LONG, LONGER = words("reply", 40), words("other", 40)
SHORT = words("short", 60)[:180]
HALF = edited(LONGER, 0.43)  # more similar than by chance, less than both sides must be
OPENING = words("opening", 200)


def sides(user, companion, language="en"):
    return Sides(language, user, companion)


@given(st.text(max_size=50), st.text(max_size=50))
def test_similarity_is_symmetric_and_between_0_and_1(a, b):
    assert similarity(a, b) == similarity(b, a)
    assert 0 <= similarity(a, b) <= 1
    assert (similarity(a, b) == 1) == (a == b)


@pytest.mark.parametrize("share", [0.05, 0.15])
def test_long_texts_are_compared_by_their_beginnings_and_lengths(share):
    text = words("long", 5000)
    assert len(text) > 20_000
    assert abs(similarity(text, edited(text, share)) - (1 - share)) < 0.03
    assert similarity(text, text + text) == 0.5
    assert similarity(text, words("unrelated", 5000)) < 0.6


@pytest.mark.parametrize(
    ("a", "b", "on"),
    [
        (sides(A, B), sides(A, B), "both"),
        (sides(A, B), sides(edited(A, 0.15), edited(B, 0.15)), "both"),
        (sides(A, B), sides(edited(A, 0.1), C), "inputs"),
        (sides(A, B), sides(A, C), "inputs"),
        (sides(HALF, SHORT), sides(LONGER, edited(SHORT, 0.1)), "references"),
        (sides("oh dear", LONG), sides("well now", edited(LONG, 0.1)), "both"),
        (sides(HALF, SHORT[:160]), sides(LONGER, SHORT[:160]), "references"),
        (sides(A[:24], B), sides(A[:24], C), "inputs"),
        (sides("hi", "hello you"), sides("hi", "hello you"), "both"),
        (sides(f"{A}\n{B}", C), sides(f"{edited(A, 0.1)}\n{edited(B, 0.1)}", LONG), "inputs"),
    ],
)
def test_duplicates(a, b, on):
    found = match(a, b, 0.7)
    assert found is not None
    assert found.on == on


DIFFERENT = {
    "other": (sides(A, LONG), sides(B, LONGER)),
    "one reply": (sides(A, LONG), sides(B, LONG)),
    "one reply to a line": (sides("My cat died last week.", LONG), sides("I am new in this town.", LONG)),
    "replies less alike": (sides(HALF, LONG), sides(LONGER, edited(LONG, 0.24))),
    "reply of a phrase": (sides(HALF, SHORT[:159]), sides(LONGER, SHORT[:159])),
    "inputs less alike": (sides(LONG, A), sides(edited(LONG, 0.24), B)),
    "inputs of a phrase": (sides(A[:23], B), sides(A[:23], C)),
    "long opening": (sides(f"{OPENING}\n{A}", B), sides(f"{OPENING}\n{C}", B)),
    "long opening and other reply": (sides(f"{OPENING}\n{A}", B), sides(f"{OPENING}\n{C}", LONG)),
    "greeting": (sides("hi there", A), sides("hi there", B)),
    "zh phrase": (sides("我今天好累", "听起来很不容易"), sides("我和他吵架了", "听起来很不容易")),
    "shared opening": (sides(f"{LONG}\n{A}", B), sides(f"{LONG}\n{C}", B)),
    "opening only": (sides(f"{LONG}\n{A}", B), sides(LONG, B)),
    "empty": (sides("", ""), sides(A, "")),
    "emoji": (sides("🙂", "🙂🙂"), sides("🙃", "💔💔")),
}


@pytest.mark.parametrize(("a", "b"), DIFFERENT.values(), ids=DIFFERENT)
def test_no_duplicates(a, b):
    assert match(a, b, 0.7) is None
    assert match(b, a, 0.7) is None


@pytest.mark.parametrize(("text", "language", "compared"), table("curation", "compared_texts"))
def test_case_width_punctuation_and_spaces_are_not_compared(text, language, compared):
    assert plain(text, language) == compared


def test_hashes_never_change_and_a_complete_reply_ends_like_a_sentence() -> None:
    assert (text_hash("你好"), int(signature("hello there", 3).sum(dtype="u8"))) == (15910808664728542293, 50579719761)
    # A complete reply ends like a sentence.
    ends = ["Good night.", "“晚安”", "Good night 🌙", "嗯……", "I think that the", "我觉得", "其次，"]
    assert [quality(dialogue("a", "Hello", end))[2] for end in ends] == [False] * 4 + [True] * 3
    assert all(quality(dialogue("a", "Hello.", "Yes?", end))[2] for end in ends)  # the user's


def test_many_texts_with_one_phrase_give_few_pairs_each():
    made = [dialogue(f"d{n}", f"{words('frame', 60)} {n:05}", words(n, 9)) for n in range(600)]
    part = map_part([one.to_dict() for one in made], SplitIndex([], 0.8))
    first, second = find_pairs(MappedDialogues([part]))
    assert (first < second).all()
    assert 0 < len(first) <= 64 * len(made)


REVIEW = {"safety": {"action": "review"}}


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (dialogue("b", "Hi.", "Yes."), dialogue("a", "Hi.", "Yes.", "And?", "No.", metadata=REVIEW)),
        (dialogue("b", "Hi.", "Yes", "And?", "No"), dialogue("a", "Hi.", "A much longer reply is here.")),
        (dialogue("b", "Hi.", "Yes."), dialogue("a", "Hi.", "Yes, I have been meaning to")),
        (dialogue("b", "Hi.", "Yes, go on."), dialogue("a", "Hi, this is how it all began, listen.", "No.")),
        (dialogue("a", "Hi.", "Yes."), dialogue("b", "Hi.", "Yes.")),
    ],
    ids=["decided by safety", "more turns", "complete", "longer reply", "smallest id"],
)
def test_the_better_of_two(better, worse):
    assert quality(better) < quality(worse)
