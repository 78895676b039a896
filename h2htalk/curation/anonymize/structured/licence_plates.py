"""Licence plates: Chinese ones by their form; American, British and others: `english_plates`."""

from __future__ import annotations

import re

from h2htalk.curation.anonymize.normalization import HAN, Reading
from h2htalk.curation.anonymize.spans import Span
from h2htalk.curation.anonymize.structured.english_plates import english_plate_spans
from h2htalk.curation.anonymize.structured.number_cues import Cues

_PROVINCES = "京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼"
_LAST = "学港澳警挂领试超"
_GAP = r"(?:[\s·.\-_/,~*|()\[\]+:'\"❤♥★☆…=#^]{0,3}|\s?(?:后面跟着?|后面是|然后是?|点|杠)\s?)"
_CHINESE = re.compile(
    rf"[{_PROVINCES}]{_GAP}[a-z](?:{_GAP}[a-z0-9{HAN}]){{4,6}}(?:{_GAP}[学港澳警挂领试超])?"
)


def plate_spans(reading: Reading, cues: Cues, language: str) -> list[Span]:
    """Spans (places of the reading) of licence plates."""
    found = _chinese(reading) if not reading.text.isascii() else []
    return found + english_plate_spans(reading, cues)


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
    places = [
        i
        for i in range(match.start() + 1, match.end())
        if (text[i].isascii() and text[i].isalnum()) or text[i] in HAN + _LAST
    ]
    if text[places[0]] in "i" or (text[places[0]] == "o" and len(places) < 6):
        return None
    special = text[places[-1]] in _LAST
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
