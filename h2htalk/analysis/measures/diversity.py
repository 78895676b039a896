"""Measure how varied the texts of a split are: distinct-n, self-BLEU, and the spread of their embeddings."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from h2htalk.analysis.measures.scenario_texts import SIDES, Side, SideText
from h2htalk.analysis.measures.self_bleu import ORDERS, Tokens, ngrams, self_bleu
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.text.embeddings.vectors import Embedder, Vectors
from h2htalk.text.tokens import Tokenize, tokenize

SAMPLE_WORDS = 20_000
SELF_BLEU_TEXTS = 1_000
SPREAD_TEXTS = 1_000


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


@dataclass(frozen=True, slots=True)
class _Group:
    """The texts of one side and language that hold a token, in sampling order, with their tokens."""

    side: Side
    language: Language
    texts: list[str]
    tokens: list[list[str]]
    skipped: int

    @property
    def words(self) -> int:
        return sum(map(len, self.tokens))


def measure_diversity(
    texts: Iterable[SideText], embedder: Embedder | None = None, *, seed: int = 0, split: Tokenize = tokenize
) -> list[Diversity]:
    """Measure the diversity of each side in each language that occurs, English first.

    Tokens are those of `text.tokens` without white space (jieba keeps it, 13a does not). Samples are the texts whose
    hash of seed and scenario id comes first, so row order does not matter: 20,000 tokens for distinct-n, at most
    1,000 texts for self-BLEU, at most 1,000 for the spread.

    Args:
        texts: any number, of both sides and languages.
        embedder: for the spread; None leaves it out, as does a language that the embedder is not made for.
        seed: which texts are sampled.
        split: cuts a text of a language into tokens.

    Raises:
        ModelCallError: the embedder gave a vector that is zero or not finite.
    """
    return [_measure(group, embedder, group.words, len(group.texts)) for group in _groups(texts, seed, split)]


def compare_diversity(
    a: Iterable[SideText],
    b: Iterable[SideText],
    embedder: Embedder | None = None,
    *,
    seed: int = 0,
    split: Tokenize = tokenize,
) -> tuple[list[Diversity], list[Diversity]]:
    """Measure two splits, with samples of the same size where both have that side and language.

    The smaller of the two sets how many tokens and texts are sampled from both.
    """
    groups = [{(g.side, g.language): g for g in _groups(texts, seed, split)} for texts in (a, b)]

    def measure(ours: dict[tuple[Side, Language], _Group]) -> list[Diversity]:
        rows = []
        for key, group in ours.items():
            peers = [by_key[key] for by_key in groups if key in by_key]
            sizes = min(peer.words for peer in peers), min(len(peer.texts) for peer in peers)
            rows.append(_measure(group, embedder, *sizes))
        return rows

    return measure(groups[0]), measure(groups[1])


def _groups(texts: Iterable[SideText], seed: int, split: Tokenize) -> list[_Group]:
    in_order = sorted(texts, key=lambda text: (_rank(text, seed), text.text))
    groups = []
    for language in LANGUAGES:
        for side in SIDES:
            members = [text.text for text in in_order if (text.side, text.language) == (side, language)]
            counted = [(text, words) for text in members if (words := _tokens(text, language, split))]
            if members:
                kept, tokens = [text for text, _ in counted], [words for _, words in counted]
                groups.append(_Group(side, language, kept, tokens, len(members) - len(kept)))
    return groups


def _rank(text: SideText, seed: int) -> bytes:
    return hashlib.sha256(f"{seed}:{text.scenario_id}".encode("utf-8", "replace")).digest()


def _tokens(text: str, language: Language, split: Tokenize) -> list[str]:
    return [token for token in split(text, language) if not token.isspace()]


def _measure(group: _Group, embedder: Embedder | None, words: int, texts: int) -> Diversity:
    """Compute distinct-n on at most `words` tokens and self-BLEU on at most `texts` texts, within the sample sizes."""
    sample = list(first_words(group.tokens, min(words, SAMPLE_WORDS)))
    compared = group.tokens[: min(texts, SELF_BLEU_TEXTS)]
    asked = embedder is not None and group.language in embedder.languages
    embedded = group.texts[:SPREAD_TEXTS] if asked else []
    return Diversity(
        side=group.side,
        language=group.language,
        texts=len(group.texts),
        distinct=distinct(group.tokens),
        self_bleu=self_bleu(compared),
        self_bleu_texts=len(compared),
        spread=spread(embedder.encode(embedded)) if embedder and len(embedded) > 1 else None,
        spread_texts=len(embedded),
        embedder=embedder.name if embedder and asked else None,
        skipped=group.skipped,
        words=group.words,
        distinct_sampled=distinct(sample),
        sampled_words=sum(map(len, sample)),
    )


def first_words(texts: Iterable[Tokens], words: int) -> Iterator[Tokens]:
    """Yield texts in order until they hold `words` tokens; the last one is cut, so that the number is exact."""
    for tokens in texts:
        if words <= 0:
            return
        yield tokens[:words]
        words -= len(tokens)


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
            seen.update(ngrams(tokens, n))
            total += max(0, len(tokens) - n + 1)
        values.append(len(seen) / total if total else None)
    return tuple(values)


def spread(vectors: Vectors) -> float | None:
    """Compute the mean cosine distance between two different texts: 0 all equal, 1 unrelated on average, at most 2.

    For unit vectors v_1 .. v_n the cosines of all pairs sum to |sum v|^2 - sum |v|^2, so that

        spread = 1 - (|sum_i v_i|^2 - sum_i |v_i|^2) / (n (n - 1))

    costs n additions instead of n^2 products.

    Args:
        vectors: float (n, d), rows of length 1.

    Returns:
        None for fewer than two rows.
    """
    import numpy as np

    count = len(vectors)
    if count < 2:
        return None
    exact = vectors.astype(np.float64)  # a sum of n^2 float32 cosines near 1 would lose small spreads
    total = exact.sum(axis=0)
    return float(1 - (total @ total - (exact * exact).sum()) / (count * (count - 1)))
