"""Self-BLEU equals nltk's sentence_bleu with all other texts as references, without asking it n times."""

from __future__ import annotations

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


@pytest.mark.parametrize("texts", [[], [["a", "b"]]])
def test_fewer_than_two_texts_have_no_self_bleu(texts: list[Tokens]) -> None:
    assert self_bleu(texts) is None
    assert self_bleu_scores(texts) == []
