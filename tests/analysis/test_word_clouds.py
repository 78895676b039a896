"""Word clouds: counts that can be checked by hand, the words the paper discusses kept, places without a collision."""

from __future__ import annotations

import builtins
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("wordcloud", reason="the analysis extra is not installed")

from PIL import Image, ImageDraw, ImageFont

from h2htalk.analysis.fonts import FontFile, find_font
from h2htalk.analysis.texts import side_texts
from h2htalk.analysis.word_clouds import (
    LARGEST,
    LONGEST_WORD,
    SHADES,
    SMALLEST,
    Cloud,
    PlacedWord,
    WordCount,
    cloud_layout,
    comparable_counts,
    count_words,
    stop_words,
)
from h2htalk.data.splits import load_split
from h2htalk.errors import ConfigError, MissingExtraError

# Section 3.3 of the paper on Fig. 4, and what the words are in Chinese.
DISCUSSED = {
    "en": "memory user today smile gently special share prepare breakfast walk relax partner together we",
    "zh": "我们 一起 今天 回忆 记忆 用户 微笑 轻轻 特别 分享 准备 早餐 散步 放松 伙伴 我們 記憶",
}


def counts_of(text: str, language: str = "en") -> dict[str, int]:
    return {found.word: found.count for found in count_words([text], language)}


# --- Stop words -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_words_the_paper_discusses_are_kept(language: str) -> None:
    assert set(DISCUSSED[language].split()) & stop_words(language) == set()
    assert set(counts_of(DISCUSSED[language], language)) == set(DISCUSSED[language].split())


@pytest.mark.parametrize(
    ("language", "words"),
    [
        (
            "en",
            "the a and of to in it is was i you they not very because with would ten first mr category importance",
        ),
        (
            "zh",
            "的 了 是 我 你 他们 不 很 都 在 和 这个 什么 因为 可以 個 這個 什麼 沒有 本来 先 像 出来 类别 重要性",
        ),
    ],
)
def test_function_words_are_stopped(language: str, words: str) -> None:
    assert set(words.split()) <= stop_words(language)
    assert counts_of(words, language) == {}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_list_holds_what_a_text_can_hold(language: str) -> None:
    assert all(word == word.lower().strip() and "#" not in word for word in stop_words(language))


def test_a_language_without_a_list_is_an_error() -> None:
    with pytest.raises(ConfigError, match="no stop words for language 'fr'"):
        stop_words("fr")
    with pytest.raises(ConfigError, match="'fr'"):
        count_words([], "fr")


# --- Counting ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Walk, walk and WALK!", {"walk": 3}),
        ("We'll go; we're going, let's go", {"we": 2, "go": 2, "going": 1}),
        ("My partner's smile, my partner’s tea", {"partner": 2, "smile": 1, "tea": 1}),
        ("I don't, can't, won't, isn't", {}),
        ("“memory”—share… ‘today’", {"memory": 1, "share": 1, "today": 1}),
        ("a well-known café", {"well-known": 1, "café": 1}),
        ("cafe\u0301 café", {"café": 2}),
        ("x y Z 42 3.14 20:00 7pm 3rd 😀 🏳️‍🌈 & _", {}),
        ("мама мыла раму и", {"мама": 1, "мыла": 1, "раму": 1}),
        ("rain 下雨 rain", {"rain": 2, "下雨": 1}),
        ("", {}),
        ("😀😭🎉", {}),
    ],
)
def test_english_words(text: str, expected: dict[str, int]) -> None:
    assert counts_of(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("我们一起散步，一起散步！", {"我们": 1, "一起": 2, "散步": 2}),
        ("我們今天散步", {"我們": 1, "今天": 1, "散步": 1}),
        ("猫，茶。", {"猫": 1, "茶": 1}),
        ("OK，听Rock，ROCK", {"听": 1, "rock": 2}),
        ("08:00 吃早餐，十点散步，八百", {"吃": 1, "早餐": 1, "散步": 1}),
        ("A 1 😀 ……", {}),
        ("三罐 几步 一趟 十二个 一起 一块儿 四楼", {"一起": 1, "一块儿": 1, "四楼": 1}),
    ],
)
def test_chinese_words(text: str, expected: dict[str, int]) -> None:
    assert counts_of(text, "zh") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("walk walks walks", {"walk": 3}),
        ("story stories", {"story": 2}),
        ("box boxes dish dishes hero heroes", {"box": 2, "dish": 2, "hero": 2}),
        ("memories breakfasts", {"memories": 1, "breakfasts": 1}),  # no singular there: nothing is guessed
        ("new news", {"new": 1, "news": 1}),
        ("glass glasses", {"glass": 1, "glasses": 1}),
        ("pas pass bu bus ye yes", {"pas": 1, "pass": 1, "bu": 1, "bus": 1, "ye": 0, "yes": 0}),
        ("good goods", {"good": 1, "goods": 1}),
    ],
)
def test_a_plural_counts_with_its_singular_when_that_occurs(text: str, expected: dict[str, int]) -> None:
    assert counts_of(text) == {word: count for word, count in expected.items() if count}


