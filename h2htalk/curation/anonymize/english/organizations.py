"""Organisations in English chat: where somebody works, learns, prays, plays or is looked after, by name.

Two ways lead to one. The name ends or begins like one ("Calder Steel Works", "University of Elmsford"), or the words
before say that what follows is one ("our bakery, X").
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from h2htalk.curation.anonymize.english.tokens import (
    CAPITAL,
    COMMON,
    INITIAL,
    LOWER,
    UPPER,
    Tokens,
    folded,
    hint,
    is_word,
    words,
)
from h2htalk.curation.anonymize.spans import Span
from h2htalk.text.language_data import compile_patterns, read_data

_FOLDER = Path(__file__).parent / "words"
_SCORES = {"called": 0.65, "at_work": 0.6, "got_into": 0.6, "alone": 0.55}
_SMALL = frozenset(("of", "the", "and", "&", "for", "n", "on"))


_SCORE = 0.8
_LONGEST = 6  # words of a name on either side of its kind
_INSIDE = frozenset(("of", "and", "the", "for", "at", "in", "de", "del", "la", "le", "des", "du", "y"))
_SHORTENED = frozenset(("co", "assoc", "univ", "dept", "bros"))
_NUMBERED = re.compile(
    r"\b(?:(?:Scout |Boy |Girl |Cub )?Troop|Local|Lodge|Chapter|VFW Post|Legion Post|Precinct|PS|P\.S\.)[ ]#?\d{1,5}\b"
)


@cache
def _org_words() -> dict[str, frozenset[str]]:
    """The sets of words of organization_words.toml."""
    raw = read_data(_FOLDER / "organization_words.toml")
    return {key: frozenset(folded(w) for w in value.split()) for key, value in raw.items()}


@cache
def _cues() -> tuple[tuple[re.Pattern[str], float], ...]:
    """What announces a name (`name`), each with the score of what it finds."""
    parts = {key: "|".join(sorted(_org_words()[key])).replace("_", " ") for key in ("kinds", "work")}
    patterns = compile_patterns(read_data(_FOLDER / "organization_cues.toml"), parts)
    return tuple((patterns[name], score) for name, score in _SCORES.items())


def find_organizations(tokens: Tokens) -> list[Span]:
    """Spans of ORGANIZATION in a text's words, those that `tokens` blocks left out; in order, none overlap."""
    spans = [Span(*match.span(), "ORGANIZATION", _SCORE) for match in _NUMBERED.finditer(tokens.text)]
    tokens.block(spans)
    kinds = _org_words()["suffix"] | hint("fronted")
    reached = 0
    for index, word in enumerate(tokens.words):
        if index < reached or word not in kinds or tokens.blocked[index] or tokens.shapes[index] == LOWER:
            continue
        if bounds := _by_kind(tokens, index, reached):
            first, reached = bounds
            start = tokens.starts[first]
            start -= 4 * (tokens.text[max(0, start - 5) : start] == " The ")  # "at The Lighthouse Centre"
            spans.append(Span(start, _closed(tokens, reached), "ORGANIZATION", _SCORE))
    tokens.block(spans)
    return sorted(spans + _cued(tokens))


def _cued(tokens: Tokens) -> list[Span]:
    """What only the words before tell, where nothing was found yet."""
    more: list[Span] = []
    for start, end, score in sorted(_cued_organizations(tokens.text), key=lambda each: (each[0], -each[1])):
        start += 4 * tokens.text.startswith("the ", start)  # an article is none of the name unless written so
        first, last = bisect_left(tokens.starts, start), bisect_left(tokens.starts, end)
        if first < last and not any(tokens.blocked[first:last]) and not (more and start < more[-1].end):
            more.append(Span(start, end, "ORGANIZATION", score))
    return more


def _closed(tokens: Tokens, end: int) -> int:
    """The end of the name's last word; Inc. has its point."""
    last = tokens.ends[end - 1]
    pointed = tokens.words[end - 1] in hint("firm") | _SHORTENED and tokens.text[last : last + 1] == "."
    return last + pointed


