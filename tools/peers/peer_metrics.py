"""The scorer that both peers run an item: ROUGE-L F1 and clipped n-gram precision, n = 1 to 4.

Plain and cheap on purpose: one token a Han character (no jieba), so the peers do less arithmetic than h2htalk.
It imports nothing that their environment might lack.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

_TOKEN = re.compile(r"[一-鿿]|\w+|[^\w\s]")


def score(response: str, reference: str) -> dict[str, float]:
    """`rouge_l` and `precision_1` to `precision_4`, each in [0, 1]."""
    ours = _TOKEN.findall(response.lower())
    theirs = _TOKEN.findall(reference.lower())
    if not ours or not theirs:
        return dict.fromkeys(("rouge_l", *(f"precision_{n}" for n in (1, 2, 3, 4))), 0.0)
    values = {"rouge_l": 2 * _common_subsequence(ours, theirs) / (len(ours) + len(theirs))}
    for n in (1, 2, 3, 4):
        counts = _ngrams(ours, n)
        matches = (counts & _ngrams(theirs, n)).total()
        values[f"precision_{n}"] = matches / max(1, counts.total())
    return values


def _ngrams(tokens: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*[tokens[i:] for i in range(n)], strict=False))


def _common_subsequence(ours: Sequence[str], theirs: Sequence[str]) -> int:
    """Length of the longest common subsequence, with a row of the table in one integer (Hyyrö 2004)."""
    places: dict[str, int] = {}
    for index, token in enumerate(ours):
        places[token] = places.get(token, 0) | 1 << index
    full = (1 << len(ours)) - 1
    row = full
    for token in theirs:
        matched = row & places.get(token, 0)
        row = (row + matched | row - matched) & full
    return len(ours) - row.bit_count()


def process_results(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, float]:
    """lm-eval's hook: the scores of one document."""
    return score(results[0] or "", doc["reference"])