def test_plurals_meet_across_texts_and_a_text_counts_once() -> None:
    assert count_words(["walks and walks", "a walk", "tea"], "en") == [
        WordCount("walk", 3, 2),
        WordCount("tea", 1, 1),
    ]
    assert count_words(["a walk, two walks"], "en") == [WordCount("walk", 2, 1)]


def test_plurals_meet_across_splits() -> None:
    # `hand 7` of one split and `hands 25` of the other once stood as two clear differences.
    a = count_words(["hand hands letters"], "en")
    b = count_words(["hands hands letter"], "en")
    assert comparable_counts(a, b, "en") == ({"hand": 2, "letter": 1}, {"hand": 2, "letter": 1})
    counts = [WordCount("茶", 2, 1)]
    assert comparable_counts(counts, [], "zh") == ({"茶": 2}, {})


def test_frequent_words_come_first_and_equal_ones_by_spelling() -> None:
    assert [c.word for c in count_words(["tea rain tea apple", "moon"], "en")] == [
        "tea",
        "apple",
        "moon",
        "rain",
    ]


@settings(max_examples=60)
@given(st.lists(st.text(max_size=60), max_size=6), st.sampled_from(["en", "zh"]), st.randoms())
def test_no_texts_break_counting_and_their_order_means_nothing(
    texts: list[str], language: str, shuffle: random.Random
) -> None:
    found = count_words(texts, language)
    assert count_words(shuffle.sample(texts, len(texts)), language) == found
    for word in found:
        assert 1 <= word.texts <= min(word.count, len(texts))
        assert word.word not in stop_words(language)
        assert 0 < len(word.word) <= LONGEST_WORD


@pytest.mark.parametrize("text", ["a", "你", "😀", "http://x.y/", "rain "])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_hundred_thousand_characters_are_counted_in_seconds(text: str, language: str) -> None:
    start = time.process_time()
    count_words([(text * 100_000)[:100_000]], language)
    assert time.process_time() - start < 10


def test_the_bundled_split_speaks_of_what_it_is_about() -> None:
    texts = [s.text for s in side_texts(load_split("mini").scenarios) if s.language == "zh"]
    assert {"用户", "记忆", "今天"} <= {c.word for c in count_words(texts, "zh")[:20]}


# --- The cloud --------------------------------------------------------------------------------------------------


def words_of(language: str, number: int) -> list[WordCount]:
    texts = [s.text for s in side_texts(load_split("mini").scenarios) if s.language == language]
    return count_words(texts, language)[:number]


@pytest.fixture(scope="module", params=["en", "zh"])
def cloud(request: pytest.FixtureRequest) -> Cloud:
    return cloud_layout(words_of(request.param, 120), request.param)


