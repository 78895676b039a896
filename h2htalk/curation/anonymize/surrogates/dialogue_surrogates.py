"""Surrogates: what stands in for the personal data of one dialogue.

They are a function of the dialogue's texts and of the workspace's secret key (HMAC-SHA256): a value has the same one
wherever the dialogue says it, and another in every other dialogue.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from random import Random

from h2htalk.curation.anonymize.allow_list import find_allowed, to_lower
from h2htalk.curation.anonymize.normalization import normalize_text, plain, value_shape
from h2htalk.curation.anonymize.spans import TYPES
from h2htalk.curation.anonymize.surrogates.makers import (
    NUMBERS,
    address,
    chinese_names,
    dialogue_secret,
    keyed_random,
    number,
    organization,
    person_surrogates,
    scramble,
)
from h2htalk.curation.anonymize.values.dialogue_values import LEAKING, DialogueData, home_number, visible_value
from h2htalk.data.languages import find_language

# So many draws without a free one (a four-digit number in a dialogue full of them): then a name of the type.
_ENOUGH_DRAWS = 400
_PROVINCES = "京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼"
_SPACE = re.compile(r"\s+")
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


class Surrogates:
    """The surrogates of one dialogue."""

    def __init__(self, key: bytes, texts: Sequence[str], data: DialogueData) -> None:
        """`data` is what was found in the texts; the order in which values were found does not matter."""
        self._secret = dialogue_secret(key, texts)
        self._language = data.language
        self._values = data.values
        self._made: dict[tuple[str, str], str] = {}
        raws = {(s.type, text[s.start : s.end]) for text, spans in zip(texts, data.spans, strict=True) for s in spans}
        self.types = sorted({kind for kind, _ in raws})
        self._taken = {normalized_value(kind, raw) for kind, raw in raws}
        self._taken |= {number for text in texts for number in re.findall("[0-9]{4,}", plain(text))}
        self._people({raw for kind, raw in raws if kind == "PERSON"}, texts)
        self._others(raw for raw in raws if raw[0] != "PERSON")

    def of(self, kind: str, value: str) -> str:
        """The surrogate of a value as written; of one that was not among those found its type."""
        return self._made.get((kind, value), f"[{kind}]")

    def _people(self, names: Iterable[str], texts: Sequence[str]) -> None:
        shown = {name: visible_value(name) for name in names}
        if not shown:
            return
        spoken_words = {to_lower(word) for text in texts for word in _WORD.findall(plain(text))}
        made = person_surrogates(self._secret, set(shown.values()), spoken_words, self._repeats_value)
        self._made |= {("PERSON", name): made[seen] for name, seen in shown.items()}
        self._taken |= {normalized_value("PERSON", surrogate) for surrogate in made.values()}

    def _repeats_value(self, made: str) -> bool:
        """Whether a surrogate says one of the dialogue's own values, or is the name of a public figure."""
        return any(
            span.end - span.start >= LEAKING or span.end - span.start == len(made) for span in self._values.find(made)
        ) or bool(find_allowed(made, self._language))

    def _others(self, raws: Iterable[tuple[str, str]]) -> None:
        """Of a value written in several formats one surrogate."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for kind, raw in sorted(raws):
            groups.setdefault(normalized_value(kind, raw), []).append((kind, raw))
        for value, written in sorted(groups.items(), key=lambda group: (-len(group[0]), group[0])):
            # The same digits as a QQ number here and a telephone number there are one value.
            kind = min((kind for kind, _ in written), key=(*TYPES, *self.types).index)
            made = {raw: f"[{kind} {len(self._taken)}]" for _, raw in written}
            for attempt in range(_ENOUGH_DRAWS):
                drawn = {raw: self._render(kind, value, raw, attempt) for _, raw in written}
                norms = {normalized_value(kind, surrogate) for surrogate in drawn.values()}
                if not norms & self._taken and not any(map(self._repeats_value, drawn.values())):
                    made = drawn
                    break
            self._taken |= {normalized_value(kind, surrogate) for surrogate in made.values()}
            self._made |= {(own_kind, raw): made[raw] for own_kind, raw in written}

    def _render(self, kind: str, value: str, raw: str, attempt: int) -> str:
        """A surrogate of a value as written."""
        draw = keyed_random(self._secret, kind, value, str(attempt))
        if kind in _MAKERS:
            return _MAKERS[kind](draw, visible_value(raw))
        if kind in ("ADDRESS", "ORGANIZATION"):
            make = address if kind == "ADDRESS" else organization
            return make(partial(self._draw_place, attempt), visible_value(raw))
        shape = value_shape(raw)
        if not any(map(str.isdigit, shape.compact)) and kind not in NUMBERS:
            return f"[{kind} {attempt + 1}]"  # of a user's own type
        if not shape.compact:
            return f"[{kind}]"
        rules = find_language(self._language).number_rules
        home = value if kind == "PHONE_NUMBER" else shape.compact
        # A country's code in front stays; the rest is as in the number that is dialled at home.
        code = len(shape.compact) - len(home.lstrip("0")) if home != shape.compact else 0
        rest = number(kind, draw, home, rules, attempt)[code - len(shape.compact) :]
        made = shape.reformatted(shape.compact[:code] + rest)
        return re.sub(f"[{_PROVINCES}]", draw.choice(_PROVINCES), made, count=1) if kind == "LICENSE_PLATE" else made

    def _draw_place(self, attempt: int, part: str) -> Random:
        """A generator for a word or a number of a place: the same in every address of the dialogue that names it.

        Later attempts change its numbers first.
        """
        tried = attempt if part.isdigit() else attempt // 20
        return keyed_random(self._secret, "place", str(tried), part.lower())


def normalized_value(kind: str, value: str) -> str:
    """What two spellings of one value have in common: digits without marks, words in lower case without spaces."""
    if kind == "PHONE_NUMBER":
        return home_number(value) or value
    if kind in NUMBERS or kind == "IP_ADDRESS":
        return value_shape(value).compact or value
    if kind == "ADDRESS":
        return _SPACE.sub("", normalize_text(value).digits)
    seen = to_lower(visible_value(value))
    if kind == "HANDLE":
        return seen.removeprefix("u/").lstrip("@")
    return plain_email(seen) if kind in ("EMAIL_ADDRESS", "URL") else _SPACE.sub("", seen)


# --- Dates ---

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


def birth_date(draw: Random, value: str) -> str:
    """Another day and month, written like `value`; the year is within three of the value's."""
    return _PART.sub(lambda part: _other(draw, part), value)


