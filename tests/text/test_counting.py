"""Counting sentences, words, characters and actions; what code decides about points by them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from h2htalk.data.files import read_jsonl
from h2htalk.text.counting import count_length, count_sentences, is_in_language, split_actions
from h2htalk.text.point_checks import decided


def golden(name: str) -> Any:
    rows = [row for _, row in read_jsonl(Path(__file__).parent / "golden" / f"{name}.jsonl")]
    return pytest.mark.parametrize("row", rows)


@golden("sentences")
def test_sentences_are_counted_as_the_document_says(row: dict[str, Any]) -> None:
    assert count_sentences(row["text"]) == row["sentences"]


@golden("lengths")
def test_length_counts_words_or_characters(row: dict[str, Any]) -> None:
    assert count_length(row["text"], row["language"]) == row["length"]


@golden("actions")
def test_actions_are_set_apart(row: dict[str, Any]) -> None:
    rest, count = split_actions(row["text"])
    assert (rest.strip(), count) == (row["spoken"], row["actions"])


@golden("points")
def test_code_decides_stated_lengths_and_exact_forms_alone(row: dict[str, Any]) -> None:
    assert decided(row["reply"], row["check"]) is row["wanted"]


def test_the_share_of_a_language_is_seventy_percent() -> None:
    assert is_in_language("abcdefg汉汉汉", "en")
    assert not is_in_language("abcdef汉汉汉汉", "en")
    assert is_in_language("一二三四五六七 a b c", "zh")
    assert not is_in_language("一二三四五六 a b c", "zh")
    assert not is_in_language("今日はとても楽しかったです", "zh")
    assert is_in_language("20:00 !", "zh")
    assert is_in_language("", "en")
