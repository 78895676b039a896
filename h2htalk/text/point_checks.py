"""What code decides about the points of a case: a stated length, an exact form (docs/reference/case.md)."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

from h2htalk.text.counting import count_sentences, units, words

_COUNTED: dict[str, Callable[[str], int]] = {
    "words": lambda text: len(words(text)),
    "characters": lambda text: len(units(text)),  # as `text.counting`: a run of Latin letters or digits is one
    "sentences": count_sentences,
    "lines": lambda text: sum(not line.isspace() for line in text.splitlines() if line),
}
_ENDS = " \t\r\n\"'“”‘’「」。．.!！?？~～…"


def decided(reply: str, check: str | None) -> bool | None:
    """Whether a point's statement is true of a reply, where its check is one that cannot err; else None.

    `length:UNIT:LEAST-MOST` counts `words`, `characters`, `sentences` or `lines`; either end may be missing.
    `exact:TEXT` is true of a reply that is this text, whatever its letter case and the marks around it.
    """
    rule, _, rest = (check or "").partition(":")
    if rule == "exact":
        return _plain(reply) == _plain(rest)
    if rule != "length":
        return None
    unit, _, span = rest.partition(":")
    least, _, most = span.partition("-")
    return int(least or 0) <= _COUNTED[unit](reply) and (not most or _COUNTED[unit](reply) <= int(most))


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).strip(_ENDS).casefold()
