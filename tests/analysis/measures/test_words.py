"""Word clouds: counts that can be checked by hand, the words the paper discusses kept, all words drawn."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("wordcloud", reason="the analysis extra is not installed")

from h2htalk.analysis.figures.charts import draw_word_cloud
from h2htalk.analysis.measures.scenario_texts import side_texts
from h2htalk.analysis.measures.words import LONGEST_WORD, WordCount, comparable_counts, count_words, stop_words
from h2htalk.data.languages import Language
from h2htalk.data.splits import load_split

# Section 3.3 of the paper on Fig. 4, and what the words are in Chinese.
DISCUSSED = {
    "en": "memory user today smile gently special share prepare breakfast walk relax partner together we",
    "zh": "我们 一起 今天 回忆 记忆 用户 微笑 轻轻 特别 分享 准备 早餐 散步 放松 伙伴 我們 記憶",
}


def counts_of(text: str, language: str = "en") -> dict[str, int]:
    return {found.word: found.count for found in count_words([text], language)}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_words_the_paper_discusses_are_kept(language: str) -> None:
    assert set(DISCUSSED[language].split()) & stop_words(language) == set()
    assert set(counts_of(DISCUSSED[language], language)) == set(DISCUSSED[language].split())


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", "the a and of to in it is was i you they not very because with would ten first mr category importance"),
        ("zh", "的 了 是 我 你 他们 不 很 都 在 和 这个 什么 因为 可以 個 這個 什麼 沒有 本来 先 像 出来 类别 重要性"),
    ],
)
def test_function_words_are_stopped(language: str, words: str) -> None:
    assert set(words.split()) <= stop_words(language)
    assert counts_of(words, language) == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("We'll go; we're going, let's go", {"we": 2, "go": 2, "going": 1}),
        ("My partner's smile, my partner’s tea", {"partner": 2, "smile": 1, "tea": 1}),
        ("a well-known café", {"well-known": 1, "café": 1}),
        ("cafe\u0301 café", {"café": 2}),
        ("x y Z 42 3.14 20:00 7pm 3rd 😀 🏳️‍🌈 & _", {}),
        ("мама мыла раму и", {"мама": 1, "мыла": 1, "раму": 1}),
        ("", {}),
        # A plural counts with its singular when that occurs.
        ("walk walks walks", {"walk": 3}),
        ("box boxes dish dishes hero heroes", {"box": 2, "dish": 2, "hero": 2}),
        ("memories breakfasts", {"memories": 1, "breakfasts": 1}),  # no singular there: nothing is guessed
        ("new news", {"new": 1, "news": 1}),
        ("glass glasses", {"glass": 1, "glasses": 1}),
        ("pas pass bu bus ye yes", {"pas": 1, "pass": 1, "bu": 1, "bus": 1}),
    ],
)
def test_english_words(text: str, expected: dict[str, int]) -> None:
    assert counts_of(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("我们一起散步，一起散步！", {"我们": 1, "一起": 2, "散步": 2}),
        ("我們今天散步", {"我們": 1, "今天": 1, "散步": 1}),
        ("OK，听Rock，ROCK", {"听": 1, "rock": 2}),
        ("08:00 吃早餐，十点散步，八百", {"吃": 1, "早餐": 1, "散步": 1}),
        ("三罐 几步 一趟 十二个 一起 一块儿 四楼", {"一起": 1, "一块儿": 1, "四楼": 1}),
    ],
)
def test_chinese_words(text: str, expected: dict[str, int]) -> None:
    assert counts_of(text, "zh") == expected


def test_plurals_meet_across_texts_and_splits() -> None:
    assert count_words(["walks and walks", "a walk", "tea"], "en") == [WordCount("walk", 3, 2), WordCount("tea", 1, 1)]
    assert count_words(["a walk, two walks"], "en") == [WordCount("walk", 2, 1)]
    # `hand 7` of one split and `hands 25` of the other once stood as two clear differences.
    a = count_words(["hand hands letters"], "en")
    b = count_words(["hands hands letter"], "en")
    assert comparable_counts(a, b, "en") == ({"hand": 2, "letter": 1}, {"hand": 2, "letter": 1})
    counts = [WordCount("茶", 2, 1)]
    assert comparable_counts(counts, [], "zh") == ({"茶": 2}, {})


@given(st.lists(st.text(max_size=60), max_size=6), st.sampled_from(["en", "zh"]), st.randoms())
def test_any_texts_are_counted_in_any_order(texts: list[str], language: str, shuffle: random.Random) -> None:
    found = count_words(texts, language)
    assert count_words(shuffle.sample(texts, len(texts)), language) == found
    for word in found:
        assert 1 <= word.texts <= min(word.count, len(texts))
        assert word.word not in stop_words(language)
        assert 0 < len(word.word) <= LONGEST_WORD


def words_of(language: str, number: int) -> list[WordCount]:
    texts = [s.text for s in side_texts(load_split("mini@1").scenarios) if s.language == language]
    return count_words(texts, language)[:number]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_150_most_frequent_words_all_find_room_even_when_all_are_as_frequent(language: Language) -> None:
    counts = [replace(count, count=9) for count in words_of(language, 200)]
    figure = draw_word_cloud(counts, language)
    assert [text.get_text() for text in figure.texts] == []
    assert 0.05 < (np.asarray(figure.axes[0].images[0].get_array()) < 128).any(axis=-1).mean() < 0.5
