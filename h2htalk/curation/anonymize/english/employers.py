"""Organisations that the sentence announces: "I work at Foodbarn", "my union, Local 482", "a band called Otters"."""

from __future__ import annotations

import re

from h2htalk.curation.anonymize.english.organization_parts import (
    PLACE,
    PLACED,
    STRICT,
    is_capital,
    last_word,
    org_words,
)
from h2htalk.curation.anonymize.english.token_features import LOWER, UPPER, Tokens
from h2htalk.curation.anonymize.english.word_lists import COMMON, hint, is_word, words

# "Morton, Hale & Dunn": surnames, the last after "&".
_PARTNERS = re.compile(r", [A-Z][\w'’-]{1,20}(?:, [A-Z][\w'’-]{1,20}){0,3},? & [A-Z][\w'’-]{1,20}")


def by_sentence(found: Tokens, place: int) -> tuple[int, int, float] | None:
    """A name because the sentence says so: "work at X", "my company, X"."""
    lists = org_words()
    word = found.words[place]
    first = place + 1
    if first < len(found) and found.words[first] == "the" and found.spaced[first]:
        first += 1
    if first >= len(found) or found.blocked[first] or found.opens[first]:
        return None
    gap = found.text[found.ends[place] : found.starts[place + 1]]
    if word in PLACE:
        if gap != " " or not (_is_work(found, place) or found.word(place - 1) in lists["suffix"]):
            return None
    elif not _announced(found, place, gap):
        return None
    if word in ("called", "named") and found.word(place - 1) in lists["called"] and is_capital(found, first):
        return place + 1, last_word(found, first) + 1, PLACED
    if word in ("called", "named") and found.word(place - 2) not in lists["called"]:
        return None
    if not is_capital(found, first):
        return _small_employer(found, place, first) if word in STRICT and first == place + 1 else None
    return _named_employer(found, place, first)


def _announced(found: Tokens, place: int, gap: str) -> bool:
    """ "quit X", "joined X"; "my company, X": an owner before, a comma or "is" between."""
    word = found.words[place]
    if word in ("quit", "joined", "attend", "attends", "attended", "attending"):
        return gap == " "
    owned = (
        found.word(place - 1) in ("my", "our", "her", "his", "their", "old") or found.possessive[place - 1]
    )
    return word != "left" and gap in (", ", " - ", ": ") and owned


def _is_work(found: Tokens, place: int) -> bool:
    """Whether up to six words before "at" or "for" in the sentence speak of work, study or care."""
    work = org_words()["work"]
    allowed = 8 if found.words[place] in STRICT else 2
    for back in range(place - 1, max(-1, place - 1 - allowed), -1):
        if found.words[back] in work:
            return True
        if found.opens[back]:
            return False
    return False


def _named_employer(found: Tokens, place: int, first: int) -> tuple[int, int, float] | None:
    lists, general = org_words(), words()
    end = last_word(found, first) + 1
    # "Morton, Hale & Dunn": a list of surnames closed by "&".
    tail = _PARTNERS.match(found.text, found.ends[end - 1])
    while tail and end < len(found) and found.starts[end] < tail.end():
        end += 1
    inner = found.words[first:end]
    where = found.words[place]
    if len(inner) == 1:
        word = inner[0]
        if found.shapes[first] == UPPER and len(word) < 6 and where != "at":
            return None
        if (
            word in hint("not_names")
            or word in general.hints["places"]
            or word in general.hints["titles"]
            or word in lists["generic"]
        ):
            return None
        if general.given.get(word) == COMMON or (word in general.words and where not in STRICT):
            return None
        if where in ("of", "by", "in", "to", "into", "with", "as", "off", "called", "named"):
            return None
    elif all(word in general.hints["places"] or word in ("new", "of", "the") for word in inner) or (
        inner[0] in general.hints["titles"]
        or (general.given.get(inner[0]) == COMMON and len(inner) == 2 and inner[1] in general.surnames)
    ):
        return None
    moved = found.word(place - 1) in (
        "transferred",
        "transfer",
        "accepted",
        "applied",
        "got",
        "apply",
        "commute",
    )
    if (
        where in ("in", "to", "into", "of", "by", "with", "as", "off")
        and not set(inner) & lists["suffix"]
        and not moved
    ):
        return None
    return first, end, PLACED


def _small_employer(found: Tokens, place: int, first: int) -> tuple[int, int, float] | None:
    """ "i work at mcallister tires": up to three words in lower case, one of them in no list of English words."""
    general = words()
    if found.word(place - 1) not in hint("at_work"):
        return None
    end = first
    while end < min(first + 3, len(found)) and (end == first or found.spaced[end]):
        word = found.words[end]
        if (
            word in PLACE | hint("not_names")
            or (word in org_words()["generic"] and end == first)
            or found.shapes[end] != LOWER
        ):
            break
        if word in hint("after_employer"):
            break
        end += 1
    strange = [
        w
        for w in found.words[first:end]
        if (not is_word(w) or w in hint("makes"))
        and len(w) > 3
        and w not in general.given
        and w not in hint("counts")
    ]
    if end - first == 1 and found.words[first].endswith("s") and found.words[place] == "for":
        return None
    last = max(
        (
            p
            for p in range(first, end)
            if found.words[p] in strange or found.words[p] in org_words()["suffix"]
        ),
        default=-1,
    )
    return (first, last + 1, PLACED) if strange else None
