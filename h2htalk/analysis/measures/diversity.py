"""Measure how varied a split is: distinct-n, self-BLEU and spread of its texts; the tag combinations it covers."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from h2htalk.analysis.measures.scenario_texts import SIDES, Side, SideText
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.scenario import COMPLEXITIES, INTERACTIONS, Scenario
from h2htalk.text.embeddings.vectors import Embedder, Vectors
from h2htalk.text.tokens import Tokenize, tokenize

SAMPLE_WORDS = 20_000
SELF_BLEU_TEXTS = 1_000
SPREAD_TEXTS = 1_000
ORDERS = (1, 2, 3, 4)
EPSILON = 0.1  # smoothing method1, as the benchmark's BLEU

Tokens = Sequence[str]
_Text = tuple[str, list[str]]  # and its tokens
Gram = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Diversity:
    """The variety of one side's texts in one language; all values are in [0, 1] but the spread, in [0, 2].

    `distinct` (n = 1 to 4) is over all texts, `distinct_sampled` over `sampled_words` tokens: only the second may
    be compared with another split's, and only where `sampled_words` agree. Self-BLEU rises with the number of texts,
    so it needs the same `self_bleu_texts`; the spread does not depend on the number. None is *not measured*: no
    n-gram of that order, fewer than two texts, or (spread) no embedder for the language. `skipped` texts hold no
    token; `texts` and `words` (tokens) count the others.
    """

    side: Side
    language: Language
    texts: int
    distinct: tuple[float | None, ...]
    self_bleu: float | None
    self_bleu_texts: int
    spread: float | None
    spread_texts: int
    embedder: str | None
    skipped: int = 0
    words: int = 0
    distinct_sampled: tuple[float | None, ...] = ()
    sampled_words: int = 0


def measure_diversity(
    *splits: Iterable[SideText],
    embedder: Embedder | None = None,
    seed: int = 0,
    split: Tokenize = tokenize,
) -> list[list[Diversity]]:
    """Measure, for each split, the diversity of each side in each language that occurs, English first.

    Tokens are those of `text.tokens` without white space (jieba keeps it, 13a does not). Samples are the texts whose
    hash of seed and scenario id comes first, so row order does not matter: 20,000 tokens for distinct-n, at most
    1,000 texts for self-BLEU, at most 1,000 for the spread. The smallest split that has a side and language sets how
    many tokens and texts are sampled from the others.

    No embedder leaves the spread out, as does a language that it is not made for. `split` cuts a text of a language
    into tokens. Raises ModelCallError for a vector of the embedder that is zero or not finite.
    """
    groups = [_groups(texts, seed, split) for texts in splits]
    measured: list[list[Diversity]] = []
    for by_key in groups:
        measured.append([])
        for key, group in by_key.items():
            peers = [others[key] for others in groups if key in others]
            words = min(sum(len(tokens) for _, tokens in peer) for peer in peers)
            texts = min(sum(bool(tokens) for _, tokens in peer) for peer in peers)
            measured[-1].append(_measure(*key, group, embedder, words, texts))
    return measured


def _groups(
    texts: Iterable[SideText], seed: int, split: Tokenize
) -> dict[tuple[Language, Side], list[_Text]]:
    """Group texts by language and side, in sampling order, each with its tokens."""

    def rank(text: SideText) -> tuple[bytes, str]:
        return hashlib.sha256(
            f"{seed}:{text.scenario_id}".encode("utf-8", "replace")
        ).digest(), text.text

    in_order = sorted(texts, key=rank)
    groups: dict[tuple[Language, Side], list[_Text]] = {}
    for language, side in product(LANGUAGES, SIDES):
        members = [text.text for text in in_order if (text.language, text.side) == (language, side)]
        if members:
            tokens = (
                [token for token in split(text, language) if not token.isspace()]
                for text in members
            )
            groups[language, side] = list(zip(members, tokens, strict=True))
    return groups


def _measure(
    language: Language,
    side: Side,
    group: Sequence[_Text],
    embedder: Embedder | None,
    words: int,
    texts: int,
) -> Diversity:
    """Compute distinct-n on at most `words` tokens and self-BLEU on at most `texts` texts, within the sample sizes."""
    held = [(text, tokens) for text, tokens in group if tokens]
    all_tokens = [tokens for _, tokens in held]
    sample = []
    left = min(words, SAMPLE_WORDS)
    for tokens in all_tokens:
        sample.append(tokens[:left])  # the last one is cut, so that the number is exact
        left -= len(sample[-1])
    compared = all_tokens[: min(texts, SELF_BLEU_TEXTS)]
    asked = embedder is not None and language in embedder.languages
    embedded = [text for text, _ in held[:SPREAD_TEXTS]] if asked else []
    return Diversity(
        side=side,
        language=language,
        texts=len(held),
        distinct=distinct(all_tokens),
        self_bleu=self_bleu(compared),
        self_bleu_texts=len(compared),
        spread=spread(embedder.encode(embedded)) if embedder and len(embedded) > 1 else None,
        spread_texts=len(embedded),
        embedder=embedder.name if embedder and asked else None,
        skipped=len(group) - len(held),
        words=sum(map(len, all_tokens)),
        distinct_sampled=distinct(sample),
        sampled_words=sum(map(len, sample)),
    )


def distinct(texts: Sequence[Tokens]) -> tuple[float | None, ...]:
    """Compute distinct-1 to distinct-4: different n-grams by n-grams, over all texts together (Li et al. 2016).

    Li et al. divide by the number of tokens; divided by n-grams, as is usual now, the value reaches 1 for every n. An
    n-gram never crosses from one text into the next. The value falls as texts are added, because words repeat:
    compare it at one size only. None where no text is n tokens long.
    """
    values: list[float | None] = []
    for n in ORDERS:
        seen: set[tuple[str, ...]] = set()
        total = 0
        for tokens in texts:
            seen.update(_ngrams(tokens, n))
            total += max(0, len(tokens) - n + 1)
        values.append(len(seen) / total if total else None)
    return tuple(values)


def spread(vectors: Vectors) -> float | None:
    """Compute the mean cosine distance between two different texts: 0 all equal, 1 unrelated on average, at most 2.

    For unit vectors v_1 .. v_n the cosines of all pairs sum to |sum v|^2 - sum |v|^2, so that

        spread = 1 - (|sum_i v_i|^2 - sum_i |v_i|^2) / (n (n - 1))

    costs n additions instead of n^2 products. `vectors` are float (n, d), rows of length 1; None for fewer than two.
    """
    import numpy as np

    count = len(vectors)
    if count < 2:
        return None
    exact = vectors.astype(
        np.float64
    )  # a sum of n^2 float32 cosines near 1 would lose small spreads
    total = exact.sum(axis=0)
    return float(1 - (total @ total - (exact * exact).sum()) / (count * (count - 1)))


# --- Self-BLEU --------------------------------------------------------------------------------------------------------


def self_bleu(texts: Sequence[Tokens]) -> float | None:
    """Compute how well each text is predicted by the others, in [0, 1]: the mean of `self_bleu_scores`.

    1 if every text has a duplicate; None for fewer than two. It rises with the number of texts: compare it at one
    number only (Zhu et al. 2018, Texygen).
    """
    return math.fsum(scores) / len(scores) if (scores := self_bleu_scores(texts)) else None


def self_bleu_scores(texts: Sequence[Tokens]) -> list[float]:
    """Compute BLEU-4 of each of n token lists against the n - 1 others as references; empty for fewer than two lists.

    Weights exactly 1/4, smoothing method1 with epsilon 0.1; a count is clipped by the largest count in any one
    reference, the brevity penalty uses the closest reference length, the shorter of two (Papineni et al. 2002).
    No shared unigram, or no token: 0. Equal to nltk's `sentence_bleu` within 1e-12. Done one text at a time this is
    quadratic; here every n-gram is counted a fixed number of times.
    """
    if len(texts) < 2:
        return []
    logs = [0.0] * len(texts)
    for n in ORDERS:
        for place, matches in enumerate(_clipped_matches(texts, n)):
            if n == 1 and not matches:
                logs[place] = -math.inf
            logs[place] += math.log((matches or EPSILON) / max(1, len(texts[place]) - n + 1)) / len(
                ORDERS
            )
    return [
        penalty * math.exp(log) if log > -math.inf else 0.0
        for penalty, log in zip(_penalties([len(tokens) for tokens in texts]), logs, strict=True)
    ]


def _ngrams(tokens: Tokens, n: int) -> Iterator[Gram]:
    return zip(*(tokens[start:] for start in range(n)), strict=False)


def _clipped_matches(texts: Sequence[Tokens], n: int) -> list[int]:
    """Sum for each text, over its n-grams, the smaller of its count and the largest count in another text.

    The largest count elsewhere is the largest of all, or the second largest for the text that holds the largest:
    two numbers an n-gram are enough.
    """
    counted = [Counter(_ngrams(tokens, n)) for tokens in texts]
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
        known[length] = (
            1.0 if length > closest else math.exp(1 - closest / length) if length else 0.0
        )
    return [known[length] for length in lengths]


# --- Coverage of tags -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Coverage:
    """The grid of tag combinations.

    `cells`: (emotion, complexity, interaction) -> scenarios, empty ones too, in the order of the three lists.
    `emotions`: those present, with their scenarios, descending, then by name.
    """

    emotions: Mapping[str, int]
    cells: Mapping[tuple[str, str, str], int]

    @property
    def filled(self) -> int:
        """Cells that hold a scenario."""
        return sum(count > 0 for count in self.cells.values())

    @property
    def evenness(self) -> float | None:
        """How evenly the scenarios fill the grid, 0 (all in one cell) to 1 (equal cells).

        Shannon entropy of the cells by its largest possible value: J = -sum p log p / log(cells) (Pielou 1966). Empty
        cells count, so gaps lower it. It cannot reach 1 with fewer scenarios than cells. None without a scenario.
        """
        if not self.emotions:
            return None
        shares = [count / sum(self.emotions.values()) for count in self.cells.values() if count]
        # Rounding must not raise an even grid above 1, nor give -0.
        return min(1.0, abs(sum(p * math.log(p) for p in shares)) / math.log(len(self.cells)))


def coverage(scenarios: Sequence[Scenario]) -> Coverage:
    """Count scenarios over the grid emotion x complexity x interaction.

    Complexities and interactions are the closed lists of `data.scenario` (3 each). Emotions are open, so
    the grid has a row for each that occurs; an emotion that never occurs is no gap. Without scenarios the grid has
    no cells.
    """
    counts = Counter((s.tags.emotion, s.tags.complexity, s.tags.interaction) for s in scenarios)
    by_emotion = Counter(s.tags.emotion for s in scenarios)
    emotions = dict(sorted(by_emotion.items(), key=lambda item: (-item[1], item[0])))
    return Coverage(
        emotions, {tags: counts[tags] for tags in product(emotions, COMPLEXITIES, INTERACTIONS)}
    )
