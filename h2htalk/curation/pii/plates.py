"""Licence plates: Chinese ones by their form, American, British and others beside a cue."""

from __future__ import annotations

import re

from h2htalk.curation.pii.cues import Cues
from h2htalk.curation.pii.normalize import HAN, Reading
from h2htalk.curation.pii.spans import Span

_PROVINCES = "京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼"
_GAP = r"[\s·.\-_/,]{0,3}"
_CHINESE = re.compile(
    rf"[{_PROVINCES}]{_GAP}[a-z](?:{_GAP}[a-z0-9{HAN}]){{4,6}}(?:{_GAP}[学港澳警挂领试超])?"
)
_ENGLISH = re.compile(r"(?<![a-z0-9])[a-z0-9]{1,8}(?:(?:[ .\-·_/]|\s-\s)[a-z0-9]{1,5}){0,7}(?![a-z0-9])")
_STOP = frozenset(
    [
        "s",
        "in",
        "is",
        "on",
        "the",
        "was",
        "and",
        "my",
        "his",
        "her",
        "at",
        "to",
        "for",
        "by",
        "since",
        "of",
        "a",
        "i",
        "from",
        "it",
        "its",
        "an",
        "or",
        "that",
        "this",
        "were",
        "be",
        "so",
        "no",
        "ok",
        "said",
        "says",
        "with",
        "number",
        "plate",
        "plates",
        "reg",
        "but",
        "if",
        "as",
        "he",
        "she",
        "they",
        "you",
        "me",
        "we",
        "had",
        "has",
        "have",
        "are",
        "not",
        "when",
        "then",
        "like",
        "just",
        "parked",
        "outside",
        "black",
        "white",
        "blue",
        "red",
        "grey",
        "gray",
        "silver",
        "green",
        "car",
        "van",
        "truck",
        "think",
        "lol",
        "did",
        "do",
        "seen",
        "saw",
        "one",
        "two",
        "off",
        "are",
        "still",
        "only",
        "got",
        "get",
        "see",
        "out",
        "up",
        "all",
        "day",
        "days",
        "per",
        "until",
        "till",
        "pm",
        "am",
        "th",
        "st",
        "nd",
        "rd",
        "mot",
        "due",
        "new",
        "old",
    ]
)
_UK = re.compile(r"[a-z]{2}[0-9]{2}[a-z]{3}")
_LEAD = re.compile(
    r"(?:\s?(?:'?s\b|number|no\.?|is|was|are|were|said|says|reads?|like|it'?s"
    r"|,|:|=|#|-|\(|\"|'|starts with|the|had|called)){0,4}\s?"
)


def plate_spans(reading: Reading, cues: Cues, language: str) -> list[Span]:
    """Spans (places of the reading) of licence plates."""
    found = _chinese(reading) if not reading.text.isascii() else []
    return found + _english(reading, cues)


def _chinese(reading: Reading) -> list[Span]:
    found: list[Span] = []
    at = 0
    while match := _CHINESE.search(reading.text, at):
        end = _chinese_end(reading, match)
        if end:
            found.append(Span(match.start(), end, "LICENSE_PLATE", 0.95))
        at = end or match.start() + 1
    return found


def _chinese_end(reading: Reading, match: re.Match[str]) -> int | None:
    """Where the plate ends: letter, then five, or six of a new-energy car, or four and a word; None: it is none."""
    text, digits = reading.text, reading.digits
    places = [i for i in range(match.start() + 1, match.end()) if text[i].isalnum()]
    if text[places[0]] in "i" or (text[places[0]] == "o" and len(places) < 6):
        return None
    special = text[places[-1]] in "学港澳警挂领试超"
    body = places[1:-1] if special else places[1:]
    han = [text[i] in HAN for i in body]
    if any(han) and not all(han) and not all(text[i] in HAN or not digits[i].isdigit() for i in body):
        body = body[: han.index(True)]  # 京A12345一辆: the count belongs to what follows
        special = False
    if special:
        return places[-1] + 1 if len(body) in (4, 5) and _body(digits, body, 3) else None
    sizes = (6, 5) if len(body) == 6 else (len(body),)
    for size in sizes:
        if size == 6 and not _new_energy("".join(digits[i] for i in body)):
            continue
        cut = body[:size]
        if (
            size in (5, 6)
            and len(cut) == size
            and _body(digits, cut, 1 if size == 5 else 3)
            and _ends(text, cut[-1] + 1)
        ):
            return cut[-1] + 1
    return None