def ink(cloud: Cloud, word: PlacedWord) -> Any:
    """Where a word's ink falls when it is set at its baseline: a truth value a unit, upper row first."""
    font = ImageFont.truetype(str(cloud.font.path), round(word.size))
    side = 2 * max(cloud.width, cloud.height)
    image = Image.new("L", (side, side))
    ImageDraw.Draw(image).text((side // 2, side // 2), word.word, fill=255, font=font, anchor="ls")
    if word.turned:
        image = image.rotate(90, center=(side // 2, side // 2))
    left, upper = side // 2 - round(word.x), side // 2 - (cloud.height - round(word.y))
    return np.asarray(image.crop((left, upper, left + cloud.width, upper + cloud.height))) > 127


def test_no_word_lies_on_another_or_outside(cloud: Cloud) -> None:
    taken = np.zeros((cloud.height, cloud.width), bool)
    for word in cloud.placed:
        drawn = ink(cloud, word)
        assert drawn.any(), word
        assert not (drawn & taken).any(), word
        taken |= drawn
        rows, columns = np.nonzero(drawn)
        left, bottom, width, height = word.box
        assert columns.min() >= left - 1
        assert columns.max() <= left + width + 1
        assert cloud.height - rows.max() >= bottom - 1
        assert cloud.height - rows.min() <= bottom + height + 2
        assert left >= 0
        assert bottom >= 0
        assert left + width <= cloud.width
        assert bottom + height <= cloud.height


def test_frequent_words_are_large_and_dark_and_none_is_too_small_to_read(cloud: Cloud) -> None:
    sizes = [word.size for word in cloud.placed]
    assert sizes == sorted(sizes, reverse=True)
    assert max(sizes) <= LARGEST
    assert min(sizes) >= SMALLEST
    assert [word.shade for word in cloud.placed] == sorted(word.shade for word in cloud.placed)
    assert {word.shade for word in cloud.placed} == set(range(SHADES))
    assert [w.count for w in cloud.placed] == sorted((w.count for w in cloud.placed), reverse=True)


def test_chinese_is_never_turned_and_english_seldom(cloud: Cloud) -> None:
    turned = sum(word.turned for word in cloud.placed)
    assert turned == 0 if cloud.language == "zh" else 0 < turned < len(cloud.placed) / 2


def test_every_word_is_placed_left_out_or_crowded_out(cloud: Cloud) -> None:
    everywhere = [*(w.word for w in cloud.placed), *(w.word for w in (*cloud.left_out, *cloud.crowded_out))]
    assert Counter(everywhere) == Counter(c.word for c in words_of(cloud.language, 120))


def test_the_same_seed_gives_the_same_cloud_and_the_order_of_counts_means_nothing() -> None:
    counts = words_of("en", 40)
    first = cloud_layout(counts, "en", seed=3)
    assert cloud_layout(counts[::-1], "en", seed=3) == first
    assert cloud_layout(counts, "en", seed=4) != first


def test_what_the_font_cannot_draw_is_left_out_and_told() -> None:
    counts = [WordCount("rain", 5, 1), WordCount("下雨", 4, 1), WordCount("tea", 3, 1)]
    cloud = cloud_layout(counts, "en")
    assert [word.word for word in cloud.placed] == ["rain", "tea"]
    assert cloud.left_out == (counts[1],)
    drawn = cloud_layout(counts, "en", font=find_font("zh"))
    assert [word.word for word in drawn.placed] == ["rain", "下雨", "tea"]
    assert (drawn.font.name, drawn.left_out) == ("H2HTalk Sans SC", ())


@pytest.mark.parametrize("language", ["en", "zh"])
def test_words_of_one_frequency_all_find_room(language: str) -> None:
    # The largest size was fixed: a flat list filled the picture with its first words.
    counts = [replace(word, count=9) for word in words_of(language, 150)]
    assert cloud_layout(counts, language).crowded_out == ()


def test_neighbours_stand_apart(cloud: Cloud) -> None:
    # "ren" and "nora" once read as one word.
    taken = np.zeros((cloud.height, cloud.width), bool)
    for word in cloud.placed:
        drawn = ink(cloud, word)
        rows, columns = np.nonzero(drawn)
        around = np.s_[max(0, rows.min() - 6) : rows.max() + 7, max(0, columns.min() - 6) : columns.max() + 7]
        box = drawn[around]
        near = box.copy()
        for step in range(1, 7):
            near[:, step:] |= box[:, :-step]
            near[:, :-step] |= box[:, step:]
        assert not (near & taken[around]).any(), word
        taken |= drawn


def test_what_finds_no_room_is_told() -> None:
    counts = [WordCount(f"extraordinarilylongword{'abcdefghij'[n % 10]}{n}", 9, 1) for n in range(400)]
    cloud = cloud_layout(counts, "en", words=400)
    assert len(cloud.placed) + len(cloud.crowded_out) == 400
    assert len(cloud.crowded_out) > 0


def test_only_the_most_frequent_words_are_taken() -> None:
    cloud = cloud_layout(words_of("zh", 60), "zh", words=10)
    assert [word.word for word in cloud.placed] == [c.word for c in words_of("zh", 10)]


@pytest.mark.parametrize(
    "counts",
    [
        [],
        [WordCount("下雨", 3, 1)],
    ],
)
def test_nothing_to_draw_is_an_empty_cloud(counts: Sequence[WordCount]) -> None:
    assert cloud_layout(counts, "en").placed == ()


@pytest.mark.parametrize("word", ["tea", "w" * LONGEST_WORD])
def test_one_word_is_a_cloud(word: str) -> None:
    (placed,) = cloud_layout([WordCount(word, 1, 1)], "en").placed
    assert placed.word == word


def test_forty_han_characters_fit() -> None:
    cloud = cloud_layout([WordCount("雨" * LONGEST_WORD, 9, 1), WordCount("茶", 1, 1)], "zh")
    assert len(cloud.placed) == 2


def test_words_cannot_change_the_picture_by_their_markup() -> None:
    font: FontFile = find_font("en")
    counts = [WordCount("$x^2$", 2, 1), WordCount("<b>", 1, 1)]
    assert [w.word for w in cloud_layout(counts, "en", font=font).placed] == ["$x^2$", "<b>"]


def test_without_the_library_the_error_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "wordcloud":
            raise ImportError(name)
        return real(name, *rest)

    counts = [WordCount("tea", 1, 1)]
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r'pip install "h2htalk\[analysis\]"'):
        cloud_layout(counts, "en")
