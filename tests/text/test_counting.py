"""Counting sentences, words, characters and actions; what code decides about points by them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from h2htalk.data.files import read_jsonl
from h2htalk.text.counting import count_length, count_sentences, is_in_language, split_actions
from h2htalk.text.point_checks import decided

SENTENCES = [row for _, row in read_jsonl(Path(__file__).parent / "golden" / "sentences.jsonl")]


@pytest.mark.parametrize("row", SENTENCES)
def test_sentences_are_counted_as_the_document_says(row: dict[str, Any]) -> None:
    assert count_sentences(row["text"]) == row["sentences"]


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


@pytest.mark.parametrize(
    ("check", "reply", "wanted"),
    [
        ("length:words:-3", "Well, good night.", True),
        ("length:words:-3", "Well, good night then.", False),
        ("length:words:4-", "Well, good night then.", True),
        ("length:characters:2-4", "晚安呀。", True),
        ("length:sentences:1-1", "Good night! Sleep.", False),
        ("length:lines:2-2", "one\n\ntwo\n", True),
        ("exact:Good night", '"good night."', True),
        ("exact:Good night", "Good night, you.", False),
        ("exact:晚安", "（挥手）**晚安。**", True),
        ("length:words:-3", "(nods softly)\nWell, good night.", True),
        ("length:words:-4", "(nods)", None),
        ("length:lines:2-2", "(nods).\nA\nB", True),
        ("fact:cat", "It was Pip.", None),
        ("help_lines", "Call 988.", None),
        (None, "Call 988.", None),
    ],
)
def test_code_decides_stated_lengths_and_exact_forms_alone(check: str | None, reply: str, wanted: bool | None) -> None:
    assert decided(reply, check) is wanted