def _other(draw: Random, part: re.Match[str]) -> str:
    text = part[0]
    if part["year"]:
        return f"{(int(text) + draw.choice((-3, -2, -1, 1, 2, 3))) % 10 ** len(text):0{len(text)}}"
    if part["compact"]:
        return f"{1 + draw.randrange(12):02}{1 + draw.randrange(28):02}"
    if part["number"]:
        # A number up to twelve stays one: day and month are a date in whatever order.
        other = 1 + draw.randrange(12 if int(part["number"]) < 13 else 28)
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


# --- Accounts, e-mail addresses, URLs, IP addresses ---

# Names and ranges kept for documentation: example.com, .org and .net by RFC 2606; three ranges of IPv4 by RFC 5737;
# 2001:db8::/32 by RFC 3849. What was obfuscated ("(at)", "[dot]", full-width letters, spaces) is written plainly.
_DOMAINS = ("example.com", "example.org", "example.net")
# Between a name and its domain, and between a domain's parts, in every format.
_AT = re.compile(r"\s*(?:[(\[{<]\s*(?:at|@|艾特)\s*[)\]}>]|@|#|\*|艾特|圈a|小老鼠|[\s_-]+at[\s_-]+)\s*", re.IGNORECASE)
_DOT = re.compile(r"\s*(?:[(\[{<]\s*(?:dot|\.|点)\s*[)\]}>]|[.。·]|点|(?<=[\s_-])dot(?=[\s_-]))\s*", re.IGNORECASE)
_URL = re.compile(r"(?P<scheme>[a-z]{2,6}:/*)?[^/?:]*(?P<path>.*)", re.DOTALL)
_RANGES = ("192.0.2", "198.51.100", "203.0.113")


def plain_email(value: str) -> str:
    """An address or a URL in lower case, its marks plain: what its spellings have in common."""
    return _DOT.sub(".", _AT.sub("@", plain(value).lower())).replace(" ", "")


def email(draw: Random, value: str) -> str:
    """An address at example.com, .org or .net; the name before it has as many letters and digits."""
    return f"{scramble(draw, plain_email(value).split('@')[0])}@{draw.choice(_DOMAINS)}"


def url(draw: Random, value: str) -> str:
    """An invented part of example.com, .org or .net, other letters and digits in its path."""
    found = _URL.fullmatch(plain_email(value))
    scheme, path = (found["scheme"] or "", found["path"]) if found else ("", "")
    host = "".join(draw.choice("bcdfghjklmnprstvwz" if at % 2 == 0 else "aeiou") for at in range(6))
    return f"{scheme}{host}.{draw.choice(_DOMAINS)}{scramble(draw, path)}"


def handle(draw: Random, value: str) -> str:
    """The name of an account of as many letters and digits; Chinese ones of a character of names and digits."""
    front = re.match("@|u/|", value, re.IGNORECASE)
    kept = front[0] if front else ""
    if not re.search("[\u4e00-\u9fff]", value):
        return kept + scramble(draw, value[len(kept) :])
    return f"{kept}小{draw.choice(chinese_names()['neutral'])}{scramble(draw, '000')}"


def ip_address(draw: Random, value: str) -> str:
    """One of the 768 addresses kept for documentation, or of 2001:db8::/32."""
    if plain(value).count(":") > 1:
        return "2001:db8::" + ":".join(f"{draw.randrange(0x10000):x}" for _ in range(3))
    return f"{draw.choice(_RANGES)}.{1 + draw.randrange(254)}"


_MAKERS: dict[str, Callable[[Random, str], str]] = {
    "HANDLE": handle,
    "DATE_OF_BIRTH": birth_date,
    "EMAIL_ADDRESS": email,
    "URL": url,
    "IP_ADDRESS": ip_address,
}
