"""Chinese words in the Universal Dependencies style. Figures on the test sets: tools/train_pipelines.py --check."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.text.parsing import chinese_segmenter as segmenter
from h2htalk.text.parsing.chinese_segmenter import BEGIN, END, MIDDLE, SINGLE, best_tags, segment


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("今天晚上我喝了一杯热咖啡。", "今天 晚上 我 喝 了 一 杯 热 咖啡 。"),
        ("我买了iPhone 17，花了8999元", "我 买 了 iPhone 17 ， 花 了 8999 元"),
        ("你真好😂👩‍👩‍👧", "你 真好 😂 👩‍👩‍👧"),
        ("café 很好", "café 很 好"),
    ],
)
def test_words_of_a_sentence(text: str, words: str) -> None:
    assert segment(text) == words.split()


@given(st.text(max_size=60))
def test_joined_the_words_are_the_text(text: str) -> None:
    """Whatever the characters: unpaired surrogates, joiners, controls."""
    assert "".join(segmenter.bundled_segmenter().cut(text)) == text


@given(st.text(alphabet="今天我们去喝咖啡吧看书了的，", max_size=30))
def test_a_sentence_is_cut_alike_wherever_it_stands(text: str) -> None:
    """White space ends a sentence for the segmenter, so what stands before it changes nothing."""
    assert segment(f"你好 {text}") == segment("你好") + segment(text)


def allowed(tags: tuple[int, ...]) -> bool:
    follows = {
        BEGIN: (MIDDLE, END),
        MIDDLE: (MIDDLE, END),
        END: (BEGIN, SINGLE),
        SINGLE: (BEGIN, SINGLE),
    }
    return (
        tags[0] in (BEGIN, SINGLE)
        and tags[-1] in (END, SINGLE)
        and all(b in follows[a] for a, b in pairwise(tags))
    )


@given(
    st.lists(st.tuples(*[st.integers(-9, 9)] * 4), min_size=1, max_size=5),
    st.lists(st.integers(-5, 5), min_size=16, max_size=16),
)
def test_the_best_sequence_is_that_of_all_sequences(
    scores: list[tuple[int, ...]], pairs: list[int]
) -> None:
    transitions = np.array(pairs, dtype=np.float32).reshape(4, 4)
    table = np.array(scores, dtype=np.float32)

    def total(tags: tuple[int, ...]) -> float:
        steps = sum(float(table[at, tag]) for at, tag in enumerate(tags))
        return steps + sum(float(transitions[a, b]) for a, b in pairwise(tags))

    found = tuple(best_tags(table, transitions, np.zeros(len(table), dtype=bool)))
    assert allowed(found)
    every = product(range(4), repeat=len(table))
    assert total(found) == max(total(tags) for tags in every if allowed(tags))


def test_a_character_that_must_continue_never_begins_a_word() -> None:
    scores = np.zeros((4, 4), dtype=np.float32)
    scores[:, SINGLE] = 100
    tags = best_tags(
        scores, np.zeros((4, 4), dtype=np.float32), np.array([False, True, True, False])
    )
    assert segmenter.word_ends(tags) == [3, 4]


# --- The word list, kept as hashes


def test_a_word_has_its_class_and_another_none() -> None:
    words = [("咖啡", "n"), ("喝", "v"), ("喝水", "v"), ("美丽", "a"), ("iPhone", "nz")]
    lexicon = segmenter.WordClassLexicon.build(words)
    assert [lexicon.class_of(word) for word in ("咖啡", "美丽", "咖", "")] == ["n", "a", None, None]


@given(st.text(min_size=1, max_size=12))
def test_every_window_has_the_hash_of_its_characters(text: str) -> None:
    hashes = segmenter.window_hashes(segmenter.code_points(text), 4)
    for length, row in enumerate(hashes, start=1):
        assert [int(h) for h in row] == [
            int(segmenter.word_hash(text[at : at + length])) for at in range(len(text) - length + 1)
        ]
