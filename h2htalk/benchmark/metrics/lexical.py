"""BLEU-1..4 and ROUGE-1/L of a response against its reference, in one pass over one token list.

Equal to nltk's `sentence_bleu` (weights exactly 1/n, smoothing method1, epsilon 0.1) and to `rouge_score` on the
same tokens within 1e-12; the tests hold both beside it. Tokens are those of `seen_text`: what nobody sees in a text
changes no value. `folded_means` is a second figure, which typography does not change either.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from rapidfuzz.distance.LCSseq import similarity

from h2htalk.text.tokens import tokenizer
from h2htalk.text.typography import folded_text, seen_text

REMEMBERED = 256  # token lists: a reference serves all its samples, a constant answer all items
EPSILON = 0.1  # nltk's SmoothingFunction().method1
Rouge = Literal["f1", "recall"]
Grams = dict[int, Any]  # place in the text -> token, or nested pairs of tokens
ROUGE_KINDS: tuple[Rouge, ...] = ("f1", "recall")


class LexicalScores(NamedTuple):
    """The six lexical values of one response, each in [0, 1]."""

    bleu_1: float
    bleu_2: float
    bleu_3: float
    bleu_4: float
    rouge_1: float
    rouge_l: float


def lexical_scores(
    responses: Sequence[str],
    references: Sequence[str],
    languages: Sequence[str],
    rouge: Rouge = "f1",
) -> list[LexicalScores]:
    """Score n responses, each against its one reference; a text in which nothing is seen scores 0 everywhere.

    Args:
        responses, references: n texts each.
        languages: n times `en` or `zh`; decides the tokens (`text.tokens`).
        rouge: `f1` as the authors' code computes, `recall` as the paper words it (section 4.1).
    """

    @lru_cache(REMEMBERED)
    def tokens(text: str, language: str) -> list[str]:
        return tokenizer(language)(seen_text(text))

    scores = []
    for response, reference, language in zip(responses, references, languages, strict=True):
        scores.append(
            scores_of_tokens(tokens(response, language), tokens(reference, language), rouge)
        )
    return scores


def folded_means(
    responses: Sequence[str],
    references: Sequence[str],
    languages: Sequence[str],
    rouge: Rouge,
    scores: Sequence[LexicalScores],
) -> list[float]:
    """Return the mean of the six values of each pair after both texts are folded (`folded_text`).

    `scores`: those of `lexical_scores`, which a pair keeps where folding changes neither text.
    """

    @lru_cache(REMEMBERED)
    def forms(text: str, language: str) -> tuple[str, str]:
        seen = seen_text(text)
        return seen, folded_text(seen, language)

    @lru_cache(REMEMBERED)
    def tokens(folded: str, language: str) -> list[str]:
        return tokenizer(language)(folded)

    means = []
    for response, reference, language, values in zip(
        responses, references, languages, scores, strict=True
    ):
        seen_response, folded_response = forms(response, language)
        seen_reference, folded_reference = forms(reference, language)
        if (seen_response, seen_reference) != (folded_response, folded_reference):
            values = scores_of_tokens(
                tokens(folded_response, language), tokens(folded_reference, language), rouge
            )
        means.append(math.fsum(values) / len(values))
    return means


def scores_of_tokens(
    response: Sequence[str], reference: Sequence[str], rouge: Rouge = "f1"
) -> LexicalScores:
    """Score one list of tokens against another; see `lexical_scores`."""
    length = len(response)
    reference_length = len(reference)
    ours, theirs, unigrams = _shared_grams(dict(enumerate(response)), dict(enumerate(reference)))
    if not unigrams:
        return LexicalScores(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    subsequence = similarity(list(ours.values()), list(theirs.values()))
    penalty = 1.0 if length > reference_length else math.exp(1.0 - reference_length / length)
    logs = math.log(unigrams / length)
    bleu = [penalty * math.exp(logs)]
    matches = unigrams
    for n in (2, 3, 4):
        # An n-gram can only match where its (n-1)-grams do.
        if matches:
            ours, theirs, matches = _shared_grams(_next_grams(ours), _next_grams(theirs))
        logs += math.log((matches or EPSILON) / max(1, length - n + 1))
        bleu.append(penalty * math.exp(logs / n))
    rouges = (_rouge(shared, length, reference_length, rouge) for shared in (unigrams, subsequence))
    return LexicalScores(*bleu, *rouges)


def _shared_grams(ours: Grams, theirs: Grams) -> tuple[Grams, Grams, int]:
    """Return the grams that both texts hold, and their clipped matches: by gram, the smaller of both counts, summed."""
    shared = set(ours.values()).intersection(theirs.values())
    if not shared:
        return {}, {}, 0
    ours = {position: gram for position, gram in ours.items() if gram in shared}
    theirs = {position: gram for position, gram in theirs.items() if gram in shared}
    if min(len(ours), len(theirs)) == len(shared):  # no repeats on one side
        return ours, theirs, len(shared)
    # Two sorted lists have their multiset intersection as longest common subsequence.
    return ours, theirs, similarity(sorted(ours.values()), sorted(theirs.values()))


def _next_grams(grams: Grams) -> Grams:
    """Join neighbours: the (n+1)-gram of a position is the pair of the n-grams of this position and the next."""
    return {
        position: (gram, grams[position + 1])
        for position, gram in grams.items()
        if position + 1 in grams
    }


def _rouge(matches: int, length: int, reference_length: int, rouge: Rouge) -> float:
    recall = matches / reference_length
    if rouge == "recall" or not matches:
        return recall
    precision = matches / length
    return 2 * precision * recall / (precision + recall)
