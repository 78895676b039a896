"""Dates as programs print them: the order of day, month and year, decided by all dates of a file; times of the day."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time
from itertools import pairwise
from typing import Literal

from h2htalk.curation.gather.formats import RefusedItem

Order = Literal["dmy", "mdy", "ymd"]
ORDERS: tuple[Order, ...] = ("dmy", "mdy", "ymd")
# Arabic has a mark of direction before each slash.
DATE = r"\d{1,4}\u200f?[/.\-年][ \u00a0\u202f]?\d{1,2}\u200f?[/.\-月][ \u00a0\u202f]?\d{1,4}[日.]?"
_PARTS = re.compile(r"(\d{1,4})\u200f?([/.\-年])\s?(\d{1,2})\u200f?[/.\-月]\s?(\d{1,4})[日.]?")
MORNING = "am|a m|上午|凌晨|清晨|早上|午前|오전|vorm|de la mañana|ص"
EVENING = "pm|p m|下午|晚上|傍晚|夜间|午後|오후|nachm|de la tarde|de la noche|م"
NOON = "中午"
_HALF = re.compile(rf"(?P<am>{MORNING})|(?P<pm>{EVENING})|(?P<noon>{NOON})", re.IGNORECASE)
_CLOCK = re.compile(r"(\d{1,2})[:.h时時点](\d{2})(?:[:.](\d{2}))?")


def find_order(dates: Iterable[str], given: str = "", may_go_back: bool = False) -> Order:
    """The order in which all dates of a file make sense. `given`: what the owner says, or empty; `may_go_back`: the
    file may have the newest date first.

    A year of four digits in front decides, and so does a point between the parts, which is used with the day in front
    alone. Else each date must exist, and the file, which programs write in the order of time, must not go back. Raises
    RefusedItem where two orders are left that mean different days.
    """
    distinct = list(dict.fromkeys(dates))
    candidates = [given] if given in ORDERS else _candidates(distinct)
    possible: dict[Order, list[date]] = {}
    for order in ORDERS:
        days = [_day(text, order) for text in distinct] if order in candidates else [None]
        if None not in days:
            possible[order] = [day for day in days if day is not None]
    if not possible:
        problem = f"dates that do not exist in the order {' or '.join(candidates)}"
        raise RefusedItem("dates", problem, distinct[:1])
    breaks = {order: _breaks(days, may_go_back) for order, days in possible.items()}
    least = min(breaks.values())
    best = [order for order in possible if breaks[order] == least]
    if len(best) > 1 and any(possible[order] != possible[best[0]] for order in best):
        problem = f'day and month cannot be told apart; say which comes first: date_order = "{best[0]}" or "{best[1]}"'
        raise RefusedItem("dates", problem, distinct[:1])
    return best[0]


def _breaks(days: Sequence[date], may_go_back: bool) -> int:
    """How often some days leave the order of time."""
    backward = sum(later < earlier for earlier, later in pairwise(days))
    if not may_go_back:
        return backward
    forward = sum(later > earlier for earlier, later in pairwise(days))
    return min(backward, forward)


def _candidates(dates: Sequence[str]) -> list[str]:
    parts = [match for text in dates if (match := _PARTS.fullmatch(text))]
    if any(len(match[1]) == 4 or match[2] == "年" for match in parts):
        return ["ymd"]
    if parts and all(match[2] == "." for match in parts):
        return ["dmy"]
    return ["dmy", "mdy"]


def _day(text: str, order: Order) -> date | None:
    """The day of a date in an order; None where there is no such day."""
    match = _PARTS.fullmatch(text)
    if match is None:
        return None
    numbers = dict(zip(order, (int(match[1]), int(match[3]), int(match[4])), strict=True))
    year = numbers["y"] + 2000 if numbers["y"] < 100 else numbers["y"]
    try:
        return date(year, numbers["m"], numbers["d"])
    except ValueError:
        return None


def clock(text: str) -> time | None:
    """A time of the day, of 12 or 24 hours: `9:15 PM`, `21:15:03`, `下午9:15`; None where there is none."""
    match = _CLOCK.search(text)
    if match is None:
        return None
    hour, minute, second = (int(part or 0) for part in match.groups())
    bare = re.sub(r"[.\s]+", " ", text[: match.start()] + " " + text[match.end() :]).strip()
    half = _HALF.search(bare)
    if half is not None and half["pm"] and hour < 12:
        hour += 12
    if half is not None and half["noon"] and hour < 3:
        hour += 12
    if half is not None and half["am"] and hour == 12:
        hour = 0
    try:
        return time(hour, minute, second)
    except ValueError:
        return None


def moment(day: str, hours: str, order: Order) -> datetime | None:
    """The moment of a date and a time of the day as a program prints them."""
    found = _day(day, order)
    at = clock(hours)
    return None if found is None or at is None else datetime.combine(found, at)


_ISO = re.compile(r"\d{4}-\d{1,2}-\d{1,2}(?:[T ]\d{1,2}:\d{2}.*)?")
_DATED = re.compile(rf"(?:[^\W\d]{{1,12}}\.?,? )?({DATE}),?(.*)", re.DOTALL)
_CLOCK_ALONE = re.compile(
    rf"(?:(?:{MORNING}|{EVENING}|{NOON})\s?)?\d{{1,2}}[:.h]\d{{2}}(?:[:.]\d{{2}})?(?:\.\d+)?\s?[ap]?\.?m?\.?",
    re.I,
)
# The first letters of the names of months, in the languages whose dates are read.
_MONTHS: tuple[tuple[str, ...], ...] = (
    ("jan", "jän", "ene", "gen", "янв"),
    ("feb", "fev", "fév", "фев"),
    ("mar", "mär", "mrz", "мар"),
    ("apr", "abr", "avr", "апр"),
    ("may", "mai", "mag", "мая", "май"),
    ("jun", "juin", "giu", "июн"),
    ("jul", "juil", "lug", "июл"),
    ("aug", "ago", "aoû", "авг"),
    ("sep", "set", "сен"),
    ("oct", "okt", "out", "ott", "окт"),
    ("nov", "ноя"),
    ("dec", "dez", "dic", "déc", "дек"),
)
_WORDED = (
    re.compile(
        r"(?P<d>\d{1,2})(?:st|nd|rd|th|\.|º)?[ -]+(?:de )?(?P<m>[^\W\d]{3,10})\.?,?[ -]+(?:de )?(?P<y>\d{4})\b"
    ),
    re.compile(
        r"\b(?P<m>[^\W\d]{3,10})\.?[ -]+(?P<d>\d{1,2})(?:st|nd|rd|th)?(?:,| )(?:.{0,16}?)\b(?P<y>(?:19|20)\d{2})\b"
    ),
)
_LATER_CLOCK = re.compile(r"\d{1,2}:\d{2}(?::\d{2})?(?:[ \u202f]?[ap]\.?m\b\.?)?", re.IGNORECASE)


def worded_moment(text: str) -> datetime | None:
    """The moment of a date with the name of its month: `3 March 2026, 19:04`, `Sun Oct 06 23:31:33 2013`."""
    for pattern in _WORDED:
        match = pattern.search(text)
        if match is None:
            continue
        name = match["m"].casefold()
        month = next(
            (number for number, starts in enumerate(_MONTHS, 1) if name.startswith(starts)), 0
        )
        hours = _LATER_CLOCK.search(text)
        at = clock(hours[0]) if hours else time()
        try:
            return datetime.combine(date(int(match["y"]), month, int(match["d"])), at or time())
        except ValueError:
            continue
    return None


def is_clock(text: str) -> bool:
    """Whether a text is a time of the day and nothing else."""
    return _CLOCK_ALONE.fullmatch(text.strip()) is not None


def is_moment(value: object) -> bool:
    """Whether a value says when something was."""
    if _number_or_iso(value) is not None:
        return True
    if not isinstance(value, str) or len(value) > 60:
        return False
    bare = value.strip()
    dated = _DATED.fullmatch(bare)
    if dated is not None and (not dated[2].strip() or clock(dated[2]) is not None):
        return True
    return is_clock(bare) or (len(bare) < 40 and worded_moment(bare) is not None)


def read_times(
    texts: Sequence[object], given: str = "", may_go_back: bool = False
) -> list[datetime | None]:
    """The moments of the values of one column: ISO 8601, seconds or milliseconds since 1970, or dates as people write.

    Raises RefusedItem where day and month cannot be told apart.
    """
    moments = [_number_or_iso(value) for value in texts]
    others: dict[str, re.Match[str]] = {}
    for value, known in zip(texts, moments, strict=True):
        if known is None and isinstance(value, str) and (match := _DATED.fullmatch(value.strip())):
            others[match.string] = match
    worded: dict[str, datetime | None] = {}
    if others:
        order = find_order((match[1] for match in others.values()), given, may_go_back)
        for text, match in others.items():
            worded[text] = moment(match[1], match[2] or "0:00", order) or _midnight(match[1], order)
    for position, value in enumerate(texts):
        if moments[position] is not None or not isinstance(value, str):
            continue
        bare = value.strip()
        if bare not in worded:
            worded[bare] = worded_moment(bare[:80])
        moments[position] = worded[bare]
    return moments


def _midnight(day: str, order: Order) -> datetime | None:
    found = _day(day, order)
    return None if found is None else datetime.combine(found, time())


_ZONE = re.compile(r"([+-]\d{2})$")  # as PostgreSQL prints it


def _number_or_iso(value: object) -> datetime | None:
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    text = (
        str(value).strip()
        if isinstance(value, str | int | float) and not isinstance(value, bool)
        else ""
    )
    if re.fullmatch(r"\d{9,19}(?:\.\d+)?", text):
        seconds = float(text)
        while seconds > 1e11:  # milliseconds, microseconds, nanoseconds
            seconds /= 1000
        return datetime.fromtimestamp(seconds, tz=UTC).replace(tzinfo=None)
    if _ISO.fullmatch(text):
        try:
            when = datetime.fromisoformat(_ZONE.sub(r"\1:00", text.replace(" UTC", "+00:00")))
        except ValueError:
            return None
        # Where clocks are set back, the offset says which of two messages came first.
        return when.astimezone(UTC).replace(tzinfo=None) if when.tzinfo else when
    return None
