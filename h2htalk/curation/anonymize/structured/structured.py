"""Structured personal data: what has a form of its own, found by patterns, check digits and cue words.

Types: EMAIL_ADDRESS, URL, IP_ADDRESS, LICENSE_PLATE, WECHAT, QQ, NATIONAL_ID, CREDIT_CARD, ACCOUNT_NUMBER,
PHONE_NUMBER. Each rule reads a text in linear time; what a text cannot hold (no digit, no dot) is not looked for.
"""

from __future__ import annotations

import re
from dataclasses import replace

from h2htalk.curation.anonymize.normalization import HAN, NormalizedText, normalize_text
from h2htalk.curation.anonymize.spans import Span, TakenCharacters, resolve_overlaps
from h2htalk.curation.anonymize.structured import domains
from h2htalk.curation.anonymize.structured.alphanumeric_ids import alphanumeric_id_spans
from h2htalk.curation.anonymize.structured.birth_dates import birth_date_spans
from h2htalk.curation.anonymize.structured.deobfuscation import deobfuscate
from h2htalk.curation.anonymize.structured.digit_spans import digit_spans
from h2htalk.curation.anonymize.structured.emails import email_spans
from h2htalk.curation.anonymize.structured.handles import handle_spans, mention_spans
from h2htalk.curation.anonymize.structured.ip_addresses import ip_spans
from h2htalk.curation.anonymize.structured.licence_plates import plate_spans
from h2htalk.curation.anonymize.structured.messenger_ids import wechat_spans
from h2htalk.curation.anonymize.structured.number_cues import find_cues
from h2htalk.curation.anonymize.structured.urls import url_spans
from h2htalk.data.languages import find_language

# Five digits in any format, with little in between: the least that a number needs.
_FIVE_DIGITS = re.compile(
    rf"(?:[0-9{HAN}o][\W_]{{0,4}}){{4}}[0-9{HAN}o]|(?<![a-z])(?:zero|one|two|three|four|five"
    rf"|six|seven|eight|nine|oh)[^\w]{{1,3}}"
    r"(?:(?:zero|one|two|three|four|five|six|seven|eight|nine|oh)(?![a-z])|[0-9])"
)
# A word rewritten so near may be the cue of what is found.
_BESIDE = 24
_LATIN_WORD = re.compile(r"[a-z][\w \n~/.…(-]{4}")
_PLATE_WORD = re.compile(r"vanity|plate|(?<![a-z])reg(?![a-z])|registration")
_WEB_MARKS = re.compile(
    r"[a-z0-9][,_*~|](?:com|net|org|co[,_*~|]uk)(?![a-z])|[\"*|/]\s?at\s?[\"*|/]"
    r"|[a-z0-9]\s{0,2}[(\[{<]?\s?(?:[.。点·@#*&$]|dot(?![a-z])|d0t|at(?![a-z])|艾特|圈a|小老鼠)|://"
    r"|[-_]at[-_]|: //|hxxp"
)


def find_structured(text: str, language: str) -> list[Span]:
    """Structured personal data of a text as given, in its order, without overlaps.

    The record of `language` decides which numbers and cue words are looked for. Places are characters of `text`.
    Scores: 0.95 and more where a check digit, a form of its own or a cue beside it speaks for it, else 0.6 to 0.9.
    """
    language = find_language(language).number_rules
    normalized = normalize_text(text)
    spans = _with_deobfuscated(normalized, _find_all(normalized, language), language)
    spans = [_with_brackets(span, normalized.text) for span in spans]
    if normalized.offsets is None:
        return spans
    return [Span(*normalized.original_span(span.start, span.end), span.type, span.score) for span in spans]


def _with_brackets(span: Span, text: str) -> Span:
    """The span with the bracket before or behind it that belongs to one inside: (219)(09)(9987)."""
    if span.type in ("URL", "EMAIL_ADDRESS"):
        return span
    inside = text[span.start : span.end]
    for opening, closing in ("()", "[]"):
        around = text[span.start - 1 : span.start] == opening and text[span.end : span.end + 1] == closing
        if span.start and around and 0 <= inside.find(closing) < inside.find(opening):
            return replace(span, start=span.start - 1, end=span.end + 1)
        lacking = inside.count(closing) - inside.count(opening)
        if lacking > 0 and span.start and text[span.start - 1] == opening:
            return _with_brackets(replace(span, start=span.start - 1), text)
        if lacking < 0 and text[span.end : span.end + 1] == closing:
            return _with_brackets(replace(span, end=span.end + 1), text)
    return span


def _with_deobfuscated(normalized: NormalizedText, spans: list[Span], language: str) -> list[Span]:
    """The spans, with those that show where a disguise is taken off. One that holds a plainer one takes its place."""
    meant = deobfuscate(normalized, language)
    if meant is None:
        return spans
    found = []
    for span in _find_all(meant.normalized, language):
        if meant.rewritten(max(0, span.start - _BESIDE), span.end + _BESIDE):
            found.append(replace(span, start=meant.starts[span.start], end=meant.ends[span.end - 1]))
    kept = list(spans)
    for span in found:
        under = [other for other in kept if other.overlaps(span)]
        if all(span.start <= other.start and other.end <= span.end for other in under):
            kept = [other for other in kept if not other.overlaps(span)] + [span]
    return sorted(kept)


def _is_of_help(url: str) -> bool:
    """Whether a web address is that of a help line or an organisation that helps."""
    host = re.split("[/?#]", url.partition("://")[2] or url)[0].removeprefix("www.")
    labels = host.split(".")
    return any(".".join(labels[at:]) in domains.words("help") for at in range(len(labels)))


def _find_all(normalized: NormalizedText, language: str) -> list[Span]:
    plain = normalized.text
    digits = _FIVE_DIGITS.search(plain) is not None
    web = _WEB_MARKS.search(plain) is not None
    some = any(char.isdigit() for char in normalized.digits)
    messenger = language == "zh" and _LATIN_WORD.search(plain) is not None
    plate = language == "en" and _PLATE_WORD.search(plain) is not None
    mentions = list(mention_spans(plain)) if "@" in plain else []
    others = [*handle_spans(plain, language), *birth_date_spans(plain, language)]
    if not (digits or web or some or messenger or plate or ":" in plain):
        return resolve_overlaps([*mentions, *others])
    cues = find_cues(plain, language)
    taken = TakenCharacters(len(plain))
    # Before e-mail addresses: "follow @name" is none with spaces in it.
    spans: list[Span] = taken.keep(mentions)
    if web:
        spans += taken.keep(email_spans(normalized, cues))
        spans += [span for span in url_spans(normalized, cues, taken) if not _is_of_help(plain[span.start : span.end])]
    if some or digits or plate or ":" in plain:
        spans += taken.keep(ip_spans(normalized, cues, taken))
        spans += taken.keep(plate_spans(normalized, cues))
        spans += alphanumeric_id_spans(normalized, cues, taken)
    if messenger or (language == "en" and any(cue.kind == "wechat" for cue in cues.found)):
        spans += wechat_spans(normalized, cues, taken)
    if digits:
        spans += digit_spans(normalized, cues, language, sorted((span.start, span.end) for span in spans))
    return resolve_overlaps([*(span for span in spans if span.score >= 0.5), *taken.keep(others)])
