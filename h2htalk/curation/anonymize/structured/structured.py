"""Structured personal data: what has a form of its own, found by patterns, check digits and cue words.

Each rule reads a text in linear time; what a text cannot hold (no digit, no dot) is not looked for.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from h2htalk.curation.anonymize.normalization import HAN, NormalizedText, normalize_text
from h2htalk.curation.anonymize.spans import Span, TakenCharacters, resolve_overlaps
from h2htalk.curation.anonymize.structured.accounts import handle_spans, mention_spans, wechat_spans
from h2htalk.curation.anonymize.structured.alphanumeric_ids import alphanumeric_id_spans
from h2htalk.curation.anonymize.structured.deobfuscation import deobfuscate
from h2htalk.curation.anonymize.structured.digit_spans import digit_spans
from h2htalk.curation.anonymize.structured.licence_plates import plate_spans
from h2htalk.curation.anonymize.structured.number_cues import Cues, find_cues
from h2htalk.curation.anonymize.structured.patterns import patterns
from h2htalk.curation.anonymize.structured.web import email_spans, url_spans
from h2htalk.data.languages import find_language

_RE, _BIRTH, _IP = map(patterns, ("structured", "birth_dates", "ip_addresses"))
# A word rewritten so near may be the cue of what is found.
_BESIDE = 24


def find_structured(text: str, language: str, countries: Sequence[str] = ()) -> list[Span]:
    """Structured personal data of a text as given, in its order, without overlaps.

    The record of `language` decides which numbers and cue words are looked for, `countries` whose telephone numbers
    beside the usual ones. Places are characters of `text`.
    Scores: 0.95 and more where a check digit, a form of its own or a cue beside it speaks for it, else 0.5 to 0.9.
    """
    language = find_language(language).number_rules
    normalized = normalize_text(text)
    spans = []
    for found in _with_deobfuscated(normalized, language, countries):
        span = _with_brackets(found, normalized.text)
        start, end = normalized.original_span(span.start, span.end)
        spans.append(replace(span, start=start, end=end))
    return spans


def _with_brackets(span: Span, text: str) -> Span:
    """The span with the bracket before or behind it that belongs to one inside: (219)(09)(9987)."""
    inside = text[span.start : span.end]
    for opening, closing in ("()", "[]") if span.type not in ("URL", "EMAIL_ADDRESS") else ():
        lacking = inside.count(closing) - inside.count(opening)
        split = 0 <= inside.find(closing) < inside.find(opening)
        if (lacking > 0 or split) and text[: span.start].endswith(opening):
            return _with_brackets(replace(span, start=span.start - 1), text)
        if lacking < 0 and text.startswith(closing, span.end):
            return _with_brackets(replace(span, end=span.end + 1), text)
    return span


def _with_deobfuscated(normalized: NormalizedText, language: str, countries: Sequence[str]) -> list[Span]:
    """All spans, with those that show where a disguise is taken off. One that holds a plainer one takes its place."""
    kept = _find_all(normalized, language, countries)
    meant = deobfuscate(normalized, language)
    if meant is None:
        return kept
    for found in _find_all(meant.normalized, language, countries):
        if not meant.rewritten(max(0, found.start - _BESIDE), found.end + _BESIDE):
            continue
        span = replace(found, start=meant.starts[found.start], end=meant.ends[found.end - 1])
        under = [other for other in kept if other.overlaps(span)]
        if all(span.start <= other.start and other.end <= span.end for other in under):
            kept = [other for other in kept if other not in under] + [span]
    return sorted(kept)


def _find_all(normalized: NormalizedText, language: str, countries: Sequence[str]) -> list[Span]:
    plain = normalized.text
    digits = _RE["five_digits"].search(plain) is not None
    web = _RE["web_mark"].search(plain) is not None
    messenger = language == "zh" and _RE["latin_word"].search(plain) is not None
    plate = language == "en" and _RE["plate_word"].search(plain) is not None
    mentions = list(mention_spans(plain)) if "@" in plain else []
    others = [*handle_spans(plain, language), *birth_date_spans(plain, language)]
    numbers = digits or plate or ":" in plain or any(map(str.isdigit, normalized.digits))
    if not (numbers or web or messenger):
        return resolve_overlaps([*mentions, *others])
    cues = find_cues(plain, language)
    taken = TakenCharacters(len(plain))
    # Before e-mail addresses: "follow @name" is none with spaces in it.
    spans: list[Span] = taken.keep(mentions)
    if web:
        spans += taken.keep(email_spans(normalized))
        spans += taken.keep(url_spans(normalized, cues))
    if numbers:
        spans += taken.keep(ip_spans(normalized, cues, taken))
        spans += taken.keep(plate_spans(normalized, cues))
        spans += alphanumeric_id_spans(normalized, cues, taken)
    if messenger or (language == "en" and any(cue.kind == "wechat" for cue in cues.found)):
        spans += wechat_spans(normalized, cues, taken)
    if digits:
        found = sorted((span.start, span.end) for span in spans)
        spans += digit_spans(normalized, cues, language, found, countries)
    return resolve_overlaps([*spans, *taken.keep(others)])


# --- Dates of birth ---

_REACH = {"en": 40, "zh": 14}


def birth_date_spans(text: str, language: str) -> Iterator[Span]:
    """Spans of dates beside a word for being born or a birthday, in a plain text in lower case. Other dates stay."""
    cues = [found.span() for found in _BIRTH[f"cue_{language}"].finditer(text)]
    for found in _BIRTH[f"date_{language}"].finditer(text):
        start, end = found.span()
        near = any(_is_near(text, start, end, cue, _REACH[language]) for cue in cues)
        if near or _is_of_somebody(text, start, end, language):
            yield Span(start + (4 if found.group().startswith("the ") else 0), end, "DATE_OF_BIRTH", 0.85)


def _is_of_somebody(text: str, start: int, end: int, language: str) -> bool:
    """Whether a date with its year is said of a person: 我对象92年1月30号的, "my daughter's 27 nov 2011"."""
    if not _BIRTH["birth_year"].search(text, start, end):
        return False
    if language == "en":
        before = (_BIRTH["of_somebody_en"], 24), (_BIRTH["on_paper"], 60)
        return any(pattern.search(text, max(start - reach, 0), start) for pattern, reach in before)
    said = _BIRTH["of_somebody"].search(text, max(start - 6, 0), start) and _BIRTH["of"].match(text, end)
    beside = _BIRTH["listed"].match(text, end) or _BIRTH["born"].match(text, end)
    beside = beside or _BIRTH["listed_after"].search(text, max(start - 8, 0), start)
    return bool(said or beside)


def _is_near(text: str, start: int, end: int, cue: tuple[int, int], reach: int) -> bool:
    """Whether a cue stands in the same sentence, near the date."""
    if cue[0] < end and start < cue[1]:
        return False
    between = text[cue[1] : start] if cue[1] <= start else text[end : cue[0]]
    parted = _BIRTH["sentence_end"].search(between) and not _BIRTH["lead"].fullmatch(between)
    return len(between) <= reach and not parted


# --- IP addresses ---

_ANYWHERE = 1000


def ip_spans(normalized: NormalizedText, cues: Cues, taken: TakenCharacters) -> list[Span]:
    """Spans (places of the reading) of IP addresses, version 4 and 6, outside of what is taken."""
    text = normalized.digits
    sixes = _IP["six"].finditer(text) if ":" in text else ()
    spans = [Span(*six.span(), "IP_ADDRESS", 0.95) for six in sixes if _is_six(six.group())]
    at = 0
    while four := _IP["four"].search(text, at):
        score = _score(four, normalized, cues) if taken.free(*four.span()) else 0.0
        if score:
            spans.append(Span(*four.span(), "IP_ADDRESS", score))
        first = _IP["octet"].match(text, four.start())
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
    octets = [octet.replace(" ", "") for octet in _IP["octet"].findall(match.group())]
    if len(octets) != 4 or any(int(octet) > 255 or (len(octet) > 1 and octet[0] == "0") for octet in octets):
        return 0.0
    before = normalized.text[max(0, start - 12) : start]
    if _IP["version"].search(before) or _IP["version_behind"].match(normalized.text, end):
        return 0.0
    near = cues.near(start, end)
    cued = near.distance("ip") is not None
    gaps = {re.sub(r"\s", "", gap) for gap in _IP["octet"].split(match.group())[1:-1]}
    if any(not gap or _IP["loose"].fullmatch(gap) for gap in gaps):
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
