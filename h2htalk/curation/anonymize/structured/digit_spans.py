"""From runs of digits to spans: which windows of a run are whose number, and which of them stand together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from h2htalk.curation.anonymize.normalization import NormalizedText
from h2htalk.curation.anonymize.spans import Span
from h2htalk.curation.anonymize.structured import identity_numbers, phones
from h2htalk.curation.anonymize.structured.digit_runs import Run, Window, runs, windows
from h2htalk.curation.anonymize.structured.number_cues import Cues, Near

_CLOSING_X = re.compile(r"[\s.·/_~,-]{0,3}x(?![a-z0-9])")
# What makes the digits before it an amount, and not somebody's number.
_UNIT = re.compile(
    r"\s{0,2}(?:元|块|万|亿|分钟|小时|秒|天|步|人|次|个(?!是|就|号)|年|月|岁|米|公里|千米|字|张|页|集|章|分(?!享)|斤|克|条|种|遍|辆|首|级|颗|倍|公斤|毫安|"
    r"件(?!码|号)|名(?!字|叫|片)|户(?!名|主|口|头)|阅读|播放|浏览|热度|ml|kg|km|cm|mm|mg|%|％|度|平|"
    r"(?:dollars|bucks|usd|pounds|euros|won|yen|people|steps|times|years|days|miles|words|views|points|reasons)\b)"
)
# Short numbers of banks, insurers, carriers and towns' services in China.
_SERVICE = re.compile("9[56][0-9]{3}")
_MONEY = re.compile(r"[$¥€£￥]\s?$")
# A person's number in some house, named just before it: "id 382910", "patient: 38291047".
_MEMBER = re.compile(
    r"(?<![a-z])(?:id|patient|student|employee|staff|customer|client|bracelet)"
    r"[\s:#.?-]{0,3}(?:(?:is|no|was|reads|says) )?$"
)
# The forms of Chinese mobile numbers, of landlines with their area code, and of bank cards.
_PHONE_FORM = re.compile("(?:0|86|0086)?1[3-9][0-9]{9}|0(?:10|2[0-9]|[3-9][0-9]{2})[2-8][0-9]{6,7}|09[0-9]{8}")
_CARD_FORM = re.compile("(?:62|4|5[1-5]|35)[0-9]{14,17}")
_JOINING = re.compile(r"[\s,，、/&;；。.]*(?:或者|或|和|还有|跟|与|及|、|or|and|&|/|,|，)?[\s,，、/&]*")


def digit_spans(normalized: NormalizedText, cues: Cues, language: str, taken: list[tuple[int, int]]) -> list[Span]:
    """Spans (places of the reading) of everything that is written in digits alone."""
    spans: list[Span] = []
    barrier, before, last = 0, None, 0
    for run in runs(normalized, taken):
        start, end = run.groups[0].start, run.groups[-1].end
        formed = language == "zh" and _has_form("".join(group.digits for group in run.groups))
        near = cues.near(start, end, barrier, formed=formed)
        if before is not None and not near.kinds and _JOINING.fullmatch(normalized.text, last, start):
            near = before
        chosen = _choose_windows(run, normalized, near, language)
        spans.extend(chosen)
        barrier, last, before = end, end, (near if chosen else None)
    return [span for span in spans if span.type]


def _has_form(digits: str) -> bool:
    if _PHONE_FORM.fullmatch(digits):
        return True
    return _CARD_FORM.fullmatch(digits) is not None and identity_numbers.luhn(digits)


def _choose_windows(run: Run, normalized: NormalizedText, near: Near, language: str) -> list[Span]:
    """The windows of a run that are something, the surest and longest first, none over another."""
    candidates: list[tuple[float, int, Window, str]] = []
    for window in windows(run, normalized.text, near):
        for shaped in _with_x(window, normalized, language):
            kind, score = identify(shaped, normalized, language)
            if kind is not None:
                candidates.append((-score, -len(shaped.digits), shaped, kind))
    candidates.sort(key=lambda item: (item[0], item[1], item[2].start))
    chosen: list[Span] = []
    taken: set[int] = set()
    for score, _, window, kind in candidates:
        places = range(window.start, window.end)
        if taken.isdisjoint(places):
            taken.update(places)
            start, end = _edges(window, normalized.text, kind)
            chosen.append(Span(start, end, kind, -score))
    return sorted(chosen)


def _with_x(window: Window, normalized: NormalizedText, language: str) -> Iterator[Window]:
    yield window
    if language == "zh" and len(window.digits) == 17:
        match = _CLOSING_X.match(normalized.text, window.end)
        if match:
            yield replace(window, digits=window.digits + "X", end=match.end(), after=None)


def _edges(window: Window, text: str, kind: str) -> tuple[int, int]:
    """A phone number's `+` and opening bracket, and the bracket that closes what it opened, belong to it."""
    start, end = window.start, window.end
    if kind == "PHONE_NUMBER":
        before = re.search(r"\+[\s\-(]{0,2}$|[(\[]$", text[max(0, start - 3) : start])
        if before and (before.group()[0] == "+" or ")" in text[start:end] or "]" in text[start:end]):
            start -= len(before.group())
    inside = text[start:end]
    for opening, closing in (("(", ")"), ("[", "]")):
        if inside.count(opening) > inside.count(closing) and text[end : end + 1] == closing:
            end += 1
    return start, end


