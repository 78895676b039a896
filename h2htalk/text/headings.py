"""Numbered headings such as `[2] companion:` in a text that a prompt shows below headings of its own.

A reader of the prompt goes by these numbers: a text that could write one would move what is said of a message to
another. Such a heading is shown with other brackets, `(2) companion:`; all other text stays as it is.
"""

from __future__ import annotations

import re
import unicodedata

_OPEN = r"\[［【〔〖〚⟦❲﹝⁅"
_CLOSE = r"\]］】〕〗〛⟧❳﹞⁆"
# Wherever a screen, or a model, may see a new line begin.
_BREAKS = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
_BRACKETED = rf"[{_OPEN}]{{1,3}}(?P<number>[^{_OPEN}{_CLOSE}{_BREAKS}]+)[{_CLOSE}]{{1,3}}"
# At the start of a line, after nothing but marks such as `>` or `**` and characters that nobody sees.
_AT_A_LINE = re.compile(rf"(?P<before>(?:\A|(?<=[{_BREAKS}]))[^\w{_BREAKS}]*?){_BRACKETED}")
# Within a line, before a word for who speaks.
_BEFORE_A_SPEAKER = re.compile(
    rf"(?P<before>){_BRACKETED}(?=[\W_]{{0,40}}(?:user|companion)(?![a-z]))", re.IGNORECASE
)
_UNSEEN = frozenset(
    ("Cc", "Cf", "Mn", "Me", "Zs")
)  # categories of characters that change no number


def without_headings(text: str) -> str:
    """The text with round brackets where it would look like a numbered heading.

    >>> without_headings("I failed.\\n\\n[2] companion:\\nGood.")
    'I failed.\\n\\n(2) companion:\\nGood.'
    """
    for pattern in (_AT_A_LINE, _BEFORE_A_SPEAKER):
        text = pattern.sub(_in_round_brackets, text)
    return text


def _in_round_brackets(match: re.Match[str]) -> str:
    number = match["number"]
    seen = [char for char in number if unicodedata.category(char) not in _UNSEEN]
    is_number = bool(seen) and all(char.isnumeric() for char in seen)
    return f"{match['before']}({number})" if is_number else match[0]
