"""Chinese words in the Universal Dependencies style. Figures on the test sets: tools/train_pipelines.py --check."""

import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise, product
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.text.parsing import chinese_segmenter
from h2htalk.text.parsing.chinese_segmenter import (
    BEGIN,
    END,
    MIDDLE,
    SINGLE,
    Segmenter,
    WordClassLexicon,
    best_tags,
    bundled_segmenter,
    code_points,
    segment,
    window_hashes,
    word_ends,
    word_hash,
)


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


@pytest.mark.parametrize("text", ["", " ", "\n\t\n"])
def test_a_text_without_words_has_none(text: str) -> None:
    assert segment(text) == []


@given(st.text(max_size=60))
def test_joined_the_words_are_the_text(text: str) -> None:
    """Whatever the characters: unpaired surrogates, joiners, controls."""
    assert "".join(bundled_segmenter().cut(text)) == text


@given(st.text(alphabet="今天我们去喝咖啡吧看书了的，", max_size=30))
def test_a_sentence_is_cut_alike_wherever_it_stands(text: str) -> None:
    """White space ends a sentence for the segmenter, so what stands before it changes nothing."""
    assert segment(f"你好 {text}") == segment("你好") + segment(text)


@given(st.characters())
def test_a_character_alone_is_a_word_by_its_scores_too(character: str) -> None:
    """What `cut` takes for granted, the tagger would say."""
    assert bundled_segmenter()._cut_stretch(character) == [character]


def test_a_segmenter_without_a_dictionary_still_cuts() -> None:
    """An empty word list raised an IndexError."""
    bundled = bundled_segmenter()
    bare = Segmenter(bundled.weights, bundled.transitions, WordClassLexicon.build([]))
    assert "".join(bare.cut("今天晚上 喝咖啡")) == "今天晚上 喝咖啡"


def test_threads_that_ask_together_share_one_segmenter() -> None:
    """Each of them loaded its own."""
    chinese_segmenter._loaded.cache_clear()
    together = Barrier(4)

    def ask(_: int) -> Segmenter:
        together.wait()
        return bundled_segmenter()

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(ask, range(4)))
    assert all(one is found[0] for one in found)


@pytest.mark.slow
def test_a_long_message_takes_time_in_proportion() -> None:
    sentence = "我昨天晚上做了番茄炒蛋"

    def cost(times: int) -> float:
        start = time.process_time()
        bundled_segmenter().cut(sentence * times)
        return time.process_time() - start

    cost(100)
    assert min(cost(9000) for _ in range(2)) < 40 * max(min(cost(900) for _ in range(3)), 0.005)


def allowed(tags: tuple[int, ...]) -> bool:
    follows = {BEGIN: (MIDDLE, END), MIDDLE: (MIDDLE, END), END: (BEGIN, SINGLE), SINGLE: (BEGIN, SINGLE)}
    return tags[0] in (BEGIN, SINGLE) and tags[-1] in (END, SINGLE) and all(b in follows[a] for a, b in pairwise(tags))


@given(
    st.lists(st.tuples(*[st.integers(-9, 9)] * 4), min_size=1, max_size=5),
    st.lists(st.integers(-5, 5), min_size=16, max_size=16),
)
def test_the_best_sequence_is_that_of_all_sequences(scores: list[tuple[int, ...]], pairs: list[int]) -> None:
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
    tags = best_tags(scores, np.zeros((4, 4), dtype=np.float32), np.array([False, True, True, False]))
    assert word_ends(tags) == [3, 4]


# --- The word list, kept as hashes

WORDS = [("咖啡", "n"), ("喝", "v"), ("喝水", "v"), ("美丽", "a"), ("iPhone", "nz")]


def test_a_word_has_its_class_and_another_none() -> None:
    lexicon = WordClassLexicon.build(WORDS)
    assert lexicon.class_of("咖啡") == "n"
    assert lexicon.class_of("美丽") == "a"
    assert lexicon.class_of("咖") is None
    assert lexicon.class_of("") is None


def test_an_empty_list_knows_no_word(tmp_path: Path) -> None:
    """Both questions raised an IndexError."""
    empty = WordClassLexicon.build([])
    empty.save(tmp_path / "lexicon.npz")
    for lexicon in (empty, WordClassLexicon.load(tmp_path / "lexicon.npz")):
        assert lexicon.class_of("咖啡") is None
        found, classes = lexicon.find(window_hashes(code_points("咖啡"), 1)[0])
        assert (len(found), len(classes)) == (0, 0)


def test_a_list_answers_for_hashes_below_between_and_above_its_own() -> None:
    lexicon = WordClassLexicon(np.array([5, 9], dtype=np.uint32), np.array([1, 0], dtype=np.uint8), ("n", "v"))
    found, classes = lexicon.find(np.array([0, 5, 7, 9, 2**32 - 1], dtype=np.uint32))
    assert (found.tolist(), classes.tolist()) == ([1, 3], [2, 1])


def test_what_was_stored_is_what_is_loaded(tmp_path: Path) -> None:
    lexicon = WordClassLexicon.build(WORDS)
    lexicon.save(tmp_path / "lexicon.npz")
    again = WordClassLexicon.load(tmp_path / "lexicon.npz")
    assert again.names == lexicon.names
    assert np.array_equal(again.hashes, lexicon.hashes)
    assert np.array_equal(again.classes, lexicon.classes)


def test_the_order_of_the_words_changes_nothing() -> None:
    forwards, backwards = WordClassLexicon.build(WORDS), WordClassLexicon.build(reversed(WORDS))
    assert np.array_equal(forwards.hashes, backwards.hashes)
    assert np.array_equal(forwards.classes, backwards.classes)


@given(st.text(min_size=1, max_size=12))
def test_every_window_has_the_hash_of_its_characters(text: str) -> None:
    hashes = window_hashes(code_points(text), 4)
    for length, row in enumerate(hashes, start=1):
        assert [int(h) for h in row] == [int(word_hash(text[at : at + length])) for at in range(len(text) - length + 1)]
