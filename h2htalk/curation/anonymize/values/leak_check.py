"""Whether a value is still to be read in a text: stricter than the search that marks values, and apart from it.

Both are compared in one case and one width, without unseen characters and marks; numbers by their digits alone.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache

from h2htalk.curation.anonymize.normalization import HAN_DIGITS, normalize_text, plain

LONG = 4  # characters: shorter values are too often part of something else
_NUMBER = 6
_HAN_NAME = 3
_HAN = re.compile("[\u4e00-\u9fff]")
_TOKEN = re.compile(r"[\u4e00-\u9fff]|[^\W_\u4e00-\u9fff]+")
_DIGITS = str.maketrans(HAN_DIGITS)
_NO_NUMBER = re.compile("[^0-9a-z]+")
# Between digits of one number.
_MARKS = re.compile(r"(?<=[0-9])[^\w\n]{1,3}(?=[0-9])")


class LeakCheck:
    """Texts in one format, asked for values."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._tokens: list[list[str]] = []
        self._streams: list[tuple[str, frozenset[int], frozenset[int]]] = []
        self._numbers: list[str] = []
        for text in texts:
            folded = _folded(text)
            tokens = _TOKEN.findall(folded)
            starts, ends, at = set(), set(), 0
            for token in tokens:
                starts.add(at)
                at += len(token)
                ends.add(at)
            self._tokens.append(tokens)
            self._streams.append(("".join(tokens), frozenset(starts), frozenset(ends)))
            self._numbers.append(_MARKS.sub("", folded.translate(_DIGITS)))
        self._words = frozenset(token for tokens in self._tokens for token in tokens)

    def contains(self, values: Sequence[str]) -> bool:
        """Whether one of the values, as written, stands in a text."""
        return any(self._contains_number(value) or self._contains_name(value) for value in values)

    def _contains_number(self, value: str) -> bool:
        digits = _NO_NUMBER.sub("", _folded(value).translate(_DIGITS))
        if not digits.isdigit() or len(digits) < _NUMBER:
            return False
        return any(digits in text for text in self._numbers)

    def _contains_name(self, value: str) -> bool:
        tokens = _TOKEN.findall(_folded(value))
        whole = "".join(tokens)
        if len(whole) < (_HAN_NAME if _HAN.match(whole) else LONG):
            return False
        if len(tokens) == 1:
            return whole in self._words
        return any(_occurs(whole, *stream) for stream in self._streams)


def _occurs(value: str, stream: str, starts: frozenset[int], ends: frozenset[int]) -> bool:
    """Whether a value stands in a text as words of its own, whatever parts its own words."""
    at = stream.find(value)
    while at >= 0:
        if at in starts and at + len(value) in ends:
            return True
        at = stream.find(value, at + 1)
    return False


@lru_cache(maxsize=4096)
def _folded(text: str) -> str:
    """In one case and width, without what nobody sees."""
    folded = unicodedata.normalize("NFKC", plain(normalize_text(text).visible)).casefold()
    return (
        "".join([c for c in folded if unicodedata.category(c) not in ("Cf", "Mn")]) if not folded.isascii() else folded
    )
