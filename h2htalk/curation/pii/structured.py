"""Structured personal data: what has a form of its own, found by patterns, check digits and cue words.

Types: EMAIL_ADDRESS, URL, IP_ADDRESS, LICENSE_PLATE, WECHAT, QQ, NATIONAL_ID, CREDIT_CARD, ACCOUNT_NUMBER,
PHONE_NUMBER. Each rule reads a text in linear time; what a text cannot hold (no digit, no dot) is not looked for.
"""

from __future__ import annotations

import re

from h2htalk.curation.pii.cues import find_cues
from h2htalk.curation.pii.digit_rules import digit_spans
from h2htalk.curation.pii.emails import email_spans
from h2htalk.curation.pii.ip_addresses import ip_spans
from h2htalk.curation.pii.lettered import lettered_spans
from h2htalk.curation.pii.messengers import wechat_spans
from h2htalk.curation.pii.normalize import HAN, Reading, read
from h2htalk.curation.pii.places import Places, resolve_near
from h2htalk.curation.pii.plates import plate_spans
from h2htalk.curation.pii.spans import Span
from h2htalk.curation.pii.urls import url_spans

# Five digits in any dress, with little in between: the least that a number needs.
_FIVE_DIGITS = re.compile(
    rf"(?:[0-9{HAN}o][^\w]{{0,4}}){{4}}[0-9{HAN}o]|(?<![a-z])(?:zero|one|two|three|four|five|six|seven|eight|nine|oh)[^\w]{{1,3}}"
    r"(?:(?:zero|one|two|three|four|five|six|seven|eight|nine|oh)(?![a-z])|[0-9])"
)
_WEB = re.compile(
    r"[a-z0-9]\s{0,2}[(\[{<]?\s?(?:[.。点·@#*&$]|dot(?![a-z])|d0t|at(?![a-z])|艾特|圈a|小老鼠)|://|[-_]at[-_]|: //|hxxp"
)
_MESSENGER = re.compile(r"[微薇威维v绿徽卫魏小]|wx|wechat|weixin|w x|wei")


def find_structured(text: str, language: str) -> list[Span]:
    """Structured personal data of a text as given, in its order, without overlaps.

    `language`: `en` or `zh`; it decides which numbers and cue words are looked for. Places are characters of `text`.
    Scores: 0.95 and more where a check digit, a form of its own or a cue beside it speaks for it, else 0.6 to 0.9.
    """
    reading = read(text)
    spans = _found(reading, "zh" if language == "zh" else "en")
    if reading.offsets is None:
        return spans
    return [Span(*reading.place(span.start, span.end), span.type, span.score) for span in spans]


def _found(reading: Reading, language: str) -> list[Span]:
    plain = reading.text
    digits = _FIVE_DIGITS.search(plain) is not None
    web = _WEB.search(plain) is not None
    some = any(char.isdigit() for char in reading.digits)
    messenger = language == "zh" and _MESSENGER.search(plain) is not None
    if not (digits or web or some or messenger or ":" in plain):
        return []
    cues = find_cues(plain, language)
    taken = Places(len(plain))
    spans: list[Span] = []
    if web:
        spans += taken.keep(email_spans(reading, cues))
        spans += url_spans(reading, cues, taken)
    if some or digits or ":" in plain:
        spans += taken.keep(ip_spans(reading, cues, taken))
        spans += taken.keep(plate_spans(reading, cues, language))
        spans += lettered_spans(reading, cues, taken)
    if messenger or any(cue.kind == "wechat" for cue in cues.found):
        spans += wechat_spans(reading, cues, taken)
    if digits:
        spans += digit_spans(reading, cues, language, sorted((span.start, span.end) for span in spans))
    return resolve_near(span for span in spans if span.score >= 0.5)
