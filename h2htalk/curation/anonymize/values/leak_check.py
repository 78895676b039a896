"""Whether a value is still to be read in a text: stricter than the search that marks values, and apart from it.

Both are compared in one case and one width, without unseen characters and marks; numbers by their digits alone.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from h2htalk.curation.anonymize.normalization import HAN_DIGITS, normalize_text, plain

_LONG, _HAN_NAME, _NUMBER = 4, 3, 6  # characters: shorter words, Chinese names and numbers are parts of something else
_TOKEN = re.compile(r"[\u4e00-\u9fff]|[^\W_\u4e00-\u9fff]+")
_DIGITS = str.maketrans(HAN_DIGITS)
_NO_NUMBER = re.compile("[^0-9a-z]+")
# Between digits of one number.
_MARKS = re.compile(r"(?<=[0-9])[^\w\n]{1,3}(?=[0-9])")


def leaks(texts: Iterable[str], values: Iterable[str]) -> bool:
    """Whether one of the values, as written, stands in one of the texts."""
    folded = [_folded(text) for text in texts]
    # A text's words between spaces, so that a value is found as words of its own, whatever marks part them.
    words = [f" {' '.join(_TOKEN.findall(text))} " for text in folded]
    streams = [text.replace(" ", "") for text in words]
    numbers = [_MARKS.sub("", text.translate(_DIGITS)) for text in folded]
    for value in values:
        tokens = _TOKEN.findall(_folded(value))
        digits = _NO_NUMBER.sub("", _folded(value).translate(_DIGITS))
        if digits.isdigit() and len(digits) >= _NUMBER and any(digits in text for text in numbers):
            return True
        whole = "".join(tokens)
        if len(whole) < (_HAN_NAME if "\u4e00" <= whole[:1] <= "\u9fff" else _LONG):
            continue
        # Of a name in several words the letters may be parted anywhere.
        pattern = " ?".join(whole) if len(tokens) > 1 else whole
        for text, stream in zip(words, streams, strict=True):
            if whole in stream and re.search(f" {pattern} ", text):
                return True
    return False


@lru_cache(maxsize=4096)
def _folded(text: str) -> str:
    """In one case and width, without what nobody sees."""
    folded = unicodedata.normalize("NFKC", plain(normalize_text(text).visible)).casefold()
    if folded.isascii():
        return folded
    return "".join([c for c in folded if unicodedata.category(c) not in ("Cf", "Mn")])
