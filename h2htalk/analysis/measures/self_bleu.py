"""Self-BLEU: how well each text of a set is predicted by the others (Zhu et al. 2018, Texygen).

Each text is the hypothesis of a sentence BLEU-4 whose references are all other texts; the mean is taken. Done
one text at a time this is quadratic; here every n-gram is counted a fixed number of times.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

Tokens = Sequence[str]
Gram = tuple[str, ...]
ORDERS = (1, 2, 3, 4)
EPSILON = 0.1  # smoothing method1, as the benchmark's BLEU


def self_bleu(texts: Sequence[Tokens]) -> float | None:
    """Compute the mean of `self_bleu_scores`, in [0, 1]: 1 if every text has a duplicate; None for fewer than two.

    It rises with the number of texts: compare it at one number only.
    """
    return math.fsum(scores) / len(scores) if (scores := self_bleu_scores(texts)) else None


def self_bleu_scores(texts: Sequence[Tokens]) -> list[float]:
    """Compute BLEU-4 of each of n token lists against the n - 1 others as references; empty for fewer than two lists.

    Weights exactly 1/4, smoothing method1 with epsilon 0.1; a count is clipped by the largest count in any one
    reference, the brevity penalty uses the closest reference length, the shorter of two (Papineni et al. 2002).
    No shared unigram, or no token: 0. Equal to nltk's `sentence_bleu` within 1e-12.
    """
    if len(texts) < 2:
        return []
    logs = [0.0] * len(texts)
    for n in ORDERS:
        for place, matches in enumerate(_clipped_matches(texts, n)):
            if n == 1 and not matches:
                logs[place] = -math.inf
            logs[place] += math.log((matches or EPSILON) / max(1, len(texts[place]) - n + 1)) / len(ORDERS)
    return [
        penalty * math.exp(log) if log > -math.inf else 0.0
        for penalty, log in zip(_penalties([len(tokens) for tokens in texts]), logs, strict=True)
    ]


def ngrams(tokens: Tokens, n: int) -> Iterator[Gram]:
    """Yield the n-grams of a text, in order."""
    return zip(*(tokens[start:] for start in range(n)), strict=False)


def _clipped_matches(texts: Sequence[Tokens], n: int) -> list[int]:
    """Sum for each text, over its n-grams, the smaller of its count and the largest count in another text.

    The largest count elsewhere is the largest of all, or the second largest for the text that holds the largest:
    two numbers an n-gram are enough.
    """
    counted = [Counter(ngrams(tokens, n)) for tokens in texts]
    first: dict[Gram, tuple[int, int]] = {}  # largest count, and the first text that has it
    second: dict[Gram, int] = {}
    for place, counts in enumerate(counted):
        for gram, count in counts.items():
            largest, _ = first.get(gram, (0, -1))
            if count > largest:
                first[gram] = (count, place)
            if largest:
                second[gram] = max(second.get(gram, 0), min(count, largest))
    return [
        sum(
            min(count, first[gram][0] if first[gram][1] != place else second[gram])
            for gram, count in counts.items()
            if gram in second  # an n-gram of one text alone matches nothing
        )
        for place, counts in enumerate(counted)
    ]


def _penalties(lengths: Sequence[int]) -> list[float]:
    """Compute the brevity penalty of each of n >= 2 texts against the others' lengths."""
    times = Counter(lengths)
    ordered = sorted(times)
    known: dict[int, float] = {}
    for place, length in enumerate(ordered):
        if times[length] > 1:
            closest = length
        else:
            neighbours = ordered[max(0, place - 1) : place] + ordered[place + 1 : place + 2]
            closest = min(neighbours, key=lambda other: (abs(other - length), other))
        known[length] = 1.0 if length > closest else math.exp(1 - closest / length) if length else 0.0
    return [known[length] for length in lengths]
