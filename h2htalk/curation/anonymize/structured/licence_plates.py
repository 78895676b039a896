"""Licence plates: Chinese ones by their form; American, British and others: `english_plates`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from h2htalk.curation.anonymize.normalization import HAN, NormalizedText
from h2htalk.curation.anonymize.spans import Span
from h2htalk.curation.anonymize.structured import domains
from h2htalk.curation.anonymize.structured.number_cues import Cue, Cues

_PROVINCES = "京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼"
_LAST = "学港澳警挂领试超"
_GAP = r"(?:[\s·.\-_/,~*|()\[\]+:'\"❤♥★☆…=#^]{0,3}|\s?(?:后面跟着?|后面是|然后是?|点|杠)\s?)"
_CHINESE = re.compile(rf"[{_PROVINCES}]{_GAP}[a-z](?:{_GAP}[a-z0-9{HAN}]){{4,6}}(?:{_GAP}[学港澳警挂领试超])?")


def plate_spans(normalized: NormalizedText, cues: Cues, language: str) -> list[Span]:
    """Spans (places of the reading) of licence plates."""
    spans = _chinese(normalized) if not normalized.text.isascii() else []
    return spans + english_plate_spans(normalized, cues)


def _chinese(normalized: NormalizedText) -> list[Span]:
    spans: list[Span] = []
    at = 0
    while match := _CHINESE.search(normalized.text, at):
        end = _chinese_end(normalized, match)
        if end:
            spans.append(Span(match.start(), end, "LICENSE_PLATE", 0.95))
        at = end or match.start() + 1
    return spans


def _chinese_end(normalized: NormalizedText, match: re.Match[str]) -> int | None:
    """Where the plate ends: letter, then five, or six of a new-energy car, or four and a word; None: it is none."""
    text, digits = normalized.text, normalized.digits
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


_ENGLISH = re.compile(r"(?<![a-z0-9])[a-z0-9]{1,8}(?:(?:[ .\-·_/]|\s-\s)[a-z0-9]{1,5}){0,7}(?![a-z0-9])")
_STOP = frozenset(
    re.findall(
        r"[a-z]+",
        """
    s in is on the was and my his her at to for by since of a i from it its an or that this were be so
    no ok said says with number plate plates reg but if as he she they you me we had has have are not
    when then like just parked outside black white blue red grey gray silver green car van truck think
    lol did do seen saw one two off still only got get see out up all day days per until till pm am th
    st nd rd mot due new old um uh er erm hmm well yeah idk its hm ah oh wait sorry
    """,
    )
)
_UK = re.compile(r"[a-z]{2}[0-9]{2}[a-z]{3}")
_LEAD = re.compile(
    r"(?:\s?(?:'?s\b|number|no\.?|is|was|are|were|said|says|reads?|like|it'?s"
    r"|,|:|=|#|-|/|>|→|\?|\(|\"|'|starts with|the|had|called)){0,4}\s?"
)
_PIECE = re.compile(r"(?<![a-z0-9])[a-z0-9]{1,8}(?![a-z0-9])")
_SEPARATOR = re.compile(r"(?!\.\s)[^\w,;:!?'\"]{1,3}|_")
_MORE_DIGITS = re.compile(r"[ ./-]{1,3}[0-9]")
_LONGER = re.compile(r"-[0-9]{3}")
_DIGITS_BEFORE = re.compile(r"[0-9][ ./-]{1,3}$")
_AS_DIGIT = str.maketrans("ioszbl", "105281")
# Forms that nothing else has: Britain's (in small letters without a vowel behind), California's, Ireland's.
_OWN_FORM = re.compile(
    r"(?<![A-Za-z0-9])(?:[A-Z]{2}[0-9]{2}[ -]?[A-Z]{3}|[a-z]{2}[0-9]{2} ?[bcdfghj-np-tv-z]{3}|[1-9][A-Z]{3}[0-9]{3}"
    r"|[0-9]{2,3}-[A-Z]{1,2}-[0-9]{2,6})(?![A-Za-z0-9])"
)
_NO_WORD = domains.words("no_plate_letters")
# Shapes that are given out: Britain now and before, Northern Ireland and many states, California, Ireland, Australia.
_KNOWN = re.compile(
    r"[a-z]{2}[0-9]{2}[a-z]{3}|[a-z][0-9]{1,3}[a-z]{3}|[a-z]{3}[0-9]{1,3}[a-z]|[a-z]{3}[0-9]{3,4}|[0-9]{3,4}[a-z]{3}"
    r"|[0-9][a-z]{3}[0-9]{3}|[0-9]{2,3}[a-z]{1,2}[0-9]{2,6}|[a-z]{2}[0-9]{2}[a-z]{2}"
    r"|[0-9][a-z]{2}[0-9][a-z]{2}|[a-z]{2}[0-9]{4,5}"
    r"|[a-z]{3}[0-9]{2}[a-z]|[0-9]{3}[a-z]{2}[0-9]|[a-z][0-9]{2}[a-z]{3}"
    r"|[a-z]{2,4}[0-9]{3,5}|[0-9][a-z]{2}[0-9]{4}|[a-z][0-9]{3}[a-z]{2}"
    r"|[a-z]{4}[0-9]{2,3}|[0-9]{2}[a-z][0-9]{3,4}|[a-z][0-9]{5,6}|[a-z][0-9]{2}[a-z]{2}[0-9]|[0-9]{2}[a-z]{3}[0-9]"
    r"|[a-z][0-9]{6}[a-z]|[0-9][a-z]{3}[0-9]{2}|[0-9][a-z][0-9]{4,5}|[a-z][0-9][a-z]{2,3}[0-9]{2,3}"
)
_MODERN = re.compile(r"[a-hj-y][a-hj-py](?:0[1-9]|[1-7][0-9]|80)[a-hj-pr-z]{3}")
# What has such a shape and is none: postcodes, years, speeds, sizes, models, times of day.
_NO_PLATE = re.compile(
    r"[a-z]{1,2}[0-9][a-z0-9]?[0-9][a-z]{2}|(?:19[0-9]{2}|20[0-3][0-9])[a-z]+|[0-9]+(?:am"
    r"|pm|km|kmh|kph|mph|mpg|kg|lbs?|th|st|nd|rd|mins?|hrs?|ish|usd|gbp|cc|hp|psi|mm|cm|ft"
    r"|gb|mb|[ks])"
    r"|[a-z]+(?:19[0-9]{2}|20[0-3][0-9])|(?:covid|iphone|ps|gta|mp|rtx|gtx|hwy|i|us|rt"
    r"|route|exit|room|apt|unit|lot|level|bay|gate|row|flight|bus|m|a|usd|gbp|ca|ny|tx|fl"
    r"|am|pm)[0-9]+|[0-9]+"
)
_POSTCODE = re.compile(r"[a-z]{1,2}[0-9][a-z0-9]? [0-9][a-z]{2}")
# Some of a plate: "reg ends XRT", "starting 7KD".
_PART = re.compile(
    r"[\s,:]{1,3}(?:that )?(?:ends?|ending|starts?|starting|begins?|beginning|finish(?:es"
    r"|ing))(?: (?:in|with|on))? ([a-z0-9]{2,5})(?![a-z0-9])"
)


def english_plate_spans(normalized: NormalizedText, cues: Cues) -> list[Span]:
    """Spans (places of the reading) of plates that are not Chinese."""
    return [*_english(normalized, cues), *_by_shape(normalized, cues)]


def _by_shape(normalized: NormalizedText, cues: Cues) -> Iterator[Span]:
    """Plates in a message that speaks of a car or a plate; Britain's modern ones in capitals anywhere."""
    about = any(cue.kind in ("vehicle", "plate") for cue in cues.found)
    if not about and _OWN_FORM.search(normalized.visible) is None:
        return
    text = normalized.digits if normalized.text.isascii() else normalized.text
    pieces = list(_PIECE.finditer(text))
    at = 0
    for place, piece in enumerate(pieces):
        if piece.start() < at or not any(char.isdigit() for char in piece.group()):
            continue
        for first, last in (
            (place - 1, place + 1),
            (place, place + 1),
            (place - 1, place),
            (place, place),
            (place, place + 2),
        ):
            if first < 0 or last >= len(pieces) or pieces[first].start() < at:
                continue
            score = _shaped(text, pieces[first : last + 1], normalized, cues)
            if score:
                at = pieces[last].end()
                yield Span(pieces[first].start(), at, "LICENSE_PLATE", score)
                break


