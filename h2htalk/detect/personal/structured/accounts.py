"""Rules of accounts on social networks, in games and in messengers: `@name`, a name beside the network's, WeChat ids.

Ids of digits alone are in `numbers`.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import cache

from h2htalk.detect.personal.english.persons import is_word, words
from h2htalk.detect.personal.structured.reading import Hit, Reading, internet_words, patterns

_RE = patterns("handles")
_WECHAT = patterns("messenger_ids")
# Endings of a domain, of which somebody's mailbox may be spoken of; other endings are a handle's.
_DOMAINS = frozenset(["com", "net", "org", "edu", "gov", "cn", "uk", "io"])
# At most so many characters between a name and the word for a network before it or behind it.
_REACH_BEFORE, _REACH_BEHIND, _REACH_CALLED, _REACH_MENTION = 34, 26, 24, 60
# The same between an id of WeChat and a word for adding somebody.
_REACH_ADDING_BEFORE, _REACH_ADDING_BEHIND = 24, 20
_NO_HANDLE = frozenset(["other", "account", "plate"])
_OF_MESSENGERS = frozenset(["", "phone", "url", "qq"])


def mentions(reading: Reading) -> Iterator[Hit]:
    """`@name` that begins a word and is no address at a domain; of Chinese characters where a network is spoken of."""
    for match in _RE["mention"].finditer(reading.text):
        name = match.group()[1:].rstrip(".-")
        domain = "." in name and name.rpartition(".")[2] in _DOMAINS
        if not domain and name not in _public() and not _RE["no_mention"].fullmatch(name):
            end = match.start() + 1 + len(name)
            yield match.start(), end, 0.9
    for match in _RE["han_mention"].finditer(reading.text):
        first = max(match.start() - _REACH_MENTION, 0)
        last = match.end() + _REACH_MENTION
        if _RE["han_mention_cue"].search(reading.text, first, last):
            yield match.start(), match.end(), 0.8


@cache
def _public() -> frozenset[str]:
    """Public figures as their accounts are called: their names in one word."""
    handles: set[str] = set()
    for names in words().known.values():
        handles.update("".join(name) for name in names)
    return frozenset(handles)


def _networks(reading: Reading) -> list[tuple[int, int]]:
    """Where a network or an account is spoken of."""
    cues = _RE[f"cue_{reading.language}"].finditer(reading.text)
    return [cue.span() for cue in cues]


def marked_names(reading: Reading) -> Iterator[Hit]:
    """Names that are no words, near a network in the same sentence; digits and plain letters right behind it."""
    text = reading.text
    networks = _networks(reading)
    for match in _RE[f"told_{reading.language}"].finditer(text):
        if not is_word(match["name"].strip(".")):
            yield match.start("name"), match.end("name"), 0.75
    if not networks:
        return
    starts = [start for start, _ in networks]
    for match in _RE["marked"].finditer(text):
        # Two words that are joined by a hyphen, or a space is missing behind a full stop.
        pieces = re.split("[-.]", match.group())
        words_joined = all(piece.isalpha() and is_word(piece) for piece in pieces)
        if words_joined or _RE["no_name"].fullmatch(match.group()):
            continue
        following = bisect_left(starts, match.end())
        previous = bisect_left(starts, match.start()) - 1
        led = False
        if previous >= 0:
            before = text[networks[previous][1] : match.start()]
            led = _leads(before, _REACH_BEFORE)
        if not led and following < len(networks):
            behind = text[match.end() : starts[following]]
            led = _leads(behind, _REACH_BEHIND)
        if led:
            yield match.start(), match.end(), 0.8


def _leads(between: str, reach: int) -> bool:
    """Whether a word for a network belongs to a name, by what stands between them."""
    return len(between) <= reach and not _RE["sentence_end"].search(between)


def han_names(reading: Reading) -> Iterator[Hit]:
    """Any name that somebody is "called" (叫) behind a network."""
    text = reading.text
    cue_ends = [end for _, end in _networks(reading)]
    if not cue_ends:
        return
    for called in _RE["called"].finditer(text):
        previous = bisect_left(cue_ends, called.start() + 1) - 1
        name = _RE["han_name"].match(text, called.end())
        if previous < 0 or name is None or _RE["no_han_name"].match(name.group()):
            continue
        if _leads(text[cue_ends[previous] : called.start()], _REACH_CALLED):
            yield name.start(), name.end(), 0.7


# --- WeChat ids: letters and digits beside a cue, or `wxid_` ---


def _with_han_digits(reading: Reading) -> str:
    """The text, in which Han digits in a Latin word are digits: coco八八."""
    return _WECHAT["han_digits"].sub(
        lambda match: reading.digits[match.start() : match.end()], reading.text
    )


def wechat_behind_cue(reading: Reading) -> Iterator[Hit]:
    """Ids right behind a cue: one piece, or more while they are too short."""
    text = _with_han_digits(reading)
    cue_ends = [cue.end for cue in reading.cues if cue.kind == "wechat"]
    cue_ends += [cue.end() for cue in _WECHAT["glued"].finditer(text)]
    for end in cue_ends:
        match = _WECHAT["behind"].match(text, end)
        if match and match["id"] not in internet_words("no_wechat"):
            score = 0.93 if _is_marked(match["id"]) else 0.8
            yield match.start("id"), match.end("id"), score


def wechat_about(reading: Reading) -> Iterator[Hit]:
    """Ids in a message that speaks of WeChat, or of adding somebody, wherever the cue stands."""
    adding = [cue.start for cue in reading.cues if cue.kind == "adding"]
    if not adding and not any(cue.kind == "wechat" for cue in reading.cues):
        return
    for match in _WECHAT["token"].finditer(_with_han_digits(reading)):
        value = match.group()
        start = match.start()
        end = match.end()
        if value in internet_words("no_wechat") or _WECHAT["no_id"].match(value):
            continue
        cues = reading.near(start, end)
        if cues.nearest in _NO_HANDLE or not (_is_marked(value) or "-" in value):
            continue
        first = bisect_left(adding, start - _REACH_ADDING_BEFORE)
        last = bisect_right(adding, end + _REACH_ADDING_BEHIND)
        if cues.distance("wechat") is not None:
            yield start, end, 0.85
        elif "wechat" in cues.around:
            yield start, end, 0.75
        elif cues.nearest in _OF_MESSENGERS and first < last:
            yield start, end, 0.65


def _is_marked(value: str) -> bool:
    """Whether a figure or an underscore says that it is no word."""
    return any(char.isdigit() or char == "_" for char in value)
