"""The compared form of texts, shingles and signatures."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from dedup_made import edited, words
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.curation.dedup.minhash import plain, plain_side, shingle_hashes, signatures, text_hash


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


def test_a_side_has_a_line_for_each_message():
    assert plain_side(["One, two", "\u200b", "Three."], "en") == "one two\nthree"


@given(st.lists(st.text(min_size=1, max_size=30), min_size=1, max_size=6), st.integers(1, 8))
def test_shingles_do_not_depend_on_other_texts(texts, width):
    hashes, counts = shingle_hashes(texts, width)
    parts = np.split(hashes, np.cumsum(counts)[:-1])
    for text, part in zip(texts, parts, strict=True):
        alone, (count,) = shingle_hashes([text], width)
        assert count == max(len(text) - width + 1, 1)
        assert (alone == part).all()


@given(st.lists(st.text(min_size=1, max_size=30), min_size=1, max_size=5))
def test_a_signature_does_not_depend_on_other_texts(texts):
    together = signatures(texts, 3)
    assert together.shape == (len(texts), 64)
    for text, row in zip(texts, together, strict=True):
        assert (signatures([text], 3)[0] == row).all()


def test_shared_values_estimate_the_jaccard_similarity():
    a = words("a", 400)
    b = edited(a, 0.05)
    rows = signatures([a, b], 6)
    sets = [{t[i : i + 6] for i in range(len(t) - 5)} for t in (a, b)]
    jaccard = len(sets[0] & sets[1]) / len(sets[0] | sets[1])
    assert abs((rows[0] == rows[1]).mean() - jaccard) < 0.2  # 3.2 standard errors


def test_hashes_are_the_same_in_every_process():
    code = (
        "from h2htalk.curation.dedup.minhash import *;"
        "print(text_hash('你好', 'a'), signatures(['hello there'], 3).sum())"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            env={"PYTHONHASHSEED": seed},
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert printed == {f"{text_hash('你好', 'a')} {signatures(['hello there'], 3).sum()}\n"}


def test_a_hash_depends_on_the_borders_of_texts():
    assert text_hash("ab", "c") != text_hash("a", "bc")
