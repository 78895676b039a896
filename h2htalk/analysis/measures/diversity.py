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
Gram = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Group:
    """The texts of one side and language that hold a token, in sampling order, with their tokens."""

    texts: list[str]
    tokens: list[list[str]]
    skipped: int

    @property
    def words(self) -> int:
        return sum(map(len, self.tokens))


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
    groups = [_group(texts, seed, split) for texts in splits]
    measured: list[list[Diversity]] = []
    for by_key in groups:
        rows = []
        for (language, side), group in by_key.items():
            peers = [peer[language, side] for peer in groups if (language, side) in peer]
            words = min(peer.words for peer in peers)
            texts = min(len(peer.texts) for peer in peers)
            rows.append(_measure(language, side, group, embedder, words, texts))
        measured.append(rows)
    return measured


def _group(
    texts: Iterable[SideText], seed: int, split: Tokenize
) -> dict[tuple[Language, Side], _Group]:
    """Group texts by language and side, in sampling order."""

    def rank(text: SideText) -> tuple[bytes, str]:
        key = f"{seed}:{text.scenario_id}"
        return hashlib.sha256(key.encode("utf-8", "replace")).digest(), text.text

    in_order = sorted(texts, key=rank)
    groups: dict[tuple[Language, Side], _Group] = {}
    for language, side in product(LANGUAGES, SIDES):
        members = [text.text for text in in_order if (text.language, text.side) == (language, side)]
        if members:
            groups[language, side] = _tokenize_group(members, language, split)
    return groups


def _tokenize_group(texts: Sequence[str], language: Language, split: Tokenize) -> _Group:
    with_tokens: list[str] = []
    tokens_of_texts: list[list[str]] = []
    for text in texts:
        tokens = [token for token in split(text, language) if not token.isspace()]
        if tokens:
            with_tokens.append(text)
            tokens_of_texts.append(tokens)
    return _Group(texts=with_tokens, tokens=tokens_of_texts, skipped=len(texts) - len(with_tokens))


def _measure(
    language: Language,
    side: Side,
    group: _Group,
    embedder: Embedder | None,
    words: int,
    texts: int,
) -> Diversity:
    """Compute distinct-n on at most `words` tokens and self-BLEU on at most `texts` texts, within the sample sizes."""
    sample = _cut(group.tokens, min(words, SAMPLE_WORDS))
    compared = group.tokens[: min(texts, SELF_BLEU_TEXTS)]
    embedded: list[str] = []
    distance = embedder_name = None
    if embedder is not None and language in embedder.languages:
        embedder_name = embedder.name
        embedded = group.texts[:SPREAD_TEXTS]
        if len(embedded) > 1:
            distance = spread(embedder.encode(embedded))
    return Diversity(
        side=side,
        language=language,
        texts=len(group.texts),
        distinct=distinct(group.tokens),
        self_bleu=self_bleu(compared),
        self_bleu_texts=len(compared),
        spread=distance,
        spread_texts=len(embedded),
        embedder=embedder_name,
        skipped=group.skipped,
        words=group.words,
        distinct_sampled=distinct(sample),
        sampled_words=sum(map(len, sample)),
    )


def _cut(texts: Iterable[Tokens], words: int) -> list[Tokens]:
    """Return the first `words` tokens of texts; the last text is cut, so that the number is exact."""
    sample = []
    for tokens in texts:
        sample.append(tokens[:words])
        words -= len(sample[-1])
    return sample


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
    # A sum of n^2 float32 cosines near 1 would lose small spreads.
    exact = vectors.astype(np.float64)
    total = exact.sum(axis=0)
    cosines = total @ total - (exact * exact).sum()
    return float(1 - cosines / (count * (count - 1)))


# --- Self-BLEU --------------------------------------------------------------------------------------------------------


def self_bleu(texts: Sequence[Tokens]) -> float | None:
    """Compute how well each text is predicted by the others, in [0, 1]: the mean of `self_bleu_scores`.

    1 if every text has a duplicate; None for fewer than two. It rises with the number of texts: compare it at one
    number only (Zhu et al. 2018, Texygen).
    """
    scores = self_bleu_scores(texts)
    return math.fsum(scores) / len(scores) if scores else None


