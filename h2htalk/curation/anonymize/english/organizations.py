"""Organisations in English chat: where somebody works, learns, prays, plays or is looked after, by name.

Two ways lead to one. The name ends like one ("Calder Steel Works", "st luke's hospital"), or the sentence says that
what follows is one ("I work at Foodbarn", "my union, Local 482": english_employers.py).
"""

from __future__ import annotations

import re
from bisect import bisect_left

from h2htalk.curation.anonymize.english.organization_cues import (
    LONGEST,
    NAMED,
    PLACE,
    PLACED,
    by_sentence,
    cued_organizations,
    is_capital,
    is_part,
    joined,
    last_word,
    org_words,
)
from h2htalk.curation.anonymize.english.token_features import LOWER, Tokens
from h2htalk.curation.anonymize.english.word_lists import hint, is_word, words
from h2htalk.curation.anonymize.spans import Span

_INSIDE = frozenset(("of", "and", "the", "for", "at", "in", "de", "del", "la", "le", "des", "du", "st", "y"))
_INITIAL = re.compile(r"(?<![\w.])[A-Z]\. $")
_SHORTENED = frozenset(("co", "assoc", "univ", "dept", "bros"))
_NUMBERED = re.compile(
    r"\b(?:(?:Scout |Boy |Girl |Cub )?Troop|Local|Lodge|Chapter|VFW Post|Legion Post|Precinct|PS|P\.S\.)[ ]#?\d{1,5}\b"
)


def find_organizations(tokens: Tokens) -> list[Span]:
    """Spans of ORGANIZATION in a text's words, those that `tokens` blocks left out; in order, none overlap."""
    lists = org_words()
    spans = [Span(*match.span(), "ORGANIZATION", NAMED) for match in _NUMBERED.finditer(tokens.text)]
    tokens.block(spans)
    reached = 0
    for index, word in enumerate(tokens.words):
        if index < reached or tokens.blocked[index]:
            continue
        if (
            word in lists["suffix"]
            or word in lists["half"]
            or word in hint("greek")
            or word in hint("fronted")
            or word in hint("fronts")
        ):
            bounds = _by_kind(tokens, index, reached)
            if not bounds and word in lists["direct"]:
                bounds = by_sentence(tokens, index)
        elif word in PLACE or word in lists["direct"]:
            bounds = by_sentence(tokens, index)
        else:
            continue
        if bounds:
            first, end, score = bounds
            spans.append(Span(tokens.starts[first], _closed(tokens, end), "ORGANIZATION", score))
            reached = end
    tokens.block(spans)
    spans += _cued(tokens)
    return _apart(sorted(_with_article(tokens, span) for span in spans))


def _cued(tokens: Tokens) -> list[Span]:
    """What only the words before tell, where nothing was found yet."""
    more: list[Span] = []
    for start, end, score in sorted(cued_organizations(tokens.text), key=lambda each: (each[0], -each[1])):
        start += 4 * tokens.text.startswith("the ", start)  # an article is none of the name unless written so
        first = bisect_left(tokens.starts, start)
        last = bisect_left(tokens.starts, end)
        if any(tokens.blocked[first:last]) or (more and start < more[-1].end) or first == last:
            continue
        more.append(Span(start, end, "ORGANIZATION", score))
    return more


def _with_article(tokens: Tokens, span: Span) -> Span:
    """The name with its article, where that is written as part of it: "at The Lighthouse Centre"."""
    before = tokens.text[max(0, span.start - 6) : span.start]
    if before.endswith(" The "):
        return Span(span.start - 4, span.end, span.type, span.score)
    initial = _INITIAL.search(before)
    return Span(span.start - len(initial[0]), span.end, span.type, span.score) if initial else span


def _apart(ordered: list[Span]) -> list[Span]:
    kept: list[Span] = []
    for span in ordered:
        if not kept or span.start >= kept[-1].end:
            kept.append(span)
    return kept


def _closed(tokens: Tokens, end: int) -> int:
    """The end of the name's last word; Inc. has its point, and Tully's its ending where nothing is owned."""
    last = tokens.ends[end - 1]
    after = tokens.text[last : last + 3]
    if tokens.possessive[end - 1] and after[2:] in ("", ",", ".", "!", "?", ";", ")", "\n"):
        return last + 2
    pointed = tokens.words[end - 1] in hint("firm") | _SHORTENED and after[:1] == "."
    return last + 1 if pointed else last


