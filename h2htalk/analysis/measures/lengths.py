"""Measure how long instructions and responses are (paper, section 3.3 and Fig. 6), in four units.

The paper's figure counts whitespace pieces, under which a Chinese sentence is one piece however long: its means and
medians (7.47 and 2 for inputs, 3.02 and 1 for outputs) say little about length. Pieces are kept for comparison only.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
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
_TABLE_1 = {name: number for number, name in enumerate(SUBTASKS)}


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

    @property
    def averages(self) -> str:
        """Mean and median in words."""
        return f"mean {self.mean:,.2f}, median {self.median:,.2f}"


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

    def of_all_texts(self, measure: str) -> list[LengthSummary]:
        """Return by side the summary of all texts by this measure."""
        return [s for s in self.summaries if s.group == "all" and s.measure == measure]


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
    plain = [text.text for text in texts]
    words = []
    for text in texts:
        tokens = split(text.text, text.language)
        words.append(sum(any(map(str.isalnum, token)) for token in tokens))
    lengths = {"characters": [len(text.strip()) for text in plain], "words": words}
    if count_tokens is not None:
        lengths["tokens"] = count_tokens(plain)
    lengths["pieces"] = [len(text.split()) for text in plain]
    return lengths


def measure_lengths(
    texts: Sequence[SideText], count_tokens: TokenCounter | None = None, split: Tokenize = tokenize
) -> Lengths:
    """Compute summaries and histograms of both sides, words by each text's own language.

    Summaries are ordered by side, group (all, subtasks as in Table 1, emotions by name) and measure. A side without
    texts has none. Raises as `text_lengths`.
    """
    lengths = text_lengths(texts, count_tokens, split)
    members: dict[tuple[Side, str, str], list[int]] = defaultdict(list)  # indices of texts
    for index, text in enumerate(texts):
        members[text.side, "all", "all"].append(index)
        members[text.side, "subtask", text.subtask].append(index)
        members[text.side, "emotion", text.emotion].append(index)
    summaries = []
    histograms = []
    for side, group, name in sorted(members, key=_rank):
        indices = members[side, group, name]
        for measure, of_texts in lengths.items():
            of_members = [of_texts[index] for index in indices]
            summaries.append(_summary(side, group, name, measure, of_members))
            if group == "all":
                histograms.append(_histogram(side, measure, of_members))
    return Lengths(tuple(summaries), tuple(histograms))


def _rank(key: tuple[Side, str, str]) -> tuple[int, int, int, str]:
    """Order side, group and name: subtasks as in Table 1, then what is not in it by name."""
    side, group, name = key
    number = _TABLE_1.get(name, len(_TABLE_1))
    return SIDES.index(side), GROUPS.index(group), number, name


def _summary(
    side: Side, group: str, name: str, measure: str, lengths: Sequence[int]
) -> LengthSummary:
    import numpy as np

    deciles = np.quantile(lengths, np.arange(1, 10) / 10)
    return LengthSummary(
        side=side,
        group=group,
        name=name,
        measure=measure,
        n=len(lengths),
        mean=float(np.mean(lengths)),
        median=float(np.median(lengths)),
        deciles=tuple(map(float, deciles)),
        minimum=min(lengths),
        maximum=max(lengths),
    )


def _round_numbers() -> Iterator[int]:
    """Yield 1, 2, 5, 10, 20, 50 ..."""
    for power in count():
        for factor in (1, 2, 5):
            yield factor * 10**power


def _histogram(side: Side, measure: str, lengths: Sequence[int]) -> Histogram:
    """Count texts in bins from 0 up to the 99th percentile (a length that occurs), 1, 2, 5, 10, 20, 50 ... wide.

    As many bins as the square root of the number of texts, but 20 to 60: more would be a comb of bins with few texts.
    """
    bins = min(MOST_BINS, max(FEWEST_BINS, math.isqrt(len(lengths))))
    longest = sorted(lengths)[math.ceil(0.99 * len(lengths)) - 1]
    width = next(width for width in _round_numbers() if width * bins > longest)
    by_bin = Counter(length // width for length in lengths)
    counts = tuple(by_bin[number] for number in range(longest // width + 1))
    edges = tuple(float(number * width) for number in range(len(counts) + 1))
    beyond = len(lengths) - sum(counts)
    return Histogram(side, measure, edges, counts, beyond)