def self_bleu_scores(texts: Sequence[Tokens]) -> list[float]:
    """Compute BLEU-4 of each of n token lists against the n - 1 others as references; empty for fewer than two lists.

    Weights exactly 1/4, smoothing method1 with epsilon 0.1; a count is clipped by the largest count in any one
    reference, the brevity penalty uses the closest reference length, the shorter of two (Papineni et al. 2002).
    No shared unigram, or no token: 0. Equal to nltk's `sentence_bleu` within 1e-12. Done one text at a time this is
    quadratic; here every n-gram is counted a fixed number of times.
    """
    if len(texts) < 2:
        return []
    lengths = list(map(len, texts))
    logs = [0.0 for _ in texts]  # of the geometric mean of the precisions
    for n in ORDERS:
        for index, matches in enumerate(_clipped_matches(texts, n)):
            if n == 1 and not matches:
                logs[index] = -math.inf
            precision = (matches or EPSILON) / max(1, lengths[index] - n + 1)
            logs[index] += math.log(precision) / len(ORDERS)
    penalties = _penalties(lengths)
    return [penalty * math.exp(log) for penalty, log in zip(penalties, logs, strict=True)]


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
    for index, counts in enumerate(counted):
        for gram, count in counts.items():
            largest, _ = first.get(gram, (0, -1))
            if count > largest:
                first[gram] = (count, index)
            if largest:
                second[gram] = max(second.get(gram, 0), min(count, largest))
    sums = []
    for index, counts in enumerate(counted):
        matches = 0
        for gram, count in counts.items():
            if gram in second:  # an n-gram of one text alone matches nothing
                largest, holder = first[gram]
                elsewhere = second[gram] if holder == index else largest
                matches += min(count, elsewhere)
        sums.append(matches)
    return sums


def _penalties(lengths: Sequence[int]) -> list[float]:
    """Compute the brevity penalty of each of n >= 2 texts against the others' lengths."""
    times = Counter(lengths)
    ordered = sorted(times)
    penalties: dict[int, float] = {}
    for index, length in enumerate(ordered):
        closest = length
        if times[length] == 1:
            neighbours = ordered[max(0, index - 1) : index] + ordered[index + 1 : index + 2]
            closest = min(neighbours, key=lambda neighbour: (abs(neighbour - length), neighbour))
        penalties[length] = _brevity_penalty(length, closest)
    return [penalties[length] for length in lengths]


def _brevity_penalty(length: int, reference: int) -> float:
    if length >= reference and length > 0:
        return 1.0
    return math.exp(1 - reference / length) if length else 0.0


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
    def summary(self) -> str:
        """How many cells hold a scenario, in words."""
        return f"{self.filled:,} of {len(self.cells):,} cells hold a scenario"

    @property
    def evenness(self) -> float | None:
        """How evenly the scenarios fill the grid, 0 (all in one cell) to 1 (equal cells).

        Shannon entropy of the cells by its largest possible value: J = -sum p log p / log(cells) (Pielou 1966). Empty
        cells count, so gaps lower it. It cannot reach 1 with fewer scenarios than cells. None without a scenario.
        """
        if not self.emotions:
            return None
        total = sum(self.emotions.values())
        shares = [count / total for count in self.cells.values() if count]
        entropy = abs(sum(share * math.log(share) for share in shares))  # abs: not -0
        # Rounding must not raise an even grid above 1.
        return min(1.0, entropy / math.log(len(self.cells)))


def coverage(scenarios: Sequence[Scenario]) -> Coverage:
    """Count scenarios over the grid emotion x complexity x interaction.

    Complexities and interactions are the closed lists of `data.scenario` (3 each). Emotions are open, so
    the grid has a row for each that occurs; an emotion that never occurs is no gap. Without scenarios the grid has
    no cells.
    """
    counts = Counter((s.tags.emotion, s.tags.complexity, s.tags.interaction) for s in scenarios)
    by_emotion = Counter(s.tags.emotion for s in scenarios)
    emotions = dict(sorted(by_emotion.items(), key=lambda item: (-item[1], item[0])))
    grid = product(emotions, COMPLEXITIES, INTERACTIONS)
    return Coverage(emotions=emotions, cells={tags: counts[tags] for tags in grid})