def _by_kind(tokens: Tokens, index: int, reached: int) -> tuple[int, int, float] | None:
    """A name by the kind of thing it ends in or begins with, as first word, end and score."""
    lists = org_words()
    if tokens.shapes[index] == LOWER:
        return _lower_case_name(tokens, index, reached)
    if (
        tokens.words[index] in hint("fronts")
        and index + 1 < len(tokens)
        and is_capital(tokens, index + 1)
        and joined(tokens, index + 1)
    ):
        return index, last_word(tokens, index + 1) + 1, NAMED
    first = index
    while first > reached and index - first < LONGEST and joined(tokens, first) and is_part(tokens, first - 1):
        first -= 1
    while first < index and (tokens.words[first] in _INSIDE - {"st"} or tokens.words[first] in hint("not_names")):
        first += 1
    end = last_word(tokens, index) + 1
    if tokens.words[end - 1] not in lists["suffix"] and not _lacks_kind_word(tokens, first, end):
        return None
    named = [w for w in tokens.words[first:end] if w not in lists["suffix"] and w not in lists["generic"] | _INSIDE]
    if tokens.words[index] in hint("greek"):
        greek = [w for w in tokens.words[first:end] if w in hint("greek")]
        return (first, end, NAMED) if len(greek) > 1 else None
    following = end > index + 1 and tokens.words[index] in hint("fronted")
    if not named or (first == index and not following):
        return None
    last = tokens.words[end - 1]
    if last in ("team", "airport", "hotel", "city", "state", "county") and all(
        word in hint("places") for word in named
    ):
        return None
    before = tokens.word(first - 2) if tokens.word(first - 1) == "the" else tokens.word(first - 1)
    if last in lists["doing"] and before not in ("at", "from") and all(is_word(word) for word in named):
        return None
    single = end - first == 2 and tokens.opens[first] and is_word(tokens.words[first])
    return None if single else (first, end, NAMED)


def _lacks_kind_word(tokens: Tokens, first: int, end: int) -> bool:
    """Whether "Mercy General" stands where an organisation stands; a name that begins with its kind needs no place."""
    if any(
        word in hint("fronted") or word in hint("greek") or word in org_words()["suffix"]
        for word in tokens.words[first:end]
    ):
        return True
    return end - first > 1 and tokens.word(first - 1) in ("at", "to", "from", "into", "for", "by")


def _lower_case_name(tokens: Tokens, index: int, reached: int) -> tuple[int, int, float] | None:
    """A name in lower case: after "at", "from" and their like, with a word that is no kind of school or firm."""
    lists = org_words()
    if tokens.words[index] not in lists["suffix"] or tokens.words[index] in (
        "pictures",
        "works",
        "state",
        "trust",
        "union",
    ):
        return None
    first = index
    while first > reached and index - first < 4 and joined(tokens, first) and tokens.shapes[first - 1] == LOWER:
        if tokens.words[first - 1] in PLACE | hint("not_names") | {
            "and",
            "is",
            "was",
            "go",
            "went",
            "on",
            "me",
            "him",
            "them",
        }:
            break
        if tokens.words[first - 1] in words().hints["kin"] or tokens.words[first - 1] in lists["work"]:
            break
        first -= 1
    before = tokens.word(first - 1)
    if first == index or first == 0 or before not in hint("before_small"):
        return None
    inner = tokens.words[first:index]
    if any(word in words().hints["places"] or word in hint("grammar") for word in inner):
        return None
    strange = [w for w in inner if not is_word(w) and len(w) > 3 and w not in lists["generic"]]
    telling = [w for w in inner if w not in lists["generic"] and w not in lists["suffix"]]
    saint = inner[0] in ("st", "saint", "mt") and len(inner) > 1
    if tokens.words[index] in lists["doing"] and before not in ("at", "from"):
        return None
    sure = (
        saint
        or strange
        or (len(telling) > 1 and before == "at")
        or (len(telling) == 1 and before == "at" and (len(inner) > 1 or tokens.words[index] not in lists["weak"]))
    )
    joined_suffix = index
    while (
        joined_suffix + 1 < len(tokens)
        and joined(tokens, joined_suffix + 1)
        and tokens.words[joined_suffix + 1] in lists["suffix"]
    ):
        joined_suffix += 1
    return (first, joined_suffix + 1, PLACED) if sure else None
