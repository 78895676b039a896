"""Ids that mix letters and digits: IBAN, UK National Insurance, passports, licences, member and student numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stdnum import iban

from h2htalk.curation.anonymize.structured.patterns import patterns
from h2htalk.curation.anonymize.structured.reading import Hit, Reading

_RE = patterns("alphanumeric_ids")
# What `cued` names that is nobody's customer number.
_PAPERS = re.compile("passport|licen[cs]e|aadhaa?r|pps|sss|nin|umid|philhealth|medicare")
_ELSEWHERE = frozenset(["other", "wechat", "plate", "qq"])


def ibans(reading: Reading) -> Iterator[Hit]:
    """IBANs, each to the first length at which its check digits are right."""
    for match in _RE["iban"].finditer(reading.text):
        value = ""
        for place, char in enumerate(match.group(), match.start() + 1):
            value += char.upper() if char.isalnum() else ""
            if char.isalnum() and len(value) >= 15 and iban.is_valid(value, check_country=False):
                yield match.start(), place, 0.98
                break


def national_insurance(reading: Reading) -> Iterator[Hit]:
    """British National Insurance numbers: with a cue, or in capitals with a prefix that is given out."""
    for match in _RE["national_insurance"].finditer(reading.digits):
        near = reading.near(*match.span())
        alone = near.nearest not in ("other", "account", "plate") and reading.visible[match.start()].isupper()
        named = near.distance("id") is not None
        if named or (alone and _RE["given_out"].match(match.group())):
            yield *match.span(), 0.97 if named else 0.85


def behind_cue(reading: Reading) -> Iterator[Hit]:
    """Ids behind a cue of an account, or of a member's card (卡号VIP022767)."""
    text = reading.text
    for cue in reading.cues.found:
        card = cue.kind == "card" and text.endswith(("卡号", "number", "no"), cue.start, cue.end)
        if cue.kind != "account" and not card:
            continue
        lead = _RE["lead"].match(text, cue.end)
        start = lead.end() if lead else cue.end
        while start > cue.end and re.match("[a-z0-9]{2}", text[start - 1 : start + 1]):
            start -= 1  # letters that also lead to a value: No, is
        match = _RE["value"].match(text, start)
        if match is not None and any(map(str.isalpha, match.group())):
            yield start, match.end(), 0.92


def chinese_passports(reading: Reading) -> Iterator[Hit]:
    """Passports in their own form, in capitals or where papers and counters are spoken of."""
    for match in _RE["chinese_passport"].finditer(reading.text):
        near = reading.near(*match.span())
        told = reading.visible[match.start()].isupper() or "counter" in near.around
        if told and near.nearest not in _ELSEWHERE and "adding" not in near.around:
            yield *match.span(), 0.7


def passports(reading: Reading) -> Iterator[Hit]:
    """A letter or two and digits, in a message that speaks of a passport or an account."""
    if any(cue.kind in ("account", "id") for cue in reading.cues.found):
        for match in _RE["passport"].finditer(reading.digits):
            near = reading.near(*match.span())
            if near.around & {"account", "id"} and near.nearest not in _ELSEWHERE:
                yield *match.span(), 0.9 if near.distance("account", "id") is not None else 0.7


def papers(reading: Reading) -> Iterator[Hit]:
    """The number behind the name of a paper that a state gives out."""
    return _cued(reading, papers=True)


def customers(reading: Reading) -> Iterator[Hit]:
    """The number behind a word for somebody's number at a firm, a school or a surgery."""
    return _cued(reading, papers=False)


def _cued(reading: Reading, *, papers: bool) -> Iterator[Hit]:
    """Numbers of six digits, or five beside a letter or a hyphen."""
    for match in _RE["cued"].finditer(reading.text):
        value = match["value"]
        enough = sum(map(str.isdigit, value)) >= (6 if value.replace(" ", "").isdigit() else 5)
        if enough and (_PAPERS.fullmatch(match["paper"]) is not None) == papers:
            yield *match.span("value"), 0.8
