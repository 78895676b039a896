"""Lexical scores equal nltk's BLEU (weights exactly 1/n, method1) and rouge_score on the same tokens, only faster."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
from rouge_score.rouge_scorer import RougeScorer

from h2htalk.benchmark.metrics.lexical import (
    LexicalScores,
    Rouge,
    folded_means,
    lexical_scores,
    scores_of_tokens,
)
from h2htalk.data.splits import load_split
from h2htalk.text.tokens import tokenize
from h2htalk.text.typography import folded_text, seen_text

WEIGHTS = [(1.0,), (1 / 2,) * 2, (1 / 3,) * 3, (1 / 4,) * 4]
METHOD1 = SmoothingFunction().method1
Tokens = list[str]


class OwnTokens:
    """rouge_score's tokenizer interface, for text that is a token list already."""

    def tokenize(self, tokens: Any) -> Tokens:
        return list(tokens)


SCORER = RougeScorer(["rouge1", "rougeL"], tokenizer=OwnTokens())


def peers(response: Tokens, reference: Tokens, rouge: Rouge = "f1") -> tuple[float, ...]:
    """The six values as four nltk calls and rouge_score give them."""
    bleu = [sentence_bleu([reference], response, w, smoothing_function=METHOD1) for w in WEIGHTS]
    found = SCORER.score(reference, response)
    part = "fmeasure" if rouge == "f1" else "recall"
    return (*bleu, getattr(found["rouge1"], part), getattr(found["rougeL"], part))


def largest_difference(ours: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]]) -> float:
    return max(
        abs(a - b) for x, y in zip(ours, theirs, strict=True) for a, b in zip(x, y, strict=True)
    )


ODD = [
    *["😭 👩\u200d👧 ❤️", "ＡＢＣ ｈｅｌｌｏ １２３", "\u3000", "café é ﬁ \u200b", "OK好 3点 �"],
    "the " * 60,
]


def test_texts_in_both_languages_agree_with_nltk_and_rouge_score() -> None:
    draw = random.Random(20)
    cases = list[tuple[str, str, str]]()
    for one in load_split("mini@1").scenarios:
        texts = [one.reference, *draw.choices(ODD, k=2)]
        cut = draw.randint(0, 20)
        changed = one.reference[cut:] + draw.choice(texts) + one.reference[:cut]
        cases += [
            (text, other, one.language)
            for text in (*texts, changed)
            for other in (one.reference, changed)
        ]
    ours = lexical_scores(*zip(*cases, strict=True))
    seen = [
        (seen_text(response), seen_text(reference), language)
        for response, reference, language in cases
    ]
    tokens = [
        (tokenize(response, language), tokenize(reference, language))
        for response, reference, language in seen
    ]
    assert largest_difference(ours, [peers(*pair) for pair in tokens]) < 1e-12
    folded = [(folded_text(one, lang), folded_text(other, lang), lang) for one, other, lang in seen]
    theirs = [peers(tokenize(one, lang), tokenize(other, lang)) for one, other, lang in folded]
    means = folded_means(*zip(*cases, strict=True), "f1", ours)
    assert (
        max(abs(mean - sum(values) / 6) for mean, values in zip(means, theirs, strict=True)) < 1e-12
    )
    # The set can tell a right implementation from a wrong one: all kinds of values occur.
    assert sum(s.bleu_4 == 1 for s in ours) > 100
    assert sum(0 < s.bleu_4 < s.bleu_1 < 1 for s in ours) > 100
    assert sum(s.rouge_l < s.rouge_1 for s in ours) > 100


FEW_TOKENS = st.lists(st.sampled_from("abc"), max_size=9)


@given(response=FEW_TOKENS, reference=FEW_TOKENS, rouge=st.sampled_from(["f1", "recall"]))
def test_any_token_lists_agree_and_stay_in_range(
    response: Tokens, reference: Tokens, rouge: Rouge
) -> None:
    """Three words only, so that repeats, clipping and ties of the longest common subsequence are the rule."""
    ours = scores_of_tokens(response, reference, rouge)
    assert largest_difference([ours], [peers(response, reference, rouge)]) < 1e-12
    assert all(0 <= value <= 1 for value in ours)


def test_the_language_decides_the_tokens_of_each_pair() -> None:
    text, other = "我今天喝茶", "我今天喝水"
    chinese, english = lexical_scores([text, text], [other, other], ["zh", "en"])
    assert chinese.bleu_1 > 0
    assert english == LexicalScores(0, 0, 0, 0, 0, 0)  # one word without spaces each
