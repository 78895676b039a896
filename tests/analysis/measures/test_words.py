"""Word clouds: counts that can be checked by hand, the words the paper discusses kept, all words drawn."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.tables import table

pytest.importorskip("wordcloud", reason="the analysis extra is not installed")

from h2htalk.analysis.figures.charts import draw_word_cloud
from h2htalk.analysis.measures.scenario_texts import side_texts
from h2htalk.analysis.measures.words import (
    LONGEST_WORD,
    WordCount,
    comparable_counts,
    count_words,
    stop_words,
)
from h2htalk.data.languages import Language
from h2htalk.data.splits import load_split

# Section 3.3 of the paper on Fig. 4, and what the words are in Chinese.
DISCUSSED = {
    "en": "memory user today smile gently special share prepare breakfast walk relax partner together we",
    "zh": "我们 一起 今天 回忆 记忆 用户 微笑 轻轻 特别 分享 准备 早餐 散步 放松 伙伴 我們 記憶",
}


def counts_of(text: str, language: str = "en") -> dict[str, int]:
    return {count.word: count.count for count in count_words([text], language)}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_words_the_paper_discusses_are_kept(language: str) -> None:
    assert set(DISCUSSED[language].split()) & stop_words(language) == set()
    assert set(counts_of(DISCUSSED[language], language)) == set(DISCUSSED[language].split())


@pytest.mark.parametrize(("language", "words"), table("analysis", "function_words"))
def test_function_words_are_stopped(language: str, words: str) -> None:
    assert set(words.split()) <= stop_words(language)
    assert counts_of(words, language) == {}


@pytest.mark.parametrize(("text", "expected"), table("analysis", "english_words"))
def test_english_words(text: str, expected: dict[str, int]) -> None:
    assert counts_of(text) == expected


@pytest.mark.parametrize(("text", "expected"), table("analysis", "chinese_words"))
def test_chinese_words(text: str, expected: dict[str, int]) -> None:
    assert counts_of(text, "zh") == expected


def test_plurals_meet_across_texts_and_splits() -> None:
    assert count_words(["walks and walks", "a walk", "tea"], "en") == [
        WordCount("walk", 3, 2),
        WordCount("tea", 1, 1),
    ]
    assert count_words(["a walk, two walks"], "en") == [WordCount("walk", 2, 1)]
    # `hand 7` of one split and `hands 25` of the other once stood as two clear differences.
    a = count_words(["hand hands letters"], "en")
    b = count_words(["hands hands letter"], "en")
    assert comparable_counts(a, b, "en") == ({"hand": 2, "letter": 1}, {"hand": 2, "letter": 1})
    counts = [WordCount("茶", 2, 1)]
    assert comparable_counts(counts, [], "zh") == ({"茶": 2}, {})


@given(st.lists(st.text(max_size=60), max_size=6), st.sampled_from(["en", "zh"]), st.randoms())
def test_any_texts_are_counted_in_any_order(
    texts: list[str], language: str, shuffle: random.Random
) -> None:
    counts = count_words(texts, language)
    assert count_words(shuffle.sample(texts, len(texts)), language) == counts
    for word in counts:
        assert 1 <= word.texts <= min(word.count, len(texts))
        assert word.word not in stop_words(language)
        assert 0 < len(word.word) <= LONGEST_WORD


def words_of(language: str, number: int) -> list[WordCount]:
    texts = [s.text for s in side_texts(load_split("mini@1").scenarios) if s.language == language]
    return count_words(texts, language)[:number]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_150_most_frequent_words_all_find_room_even_when_all_are_as_frequent(
    language: Language,
) -> None:
    counts = [replace(count, count=9) for count in words_of(language, 200)]
    figure = draw_word_cloud(counts, language)
    assert [text.get_text() for text in figure.texts] == []
    assert 0.05 < (np.asarray(figure.axes[0].images[0].get_array()) < 128).any(axis=-1).mean() < 0.5
