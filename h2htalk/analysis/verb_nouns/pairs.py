"""Verbs and the nouns that they act on, as Fig. 5 of the paper counts them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from h2htalk.errors import ConfigError

if TYPE_CHECKING:
    from spacy.tokens import Doc


@dataclass(frozen=True, slots=True, order=True)
class Pair:
    """A verb and the head noun of its direct object, both as dictionary forms."""

    verb: str
    noun: str


@dataclass(frozen=True, slots=True)
class PairCount:
    """How often a pair occurs, in all texts together."""

    verb: str
    noun: str
    count: int


@dataclass(frozen=True, slots=True)
class VerbGroup:
    """A verb of the inner ring of Fig. 5 with its nouns of the outer ring; `count` is the sum over these."""

    verb: str
    count: int
    nouns: tuple[PairCount, ...]


PairRules = Callable[["Doc"], list[Pair]]


def verb_noun_pairs(texts: Iterable[str], language: str, *, model: str | None = None) -> list[Pair]:
    """Every (verb, direct object) pair of the texts, one entry an occurrence.

    Direct objects only: no object of a preposition, subject of a passive, measure or time; no pronoun. A particle
    stands with its verb (`turn off`); of two objects the thing given counts; coordinated verbs share an object,
    and in a relative clause the noun it modifies may be the object. Copulas give none, light verbs do.

    Args:
        texts: n texts, read as a stream.
        language: `en` or `zh`; never guessed.
        model: the name of an installed spaCy pipeline to parse with, instead of the one shipped here.

    Returns:
        The pairs in the order of the texts, within a text by the noun's place and then the verb's. Verbs and
        common nouns in lower case, proper nouns as written.

    Raises:
        ConfigError: a language without rules, or a model that is not installed.
        MissingExtraError: spaCy or lemminflect is not installed.
    """
    return list(iter_pairs(texts, language, model=model))


def iter_pairs(texts: Iterable[str], language: str, *, model: str | None = None) -> Iterator[Pair]:
    """The same pairs, one by one: nothing but the current batch of texts is held."""
    rules = _rules(language)
    from h2htalk.text.parsing.parsing import parse, pieces

    _load(language, model)
    # No object stands in another turn or line than its verb.
    lines = (piece for text in texts for piece in pieces(text))
    for doc in parse(lines, language, model=model):
        yield from rules(doc)


def _load(language: str, model: str | None) -> None:
    """Load the parser, in a process with one thread for BLAS so that numpy multiplies its matrices.

    thinc's own BLIS runs on one thread always, but does not know new processors (39 GFLOP/s where numpy's OpenBLAS
    reaches 119): a fourth of an analysis. With more threads OpenBLAS would waste them on matrices this small.
    """
    from h2htalk.text.parsing.parsing import load_parser

    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        load_parser(language, model)
        return
    from thinc.api import use_ops

    with use_ops("numpy", use_blis=False):
        load_parser(language, model)


def _rules(language: str) -> PairRules:
    if language == "en":
        from h2htalk.analysis.verb_nouns.english import english_pairs

        return english_pairs
    if language == "zh":
        from h2htalk.analysis.verb_nouns.chinese import chinese_pairs

        return chinese_pairs
    raise ConfigError(f"no verb-noun rules for language {language!r}; choose from en, zh")


def count_pairs(pairs: Iterable[Pair]) -> list[PairCount]:
    """How often each pair occurs: count descending, then verb and noun ascending."""
    counts = (PairCount(pair.verb, pair.noun, count) for pair, count in Counter(pairs).items())
    return sorted(counts, key=_rank)


def top_pairs(counts: Iterable[PairCount], n: int = 50) -> list[PairCount]:
    """The n most frequent pairs (the paper shows 50), in the order of `count_pairs`."""
    return sorted(counts, key=_rank)[: max(n, 0)]


def top_verbs(counts: Sequence[PairCount], pairs: int = 50) -> list[VerbGroup]:
    """What Fig. 5 draws: the most frequent pairs, grouped by verb.

    Args:
        counts: every pair once, as `count_pairs` gives them.
        pairs: how many pairs are drawn.

    Returns:
        The verbs of those pairs by their total within them, descending, then ascending by name; each with its
        nouns in the order of `count_pairs`. A pair that is not drawn does not count.
    """
    nouns: dict[str, list[PairCount]] = {}
    for count in top_pairs(counts, pairs):
        nouns.setdefault(count.verb, []).append(count)
    groups = [VerbGroup(verb, sum(n.count for n in of), tuple(of)) for verb, of in nouns.items()]
    return sorted(groups, key=lambda group: (-group.count, group.verb))


def _rank(count: PairCount) -> tuple[int, str, str]:
    return -count.count, count.verb, count.noun