def _body(digits: str, places: list[int], least: int) -> bool:
    signs = [digits[i] for i in places]
    return sum(sign.isdigit() for sign in signs) >= least and "i" not in signs


def _new_energy(body: str) -> bool:
    """One letter first (and perhaps second) with digits behind, or one letter last."""
    return re.fullmatch(r"[a-hj-np-z][a-hj-np-z0-9][0-9]{4}|[0-9]{5}[a-hj-np-z]", body) is not None


def _ends(text: str, end: int) -> bool:
    following = text[end : end + 1]
    return not (following.isascii() and following.isalnum())


def _english(reading: Reading, cues: Cues) -> list[Span]:
    found: list[Span] = []
    text = reading.digits
    last = 0
    for cue in cues.found:
        if cue.kind != "plate" or cue.start < last:
            continue
        span = _behind(text, cue.end, reading) or _before(text, cue.start, reading)
        if span is not None:
            found.append(span)
            last = span.end
    return found


def _behind(text: str, at: int, reading: Reading) -> Span | None:
    """The plate after a cue: right behind it, or further on in the sentence if it looks like nothing else."""
    lead = _LEAD.match(text, at)
    near = lead.end() if lead else at
    limit = min(len(text), at + 60)
    for match in _ENGLISH.finditer(text, at, limit):
        span = _plate(text, match, near, reading)
        if span is not None:
            return span
    return None


def _before(text: str, at: int, reading: Reading) -> Span | None:
    """A plate in front of its cue: "7ABC123 is my plate"."""
    link = re.search(
        r"(?:is|was|were|on|that's|thats|are)\s(?:(?:my|his|her|the|their|our|a|car)\s){0,2}"
        r"(?:license |licence |number )?$",
        text[max(0, at - 30) : at],
    )
    if link is None:
        return None
    end = max(0, at - 30) + link.start()
    tokens = list(_ENGLISH.finditer(text, max(0, end - 20), end))
    for match in reversed(tokens):
        span = _plate(text, match, match.start(), reading)
        if span is not None:
            return span
    return None


def _plate(text: str, match: re.Match[str], near: int, reading: Reading) -> Span | None:
    """The first groups of a match that make a plate: letters and digits, five to eight together."""
    groups = list(re.finditer(r"[a-z0-9]+", match.group()))
    best: tuple[int, int] | None = None
    for first in range(len(groups)):
        if groups[first].group() in _STOP:
            continue
        whole = ""
        for group in groups[first:]:
            spaced = all(len(other.group()) == 1 for other in groups[first:][:4])
            if group.group() in _STOP and not spaced:
                break
            whole += group.group()
            if len(whole) > 8:
                break
            if _looks(whole, match.start() + groups[first].start() <= near + 1):
                best = (groups[first].start(), group.end())
        if best:
            break
    if best is None:
        return None
    start, end = match.start() + best[0], match.start() + best[1]
    shown = reading.shown[start:end]
    direct = start <= near + 1
    if not direct and re.search(r"[.!?\n]", text[near:start]):
        return None
    if not direct and not (
        shown.upper() == shown or _UK.fullmatch(re.sub(r"[^a-z0-9]", "", text[start:end]))
    ):
        return None
    return Span(start, end, "LICENSE_PLATE", 0.9 if direct else 0.75)


def _looks(whole: str, direct: bool) -> bool:
    letters = sum(char.isalpha() for char in whole)
    figures = len(whole) - letters
    if not 5 <= len(whole) <= 8:
        return False
    if re.fullmatch(
        r"(?:19|20)[0-9]{2}[a-z]+|[a-z]+(?:19|20)[0-9]{2}|[0-9]+(?:pm|am|th|st|nd|rd|km|mph|kg|min|mins|s)",
        whole,
    ):
        return direct and letters == 3
    return (letters >= 1 and figures >= 2) or (direct and letters == 0 and len(whole) >= 6)
