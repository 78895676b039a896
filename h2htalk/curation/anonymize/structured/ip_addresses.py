"""IP addresses, version 4 and 6, and the ways around a dot."""

from __future__ import annotations

import ipaddress
import re

from h2htalk.curation.anonymize.normalization import HAN, NormalizedText
from h2htalk.curation.anonymize.spans import Span, TakenCharacters
from h2htalk.curation.anonymize.structured.number_cues import Cues

_DOT = (
    r"(?:\s{0,2}[.。点·]\s{0,2}|\s?[(\[{<]\s?(?:dot|\.|点|。)\s?[)\]}>]\s?|\s{1,2}dot\s{1,2}"
    r"|[-_]dot[-_]|(?P<loose>\s?[,_*/|;:~+#=-]\s?|\s{1,3}))"
)
_WORD = r"(?:zero|one|two|three|four|five|six|seven|eight|nine|oh)"
_OCTET = rf"(?:[0-9]{{1,3}}|(?:[0-9] ){{1,2}}[0-9]|{_WORD}(?:[ -]{_WORD}){{0,2}})"
_V4 = re.compile(
    rf"(?<![0-9.])({_OCTET})"
    + "".join(_DOT.replace("?P<loose>", f"?P<loose{n}>") + f"({_OCTET})" for n in range(3))
    + r"(?![0-9]|\.[0-9])"
)
_V6 = re.compile(
    r"(?:(?<![0-9a-z.])(?<![0-9a-f]:)|(?<=ip)(?!:)|(?<=v6:))(?:[0-9a-fo]{0,4}:){2,7}[0-9a-fo]{0,4}(?![0-9a-z:])"
)
_V6_LOOSE = re.compile(
    r"(?<![0-9a-z])[0-9a-f]{1,4}(?P<s>[-.;_,|/* ])(?:[0-9a-f]{1,4}(?P=s)){6}[0-9a-f]{1,4}(?![0-9a-z])"
)
_SPELT = {
    w: str(i) for i, w in enumerate(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])
} | {"oh": "0"}
_VERSION = re.compile(
    r"(?:(?<![a-z])(?:v|ver|version|ios|android|build|chapter|section|patch|firmware)|版本号?"
    r"|固件|系统|更新到?|升级到?|第)[\s.:]{0,2}$"
)
_VERSION_AFTER = re.compile(r"\s?(?:版|version|update|patch|build|firmware|release|系统|固件|更新|升级)")


_ANY = 1000


def ip_spans(normalized: NormalizedText, cues: Cues, taken: TakenCharacters) -> list[Span]:
    """Spans (places of the reading) of IP addresses outside of what is taken."""
    spans: list[Span] = []
    text = normalized.digits
    if ":" in text:
        for match in _V6.finditer(text):
            if _six(match.group()) and taken.free(*match.span()):
                spans.append(Span(match.start(), match.end(), "IP_ADDRESS", 0.95))
    for match in _V6_LOOSE.finditer(text):
        cued = cues.near(*match.span()).distance("ip") is not None
        if cued and re.search("[a-f]", match.group()) and taken.free(*match.span()):
            spans.append(Span(*match.span(), "IP_ADDRESS", 0.85))
    at = spans[-1].end if spans and spans[-1].score == 0.85 else 0
    while four := _V4.search(text, at):
        score = _four(four, normalized, cues) if taken.free(*four.span()) else 0.0
        if score:
            spans.append(Span(four.start(), four.end(), "IP_ADDRESS", score))
        at = four.end() if score else four.end(1)
    return spans


def _six(value: str) -> bool:
    value = value.replace("o", "0")
    if sum(bool(part) for part in value.split(":")) < 3 and not value.startswith(("fe80", "2", "fd", "fc")):
        return False
    if not any(char.isdigit() for char in value):
        return False
    try:
        ipaddress.IPv6Address(value)
    except ValueError:
        return False
    return True


def _number(octet: str) -> str:
    if octet[0].isdigit():
        return octet.replace(" ", "")
    return "".join(_SPELT[word] for word in re.split(r"[ -]", octet))


def _four(match: re.Match[str], normalized: NormalizedText, cues: Cues) -> float:
    """How sure we are of four numbers with dots: versions and dates look the same."""
    octets = [_number(match[name]) for name in _OCTETS]
    if any(len(octet) > 3 or int(octet) > 255 or (len(octet) > 1 and octet[0] == "0") for octet in octets):
        return 0.0
    start, end = match.span()
    cued = cues.near(start, end).distance("ip") is not None
    loose = any(match[f"loose{n}"] is not None for n in range(3))
    spelt = any(char in HAN for char in normalized.text[start:end]) or any(char.isalpha() for char in match[1])
    if _VERSION.search(normalized.text, max(0, start - 12), start) or _VERSION_AFTER.match(normalized.text, end):
        return 0.0
    if loose:
        return 0.8 if cued and len(set(match.group("loose0", "loose1", "loose2"))) == 1 else 0.0
    if cued:
        return 0.97
    values = [int(octet) for octet in octets]
    # No version begins with so high a number: only a word right before it speaks against it.
    reach = 2 if values[0] >= 32 and max(values) >= 60 else _ANY
    if cues.near(start, end).nearest_is_impersonal(reach) or (max(values) < 32 and values[0] != 10) or max(values) < 13:
        return 0.0
    if spelt and max(values) < 100:
        return 0.0
    return 0.9


# The four captures of `_V4`, among those of its loose separators.
_OCTETS = [1, 3, 5, 7]
