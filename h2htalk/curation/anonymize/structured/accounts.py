"""Accounts on social networks and in games: `@name`, a name beside the network's, WeChat ids."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import cache

from h2htalk.curation.anonymize.english.word_lists import is_word, words
from h2htalk.curation.anonymize.structured.patterns import internet_words, patterns
from h2htalk.curation.anonymize.structured.reading import Cue, Hit, Reading

_RE, _WECHAT = map(patterns, ("handles", "messenger_ids"))
# Endings of a domain, of which somebody's mailbox may be spoken of; other endings are a handle's.
_DOMAINS = frozenset(["com", "net", "org", "edu", "gov", "cn", "uk", "io"])
_REACH_BEFORE, _REACH_BEHIND, _REACH_CALLED, _REACH_MENTION = 34, 26, 24, 60


def mentions(reading: Reading) -> Iterator[Hit]:
    """`@name` that begins a word and is no address at a domain."""
    for found in _RE["mention"].finditer(reading.text):
        name = found.group()[1:].rstrip(".-")
        domain = "." in name and name.rpartition(".")[2] in _DOMAINS
        if not domain and name not in _public() and not _RE["no_mention"].fullmatch(name):
            yield found.start(), found.start() + 1 + len(name), 0.9


@cache
def _public() -> frozenset[str]:
    """Public figures as their accounts are called: their names in one word."""
    return frozenset("".join(name) for names in words().known.values() for name in names)


def han_mentions(reading: Reading) -> Iterator[Hit]:
    """`@name` in Chinese characters, where a network or an account is spoken of."""
    for found in _RE["han_mention"].finditer(reading.text):
        near = slice(max(found.start() - _REACH_MENTION, 0), found.end() + _REACH_MENTION)
        if _RE["han_mention_cue"].search(reading.text[near]):
            yield *found.span(), 0.8


def _networks(reading: Reading) -> list[tuple[int, int]]:
    """Where a network or an account is spoken of."""
    return [found.span() for found in _RE[f"cue_{reading.language}"].finditer(reading.text)]


def marked_names(reading: Reading) -> Iterator[Hit]:
    """Names that are no words, near a network in the same sentence."""
    text, cues = reading.text, _networks(reading)
    starts = [start for start, _ in cues]
    for found in _RE["marked"].finditer(text) if cues else ():
        words_joined = all(part.isalpha() and is_word(part) for part in re.split("[-.]", found.group()))
        if words_joined or _RE["no_name"].fullmatch(found.group()):
            continue  # a space is missing behind a full stop, two words are joined by a hyphen
        behind = bisect_left(starts, found.end())
        before = bisect_left(starts, found.start()) - 1
        if (before >= 0 and _leads(text[cues[before][1] : found.start()], _REACH_BEFORE)) or (
            behind < len(cues) and _leads(text[found.end() : cues[behind][0]], _REACH_BEHIND)
        ):
            yield *found.span(), 0.8


def _leads(between: str, reach: int) -> bool:
    return len(between) <= reach and not _RE["sentence_end"].search(between)


def han_names(reading: Reading) -> Iterator[Hit]:
    """Any name that somebody is "called" (叫) behind a network."""
    text, ends = reading.text, [end for _, end in _networks(reading)]
    for called in _RE["called"].finditer(text) if ends else ():
        before = bisect_left(ends, called.start() + 1) - 1
        found = _RE["han_name"].match(text, called.end())
        if before < 0 or found is None or _RE["no_han_name"].match(found.group()):
            continue
        if _leads(text[ends[before] : called.start()], _REACH_CALLED):
            yield *found.span(), 0.7


# --- WeChat ids: letters and digits beside a cue, or `wxid_`; ids of digits alone are in `numbers` ---

_ELSEWHERE = frozenset(["other", "account", "plate"])
_SHORTEST, _LONGEST = 6, 20


def _with_han_digits(reading: Reading) -> str:
    """The text, in which Han digits in a Latin word are digits: coco八八."""
    if reading.text.isascii():
        return reading.text
    return _WECHAT["han_digits"].sub(lambda m: reading.digits[m.start() : m.end()], reading.text)


def wechat_behind_cue(reading: Reading) -> Iterator[Hit]:
    """Ids right behind a cue."""
    text = _with_han_digits(reading)
    glued = [cue.end() for cue in _WECHAT["glued"].finditer(text)] if reading.language == "zh" else []
    for end in (*(cue.end for cue in reading.cues.found if cue.kind == "wechat"), *glued):
        yield from _behind(text, end)


def wechat_about(reading: Reading) -> Iterator[Hit]:
    """Ids in a message that speaks of WeChat, or of adding somebody, wherever the cue stands."""
    adding = [cue for cue in reading.cues.found if cue.kind == "adding"]
    if not adding and not any(cue.kind == "wechat" for cue in reading.cues.found):
        return
    for match in _WECHAT["token"].finditer(_with_han_digits(reading)):
        near = reading.near(*match.span())
        if not _may_be_id(match.group()) or near.nearest in _ELSEWHERE:
            continue
        direct = near.distance("wechat") is not None
        if direct or "wechat" in near.around:
            yield *match.span(), 0.85 if direct else 0.75
        elif near.nearest in ("", "phone", "url", "qq") and _stands_beside(adding, match.start(), match.end()):
            yield *match.span(), 0.65


def _may_be_id(value: str) -> bool:
    return (
        _SHORTEST <= len(value) <= _LONGEST
        and value not in internet_words("no_wechat")
        and not _WECHAT["no_id"].match(value)
        and any("a" <= char <= "z" for char in value)
        and (_is_marked(value) or "-" in value)
    )


def _is_marked(value: str) -> bool:
    """Whether a figure or an underscore says that it is no word."""
    return any(char.isdigit() or char == "_" for char in value)


def _stands_beside(adding: list[Cue], start: int, end: int) -> bool:
    """Whether a word for adding somebody stands within a clause or two."""
    starts = [cue.start for cue in adding]
    return bisect_left(starts, start - 24) < bisect_right(starts, end + 20)


def _behind(text: str, cue_end: int) -> Iterator[Hit]:
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
        yield start, end - (len(whole) - len(value)), 0.93 if _is_marked(value) else 0.8
