"""Accounts on social networks and in games: `@name`, a name beside the network's, WeChat ids."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import cache

from h2htalk.curation.anonymize.english.word_lists import is_word, words
from h2htalk.curation.anonymize.normalization import NormalizedText
from h2htalk.curation.anonymize.spans import Span, TakenCharacters
from h2htalk.curation.anonymize.structured.number_cues import Cue, Cues
from h2htalk.curation.anonymize.structured.patterns import internet_words, patterns

_RE, _WECHAT = map(patterns, ("handles", "messenger_ids"))
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


# --- WeChat ids: letters and digits beside a cue, or `wxid_`; ids of digits alone are in `identity_numbers` ---

_ELSEWHERE = frozenset(["other", "account", "plate"])
_SHORTEST, _LONGEST = 6, 20


def wechat_spans(normalized: NormalizedText, cues: Cues, taken: TakenCharacters) -> list[Span]:
    """Spans (places of the reading) of WeChat ids that hold a letter, outside of what is taken, which they join."""
    text = normalized.text
    if not text.isascii():  # Han digits in a Latin word are digits: coco八八
        text = _WECHAT["han_digits"].sub(lambda m: normalized.digits[m.start() : m.end()], text)
    spans = taken.keep(Span(*m.span(), "WECHAT", 0.98) for m in _WECHAT["wxid"].finditer(text))
    glued = [cue.end() for cue in _WECHAT["glued"].finditer(text)]
    ends = [*(cue.end for cue in cues.found if cue.kind == "wechat"), *glued]
    spans += taken.keep(span for end in ends for span in _behind(text, end))
    return spans + taken.keep(_about(text, cues))


def _about(text: str, cues: Cues) -> Iterator[Span]:
    """Ids in a message that speaks of WeChat, or of adding somebody, wherever the cue stands."""
    adding = [cue for cue in cues.found if cue.kind == "adding"]
    if not adding and not any(cue.kind == "wechat" for cue in cues.found):
        return
    for match in _WECHAT["token"].finditer(text):
        value, end = match.group(), match.end()
        more = _WECHAT["spaced_figures"].match(text, end) if value.isalpha() else None
        if more and len(value) + len(more.group()) > _SHORTEST:
            value, end = value + more.group()[1:], more.end()
        if not _may_be_id(value):
            continue
        near = cues.near(*match.span())
        if near.nearest in _ELSEWHERE:
            continue
        direct = near.distance("wechat") is not None
        if not _is_marked(value) and "-" not in value:
            said = direct or _stands_beside(adding, match.start(), match.end())
            if said and "wechat" in near.around and _WECHAT["pinyin"].fullmatch(value):
                yield Span(match.start(), end, "WECHAT", 0.7)
        elif direct or "wechat" in near.around:
            yield Span(match.start(), end, "WECHAT", 0.85 if direct else 0.75)
        elif near.nearest in ("", "phone", "url", "qq") and _stands_beside(adding, match.start(), match.end()):
            yield Span(match.start(), end, "WECHAT", 0.65)


def _may_be_id(value: str) -> bool:
    return (
        _SHORTEST <= len(value) <= _LONGEST
        and value not in internet_words("no_wechat")
        and not _WECHAT["no_id"].match(value)
        and any("a" <= char <= "z" for char in value)
    )


def _is_marked(value: str) -> bool:
    """Whether a figure or an underscore says that it is no word."""
    return any(char.isdigit() or char == "_" for char in value)


def _stands_beside(adding: list[Cue], start: int, end: int) -> bool:
    """Whether a word for adding somebody stands within a clause or two."""
    starts = [cue.start for cue in adding]
    return bisect_left(starts, start - 24) < bisect_right(starts, end + 20)


def _behind(text: str, cue_end: int) -> Iterator[Span]:
    """The id behind a cue."""
    lead = _WECHAT["lead"].match(text, cue_end)
    start = lead.end() if lead else cue_end
    while start > cue_end and _WECHAT["piece"].match(text[start - 1]):
        start -= 1  # a word of the lead that is the beginning of the id
    piece = _WECHAT["piece"].match(text, start)
    whole, end = "", start
    while piece:
        added = piece.group()
        short = len(whole) < _SHORTEST
        if whole and (len(whole) + len(added) > _LONGEST or not (short or added.isdigit() or len(added) < 3)):
            break
        whole, end = whole + added, piece.end()
        further = _WECHAT["further"].match(text, end)
        piece = _WECHAT["piece"].match(text, further.end()) if further else None
    value = whole.rstrip("-_")
    lettered = value[:1].isalpha() or (_is_marked(value) and not value.isdigit())
    is_qq = value.startswith("qq") and value[2:].isdigit()
    if _SHORTEST <= len(value) <= _LONGEST and lettered and not is_qq and value not in internet_words("no_wechat"):
        yield Span(start, end - (len(whole) - len(value)), "WECHAT", 0.93 if _is_marked(value) else 0.8)
