"""The compared form of texts, how similar two of them are, and when two dialogues are duplicates."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from h2htalk.data.languages import Language, find_language
from h2htalk.text.chinese_characters import simplified
from h2htalk.text.language_data import language_data

_NO_WORD = re.compile(r"[\W_]+")
_APOSTROPHES = re.compile(r"(?<=\w)['’ʼ](?=\w)")
# Invisible signs: without width, of direction, and variants of emoji.
_UNSEEN = re.compile(
    "[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff]+"
)
# Edit distance takes time with the product of two lengths.
LONGEST_EDITED = 20_000
On = Literal["inputs", "references", "both"]
# The least similarity after the openings, and of the inputs of similar replies: unrelated texts reach 0.35.
_LEAST_REST = 0.5
_LEAST_SIDE = 0.6


def lengths(language: Language) -> Mapping[str, Any]:
    """The lengths of texts that dedup distinguishes; `lengths_LANGUAGE.toml` explains each."""
    return language_data("detect/duplicates/lengths", language)


def plain(text: str, language: Language) -> str:
    """The compared form of a text: NFKC, in simplified characters, without case and invisible signs, words separated as
    in the language.

    A text without a letter or digit (emoji) keeps its signs, without spaces. Linear in its length.
    """
    composed = unicodedata.normalize("NFKC", _UNSEEN.sub("", text))
    folded = simplified(composed).casefold()
    words = _NO_WORD.sub(find_language(language).joint, _APOSTROPHES.sub("", folded)).strip()
    return words or "".join(folded.split())


@dataclass(frozen=True, slots=True)
class Sides:
    """A dialogue in its compared form: the text of each side, a message a line, without empty ones.

    `safety` is a hash of what was decided on its safety (`signatures.safety_decision`), 0 where nothing was.
    """

    language: Language
    user: str
    companion: str
    safety: int = 0


def similarity(a: str, b: str, least: float = 0.0) -> float:
    """The unedited share of two texts: 1 - Levenshtein distance / length of the longer text, 0 to 1.

    Of texts over 20,000 characters the first 20,000 are compared, and the similarity is at most the share of their
    lengths. One below `least` may be returned as 0.0, which takes less time.
    """
    if a == b:
        return 1.0
    if (share := min(len(a), len(b)) / max(len(a), len(b))) < least:
        return 0.0
    from rapidfuzz.distance import Levenshtein

    return min(
        share,
        Levenshtein.normalized_similarity(
            a[:LONGEST_EDITED], b[:LONGEST_EDITED], score_cutoff=least
        ),
    )


@dataclass(frozen=True, slots=True)
class Match:
    """The similarity of two duplicates (0 to 1), and where they are similar."""

    similarity: float
    on: On
    exact: bool = False


def match(a: Sides, b: Sides, threshold: float) -> Match | None:
    """How two dialogues are duplicates; None where they are not.

    Both sides together must reach the threshold, and each must be more similar than by chance. One side alone must be
    longer than a phrase and reach a third of the way from the threshold to 1; where the replies alone do, the inputs
    must also be more similar than by chance, as a companion may say the same to many people. Conversations with the
    same opening that continue differently are no duplicates. Dialogues on whose safety was decided differently are
    duplicates only where both sides are equal, or where both are an answer to one message of a user: the word that is
    edited may be the one that matters.
    """
    known = lengths(a.language)
    alone = threshold + (1 - threshold) / 3
    phrase = known["least_inputs"] / 2
    user = similarity(a.user, b.user, _LEAST_SIDE)
    if user == 1.0 and a.companion == b.companion:
        return Match(1.0, "both", True)
    decided_differently = a.safety != b.safety and a.safety != 0 and b.safety != 0
    same_question = user == 1.0 and "\n" not in a.user
    if decided_differently and not same_question:
        return None
    rest, other = (side.user.partition("\n")[2] for side in (a, b))
    if max(len(rest), len(other)) >= phrase and similarity(rest, other, _LEAST_REST) < _LEAST_REST:
        return None
    companion = similarity(a.companion, b.companion, _LEAST_SIDE)
    users = (len(a.user), len(b.user))
    companions = (len(a.companion), len(b.companion))
    sizes = max(users), max(companions)
    together = (sizes[0] * user + sizes[1] * companion) / max(sum(sizes), 1)
    alike = all(
        value >= _LEAST_SIDE or size < phrase
        for size, value in zip(sizes, (user, companion), strict=True)
    )
    if alike and together >= threshold:
        return Match(together, "both")
    if user >= alone and min(users) >= known["least_inputs"]:
        return Match(user, "inputs", user == 1.0)
    replied_alike = companion >= alone and min(companions) >= known["least_references"]
    if replied_alike and similarity(a.user, b.user, _LEAST_REST) >= _LEAST_REST:
        return Match(companion, "references", companion == 1.0)
    return None


def text_hash(text: str) -> int:
    """A 64-bit hash of a text, the same in every process and on every machine."""
    data = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


def unique_values(values: NDArray[Any]) -> NDArray[Any]:
    """The distinct values of an array, ascending. (`numpy.unique` hashes since 2.3, which takes 20 times as long.)"""
    ordered = np.sort(values)
    new = np.ones(len(ordered), bool)
    new[1:] = ordered[1:] != ordered[:-1]
    return ordered[new]
