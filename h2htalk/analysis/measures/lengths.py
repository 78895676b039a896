"""Measure how long instructions and responses are (paper, section 3.3 and Fig. 6), in four units.

The paper's figure counts whitespace pieces, under which a Chinese sentence is one piece however long: its means and
medians (7.47 and 2 for inputs, 3.02 and 1 for outputs) say little about length. Pieces are kept for comparison only.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from h2htalk.analysis.measures.scenario_texts import SIDES, Side, SideText
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.text.token_counts import TokenCounter
from h2htalk.text.tokens import Tokenize, tokenize

# The units, with their names.
MEASURES = {
    "characters": "characters",
    "words": "words",
    "tokens": "model tokens",
    "pieces": "whitespace pieces",
}
FEWEST_BINS, MOST_BINS = 20, 60
GROUPS = ("all", "subtask", "emotion")


@dataclass(frozen=True, slots=True)
class LengthSummary:
    """The lengths of one side's n texts, at least 1, in one of GROUPS; `name` is which one (`all` in group `all`).

    `measure` is one of MEASURES, also the unit of the numbers. Median and deciles, nine from 10 % to 90 %, are linearly
    interpolated (numpy's default).
    """

    side: Side
    group: str
    name: str
    measure: str
    n: int
    mean: float
    median: float
    deciles: tuple[float, ...]
    minimum: int
    maximum: int


@dataclass(frozen=True, slots=True)
class Histogram:
    """The number of texts by length: bin i holds lengths from edges[i] to below edges[i + 1].

    `beyond` are texts at the last edge or above; `counts` and this sum to all texts.
    """

    side: Side
    measure: str
    edges: tuple[float, ...]
    counts: tuple[int, ...]
    beyond: int


@dataclass(frozen=True, slots=True)
class Lengths:
    """All lengths of a set of texts."""

    summaries: tuple[LengthSummary, ...]
    histograms: tuple[Histogram, ...]


def text_lengths(
    texts: Sequence[SideText], count_tokens: TokenCounter | None = None, split: Tokenize = tokenize
) -> dict[str, list[int]]:
    """Measure n texts: for each measure n numbers, in the texts' order.

    characters: code points, without white space at both ends. words: the package's tokens (`text.tokens`) that hold a
    letter or digit of any script. tokens: a model's, only where `count_tokens` is given. pieces: stretches between
    white space.

    Raises:
        ConfigError: a language without a tokenizer.
    """
    plain = [one.text for one in texts]
    tokens = (split(one.text, one.language) for one in texts)
    return {
        "characters": [len(text.strip()) for text in plain],
        "words": [sum(any(map(str.isalnum, token)) for token in of_text) for of_text in tokens],
        **({} if count_tokens is None else {"tokens": count_tokens(plain)}),
        "pieces": [len(text.split()) for text in plain],
    }


def measure_lengths(
    texts: Sequence[SideText], count_tokens: TokenCounter | None = None, split: Tokenize = tokenize
) -> Lengths:
    """Compute summaries and histograms of both sides, words by each text's own language.

    Summaries are ordered by side, group (all, subtasks as in Table 1, emotions by name) and measure. A side without
    texts has none. Raises as `text_lengths`.
    """
    measured = text_lengths(texts, count_tokens, split)
    order = {name: number for number, name in enumerate(SUBTASKS)}
    members: dict[tuple[Side, str, str], list[int]] = defaultdict(list)
    for place, text in enumerate(texts):
        for group, name in (("all", "all"), ("subtask", text.subtask), ("emotion", text.emotion)):
            members[text.side, group, name].append(place)

    def rank(key: tuple[Side, str, str]) -> tuple[int, int, int, str]:
        side, group, name = key
        return SIDES.index(side), GROUPS.index(group), order.get(name, len(order)), name

    summaries = [
        _summary(*key, measure, [of[place] for place in members[key]])
        for key in sorted(members, key=rank)
        for measure, of in measured.items()
    ]
    histograms = [
        _histogram(side, measure, [of[place] for place in places])
        for side in SIDES
        if (places := members.get((side, "all", "all")))
        for measure, of in measured.items()
    ]
    return Lengths(tuple(summaries), tuple(histograms))


def _summary(
    side: Side, group: str, name: str, measure: str, lengths: Sequence[int]
) -> LengthSummary:
    import numpy as np

    deciles = tuple(float(value) for value in np.quantile(lengths, np.arange(1, 10) / 10))
    mean = float(np.mean(lengths))
    median = float(np.median(lengths))
    n = len(lengths)
    least = min(lengths)
    most = max(lengths)
    return LengthSummary(side, group, name, measure, n, mean, median, deciles, least, most)


def _histogram(side: Side, measure: str, lengths: Sequence[int]) -> Histogram:
    """Count texts in bins from 0 up to the 99th percentile (a length that occurs), 1, 2, 5, 10, 20, 50 ... wide.

    As many bins as the square root of the number of texts, but 20 to 60: more would be a comb of bins with few texts.
    """
    bins = min(MOST_BINS, max(FEWEST_BINS, math.isqrt(len(lengths))))
    longest = sorted(lengths)[math.ceil(0.99 * len(lengths)) - 1]
    widths = (factor * 10**power for power in count() for factor in (1, 2, 5))
    width = next(width for width in widths if width * bins > longest)
    held = Counter(length // width for length in lengths)
    counts = tuple(held[number] for number in range(longest // width + 1))
    edges = tuple(float(number * width) for number in range(len(counts) + 1))
    return Histogram(side, measure, edges, counts, len(lengths) - sum(counts))
