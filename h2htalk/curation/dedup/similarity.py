"""Whether two dialogues are duplicates, by their inputs (the user's side) and references (the companion's side)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from h2htalk.curation.dedup.lengths import lengths
from h2htalk.curation.dedup.minhash import shingle_hashes, unique_values
from h2htalk.data.languages import Language

On = Literal["inputs", "references", "both"]
# Edit distance takes time with the product of two lengths; longer texts are compared by their shingles.
LONGEST_EDITED = 20_000
_LONG_WIDTH = 12
# The least similarity after the openings, and of the inputs of similar replies: unrelated texts reach 0.35.
_LEAST_REST = 0.5
_LEAST_SIDE = 0.6
# Edits are scattered, while other content in the same frame (a form letter) forms blocks. Where blocks make up more
# than this share of the characters, only the frame is the same.
_MOST_BLOCKS = 0.18
_LONGEST_ALIGNED = 5_000
# From this similarity on blocks are not looked for.
_SURE = 0.9


@dataclass(frozen=True)  # no slots, for the cached property
class Sides:
    """A dialogue in its compared form: the text of each side, a message a line (`minhash.plain_side`)."""

    language: Language
    user: str
    companion: str

    @cached_property
    def rest(self) -> str:
        """The user's side after the opening message."""
        return self.user.partition("\n")[2]


@dataclass(frozen=True, slots=True)
class Match:
    """The similarity of two duplicates (0 to 1), and where they are similar."""

    similarity: float
    on: On
    exact: bool = False


def similarity(a: str, b: str, least: float = 0.0) -> float:
    """The unedited share of two texts: 1 - Levenshtein distance / length of the longer text, 0 to 1.

    For texts over 20,000 characters it is estimated from the Jaccard similarity J of their distinct 12-grams as
    (2 J / (1 + J)) ** (1/12), as in Mash (Ondov et al. 2016, equation 4, before the logarithm).

    Args:
        a, b: the texts.
        least: a lower similarity may be returned as 0.0, which takes less time.
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
    """How two dialogues are duplicates; None where they are not.

    Both sides together must reach the threshold, and each must be more similar than by chance. One side alone must be
    longer than a phrase and reach a third of the way from the threshold to 1; where the replies alone do, the inputs
    must also be more similar than by chance, as a companion may say the same to many people. Conversations with the
    same opening that continue differently are no duplicates, nor are two texts that fill the same frame differently.
    """
    alone = threshold + (1 - threshold) / 3
    user = similarity(a.user, b.user, _LEAST_SIDE)
    if user == 1.0 and a.companion == b.companion:
        return Match(1.0, "both", True)
    companion = similarity(a.companion, b.companion, _LEAST_SIDE)
    together = _together(a, b, user, companion)
    if together >= threshold and _goes_on_alike(a, b) and not _reframed(a, b, together, "both"):
        return Match(together, "both")
    least = lengths(a.language)
    long_inputs = min(len(a.user), len(b.user)) >= least.least_inputs
    if user >= alone and long_inputs and _goes_on_alike(a, b) and not _reframed(a, b, user, "inputs"):
        return Match(user, "inputs", user == 1.0)
    long_references = min(len(a.companion), len(b.companion)) >= least.least_references
    replied_alike = companion >= alone and long_references and not _reframed(a, b, companion, "references")
    if replied_alike and _asked_alike(a, b):
        return Match(companion, "references", companion == 1.0)
    return None


def _together(a: Sides, b: Sides, user: float, companion: float) -> float:
    """The similarity of both sides as one text; 0 where a side of some length is not similar."""
    sizes = max(len(a.user), len(b.user)), max(len(a.companion), len(b.companion))
    short = lengths(a.language).least_inputs / 2
    for size, value in zip(sizes, (user, companion), strict=True):
        if value < _LEAST_SIDE and size >= short:
            return 0.0
    return (sizes[0] * user + sizes[1] * companion) / max(sum(sizes), 1)


def _reframed(a: Sides, b: Sides, similar: float, on: On) -> bool:
    """Whether two dialogues fill the same frame (a form letter) differently."""
    pairs = [(a.user, b.user)] if on != "references" else []
    pairs += [(a.companion, b.companion)] if on != "inputs" else []
    size = sum(max(map(len, pair)) for pair in pairs)
    if similar >= _SURE or size > _LONGEST_ALIGNED:
        return False
    return sum(_in_blocks(*pair, a.language) for pair in pairs) > _MOST_BLOCKS * size


def _in_blocks(a: str, b: str, language: Language) -> int:
    """The characters of the longer text in blocks of changes."""
    from rapidfuzz.distance import Levenshtein

    least = lengths(language)
    total = block = 0
    for step in Levenshtein.opcodes(a, b):
        size = max(step.src_end - step.src_start, step.dest_end - step.dest_start)
        if step.tag == "equal" and size >= least.run:
            total += block if block >= least.block else 0
            block = 0
        else:
            block += size
    return total + (block if block >= least.block else 0)


def _asked_alike(a: Sides, b: Sides) -> bool:
    """Whether the two users say something more similar than by chance, from beginning to end."""
    return similarity(a.user, b.user, _LEAST_REST) >= _LEAST_REST and _goes_on_alike(a, b)


def _goes_on_alike(a: Sides, b: Sides) -> bool:
    """Whether the users' messages after the opening are similar; true where they are no more than a phrase."""
    longest = max(len(a.rest), len(b.rest))
    if longest < lengths(a.language).least_inputs / 2:
        return True
    return similarity(a.rest, b.rest, _LEAST_REST) >= _LEAST_REST
