"""Ids that mix letters and digits: IBAN, UK National Insurance, passports, licences, member and student numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stdnum import iban

from h2htalk.curation.anonymize.normalization import NormalizedText
from h2htalk.curation.anonymize.spans import Span, TakenCharacters
from h2htalk.curation.anonymize.structured.number_cues import Cue, Cues

_IBAN = re.compile(r"(?<![a-z0-9])[a-z]{2}[0-9]{2}(?:[ -]?[a-z0-9]){11,30}")
_NINO = re.compile(
    r"(?<![a-z0-9])[a-z][ .\-]?[a-z](?:[ .\-/_·,*|~…()]{0,3}[0-9]){6}[ .\-/_·,*|~…()]{0,3}[a-d](?![a-z0-9])"
)
_SORT_CODE = re.compile(r"(?<![a-z])sort(?:\s?code)?[\s:#]{1,3}(?:is\s)?([0-9]{2}([ -]?)[0-9]{2}\2[0-9]{2})(?![0-9])")
# American driving licences that are printed with hyphens.
_LICENCE = re.compile(
    r"(?<![a-z0-9-])[a-z][0-9](?:[0-9]{2}-[0-9]{4}-[0-9]{4}|[0-9]{3}-[0-9]{5}-[0-9]{5}|"
    r"[0-9]{2}-[0-9]{3}-[0-9]{2}-[0-9]{3}(?:-[0-9])?)(?![a-z0-9-])"
)
# Prefixes that are given out; others are only believed beside a cue.
_GIVEN_OUT = re.compile(r"(?!bg|gb|nk|kn|tn|nt|zz)[a-ceghj-prstw-z][a-ceghj-nprstw-z]")
_PASSPORT = re.compile(r"(?<![a-z0-9])[a-z]{1,2}[/-]?[0-9](?:[\s.,·_/~-]{0,2}[0-9]){5,13}(?![a-z0-9])")
_CHINESE_PASSPORT = re.compile(r"(?<![a-z0-9])(?:[cghm][0-9]|e[a-hj-np-z0-9])[0-9]{7}(?![a-z0-9])")
# A contract's, a policy's, a member's; no parcel's, none that begins with a day.
_OF_A_FIRM = re.compile(
    r"(?<![a-z0-9_])(?!q+[0-9]|vx?[0-9]|wx|sf|yt|jt|jd|zt|sto|ems|yd|db|lp|dsc|img|mvi|pxl|vid|hd|sku|sn|no|[a-z]+20[0-9]{2}(?:0[1-9]|1[0-2])[0-3][0-9])"
    r"[a-z]{1,5}[0-9]{8,18}(?![a-z0-9_])"
)
_LEAD = re.compile(
    r"(?:[\s:,.#=\"'(\[-]|is|was|says|said|reads|no\.?|number|num|号码?|是|就是|为|编号|的|我|it'?s|填的?|写的?|id|:|在|到|for|and|,){0,10}"
)
_VALUE = re.compile(
    r"(?:(?!(?:on|in|at|is|no|my|to|of|it|by|as|or|so|an|i|a|be|we|he|up|if|do"
    r"|us) )[a-z]{1,2} "
    r"|[a-z]{0,4}-?)"
    r"[0-9](?:[ /-]?[0-9]){4,17}(?:[ /-]?[a-z](?![a-z])[a-z]?(?![a-z]))?(?![a-z0-9])"
    r"|[a-z]{1,2}[0-9][a-z0-9]{4,16}(?![a-z0-9])|[a-z]{5}[0-9]{6}[a-z0-9]{5}(?![a-z0-9])|[a-z]{2}[0-9]{7}(?![0-9])"
)


def alphanumeric_id_spans(normalized: NormalizedText, cues: Cues, taken: TakenCharacters) -> list[Span]:
    """Spans (places of the reading) of ids that hold a letter, outside of what is taken, which they join."""
    text = normalized.text
    spans: list[Span] = []
    for match in _IBAN.finditer(text):
        end = _iban_end(text, match)
        if end:
            spans.append(Span(match.start(), end, "ACCOUNT_NUMBER", 0.98))
    for match in _SORT_CODE.finditer(text) if "sort" in text else ():
        spans.append(Span(*match.span(1), "ACCOUNT_NUMBER", 0.95))
    for match in _NINO.finditer(normalized.digits):
        near = cues.near(match.start(), match.end())
        cued = near.distance("id") is not None
        strict = _GIVEN_OUT.match(match.group()) is not None
        if cued or (
            (strict or (text.isascii() and text.startswith("qq", match.start())))
            and near.nearest not in ("other", "account", "plate")
            and normalized.visible[match.start()].isupper()
        ):
            spans.append(Span(match.start(), match.end(), "NATIONAL_ID", 0.97 if cued else 0.85))
    for match in _LICENCE.finditer(text):
        if not cues.near(*match.span()).nearest_is_impersonal(20):
            spans.append(Span(*match.span(), "ACCOUNT_NUMBER", 0.85))
    spans = taken.keep(spans)
    for cue in cues.found:
        if cue.kind == "account" or _of_a_card(text, cue):
            span = _behind(normalized, cue) or _before(normalized, cue)
        elif cue.kind == "plate" and text.startswith(("licen", "驾"), cue.start):
            span = _licence(normalized, cue)
        else:
            continue
        if span is not None:
            spans += taken.keep([span])
    return spans + taken.keep(_about(normalized, cues))


def _of_a_card(text: str, cue: Cue) -> bool:
    """A card's number with a letter in it is a member's: 卡号VIP022767."""
    return cue.kind == "card" and text[cue.start : cue.end].endswith(("卡号", "card number", "card no"))


def _licence(normalized: NormalizedText, cue: Cue) -> Span | None:
    """A driving licence's number, which is longer than any plate's."""
    span = _behind(normalized, cue)
    if span is None or sum(map(str.isalnum, normalized.text[span.start : span.end])) < 8:
        return None
    return span


def _about(normalized: NormalizedText, cues: Cues) -> Iterator[Span]:
    """A letter or two and digits, in a message that speaks of a passport or an account; or in a passport's own form,
    where papers and counters are spoken of."""
    kinds = {cue.kind for cue in cues.found}
    if cues.language == "zh":
        named = set(cues.starts)  # Tel17634090466
        for match in (*_CHINESE_PASSPORT.finditer(normalized.text), *_OF_A_FIRM.finditer(normalized.text)):
            if match.start() in named:
                continue
            near = cues.near(*match.span())
            passport = match.re is _CHINESE_PASSPORT and normalized.visible[match.start()].isupper()
            told = passport or "counter" in near.around or sum(map(str.isalpha, match.group())) > 2
            if told and near.nearest not in ("other", "wechat", "plate", "qq") and "adding" not in near.around:
                yield Span(*match.span(), "ACCOUNT_NUMBER", 0.7)
    if not kinds & {"account", "id"}:
        return
    for match in _PASSPORT.finditer(normalized.digits):
        near = cues.near(*match.span())
        if near.around & {"account", "id"} and near.nearest not in ("other", "wechat", "plate", "qq"):
            yield Span(
                match.start(),
                match.end(),
                "ACCOUNT_NUMBER",
                0.9 if near.distance("account", "id") is not None else 0.7,
            )


def _iban_end(text: str, match: re.Match[str]) -> int | None:
    """Where an IBAN ends: the first length at which its check digits are right."""
    value = ""
    for place in range(match.start(), match.end()):
        if text[place].isalnum():
            value += text[place].upper()
            if (
                len(value) >= 15
                and iban.is_valid(value, check_country=False)
                and not text[place + 1 : place + 2].isdigit()
            ):
                return place + 1
    return None


def _behind(normalized: NormalizedText, cue: Cue) -> Span | None:
    text = normalized.text
    lead = _LEAD.match(text, cue.end)
    start = lead.end() if lead else cue.end
    while (
        start > cue.end
        and text[start - 1].isascii()
        and text[start - 1].isalnum()
        and text[start : start + 1].isalnum()
    ):
        start -= 1
    match = _VALUE.match(text, start)
    if match is None or not any(char.isalpha() for char in match.group()):
        return None
    return Span(start, match.end(), "ACCOUNT_NUMBER", 0.92)


def _before(normalized: NormalizedText, cue: Cue) -> Span | None:
    """An id in front of its cue: "E12345678是我护照号"."""
    text = normalized.text
    floor = max(0, cue.start - 32)
    link = re.search(
        r"[\s,，]{0,2}(?:(?:这|那)?个?(?:就|才)?是(?:我|他|她)?的?(?:新|旧|老)?"
        r"|(?:is|was|that'?s) (?:my |her |his )?|\()$",
        text[floor : cue.start],
    )
    if link is None:
        return None
    end = floor + link.start()
    match = re.search(r"(?<![a-z0-9])[a-z]{1,2}[0-9]{5,14}$", text[floor:end])
    if match is None:
        return None
    return Span(floor + match.start(), end, "ACCOUNT_NUMBER", 0.9)
