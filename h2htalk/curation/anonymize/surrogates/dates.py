"""Surrogates of dates: another day and month in the same format; the year within three of the value's."""

from __future__ import annotations

import re

from h2htalk.curation.anonymize.surrogates.seeded_random import SeededRandom

_MONTHS = (
    ("january", "jan"), ("february", "feb"), ("march", "mar"), ("april", "apr"), ("may", "may"), ("june", "jun"),
    ("july", "jul"), ("august", "aug"), ("september", "sept"), ("october", "oct"), ("november", "nov"),
    ("december", "dec"),
)  # fmt: skip
_HAN_MONTHS = ("正", "二", "三", "四", "五", "六", "七", "八", "九", "十")
_HAN_DAYS = ("初二", "初三", "初四", "初五", "初六", "初七", "初八", "初九", "十一", "十二", "十三", "十四", "十六")
_HAN_DIGITS = "〇一二三四五六七八九"
_SHORT_YEAR = re.compile(r"[0-9]{1,2}[-/.][0-9]{1,2}[-/.][0-9]{2}")
_PART = re.compile(
    r"(?P<year>(?<![0-9])(?:19|20)[0-9]{2}(?![0-9]{1,3}(?![0-9]))|(?<=')[0-9]{2}|[0-9]{2}(?=年))"
    r"|(?P<compact>[01][0-9][0-3][0-9])(?![0-9])|(?P<number>[0-9]{1,2})(?:st|nd|rd|th)?"
    r"|(?P<name>january|february|march|april|may|june|july|august|september|october|november|december"
    r"|jan|feb|mar|apr|jun|jul|aug|sept|sep|oct|nov|dec)"
    r"|(?P<han_year>[一二三四五六七八九〇零○]{2,4}(?=年))|(?P<han_month>闰?[正冬腊一二三四五六七八九十]{1,2}(?=月))"
    r"|(?P<han_day>初?[一二三四五六七八九十廿卅]{1,3}|(?<=月)半)",
    re.IGNORECASE,
)


def birth_date(draw: SeededRandom, value: str) -> str:
    """Another date, written like `value`."""
    return _PART.sub(lambda part: _other(draw, part), value)


def _other(draw: SeededRandom, part: re.Match[str]) -> str:
    kind, text = part.lastgroup, part[part.lastgroup or 0]
    if kind == "year":
        return _other_year(draw, text)
    if kind == "compact":
        return f"{1 + draw.below(12):02}{1 + draw.below(28):02}"
    if kind == "number" and _SHORT_YEAR.fullmatch(part.string) and part.end() == len(part.string):
        return _other_year(draw, text)
    if kind == "number":
        # A number up to twelve stays one: day and month are a date in whatever order.
        number = 1 + draw.below(12 if int(text) < 13 else 28)
        ending = part[0][len(text) :]
        return f"{number:0{len(text) if text[0] == '0' else 1}}" + (_ordinal(number) if ending else "")
    if kind == "name":
        whole = len(text) > 4 or text.lower() in ("may", "june", "july")
        month = draw.choice(_MONTHS)[0 if whole else 1]
        return month.upper() if text.isupper() else month.capitalize() if text[0].isupper() else month
    if kind == "han_year":
        return text[:-1] + draw.choice(_HAN_DIGITS[1:])
    return draw.choice(_HAN_MONTHS if kind == "han_month" else _HAN_DAYS)


def _other_year(draw: SeededRandom, year: str) -> str:
    return f"{(int(year) + draw.choice((-3, -2, -1, 1, 2, 3))) % 10 ** len(year):0{len(year)}}"


def _ordinal(number: int) -> str:
    return {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number not in (11, 12, 13) else "th"
