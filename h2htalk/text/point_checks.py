"""What code decides about the points of a case: a stated length, an exact form (docs/reference/case.md)."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

from h2htalk.text.counting import count_sentences, split_actions, units, words

_COUNTED: dict[str, Callable[[str], int]] = {
    "words": lambda text: len(words(text)),
    "characters": lambda text: len(units(text)),  # as `text.counting`: a run of Latin letters or digits is one
    "sentences": count_sentences,
    "lines": lambda text: sum(any(map(str.isalnum, line)) for line in text.splitlines()),
}
_MARKS = str.maketrans("", "", " \t\r\n\u3000*_`#>")
_ENDS = "\"'“”‘’「」『』。．.!！?？~～…"


def decided(reply: str, check: str | None) -> bool | None:
    """Whether a point's statement is true of a reply, where its check is one that cannot err; else None.

    `length:UNIT:LEAST-MOST` counts `words`, `characters`, `sentences` or `lines`; either end may be missing.
    `exact:TEXT` is true of a reply that is this text, whatever its letter case and the marks around it. Actions in
    parentheses, which prompts allow, do not count, nor do spaces and Markdown; an empty reply is left open.
    """
    said, (rule, _, rest) = split_actions(reply)[0], (check or "").partition(":")
    if rule != "length" or not said.strip():
        return _plain(rest) in (_plain(reply), _plain(said)) if rule == "exact" and said.strip() else None
    unit, _, span = rest.partition(":")
    least, _, most = span.partition("-")
    return int(least or 0) <= _COUNTED[unit](said) and (not most or _COUNTED[unit](said) <= int(most))


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).translate(_MARKS).strip(_ENDS).casefold()
