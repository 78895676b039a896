"""Counting sentences, words, characters and actions."""

from __future__ import annotations

import pytest

from h2htalk.text.counting import count_length, count_sentences, is_in_language, split_actions

SENTENCES = [
    ("", 0),
    ("😊 ❤️", 0),
    ("Hello", 1),
    ("Really?! No way!!", 2),
    ("Dr. Lee and Mrs. Hale met at St. Mary's.", 1),
    ("I wake at 6 a.m. and run.", 1),
    ("See you at 8 p.m. Bring a scarf.", 2),
    ("At 8 p.m. I close the shop.", 1),
    ("It cost 3.5 pounds. Cheap.", 2),
    ("It rose by 3.5. Then it fell.", 2),
    ("Read it at example.com today.", 1),
    ("J. R. Smith wrote it.", 1),
    ("So do I. Then we agree.", 2),
    ("P.S. Bring J.M. Huber, a.k.a. Jo.", 1),
    ("Lt. Hale comes on Sept. 17.", 1),
    ("It starts in Sept. Then we swim.", 2),
    ("Take No. 5. No. Take the next.", 3),
    ("Hmm... okay then.", 1),
    ("Hmm… Okay then.", 2),
    ("Wait . . . what?", 1),
    ("so...maybe tea", 1),
    ('You said "go." Then you left.', 2),
    ('"Really?" you asked.', 1),
    ("I'm here 😊 Tell me more", 1),
    ("One line\nanother line", 2),
    ("1. At 09:00, tea.\n2. At 10:00, cake.", 2),
    ("- milk\n- bread", 2),
    ("你好", 1),
    ("你……还好吗？", 1),
    ("有点想你⋯⋯睡了吗？", 2),
    ("……我在。", 1),
    ("你说“没事。”可我听得出来。", 1),
    ("“没事。”“真的？”", 2),
    ("好的.我在.", 2),
    ("行，听你的；明天去——说定了", 1),
]


@pytest.mark.parametrize(("text", "count"), SENTENCES)
def test_sentences_are_counted_as_the_document_says(text: str, count: int) -> None:
    assert count_sentences(text) == count


@pytest.mark.parametrize(
    ("text", "language", "length"),
    [
        ("It's a well-known fact.", "en", 4),
        ("See you at 20:00, for 1,200 steps or 3.5 km", "en", 10),
        ("yes—no -- 'maybe'", "en", 3),
        ("don’t", "en", 1),
        ("你好，世界！", "zh", 4),
        ("去KTV唱3首", "zh", 5),
        ("２０：００见", "zh", 2),
        ("𠮷野家々〇", "zh", 5),
        ("T-shirt和Nice day", "zh", 4),
        ("…… ！", "zh", 0),
    ],
)
def test_length_counts_words_or_characters(text: str, language: str, length: int) -> None:
    assert count_length(text, language) == length  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "spoken", "actions"),
    [
        ("Hi.", "Hi.", 0),
        ("(nods) Hi.", "Hi.", 1),
        ("（点头)好", "好", 1),
        ("(nods (slowly)) Hi.", "Hi.", 1),
        ("(a) b (c)", "b", 2),
        ("Well :( that is sad", "Well :( that is sad", 0),
        ("Hi. (takes your ha", "Hi. (takes your ha", 0),
        ("*nods* Hi.", "*nods* Hi.", 0),
    ],
)
def test_actions_are_set_apart(text: str, spoken: str, actions: int) -> None:
    rest, count = split_actions(text)
    assert (rest.strip(), count) == (spoken, actions)


def test_the_share_of_a_language_is_seventy_percent() -> None:
    assert is_in_language("abcdefg汉汉汉", "en")
    assert not is_in_language("abcdef汉汉汉汉", "en")
    assert is_in_language("一二三四五六七 a b c", "zh")
    assert not is_in_language("一二三四五六 a b c", "zh")
    assert not is_in_language("今日はとても楽しかったです", "zh")
    assert is_in_language("20:00 !", "zh")
    assert is_in_language("", "en")
