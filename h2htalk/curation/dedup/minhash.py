"""Shingles and MinHash signatures, which estimate the similarity of two texts.

Texts are compared without case, width, punctuation and spaces. Shingles are n-grams of characters, shorter ones in
Chinese than in English, and shorter ones for short texts, of which few long n-grams survive an edit. A signature holds,
for each of 64 hash functions, the smallest hash of all shingles: two texts share each value with the probability of the
Jaccard similarity of their shingles (Broder 1997).
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from h2htalk.data.languages import Language, find_language

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

VALUES = 64  # of a signature
_NO_WORD = re.compile(r"[\W_]+")
_APOSTROPHES = re.compile(r"(?<=\w)['’ʼ](?=\w)")
# Invisible signs: without width, of direction, and variants of emoji.
_UNSEEN = re.compile("[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff]+")
_PAD = "\0"
# Characters hashed at once: each takes some 40 bytes of memory meanwhile.
BATCH = 1 << 20


def plain(text: str, language: Language) -> str:
    """The compared form of a text: NFKC, without case and invisible signs, words separated as in the language.

    A text without a letter or digit (emoji) keeps its signs, without spaces. Linear in its length.
    """
    folded = unicodedata.normalize("NFKC", _UNSEEN.sub("", text)).casefold()
    words = _NO_WORD.sub(find_language(language).joint, _APOSTROPHES.sub("", folded)).strip()
    return words or "".join(folded.split())


def plain_side(contents: Sequence[str], language: Language) -> str:
    """The compared messages of one side, a line each, without empty ones."""
    return "\n".join(filter(None, (plain(content, language) for content in contents)))


def text_hash(*texts: str) -> int:
    """A 64-bit hash of texts, the same in every process and on every machine."""
    digest = hashlib.blake2b(digest_size=8)
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little") + data)
    return int.from_bytes(digest.digest(), "little")


def shingle_hashes(texts: Sequence[str], width: int) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Hashes of every n-gram of `width` characters, text after text, and how many each text has.

    A text shorter than `width` is one shingle; all empty texts have the same one, so leave them out.

    Returns:
        hashes (total,), counts (len(texts),), each 1 or more.
    """
    import numpy as np

    padded = "".join(text.ljust(width, _PAD) for text in texts)
    points = np.frombuffer(padded.encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(np.uint64)
    lengths = np.fromiter((max(len(text), width) for text in texts), np.int64, len(texts))
    counts = lengths - (width - 1)
    windows = max(len(points) - width + 1, 0)
    hashes = np.zeros(windows, np.uint64)
    for place in range(width):
        hashes *= np.uint64(0x100000001B3)
        hashes += points[place : place + windows]
    inside = np.ones(windows, bool)
    ends = np.cumsum(lengths)[:-1]
    for back in range(1, width):  # n-grams across the border of two texts
        inside[ends - back] = False
    return _mixed(hashes[inside]), counts


def unique_values(values: NDArray[Any]) -> NDArray[Any]:
    """The distinct values of an array, ascending. (`numpy.unique` hashes since 2.3, which takes 20 times as long.)"""
    import numpy as np

    ordered = np.sort(values)
    new = np.ones(len(ordered), bool)
    new[1:] = ordered[1:] != ordered[:-1]
    return ordered[new]


def _mixed(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's finalizer (Steele, Lea and Flood 2014): every input bit changes every output bit."""
    import numpy as np

    hashes ^= hashes >> np.uint64(30)
    hashes *= np.uint64(0xBF58476D1CE4E5B9)
    hashes ^= hashes >> np.uint64(27)
    hashes *= np.uint64(0x94D049BB133111EB)
    hashes ^= hashes >> np.uint64(31)
    return hashes


@cache
def _functions() -> tuple[Any, Any]:
    """The factors (odd) and addends of the hash functions: digits of SHA-256, which never change."""
    import numpy as np

    digits = b"".join(hashlib.sha256(b"h2htalk minhash %d" % n).digest() for n in range(VALUES // 2))
    numbers = np.frombuffer(digits, dtype="<u8").reshape(2, VALUES)
    return numbers[0] | np.uint64(1), numbers[1]


def signatures(texts: Sequence[str], width: int) -> NDArray[np.uint32]:
    """MinHash signatures of non-empty texts.

    Returns:
        (len(texts), 64), values of 32 bits.
    """
    import numpy as np

    found = np.empty((len(texts), VALUES), np.uint32)
    start = 0
    while start < len(texts):
        end, size = start + 1, len(texts[start])
        while end < len(texts) and size + len(texts[end]) <= BATCH:
            size += len(texts[end])
            end += 1
        _sign(texts[start:end], width, found[start:end])
        start = end
    return found


def _sign(texts: Sequence[str], width: int, into: NDArray[np.uint32]) -> None:
    import numpy as np

    hashes, counts = shingle_hashes(texts, width)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    values = np.empty_like(hashes)
    for number, (factor, addend) in enumerate(zip(*_functions(), strict=True)):
        np.multiply(hashes, factor, out=values)
        values += addend
        values >>= np.uint64(32)
        into[:, number] = np.minimum.reduceat(values, starts)
