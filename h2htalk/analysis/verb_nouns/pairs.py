"""The records of verb-noun pairs: verbs and the nouns that they act on, as Fig. 5 of the paper counts them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple


class VerbNounPair(NamedTuple):
    """A verb and the head noun of its direct object, both as dictionary forms."""

    verb: str
    noun: str


@dataclass(frozen=True, slots=True)
class PairCount:
    """The number of occurrences of a pair, in all texts together."""

    verb: str
    noun: str
    count: int


@dataclass(frozen=True, slots=True)
class VerbGroup:
    """A verb of the inner ring of Fig. 5 with its nouns of the outer ring; `count` is the sum over these."""

    verb: str
    count: int
    nouns: tuple[PairCount, ...]


def count_pairs(pairs: Iterable[VerbNounPair] | Counter[VerbNounPair]) -> list[PairCount]:
    """Count pairs, or sort their counts: by count descending, then verb and noun ascending."""
    return sorted((PairCount(*pair, count) for pair, count in Counter(pairs).items()), key=_rank)


def top_verbs(counts: Iterable[PairCount], pairs: int = 50) -> list[VerbGroup]:
    """Group the most frequent pairs (the paper shows 50) by verb, as Fig. 5 draws them.

    Args:
        counts: every pair once.
        pairs: how many pairs are drawn.

    Returns:
        The verbs of those pairs by their total within them, descending, then ascending by name; each with its
        nouns in the order of `count_pairs`. A pair that is not drawn does not count.
    """
    nouns: dict[str, list[PairCount]] = {}
    for count in sorted(counts, key=_rank)[:pairs]:
        nouns.setdefault(count.verb, []).append(count)
    groups = [VerbGroup(verb, sum(n.count for n in of), tuple(of)) for verb, of in nouns.items()]
    return sorted(groups, key=lambda group: (-group.count, group.verb))


def _rank(count: PairCount) -> tuple[int, str, str]:
    return -count.count, count.verb, count.noun
