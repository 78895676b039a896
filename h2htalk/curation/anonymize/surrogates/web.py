"""Surrogates of e-mail addresses, URLs and IP addresses: names and ranges kept for documentation.

RFC 2606 keeps example.com, .org and .net; RFC 5737 three ranges of IPv4; RFC 3849 2001:db8::/32.

How the value is written stays: "(at)", "[dot]", full-width letters, spaces.
"""

from __future__ import annotations

import re
from itertools import pairwise

from h2htalk.curation.anonymize.normalization import plain
from h2htalk.curation.anonymize.surrogates.seeded_random import LETTERS, SeededRandom
from h2htalk.curation.anonymize.values.value_shape import value_shape

_ENDINGS = ("com", "org", "net")
# Between a name and its domain, and between a domain's parts, in every format.
_AT = re.compile(r"\s*(?:[(\[{<]\s*(?:at|@|艾特)\s*[)\]}>]|@|#|\*|艾特|圈a|小老鼠|[\s_-]+at[\s_-]+)\s*", re.IGNORECASE)
_DOT = re.compile(r"\s*(?:[(\[{<]\s*(?:dot|\.|点)\s*[)\]}>]|[.。·]|点|(?<=[\s_-])dot(?=[\s_-]))\s*", re.IGNORECASE)
_SCHEME = re.compile(r"(?:[a-z]{2,6}\s?:\s?/\s?/\s?)?(?:www\s?(?:\.|\[dot\]|\(dot\)|点)\s?)?", re.IGNORECASE)
_HOST_END = re.compile(r"[/?#:]")
_ENOUGH = 40
_HAN_FIRST = ("安静", "慢慢", "路过", "晴天", "午后", "傍晚", "海边", "山里", "窗边", "楼下")
_HAN_SECOND = ("橘子", "云", "茶杯", "小石头", "面包", "风", "纸船", "葡萄", "台灯", "枫叶")
_RANGES = ("192.0.2", "198.51.100", "203.0.113")


def email(draw: SeededRandom, value: str) -> str:
    """An address at example.com, .org or .net; the name before it has as many letters and digits."""
    seen = plain(value)
    at = _AT.search(seen)
    local = value[: at.start()] if at else ""
    if at is None or not local:
        return f"{_scrambled(draw, value.split('@')[0] or value)}@example.{draw.choice(_ENDINGS)}"
    domain = seen[at.end() :]
    dots = [m for m in _DOT.finditer(domain) if m.start() > 0 and m.end() < len(domain)]
    dot = domain[dots[-1].start() : dots[-1].end()] if dots else "."
    return _scrambled(draw, local) + value[at.start() : at.end()] + _like(value, f"example{dot}{draw.choice(_ENDINGS)}")


def url(draw: SeededRandom, value: str) -> str:
    """The same address at example.com, .org or .net, other letters and digits in its path."""
    seen = plain(value)
    scheme = _SCHEME.match(seen)
    start = scheme.end() if scheme else 0
    found = _HOST_END.search(seen, start)
    end = found.start() if found else len(value)
    dots = [m for m in _DOT.finditer(seen, start, end) if m.start() > start and m.end() < end]
    dot = dots[-1].group() if dots else "."
    # Where no path tells two of them apart, a name before the domain does.
    path = _scrambled(draw, value[end:])
    front = "" if any(c.isalnum() for c in path) else _name(draw) + dot
    return value[:start] + _like(value, f"{front}example{dot}{draw.choice(_ENDINGS)}") + path


def handle(draw: SeededRandom, value: str) -> str:
    """The name of an account of as many letters and digits; Chinese ones of common words and digits."""
    if not any("\u4e00" <= c <= "\u9fff" for c in value):
        start = 2 if value.lower().startswith("u/") else 0
        return value[:start] + _scrambled(draw, value[start:])
    mark = value[0] if value[0] == "@" else ""
    return f"{mark}{draw.choice(_HAN_FIRST)}的{draw.choice(_HAN_SECOND)}{draw.digits(3)}"


def name_of_email(value: str) -> str:
    """An address or a URL in lower case, its marks plain: what its spellings have in common."""
    return _DOT.sub(".", _AT.sub("@", value)).replace(" ", "")


def ip_address(draw: SeededRandom, value: str, attempt: int = 0) -> str:
    """One of the 768 addresses kept for documentation, or of 2001:db8::/32; the marks between numbers stay.

    In a dialogue that holds more, those kept for measurements (198.18.0.0/15, RFC 2544) come after them.
    """
    seen = plain(value)
    if seen.count(":") > 1 or re.search("[a-f]", seen, re.IGNORECASE):
        groups = [f"{draw.below(0x10000):x}" for _ in range(3)]
        return _like(value, "2001:db8::" + ":".join(groups))
    shape = value_shape(value, numeric=True)
    marks = _between(shape.offsets, value)
    net = draw.choice(_RANGES) if attempt < _ENOUGH else f"198.{18 + draw.below(2)}.{draw.below(256)}"
    numbers = f"{net}.{1 + draw.below(254)}".split(".")
    if len(marks) != 3:
        return ".".join(numbers)
    return _like(value, "".join(n + m for n, m in zip(numbers, [*marks, ""], strict=True)))


def _between(places: tuple[tuple[int, int], ...], value: str) -> list[str]:
    """What stands between the groups of digits."""
    return [value[end:start] for (_, end), (start, _) in pairwise(places) if start > end]


def _scrambled(draw: SeededRandom, value: str) -> str:
    # Letters of other scripts spell a name too: they become Latin ones.
    latin = "".join(draw.choice(LETTERS) if c.isalnum() and not plain(c).isascii() else c for c in value)
    shape = value_shape(latin, numeric=False)
    return shape.reformatted(draw.scramble(shape.compact))


def _name(draw: SeededRandom) -> str:
    return "".join(draw.choice("bcdfghjklmnprstvwz" if at % 2 == 0 else "aeiou") for at in range(6))


def _like(value: str, made: str) -> str:
    """In full width, or in capitals, where the value is."""
    letters = [c for c in value if c.isalnum()]
    if letters and all("\uff01" <= c <= "\uff5e" for c in letters):
        return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in made)
    return made.upper() if letters and value.isupper() else made
