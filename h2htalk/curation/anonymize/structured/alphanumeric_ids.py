"""Ids that mix letters and digits: IBAN, UK National Insurance, passports, licences, member and student numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stdnum import iban

from h2htalk.curation.anonymize.normalization import NormalizedText
from h2htalk.curation.anonymize.spans import Span, TakenCharacters
from h2htalk.curation.anonymize.structured.number_cues import Cue, Cues
from h2htalk.curation.anonymize.structured.patterns import patterns

_RE = patterns("alphanumeric_ids")
# What `cued` names that is nobody's customer number.
_PAPERS = re.compile("passport|licen[cs]e|aadhaa?r|pps|sss|nin|umid|philhealth|medicare")
_ELSEWHERE = frozenset(["other", "wechat", "plate", "qq"])


def alphanumeric_id_spans(normalized: NormalizedText, cues: Cues, taken: TakenCharacters) -> list[Span]:
    """Spans (places of the reading) of ids that hold a letter, outside of what is taken, which they join."""
    text = normalized.text
    spans = [Span(m.start(), end, "ACCOUNT_NUMBER", 0.98) for m in _RE["iban"].finditer(text) if (end := _iban_end(m))]
    for match in _RE["sort_code"].finditer(text) if "sort" in text else ():
        spans.append(Span(*match.span("value"), "ACCOUNT_NUMBER", 0.95))
    for match in _RE["national_insurance"].finditer(normalized.digits):
        near = cues.near(*match.span())
        alone = near.nearest not in ("other", "account", "plate") and normalized.visible[match.start()].isupper()
        named = near.distance("id") is not None
        if named or (alone and _RE["given_out"].match(match.group())):
            spans.append(Span(*match.span(), "NATIONAL_ID", 0.97 if named else 0.85))
    spans = taken.keep(spans)
    spans += taken.keep(span for cue in cues.found if _is_of_id(text, cue) for span in _behind(text, cue))
    spans += taken.keep(_about(normalized, cues))
    return spans + taken.keep(_cued(text)) if cues.language == "en" else spans


def _cued(text: str) -> Iterator[Span]:
    """Numbers of six digits, or five beside a letter or a hyphen, behind the name of a paper or a customer's number."""
    for match in _RE["cued"].finditer(text):
        value = match["value"]
        if sum(map(str.isdigit, value)) < (6 if value.replace(" ", "").isdigit() else 5):
            continue
        kind = "NATIONAL_ID" if _PAPERS.fullmatch(match["paper"]) else "ACCOUNT_NUMBER"
        yield Span(*match.span("value"), kind, 0.8)


def _is_of_id(text: str, cue: Cue) -> bool:
    """Whether a cue may be one of an id with letters: of an account, or of a member's card (卡号VIP022767)."""
    return cue.kind == "account" or (cue.kind == "card" and text.endswith(("卡号", "number", "no"), cue.start, cue.end))


def _about(normalized: NormalizedText, cues: Cues) -> Iterator[Span]:
    """A letter or two and digits, in a message that speaks of a passport or an account; or in a passport's own form,
    where papers and counters are spoken of."""
    if cues.language == "zh":
        found = (match for name in ("chinese_passport", "of_a_firm") for match in _RE[name].finditer(normalized.text))
        for match in found:
            near = cues.near(*match.span())
            passport = match.re is _RE["chinese_passport"] and normalized.visible[match.start()].isupper()
            told = passport or "counter" in near.around or sum(map(str.isalpha, match.group())) > 2
            if told and near.nearest not in _ELSEWHERE and "adding" not in near.around:
                yield Span(*match.span(), "ACCOUNT_NUMBER", 0.7)
    if not any(cue.kind in ("account", "id") for cue in cues.found):
        return
    for match in _RE["passport"].finditer(normalized.digits):
        near = cues.near(*match.span())
        if near.around & {"account", "id"} and near.nearest not in _ELSEWHERE:
            named = near.distance("account", "id") is not None
            yield Span(*match.span(), "ACCOUNT_NUMBER", 0.9 if named else 0.7)


def _iban_end(match: re.Match[str]) -> int:
    """Where an IBAN ends: the first length at which its check digits are right. 0: nowhere."""
    value = ""
    for place, char in enumerate(match.group(), match.start() + 1):
        value += char.upper() if char.isalnum() else ""
        if char.isalnum() and len(value) >= 15 and iban.is_valid(value, check_country=False):
            return place
    return 0


def _behind(text: str, cue: Cue) -> Iterator[Span]:
    """The id behind a cue, which may begin with letters that also lead there: No, is."""
    lead = _RE["lead"].match(text, cue.end)
    start = lead.end() if lead else cue.end
    while start > cue.end and re.match("[a-z0-9]{2}", text[start - 1 : start + 1]):
        start -= 1
    match = _RE["value"].match(text, start)
    if match is not None and any(map(str.isalpha, match.group())):
        yield Span(start, match.end(), "ACCOUNT_NUMBER", 0.92)
