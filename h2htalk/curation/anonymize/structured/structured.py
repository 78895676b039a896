"""Structured personal data: what has a form of its own, found by patterns, check digits and cue words.

Each rule reads a text in linear time; what a text cannot hold (no digit, no dot) is not looked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from h2htalk.curation.anonymize.normalization import NormalizedText, normalize_text
from h2htalk.curation.anonymize.spans import Span, TakenCharacters, resolve_overlaps
from h2htalk.curation.anonymize.structured.alphanumeric_ids import alphanumeric_id_spans
from h2htalk.curation.anonymize.structured.birth_dates import birth_date_spans
from h2htalk.curation.anonymize.structured.deobfuscation import deobfuscate
from h2htalk.curation.anonymize.structured.digit_spans import digit_spans
from h2htalk.curation.anonymize.structured.handles import handle_spans, mention_spans
from h2htalk.curation.anonymize.structured.ip_addresses import ip_spans
from h2htalk.curation.anonymize.structured.licence_plates import plate_spans
from h2htalk.curation.anonymize.structured.messenger_ids import wechat_spans
from h2htalk.curation.anonymize.structured.number_cues import find_cues
from h2htalk.curation.anonymize.structured.patterns import patterns
from h2htalk.curation.anonymize.structured.web import email_spans, url_spans
from h2htalk.data.languages import find_language

_RE = patterns("structured")
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
