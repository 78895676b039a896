"""Counting sentences of English and Chinese chat replies (docs/contracts.md)."""

from __future__ import annotations

import re

_END = re.compile(r"(\.(?: \.)+|[.!?…⋯。！？．]+)([\"'”’」』）)\]》]*)")
_LIST_MARK = re.compile(r"\s*(?:\d{1,2}[.．、)）]|[-*•·])\s*(?=\D)")
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")
_LAST_TOKEN = re.compile(r"(?:^|[^A-Za-z.])([A-Za-z][A-Za-z.]{0,7})$")
_INITIALS = re.compile(r"[A-Z](?:\.[A-Z])*|[a-z](?:\.[a-z])+")  # J. Smith, P.S., e.g.
_ELLIPSIS = ".…⋯ "
_HESITATION = re.compile(r"\s*[\u3400-\u9fff]{1,2}\s*")  # 嗯……好
_FIRST_PERSON = re.compile(r"I(?:\b|['’])")

# Never the end of a sentence: what they stand before follows.
_TITLES = frozenset(
    ["mr", "mrs", "ms", "mx", "dr", "prof", "rev", "gen", "lt", "gov", "st", "mt", "ft", "vs", "cf"]
)
# Not the end before a digit: No. 5, Sept. 17.
_BEFORE_DIGITS = frozenset(["no", "jan", "feb", "aug", "sept", "oct", "nov", "dec"])
# The end of a sentence only when a capital follows; "I" is always a capital and says nothing.
_SHORT_FORMS = frozenset(["a.m", "p.m", "etc", "u.s", "u.k", "ph.d", "jr", "sr", "approx", "inc"])


def count_sentences(text: str) -> int:
    """How many sentences the text has. Stretches without a letter or digit (an emoji, `……`) are none.

    A sentence ends with a run of `. ! ? … 。 ！ ？` and its closing quotes, or with the line; what follows
    the last end counts too. Not an end: the point of a decimal, an abbreviation, a list number; an ellipsis
    or a quotation's own mark after which the sentence goes on.
    """
    return sum(_count_in_line(line) for line in text.splitlines())


def _count_in_line(line: str) -> int:
    mark = _LIST_MARK.match(line)
    start = mark.end() if mark else 0
    count = 0
    for end in _END.finditer(line, start):
        if _ends_sentence(line, start, end):
            count += _LETTER_OR_DIGIT.search(line, start, end.start()) is not None
            start = end.end()
    return count + (_LETTER_OR_DIGIT.search(line, start) is not None)


def _ends_sentence(line: str, start: int, end: re.Match[str]) -> bool:
    marks, closers = end[1], end[2]
    rest = line[end.end() : end.end() + 8]
    following = rest.lstrip()
    if not following:
        return True
    if marks == "." and not closers:
        return _full_stop_ends(line, end.start(), rest, following)
    if closers:  # `“没事。”你说` and `"Really?" she asked` go on
        return not (following[0].islower() or (rest[0] == following[0] and _is_han(rest[0])))
    if marks[0] in _ELLIPSIS and not marks.strip(_ELLIPSIS):
        return not (following[0].islower() or _HESITATION.fullmatch(line, start, end.start()))
    return True


def _full_stop_ends(line: str, position: int, rest: str, following: str) -> bool:
    if (rest[0].isascii() and rest[0].isalnum()) or rest[0] in ",;:/’'-":
        return False
    match = _LAST_TOKEN.search(line, max(0, position - 9), position)
    token = match[1] if match else ""
    lowered = token.lower()
    if lowered in _TITLES or (lowered in _BEFORE_DIGITS and following[0].isdigit()):
        return False
    if lowered in _SHORT_FORMS:
        return not (following[0].islower() or following[0].isdigit() or _FIRST_PERSON.match(following))
    return not (token != "I" and _INITIALS.fullmatch(token))


def _is_han(character: str) -> bool:
    return "\u3400" <= character <= "\u9fff" or character >= "\U00020000"