# my work cell is 800 ...
_SOMEBODYS = re.compile(
    r"(?<![a-z])(?:my|her|his|their|our)(?: [a-z#.]{1,12}){0,3}[\s:]{0,3}$|[我他她]的?[^，。\s]{0,6}$"
)


def identify(window: Window, normalized: NormalizedText, language: str) -> tuple[str | None, float]:
    """The type of a window and how sure, or None. The empty type is a public line: taken, and then left in."""
    digits = window.digits
    if language == "zh":
        window = replace(window, near=window.near.fitting(len(digits)))
    claimed = window.near.nearest in ("qq", "wechat", "account") and window.near.kinds[0][1] <= 3
    if language == "zh" and _SERVICE.fullmatch(digits) and not claimed:
        return ("", 1.0) if window.whole else (None, 0.0)
    if phones.is_hotline(digits) and not (len(digits) <= 5 and claimed):
        return ("", 1.0) if window.whole or len(digits) >= 8 else (None, 0.0)
    before = normalized.text[max(0, window.start - 24) : window.start]
    if window.whole and phones.is_toll_free(digits, language) and not _SOMEBODYS.search(before):
        return "", 1.0
    if _MONEY.search(normalized.text, max(0, window.start - 2), window.start):
        return None, 0.0
    if window.near.nearest not in ("phone", "landline", "card", "id", "account", "qq") and _thousands(window):
        return None, 0.0
    unit = _UNIT.match(normalized.text, window.end) is not None
    scores: dict[str, float] = {}
    if language == "zh":
        scores["NATIONAL_ID"] = identity_numbers.national_id_zh(window)
    words = normalized.text[max(0, window.start - 60) : window.end + 30]
    if language == "en" or "ssn" in words or "social" in words:
        scores["NATIONAL_ID"] = max(scores.get("NATIONAL_ID", 0.0), identity_numbers.national_id_en(window, words))
    scores["CREDIT_CARD"] = identity_numbers.card(window)
    if not unit:
        scores["QQ"] = identity_numbers.qq(window)
        if language == "zh":
            scores["QQ"] = max(scores["QQ"], identity_numbers.qq_without_cue(window))
        scores["WECHAT"] = identity_numbers.wechat_number(window)
        scores["ACCOUNT_NUMBER"] = identity_numbers.account(window, language)
        scores["PHONE_NUMBER"] = phones.phone(window, language)
        if _MEMBER.search(words, 0, min(60, window.start)) and not scores["PHONE_NUMBER"]:
            scores["ACCOUNT_NUMBER"] = max(scores["ACCOUNT_NUMBER"], identity_numbers.member(window))
    _choose_by_cue(scores, window)
    kind = max(scores, key=lambda name: scores[name])
    return (kind, scores[kind]) if scores[kind] >= 0.5 else (None, 0.0)


def _thousands(window: Window) -> bool:
    """2,147,483,647"""
    return bool(window.gaps) and set(window.gaps) == {","} and window.shape[0] <= 3 and set(window.shape[1:]) == {3}


def _choose_by_cue(scores: dict[str, float], window: Window) -> None:
    """Where a number may be two things, the nearer cue says which."""
    nearest = window.near.nearest
    if nearest == "id" and scores.get("NATIONAL_ID", 0):
        scores["PHONE_NUMBER"] = 0.0
    for kind, name in (("qq", "QQ"), ("account", "ACCOUNT_NUMBER"), ("wechat", "WECHAT")):
        if nearest == kind and scores.get(name, 0) and scores.get("PHONE_NUMBER", 0):
            scores["PHONE_NUMBER"] = 0.0
    if scores.get("NATIONAL_ID", 0) >= 0.9:
        scores["CREDIT_CARD"] = scores["ACCOUNT_NUMBER"] = 0.0
    if scores["CREDIT_CARD"] and window.near.nearest == "card":
        scores["ACCOUNT_NUMBER"] = 0.0
