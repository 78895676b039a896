"""Dates of birth: a date beside a word for being born or a birthday. Other dates stay."""

from __future__ import annotations

import re
from collections.abc import Iterator

from h2htalk.curation.anonymize.spans import Span

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY = r"[0-3]?[0-9](?:st|nd|rd|th)?"
_YEAR = r"(?:19|20)[0-9]{2}"
_NUMERIC = rf"(?:{_YEAR}[-/.][01]?[0-9][-/.][0-3]?[0-9]|[0-3]?[0-9][-/.][0-3]?[0-9][-/.](?:{_YEAR}|[0-9]{{2}}))"
_ENGLISH = re.compile(
    rf"(?<![\w/.-])(?:{_NUMERIC}|(?:the )?{_DAY}(?: day)?(?: of)? {_MONTH}(?:,? (?:of )?(?:{_YEAR}|'[0-9]{{2}}))?"
    rf"|{_MONTH} (?:the )?{_DAY}(?:,? (?:{_YEAR}|'[0-9]{{2}}))?|[01]?[0-9][/][0-3]?[0-9]"
    rf"|(?:christmas|new year'?s|halloween|valentine'?s)(?: day| eve)? {_YEAR})(?![\w/-]|\.[0-9])"
)
_ENGLISH_CUE = re.compile(
    r"(?<![a-z])(?:born(?! to )|birth|d\.?o\.?b|birth ?date|birthday|b-?day|b'day)(?![a-z])"
    r"|(?<![a-z])(?:turn(?:s|ed|ing)?|(?:i|he|she|they)(?:'?d|'?ll| would| will)? be|(?:is|was|'?s|are)) [1-9][0-9]?"
    r"(?= (?:on|this|next|come) )"
)
_NUMBER = "[0-9一二三四五六七八九十廿卅]"
_CHINESE_DAY = f"(?:初[一二三四五六七八九十]|{_NUMBER}{{1,3}})(?:[日号號]|(?![0-9一二三四五六七八九十年月个天]))"
_CHINESE = re.compile(
    f"(?<![0-9])(?:(?:[0-9]{{2}}|[0-9]{{4}}|[一二三四五六七八九〇零○]{{2,4}})年)?(?:农历|阴历|阳历|新历|旧历|的)?"
    f"(?:(?:正|冬|腊|闰?{_NUMBER}{{1,2}})月{_CHINESE_DAY}|(?:正|冬|腊|七)月半)"
    rf"|(?<![0-9.]){_YEAR}(?:[-/.][01]?[0-9][-/.][0-3]?[0-9]|[01][0-9][0-3][0-9])(?![0-9])"
)
_CHINESE_CUE = re.compile("生日|出生|生于|诞辰|生辰|出世|生的|生人|周岁生|属[鼠牛虎兔龙蛇马羊猴鸡狗猪]|岁生")
# 我对象92年1月30号的: somebody's, with the year, at the end of a clause.
_OF_SOMEBODY = re.compile(r"[我你他她妈爸爷奶弟妹姐哥娃儿女夫友象宝][^，。！？\s]{0,3}$")
_OF = re.compile(r"的(?:[，。！？,!?\s]|$)")
# my bday. it's april 2
_LEAD = re.compile(r"\W{1,4}(?:it'?s|its|is|on|that'?s|是|就是|就在)?\s?(?:on )?")
_SENTENCE = re.compile(r"[.!?\n](?:\s|$)|[。！？!?\n]")
_REACH = {"en": 40, "zh": 14}


def birth_date_spans(text: str, language: str) -> Iterator[Span]:
    """Spans of DATE_OF_BIRTH in a plain text in lower case."""
    dates, cues = (_CHINESE, _CHINESE_CUE) if language == "zh" else (_ENGLISH, _ENGLISH_CUE)
    places = [found.span() for found in cues.finditer(text)]
    for found in dates.finditer(text):
        start, end = found.span()
        near = any(_is_near(text, start, end, place, _REACH[language]) for place in places)
        if near or (language == "zh" and _is_of_somebody(text, start, end)):
            yield Span(start + (4 if found.group().startswith("the ") else 0), end, "DATE_OF_BIRTH", 0.85)


def _is_of_somebody(text: str, start: int, end: int) -> bool:
    """Whether a date with its year is said of a person: 我对象92年1月30号的."""
    dated = "年" in text[start:end] or re.match(_YEAR, text[start:end]) is not None
    return (
        dated and _OF_SOMEBODY.search(text, max(start - 6, 0), start) is not None and _OF.match(text, end) is not None
    )


def _is_near(text: str, start: int, end: int, cue: tuple[int, int], reach: int) -> bool:
    """Whether a cue stands in the same sentence, near the date."""
    between = text[cue[1] : start] if cue[1] <= start else text[end : cue[0]]
    apart = cue[1] <= start or cue[0] >= end
    return (
        apart and len(between) <= reach and (_SENTENCE.search(between) is None or _LEAD.fullmatch(between) is not None)
    )
