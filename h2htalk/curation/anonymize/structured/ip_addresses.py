"""IP addresses, version 4 and 6, and the ways around a dot."""

from __future__ import annotations

import ipaddress
import re

from h2htalk.curation.anonymize.normalization import HAN, NormalizedText
from h2htalk.curation.anonymize.spans import Span, TakenCharacters
from h2htalk.curation.anonymize.structured.number_cues import Cues
from h2htalk.curation.anonymize.structured.patterns import patterns

_RE = patterns("ip_addresses")
_ANYWHERE = 1000


def ip_spans(normalized: NormalizedText, cues: Cues, taken: TakenCharacters) -> list[Span]:
    """Spans (places of the reading) of IP addresses outside of what is taken."""
    text = normalized.digits
    sixes = _RE["six"].finditer(text) if ":" in text else ()
    spans = [Span(*six.span(), "IP_ADDRESS", 0.95) for six in sixes if _is_six(six.group())]
    at = 0
    while four := _RE["four"].search(text, at):
        score = _score(four, normalized, cues) if taken.free(*four.span()) else 0.0
        if score:
            spans.append(Span(*four.span(), "IP_ADDRESS", score))
        first = _RE["octet"].match(text, four.start())
        at = four.end() if score or first is None else first.end()
    return [span for span in spans if taken.free(span.start, span.end)]


def _is_six(value: str) -> bool:
    try:
        ipaddress.IPv6Address(value.replace("o", "0"))
    except ValueError:
        return False
    return any(map(str.isdigit, value.replace("o", "0")))


def _score(match: re.Match[str], normalized: NormalizedText, cues: Cues) -> float:
    """How sure we are of four numbers with dots: versions and dates look the same."""
    start, end = match.span()
    octets = [octet.replace(" ", "") for octet in _RE["octet"].findall(match.group())]
    if len(octets) != 4 or any(int(octet) > 255 or (len(octet) > 1 and octet[0] == "0") for octet in octets):
        return 0.0
    before = normalized.text[max(0, start - 12) : start]
    if _RE["version"].search(before) or _RE["version_behind"].match(normalized.text, end):
        return 0.0
    near = cues.near(start, end)
    cued = near.distance("ip") is not None
    gaps = {re.sub(r"\s", "", gap) for gap in _RE["octet"].split(match.group())[1:-1]}
    if any(not gap or _RE["loose"].fullmatch(gap) for gap in gaps):
        return 0.8 if cued and len(gaps) == 1 else 0.0
    if cued:
        return 0.97
    values = [int(octet) for octet in octets]
    spelt = any(char in HAN for char in normalized.text[start:end])
    # No version begins with so high a number: only a word right before it speaks against it.
    reach = 2 if values[0] >= 32 and max(values) >= 60 else _ANYWHERE
    if near.nearest_is_impersonal(reach) or max(values) < (100 if spelt else 32 if values[0] != 10 else 13):
        return 0.0
    return 0.9
