"""The compared form of texts, shingles, signatures and candidate pairs, and which of two dialogues is better."""

from __future__ import annotations

import pytest
from dedup_made import dialogue, words

from h2htalk.curation.dedup.candidate_pairs import MappedDialogues, find_pairs
from h2htalk.curation.dedup.compared_texts import plain, text_hash
from h2htalk.curation.dedup.contamination import SplitIndex
from h2htalk.curation.dedup.signatures import map_part, quality, signature


@pytest.mark.parametrize(
    ("text", "language", "compared"),
    [
        ("  Don't   WORRY,\nbe—happy!! ", "en", "dont worry be happy"),
        ("Ｈｅｌｌｏ　World", "en", "hello world"),
        ("你好， 我是 小林！", "zh", "你好我是小林"),
        ("h\u200be\u202ello", "en", "hello"),
        ("🙂 🙂!", "en", "🙂🙂!"),
        ("。。。", "zh", "。。。"),
        ("", "en", ""),
    ],
)
def test_case_width_punctuation_and_spaces_are_not_compared(text, language, compared):
    assert plain(text, language) == compared


def test_hashes_and_signatures_never_change():
    assert (text_hash("你好"), int(signature("hello there", 3).sum(dtype="u8"))) == (15910808664728542293, 50579719761)


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


def test_a_complete_reply_ends_like_a_sentence():
    ends = ["Good night.", "“晚安”", "Good night 🌙", "嗯……", "I think that the", "我觉得", "其次，"]
    assert [quality(dialogue("a", "Hello", end))[2] for end in ends] == [False] * 4 + [True] * 3
    assert all(quality(dialogue("a", "Hello.", "Yes?", end))[2] for end in ends)  # the user's
