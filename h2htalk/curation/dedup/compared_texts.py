"""The compared form of texts, and how similar two of them are."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from h2htalk.data.languages import Language, find_language
from h2htalk.text.language_data import language_data

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NO_WORD = re.compile(r"[\W_]+")
_APOSTROPHES = re.compile(r"(?<=\w)['’ʼ](?=\w)")
# Invisible signs: without width, of direction, and variants of emoji.
_UNSEEN = re.compile("[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff]+")
# Edit distance takes time with the product of two lengths.
LONGEST_EDITED = 20_000


class Scale(NamedTuple):
    """Shingles of `width` characters, for texts of `least` to `most` characters."""

    width: int
    least: int
    most: int = 1 << 62


@dataclass(frozen=True, slots=True)
class Lengths:
    """The lengths of texts that dedup distinguishes; `lengths_LANGUAGE.toml` explains each."""

    scales: tuple[Scale, Scale]
    least_inputs: int
    least_references: int
    least_item_inputs: int
    least_item_reference: int
    long_item: int


@cache
def lengths(language: Language) -> Lengths:
    """Read the lengths of a language, once a process."""
    raw: dict[str, Any] = dict(language_data("curation/dedup/lengths", language))
    return Lengths(scales=(Scale(**raw.pop("short_scale")), Scale(**raw.pop("long_scale"))), **raw)


def plain(text: str, language: Language) -> str:
    """The compared form of a text: NFKC, without case and invisible signs, words separated as in the language.

    A text without a letter or digit (emoji) keeps its signs, without spaces. Linear in its length.
    """
    folded = unicodedata.normalize("NFKC", _UNSEEN.sub("", text)).casefold()
    words = _NO_WORD.sub(find_language(language).joint, _APOSTROPHES.sub("", folded)).strip()
    return words or "".join(folded.split())


@dataclass(frozen=True, slots=True)
class Sides:
    """A dialogue in its compared form: the text of each side, a message a line, without empty ones."""

    language: Language
    user: str
    companion: str


def similarity(a: str, b: str, least: float = 0.0) -> float:
    """The unedited share of two texts: 1 - Levenshtein distance / length of the longer text, 0 to 1.

    Of texts over 20,000 characters the first 20,000 are compared, and the similarity is at most the share of their
    lengths.

    Args:
        a, b: the texts.
        least: a lower similarity may be returned as 0.0, which takes less time.
    """
    if a == b:
        return 1.0
    from rapidfuzz.distance import Levenshtein

    found = Levenshtein.normalized_similarity(a[:LONGEST_EDITED], b[:LONGEST_EDITED], score_cutoff=least)
    return min(found, min(len(a), len(b)) / max(len(a), len(b)))


def text_hash(text: str) -> int:
    """A 64-bit hash of a text, the same in every process and on every machine."""
    data = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


def unique_values(values: NDArray[Any]) -> NDArray[Any]:
    """The distinct values of an array, ascending. (`numpy.unique` hashes since 2.3, which takes 20 times as long.)"""
    import numpy as np

    ordered = np.sort(values)
    new = np.ones(len(ordered), bool)
    new[1:] = ordered[1:] != ordered[:-1]
    return ordered[new]
