"""Names of accounts on social networks and in games: `@name`, or a name beside the network's."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cache

from h2htalk.curation.anonymize.english.word_lists import is_word, words
from h2htalk.curation.anonymize.spans import Span
from h2htalk.curation.anonymize.structured.patterns import patterns

_RE = patterns("handles")
# Endings of a domain, of which somebody's mailbox may be spoken of; other endings are a handle's.
_DOMAINS = frozenset(["com", "net", "org", "edu", "gov", "cn", "uk", "io"])
_REACH_BEFORE, _REACH_BEHIND, _REACH_CALLED, _REACH_MENTION = 34, 26, 24, 60


def mention_spans(text: str) -> Iterator[Span]:
    """Spans of `@name` that begin a word and are no address at a domain."""
    for found in _RE["mention"].finditer(text):
        name = found.group()[1:].rstrip(".-")
        domain = "." in name and name.rpartition(".")[2] in _DOMAINS
        if not domain and name not in _public() and not _RE["no_mention"].fullmatch(name):
            yield Span(found.start(), found.start() + 1 + len(name), "HANDLE", 0.9)


def handle_spans(text: str, language: str) -> Iterator[Span]:
    """Other spans of HANDLE in a plain text in lower case; some overlap."""
    if "u/" in text or "#" in text:
        yield from (Span(*found.span(), "HANDLE", 0.95) for found in _RE["own_form"].finditer(text))
    if language == "zh":
        yield from (Span(*found.span("name"), "HANDLE", 0.8) for found in _RE["numbered"].finditer(text))
    cues = [found.span() for found in _RE[f"cue_{language}"].finditer(text)]
    if cues:
        yield from _marked(text, cues)
        yield from _told(text)
        if language == "zh":
            yield from _latin_names(text, cues)
            yield from _han_names(text, cues)
    for found in _RE["han_mention"].finditer(text) if "@" in text else ():
        near = slice(max(found.start() - _REACH_MENTION, 0), found.end() + _REACH_MENTION)
        if _RE["han_mention_cue"].search(text[near]):
            yield Span(*found.span(), "HANDLE", 0.8)


def _marked(text: str, cues: Sequence[tuple[int, int]]) -> Iterator[Span]:
    """Names that are no words, near a cue in the same sentence."""
    starts = [start for start, _ in cues]
    for found in _RE["marked"].finditer(text):
        words_joined = all(part.isalpha() and is_word(part) for part in re.split("[-.]", found.group()))
        if words_joined or _RE["no_name"].fullmatch(found.group()):
            continue  # a space is missing behind a full stop, two words are joined by a hyphen
        behind = bisect_left(starts, found.end())
        before = bisect_left(starts, found.start()) - 1
        if (before >= 0 and _leads(text[cues[before][1] : found.start()], _REACH_BEFORE)) or (
            behind < len(cues) and _leads(text[found.end() : cues[behind][0]], _REACH_BEHIND)
        ):
            yield Span(*found.span(), "HANDLE", 0.8)


def _leads(between: str, reach: int) -> bool:
    return len(between) <= reach and not _RE["sentence_end"].search(between)


def _told(text: str) -> Iterator[Span]:
    for found in (*_RE["told_behind"].finditer(text), *_RE["told_before"].finditer(text)):
        name = found["name"].rstrip(".-")
        if not is_word(name) and name not in _public() and not _RE["no_name"].fullmatch(name):
            yield Span(found.start("name"), found.start("name") + len(name), "HANDLE", 0.7)


def _latin_names(text: str, cues: Sequence[tuple[int, int]]) -> Iterator[Span]:
    """A name in Latin letters right behind a Chinese cue."""
    for _, end in cues:
        lead = _RE["lead"].match(text, end)
        found = _RE["latin_name"].match(text, lead.end() if lead else end)
        name = found.group().rstrip(".-") if found else ""
        if found and len(name) > 3 and not _RE["no_name"].fullmatch(name) and not is_word(name):
            yield Span(found.start(), found.start() + len(name), "HANDLE", 0.75)


def _han_names(text: str, cues: Sequence[tuple[int, int]]) -> Iterator[Span]:
    """Any name that somebody is "called" (叫) behind a cue."""
    ends = [end for _, end in cues]
    for called in _RE["called"].finditer(text):
        before = bisect_left(ends, called.start() + 1) - 1
        found = _RE["han_name"].match(text, called.end())
        if before < 0 or found is None or _RE["no_han_name"].match(found.group()):
            continue
        if found.group() not in _public() and _leads(text[ends[before] : called.start()], _REACH_CALLED):
            yield Span(*found.span(), "HANDLE", 0.7)


@cache
def _public() -> frozenset[str]:
    """Public figures as their accounts are called: their names in one word."""
    return frozenset("".join(name) for names in words().known.values() for name in names)
