"""Surrogates of dates: another day and month in the same format; the year within three of the value's."""

from __future__ import annotations

import re

from h2htalk.curation.anonymize.surrogates.seeded_random import SeededRandom

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_HAN_MONTHS = "正二三四五六七八九十"
_HAN_DAYS = ("初二", "初三", "初四", "初五", "初六", "初七", "初八", "初九", "十一", "十二", "十三", "十四", "十六")
_DAY_WORDS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh",
    "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth",
    "twentieth",
)  # fmt: skip
_PART = re.compile(
    r"(?P<year>(?<![0-9])(?:19|20)[0-9]{2}(?![0-9]{1,3}(?![0-9]))|(?<=')[0-9]{2}|[0-9]{2}(?=年)"
    r"|(?<=[-/.][0-9][-/.])[0-9]{2}$|(?<=[-/.][0-9]{2}[-/.])[0-9]{2}$)"
    r"|(?P<compact>[01][0-9][0-3][0-9])(?![0-9])|(?P<number>[0-9]{1,2})(?P<ordinal>st|nd|rd|th)?"
    rf"|(?P<word>(?:(?:twenty|thirty)[ -])?(?:{'|'.join(_DAY_WORDS)}|thirtieth))\b"
    rf"|(?P<name>{'|'.join(_MONTHS)}|sept|{'|'.join(month[:3] for month in _MONTHS)})"
    r"|(?P<han_year>[一二三四五六七八九〇零○]{2,4}(?=年))|(?P<han_month>闰?[正冬腊一二三四五六七八九十]{1,2}(?=月))"
    r"|(?P<han_day>初?[一二三四五六七八九十廿卅]{1,3}|(?<=月)半)",
    re.IGNORECASE,
)


def birth_date(draw: SeededRandom, value: str) -> str:
    """Another date, written like `value`."""
    return _PART.sub(lambda part: _other(draw, part), value)


def _other(draw: SeededRandom, part: re.Match[str]) -> str:
    text = part[0]
    if part["year"]:
        return f"{(int(text) + draw.choice((-3, -2, -1, 1, 2, 3))) % 10 ** len(text):0{len(text)}}"
    if part["compact"]:
        return f"{1 + draw.below(12):02}{1 + draw.below(28):02}"
    if part["number"]:
        # A number up to twelve stays one: day and month are a date in whatever order.
        other = 1 + draw.below(12 if int(part["number"]) < 13 else 28)
        ending = {1: "st", 2: "nd", 3: "rd"}.get(other % 10 if other // 10 != 1 else 0, "th")
        return f"{other:0{len(part['number']) if text[0] == '0' else 1}}" + (ending if part["ordinal"] else "")
    if part["word"]:
        return draw.choice(_DAY_WORDS)
    if part["name"]:
        month = draw.choice(_MONTHS)[: 3 if len(text) < 5 else None]
        return month.upper() if text.isupper() else month if text[0].isupper() else month.lower()
    if part["han_year"]:
        return text[:-1] + draw.choice("一二三四五六七八九")
    return draw.choice(_HAN_MONTHS if part["han_month"] else _HAN_DAYS)
