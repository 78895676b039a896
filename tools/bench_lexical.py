"""Lexical metrics beside nltk and rouge_score on the same tokens: CPU seconds and largest difference.

python tools/bench_lexical.py [--pairs 4650] [--rounds 5]
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
from rouge_score.rouge_scorer import RougeScorer

from h2htalk.benchmark.metrics.lexical import scores_of_tokens

WEIGHTS = [(1.0,), (1 / 2,) * 2, (1 / 3,) * 3, (1 / 4,) * 4]
Pairs = list[tuple[list[str], list[str]]]


class _Identity:
    """rouge_score's tokenizer interface, for text that is a token list already."""

    def tokenize(self, tokens: Any) -> list[str]:
        return list(tokens)


SCORER = RougeScorer(["rouge1", "rougeL"], tokenizer=_Identity())


def make_pairs(count: int, seed: int = 0) -> Pairs:
    """Replies of 14 to 52 tokens from a skewed vocabulary, each sharing runs with its reference."""
    random.seed(seed)
    vocabulary = [f"w{i}" for i in range(3000)]
    weights = [1 / (i + 1) for i in range(3000)]
    pairs: Pairs = []
    for _ in range(count):
        reference = random.choices(vocabulary, weights, k=random.randint(14, 52))
        response = random.choices(vocabulary, weights, k=random.randint(14, 52))
        start = random.randrange(len(reference))
        length = random.randint(0, 6)
        response[3 : 3 + length] = reference[start : start + length]
        pairs.append((response, reference))
    return pairs


def ours(pairs: Pairs) -> list[tuple[float, ...]]:
    return [tuple(scores_of_tokens(*pair)) for pair in pairs]


def _with_rouge(bleu: list[float], response: list[str], reference: list[str]) -> tuple[float, ...]:
    rouge = SCORER.score(reference, response)
    return (*bleu, rouge["rouge1"].fmeasure, rouge["rougeL"].fmeasure)


def nltk_four_calls(pairs: Pairs) -> list[tuple[float, ...]]:
    method1 = SmoothingFunction().method1
    return [
        _with_rouge([sentence_bleu([r], h, w, smoothing_function=method1) for w in WEIGHTS], h, r)
        for h, r in pairs
    ]


def nltk_one_call(pairs: Pairs) -> list[tuple[float, ...]]:
    method1 = SmoothingFunction().method1
    return [
        _with_rouge(sentence_bleu([r], h, WEIGHTS, smoothing_function=method1), h, r)
        for h, r in pairs
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=4650)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    pairs = make_pairs(options.pairs)
    candidates: dict[str, Callable[[Pairs], list[tuple[float, ...]]]] = {
        "h2htalk": ours,
        "nltk x4 + rouge_score": nltk_four_calls,
        "nltk once + rouge_score": nltk_one_call,
    }
    times: dict[str, list[float]] = {name: [] for name in candidates}
    values = {}
    for _ in range(options.rounds):
        for name, score in candidates.items():
            start = time.process_time()
            values[name] = score(pairs)
            times[name].append(time.process_time() - start)
    base = statistics.median(times["h2htalk"])
    for name in candidates:
        seconds = statistics.median(times[name])
        worst = max(
            abs(a - b)
            for x, y in zip(values["h2htalk"], values[name], strict=True)
            for a, b in zip(x, y, strict=True)
        )
        per_pair = 1e6 * seconds / len(pairs)
        print(
            f"{name:24} {seconds:7.3f} CPU s {per_pair:7.1f} us/pair {seconds / base:6.1f}x  max diff {worst:.1e}"
        )


if __name__ == "__main__":
    main()