def _shaped(text: str, pieces: list[re.Match[str]], normalized: NormalizedText, cues: Cues) -> float:
    """How sure we are that neighbouring pieces are a plate."""
    start, end = pieces[0].start(), pieces[-1].end()
    for a, b in pairwise(pieces):
        if not _SEPARATOR.fullmatch(text, a.end(), b.start()):
            return 0.0
    if (start and text[start - 1] in "@/_.") or text[end : end + 1] in ("@", "_"):
        return 0.0
    if _MORE_DIGITS.match(text, end) or _DIGITS_BEFORE.search(text, max(0, start - 4), start):
        return 0.0  # a piece of a longer number
    whole = "".join(piece.group() for piece in pieces)
    if len(whole) == 7 and not _KNOWN.fullmatch(whole):
        whole = whole[:2] + whole[2:4].translate(_AS_DIGIT) + whole[4:]  # ABI2 CDE
    if not 5 <= len(whole) <= 8 or _NO_PLATE.fullmatch(whole) or _POSTCODE.fullmatch(text[start:end]):
        return 0.0
    if any(piece.group() in _STOP for piece in pieces) or not _KNOWN.fullmatch(whole):
        return 0.0
    return _believed(whole, text[start:end], start, end, normalized, cues)


def _believed(whole: str, written: str, start: int, end: int, normalized: NormalizedText, cues: Cues) -> float:
    shown = normalized.visible[start:end]
    capitals = shown.upper() == shown
    modern = _MODERN.fullmatch(whole) is not None
    near = cues.near(start, end)
    own = _OWN_FORM.fullmatch(shown) is not None and (capitals or shown[-3:] not in _NO_WORD)
    if own and near.nearest not in ("other", "account", "id", "wechat"):
        return 0.85 if near.around & {"vehicle", "plate"} else 0.7
    if not near.around & {"vehicle", "plate"}:
        return 0.0
    if near.nearest in ("other", "account", "id", "wechat") and near.kinds[0][1] <= 12 and not modern:
        return 0.0
    if capitals or modern:
        return 0.85 if "plate" in near.around else 0.75
    lower = "plate" in near.around and (written == whole or "-" in written) and re.search("[a-z]{3}", whole)
    return 0.65 if lower else 0.0