def _by_kind(tokens: Tokens, index: int, reached: int) -> tuple[int, int] | None:
    """A name by the kind of thing that it ends in or begins with, as its first word and its end."""
    lists, word = _org_words(), tokens.words[index]
    first = index
    while first > reached and index - first < _LONGEST and _joined(tokens, first) and _is_part(tokens, first - 1):
        first -= 1
    while first < index and tokens.words[first] in _INSIDE | hint("not_names"):
        first += 1
    end = _last_word(tokens, index) + 1
    whole = tokens.words[first:end]
    named = [w for w in whole if w not in lists["suffix"] | lists["generic"] | _INSIDE]
    following = end > index + 1 and word in hint("fronted")
    if not named or (first == index and not following):
        return None
    before = tokens.word(first - 2) if tokens.word(first - 1) == "the" else tokens.word(first - 1)
    if whole[-1] in lists["doing"] and before not in ("at", "from") and all(map(is_word, named)):
        return None
    single = end - first == 2 and tokens.opens[first] and is_word(whole[0])
    return None if single else (first, end)


def _joined(tokens: Tokens, index: int) -> bool:
    """Whether a word and the one before it can stand in one name."""
    if not 0 < index < len(tokens) or tokens.blocked[index]:
        return False
    gap = tokens.text[tokens.ends[index - 1] : tokens.starts[index]]
    if tokens.possessive[index - 1]:
        gap = gap[2:]
    return gap in (" ", " & ", "&", "-") or (gap == ". " and tokens.words[index - 1] == "st")


def _is_capital(tokens: Tokens, index: int) -> bool:
    return 0 <= index < len(tokens) and tokens.shapes[index] in (CAPITAL, UPPER, INITIAL) and tokens.words[index] != "i"


def _is_part(tokens: Tokens, index: int) -> bool:
    """Whether a word can be inside a name: capitalised, or a small word between such."""
    word = tokens.words[index]
    if tokens.blocked[index]:
        return False
    if _is_capital(tokens, index):
        return word not in hint("not_names")
    return word in ("of", "and", "st") and _is_capital(tokens, index - 1) and _joined(tokens, index)


def _last_word(tokens: Tokens, index: int) -> int:
    """The last word of the name whose word at `index` is surely in it."""
    last = index
    while last - index < _LONGEST and last + 1 < len(tokens):
        after = last + 1
        word = tokens.words[after]
        if _begins_part(tokens, after):
            last = after
        elif word in ("of", "and", "de", "the") and tokens.spaced[after] and _begins_part(tokens, after + 1):
            if word != "of" and tokens.words[after + 1] not in _org_words()["suffix"]:
                break
            last = after + 1
        else:
            break
    return last


def _begins_part(tokens: Tokens, index: int) -> bool:
    return _joined(tokens, index) and _is_capital(tokens, index) and tokens.words[index] not in hint("not_names")


def _cued_organizations(text: str) -> Iterator[tuple[int, int, float]]:
    """(start, end, score in [0, 1]) of each, in no order; they may overlap."""
    for pattern, score in _cues():
        for hit in pattern.finditer(text):
            aimed = "before" in pattern.groupindex and hit["before"].lower() in _org_words()["aimed"]
            if not aimed and _is_named(hit["name"]):
                yield *hit.span("name"), score


def _is_named(name: str) -> bool:
    """Whether words in capitals can be an organisation's: no person's, no town's, no day's, no site's."""
    lists, own = words(), _org_words()
    parts = [part.lower().replace("'s", "").replace("’s", "").strip(".") for part in name.split()]
    inner = [part for part in parts if part not in _SMALL]
    if not inner or inner[0] in hint("not_names") | own["sites"] | lists.hints["kin"]:
        return False
    if len(inner) > 1 and inner[-1] in own["suffix"]:
        return True
    if all(part in lists.hints["places"] or part in ("new", "north", "south", "east", "west") for part in inner):
        return False
    given = lists.given.get(inner[0], 0)
    owned = "'" in name or "’" in name
    if not owned and ((given and len(inner) == 1) or (given >= COMMON and len(inner) == 2 and not is_word(inner[1]))):
        return False
    if len(inner) > 1:
        return True
    return not (is_word(inner[0]) or inner[0] in hint("stop") or (name.isupper() and len(name) < 5))
