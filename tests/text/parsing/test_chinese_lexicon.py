"""The Chinese word list kept as hashes."""

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.text.parsing.chinese_segmenter import WordClassLexicon, code_points, window_hashes, word_hash

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