def _english(normalized: NormalizedText, cues: Cues) -> list[Span]:
    spans: list[Span] = []
    text = normalized.digits
    last = 0
    for cue in cues.found:
        if cue.kind != "plate" or cue.start < last:
            continue
        span = (
            _behind(text, cue.end, normalized)
            or _before(text, cue.start, normalized)
            or _part(text, cue.end, normalized)
            or _vanity(text, cue, normalized)
        )
        if span is not None:
            spans.append(span)
            last = span.end
    return spans


def _behind(text: str, at: int, normalized: NormalizedText) -> Span | None:
    """The plate after a cue: right behind it, or further on in the sentence if it looks like nothing else."""
    lead = _LEAD.match(text, at)
    near = lead.end() if lead else at
    limit = min(len(text), at + 60)
    for match in _ENGLISH.finditer(text, at, limit):
        span = _plate(text, match, near, normalized)
        if span is not None:
            return span
    return None


def _before(text: str, at: int, normalized: NormalizedText) -> Span | None:
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
        span = _plate(text, match, match.start(), normalized)
        if span is not None:
            return span
    return None


def _plate(text: str, match: re.Match[str], near: int, normalized: NormalizedText) -> Span | None:
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
    figures = text[start:end].replace(" ", "").isdigit()
    if _LONGER.match(text, end) or (figures and _MORE_DIGITS.match(text, end)):
        return None
    shown = normalized.visible[start:end]
    direct = start <= near + 1
    if not direct and re.search(r"[.!?\n]", text[near:start]):
        return None
    if not direct and not _KNOWN.fullmatch(re.sub(r"[^a-z0-9]", "", text[start:end])):
        return None
    if not direct and not (shown.upper() == shown or _UK.fullmatch(re.sub(r"[^a-z0-9]", "", text[start:end]))):
        return None
    return Span(start, end, "LICENSE_PLATE", 0.9 if direct else 0.75)


def _looks(whole: str, direct: bool) -> bool:
    letters = sum(char.isalpha() for char in whole)
    figures = len(whole) - letters
    if not 5 <= len(whole) <= 8 or re.fullmatch("[a-z][0-9]{7}", whole):  # a driver's
        return False
    if re.fullmatch(
        r"(?:19[0-9]{2}|20[0-3][0-9])[a-z]+|[a-z]+(?:19[0-9]{2}|20[0-3][0-9])|[0-9]+(?:pm|am|th"
        r"|st|nd|rd|km|mph|kg|min|mins|s)",
        whole,
    ):
        return direct and letters == 3
    return (letters >= 1 and figures >= 2) or (direct and letters == 0 and len(whole) >= 6)


def _part(text: str, at: int, normalized: NormalizedText) -> Span | None:
    match = _PART.match(text, at)
    if match is None or match[1] in _STOP:
        return None
    shown = normalized.visible[match.start(1) : match.end(1)]
    return Span(*match.span(1), "LICENSE_PLATE", 0.8) if shown.upper() == shown or not shown.isalpha() else None


def _vanity(text: str, cue: Cue, normalized: NormalizedText) -> Span | None:
    """Words in capitals on a plate that somebody chose."""
    if "vanity" not in text[cue.start : cue.end] and "personali" not in text[cue.start : cue.end]:
        return None
    match = re.compile(r"(?<![A-Za-z0-9])[A-Z0-9]{2,8}(?: [A-Z0-9]{1,4})?(?![A-Za-z0-9])").search(
        normalized.visible, cue.end, cue.end + 60
    )
    return Span(*match.span(), "LICENSE_PLATE", 0.8) if match and len(match.group()) > 3 else None
