"""Self-BLEU equals nltk's sentence_bleu with all other texts as references, without asking it n times."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

from h2htalk.analysis.measures.diversity import self_bleu, self_bleu_scores
from h2htalk.data.splits import load_split
from h2htalk.text.tokens import tokenize

METHOD1 = SmoothingFunction().method1
Tokens = list[str]


def nltk_scores(texts: list[Tokens]) -> list[float]:
    return [
        sentence_bleu(texts[:place] + texts[place + 1 :], text, (0.25,) * 4, smoothing_function=METHOD1)
        for place, text in enumerate(texts)
    ]


# Few words, so that n-grams are shared, repeated, and largest in several texts at once.
TEXTS = st.lists(st.lists(st.sampled_from("abc"), max_size=9), min_size=2, max_size=7)


@given(TEXTS)
def test_equal_to_nltk_on_any_texts(texts: list[Tokens]) -> None:
    assert self_bleu_scores(texts) == pytest.approx(nltk_scores(texts), abs=1e-12)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_equal_to_nltk_on_the_bundled_references(language: str) -> None:
    texts = [tokenize(s.reference, language) for s in load_split("mini@1").scenarios if s.language == language]
    theirs = nltk_scores(texts)
    assert self_bleu_scores(texts) == pytest.approx(theirs, abs=1e-12)
    assert self_bleu(texts) == pytest.approx(sum(theirs) / len(theirs), abs=1e-12)


def test_a_text_is_no_reference_of_its_own() -> None:
    # "a a a" holds the largest count of "a"; for itself only the other text's one counts.
    assert self_bleu_scores([["a", "a", "a"], ["a", "b"]]) == pytest.approx(
        nltk_scores([["a", "a", "a"], ["a", "b"]]), abs=1e-12
    )


def test_of_two_reference_lengths_equally_close_the_shorter_counts() -> None:
    # 3 tokens between 2 and 4: against 4 there would be a penalty of exp(1 - 4/3).
    texts = [list("abc"), list("ab"), list("abcd")]
    assert self_bleu_scores(texts)[0] == pytest.approx((1 * 1 * 1 * 0.1) ** 0.25, abs=1e-12)


@pytest.mark.parametrize("texts", [[], [["a", "b"]]])
def test_fewer_than_two_texts_have_no_self_bleu(texts: list[Tokens]) -> None:
    assert self_bleu(texts) is None
    assert self_bleu_scores(texts) == []


@given(TEXTS, st.randoms())
def test_the_order_of_the_texts_does_not_matter(texts: list[Tokens], draw: random.Random) -> None:
    shuffled = draw.sample(texts, len(texts))
    assert self_bleu(shuffled) == pytest.approx(self_bleu(texts), abs=1e-12)
