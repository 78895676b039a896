"""Lines of a log between its messages: headings of days, lines of the program, remarks of whoever keeps the log, and
what stands where a picture or a sound was.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from functools import cache

from h2htalk.curation.gather.exports.dates import (
    DATE,
    clock,
    is_clock,
    is_moment,
    read_times,
    worded_moment,
)
from h2htalk.curation.gather.exports.tables.columns import words
from h2htalk.curation.gather.formats import RefusedItem

# What is left of a heading of a day once these are removed has no letter or digit.
_PARTS_OF_DAY = re.compile(
    r"\d{1,4}(?:st|nd|rd|th|[年月日号號點点時时분]|년|월|일|시)?|[ap]\.?m\.?\b|\buhr\b|\bo'?clock\b"
    r"|(?:星期|礼拜|禮拜|周|週)[一二三四五六日天]|[月火水木金土日]曜日?|[月火水木金土日](?=\))|[월화수목금토일]요일"
    r"|上午|下午|晚上|夜晚|凌晨|早上|朝早|中午|傍晚|夜间|午前|午後|오전|오후|今天|昨天|前天|今日|昨日"
    r"|\b(?:jan|feb|fev|fév|mar|mär|mrz|apr|abr|avr|may|mai|mag|jun|jul|aug|ago|aoû|sep|set|oct|okt|out|ott|nov|dec|dez|dic|déc"
    r"|gen|giu|lug|ene|янв|фев|апр|мая|июн|июл|авг|сен|окт|ноя|дек)[^\W\d]{0,7}\b"
    r"|\b(?:mon|tue|wed|thu|fri|sat|sun)(?:s|nes|rs|ur)?(?:day)?s?\b"
    r"|\b(?:montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonnabend|sonntag|mo|di|mi|do|fr|sa|so)\b"
    r"|\b(?:segunda|terça|quarta|quinta|sexta|sábado|domingo|seg|ter|qua|qui|sex|sáb|dom)(?:-feira)?\b"
    r"|\b(?:lunes|martes|miércoles|jueves|viernes|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche)\b"
    r"|\b(?:lunedì|martedì|mercoledì|giovedì|venerdì|sabato|domenica)\b"
    r"|\b(?:today|yesterday|heute|gestern|hoje|ontem|hoy|ayer|aujourd'hui|hier|day|date|tag|datum|dia|fecha|morning|evening|night)\b"
    r"|\b(?:de|of|the|le|el|den|del|um|at|am|on)\b",
    re.IGNORECASE,
)
_SAYS_WHEN = re.compile(
    r"\d|星期|礼拜|禮拜|周|週|曜|요일|day\b|tag\b|feira\b|今天|昨天|heute|gestern|hoje|ontem",
    re.IGNORECASE,
)
_DECORATED = re.compile(r"\s*(?:#{1,6}\s|([=*~_―—─═·-])\s?\1{1,}|<!--|//\s|%%|\[\d{4}-)")
_REMARK = re.compile(
    r"\s*(?:\[[^\]\n]{2,200}\]|【[^】\n]{2,200}】|<[^<>\n]{2,200}>|\{[^{}\n]{2,200}\})\s*"
)
_ROUND_REMARK = re.compile(r"\s*(?:\([^()\n]{2,300}\)|（[^（）\n]{2,300}）)\s*")
_BRACKETED = re.compile(
    r"\s*(?:\[([^\[\]\n]{1,60})\]|<([^<>\n]{1,60})>|【([^【】\n]{1,60})】|\{([^{}\n]{1,60})\})\s*"
)
_ROUND = re.compile(r"\s*[(（]([^()（）\n]{1,40})[)）]\s*")
_LONGEST_HEADING = 80
RENAMED = re.compile(r"(\S{1,40}) is now known as (\S{1,40})")  # a speaker, in a log of IRC


def is_heading(line: str, after_blank: bool) -> bool:
    """Whether a line is nothing but a day: decorated, or after an empty line or none."""
    bare = line.strip()
    if not bare or len(bare) > _LONGEST_HEADING or _SAYS_WHEN.search(bare) is None:
        return False
    if not (after_blank or _DECORATED.match(line) or bare[0] in "[(<【（*·•—―─"):
        return False
    left = _PARTS_OF_DAY.sub(" ", bare)
    # A number alone is a number.
    return re.search(r"\w", left) is None and not bare.isdigit()


def is_of_program(line: str) -> bool:
    """Whether a line has marks that set it apart: a comment, a rule, a heading."""
    return _DECORATED.match(line) is not None


def is_remark(line: str, beside_blank: bool) -> bool:
    """Whether a line stands in brackets as a whole: in round ones, as people write too, beside an empty line."""
    return _REMARK.fullmatch(line) is not None or (
        beside_blank and _ROUND_REMARK.fullmatch(line) is not None
    )


@cache
def _media() -> frozenset[str]:
    return frozenset(words()["placeholders"])


def is_placeholder(text: str) -> bool:
    """Whether a text stands where a picture, a sound or a file was: `[Photo]`, `<sticker omitted>`, `(语音)`."""
    bracketed = _BRACKETED.fullmatch(text)
    if bracketed is not None:
        inner = next(part for part in bracketed.groups() if part is not None).casefold()
        known = re.findall(r"[^\W\d_]+", inner)
        return len(known) <= 5 and not _media().isdisjoint(
            [inner.strip(), *known, *(re.split(r"[:：]", inner)[:1])]
        )
    in_round = _ROUND.fullmatch(text)
    return in_round is not None and in_round[1].strip().casefold() in _media()


def day_in(line: str, before: date | None) -> date | None:
    """The day that a line names; the day after the one before it where the line is a heading of another form."""
    if found := worded_moment(line):
        return found.date()
    match = re.search(DATE, line)
    if match is not None:
        try:
            moments = read_times([match[0]])
        except RefusedItem:
            return None if before is None else before + timedelta(days=1)
        return moments[0].date() if moments[0] else None
    return None


def moments_of(
    times: Sequence[object], days: Sequence[date | None], date_order: str
) -> list[datetime | None]:
    """The moments of messages. `times`: as the log has them; `days`: of the headings before them.

    Raises RefusedItem where day and month cannot be told apart.
    """
    known = [str(text).strip() for text in times if text]
    dated = [text for text in known if not is_clock(text) and is_moment(text)]
    if len(dated) >= 0.5 * len(known):
        return read_times(times, date_order)
    moments: list[datetime | None] = []
    today = date(2000, 1, 1)  # where no day is known, only how much later a message is counts
    heading: date | None = None
    last: time | None = None
    for text, day in zip(times, days, strict=True):
        hours = clock(str(text)) if text else None
        if hours is None:
            moments.append(None)
            continue
        if day is not None and day != heading:
            heading, today = day, day
        elif last is not None and hours < last:
            today += timedelta(days=1)
        last = hours
        moments.append(datetime.combine(today, hours))
    return moments
