"""What code decides about the points of a case: a stated length, an exact form (docs/reference/case.md)."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

from h2htalk.text.counting import count_sentences, split_actions, units, words

_COUNTED: dict[str, Callable[[str], int]] = {
    "words": lambda text: len(words(text)),
    # As `text.counting`: a run of Latin letters or digits is one.
    "characters": lambda text: len(units(text)),
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
    spoken, _ = split_actions(reply)
    rule, _, argument = (check or "").partition(":")
    if not spoken.strip():
        return None
    if rule == "exact":
        return _plain(argument) in (_plain(reply), _plain(spoken))
    if rule != "length":
        return None
    unit, _, span = argument.partition(":")
    least, _, most = span.partition("-")
    count = _COUNTED[unit](spoken)
    return int(least or 0) <= count and (not most or count <= int(most))


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).translate(_MARKS).strip(_ENDS).casefold()
