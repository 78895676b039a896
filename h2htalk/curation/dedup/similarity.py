"""Whether two dialogues are one, by their inputs (the user's side) and their references (the companion's)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from h2htalk.curation.dedup.minhash import shingle_hashes, unique_values
from h2htalk.data.languages import Language

On = Literal["inputs", "references", "both"]
# Characters as compared. A side shorter than this (a greeting) says nothing by itself.
LEAST_INPUTS = {"en": 24, "zh": 8}
# A reply shorter than this is a phrase that many conversations share; it takes inputs that are as alike as both sides
# must be.
LEAST_REFERENCES = {"en": 160, "zh": 60}
# Edit distance takes time with the product of two lengths; longer texts are compared by their shingles.
LONGEST_EDITED = 20_000
_LONG_WIDTH = 12
# Apart from their openings, and of what is asked where the reply is one, dialogues must be at least this similar:
# unrelated texts reach 0.35.
_LEAST_REST = 0.5
_LEAST_SIDE = 0.6
# Edits scatter; other content in the same frame stands in blocks. A block: so many characters without an unchanged run
# of some length. Where blocks make up more than this share, the frame alone is the same.
_BLOCK = {"en": 14, "zh": 6}
_RUN = {"en": 3, "zh": 2}
_MOST_BLOCKS = 0.18
_LONGEST_ALIGNED = 5_000
# From this similarity on no block is looked for.
_SURE = 0.9


@dataclass(frozen=True)  # no slots: what is computed once is kept
class Sides:
    """A dialogue as it is compared: the plain text of each side, a message a line (`dedup_shingles.plain_side`)."""

    language: Language
    user: str
    companion: str

    @cached_property
    def rest(self) -> str:
        """The user's side after the opening message."""
        return self.user.partition("\n")[2]


@dataclass(frozen=True, slots=True)
class Match:
    """How similar two dialogues are (0 to 1), and where."""

    similarity: float
    on: On
    exact: bool = False


def similarity(a: str, b: str, least: float = 0.0) -> float:
    """The share of two texts that no edit touched: 1 - Levenshtein distance / length of the longer, 0 to 1.

    Texts over 20,000 characters: estimated from the Jaccard similarity J of their distinct runs of 12 characters as
    (2 J / (1 + J)) ** (1/12), what Mash does (Ondov et al. 2016, equation 4, before the logarithm).

    Args:
        least: what is below may be given as 0.0, which takes less time.
    """
    if a == b:
        return 1.0
    if max(len(a), len(b)) <= LONGEST_EDITED:
        from rapidfuzz.distance import Levenshtein

        return Levenshtein.normalized_similarity(a, b, score_cutoff=least)
    if min(len(a), len(b)) < least * max(len(a), len(b)):
        return 0.0
    return _by_shingles(a, b)


def _by_shingles(a: str, b: str) -> float:
    import numpy as np

    first, second = (unique_values(shingle_hashes([text], _LONG_WIDTH)[0]) for text in (a, b))
    common = len(np.intersect1d(first, second, assume_unique=True))
    jaccard = common / (len(first) + len(second) - common)
    return float((2 * jaccard / (1 + jaccard)) ** (1 / _LONG_WIDTH))


def match(a: Sides, b: Sides, threshold: float) -> Match | None:
    """How two dialogues are one; None where they are two.

    Both sides together must reach the threshold, and each must be more alike than chance. One side alone must be
    longer than a phrase and reach a third of the way from the threshold to 1; of two replies the inputs must be more
    alike than chance besides, as a companion may say the same to many people. A shared opening makes no duplicate of
    conversations that go on differently, nor does a shared frame with other content in it.
    """
    alone = threshold + (1 - threshold) / 3
    user = similarity(a.user, b.user, _LEAST_SIDE)
    if user == 1.0 and a.companion == b.companion:
        return Match(1.0, "both", True)
    companion = similarity(a.companion, b.companion, _LEAST_SIDE)
    together = _together(a, b, user, companion)
    if together >= threshold and _goes_on_alike(a, b) and not _reframed(a, b, together, "both"):
        return Match(together, "both")
    long_inputs = min(len(a.user), len(b.user)) >= LEAST_INPUTS[a.language]
    if user >= alone and long_inputs and _goes_on_alike(a, b) and not _reframed(a, b, user, "inputs"):
        return Match(user, "inputs", user == 1.0)
    long_references = min(len(a.companion), len(b.companion)) >= LEAST_REFERENCES[a.language]
    replied_alike = companion >= alone and long_references and not _reframed(a, b, companion, "references")
    if replied_alike and _asked_alike(a, b):
        return Match(companion, "references", companion == 1.0)
    return None


def _together(a: Sides, b: Sides, user: float, companion: float) -> float:
    """Both sides as one text; 0 where one side of some length is unlike the other's."""
    sizes = max(len(a.user), len(b.user)), max(len(a.companion), len(b.companion))
    short = LEAST_INPUTS[a.language] / 2
    for size, value in zip(sizes, (user, companion), strict=True):
        if value < _LEAST_SIDE and size >= short:
            return 0.0
    return (sizes[0] * user + sizes[1] * companion) / max(sum(sizes), 1)


def _reframed(a: Sides, b: Sides, similar: float, on: On) -> bool:
    """Whether two dialogues fill one frame (a form letter) with content of their own."""
    pairs = [(a.user, b.user)] if on != "references" else []
    pairs += [(a.companion, b.companion)] if on != "inputs" else []
    size = sum(max(map(len, pair)) for pair in pairs)
    if similar >= _SURE or size > _LONGEST_ALIGNED:
        return False
    return sum(_in_blocks(*pair, a.language) for pair in pairs) > _MOST_BLOCKS * size


def _in_blocks(a: str, b: str, language: Language) -> int:
    """Characters of the longer text that stand in blocks of change."""
    from rapidfuzz.distance import Levenshtein

    found = block = 0
    for step in Levenshtein.opcodes(a, b):
        size = max(step.src_end - step.src_start, step.dest_end - step.dest_start)
        if step.tag == "equal" and size >= _RUN[language]:
            found += block if block >= _BLOCK[language] else 0
            block = 0
        else:
            block += size
    return found + (block if block >= _BLOCK[language] else 0)


def _asked_alike(a: Sides, b: Sides) -> bool:
    """Whether what the two users say is more alike than chance, from beginning to end."""
    return similarity(a.user, b.user, _LEAST_REST) >= _LEAST_REST and _goes_on_alike(a, b)


def _goes_on_alike(a: Sides, b: Sides) -> bool:
    """Whether what the user says after the opening is alike; true where it is no more than a phrase."""
    longest = max(len(a.rest), len(b.rest))
    if longest < LEAST_INPUTS[a.language] / 2:
        return True
    return similarity(a.rest, b.rest, _LEAST_REST) >= _LEAST_REST
