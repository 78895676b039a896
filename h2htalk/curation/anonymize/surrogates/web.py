"""Surrogates of accounts, e-mail addresses, URLs and IP addresses: names and ranges kept for documentation.

RFC 2606 keeps example.com, .org and .net; RFC 5737 three ranges of IPv4; RFC 3849 2001:db8::/32. What was obfuscated
("(at)", "[dot]", full-width letters, spaces) is written plainly.
"""

from __future__ import annotations

import re

from h2htalk.curation.anonymize.normalization import plain
from h2htalk.curation.anonymize.surrogates.seeded_random import SeededRandom

_DOMAINS = ("example.com", "example.org", "example.net")
# Between a name and its domain, and between a domain's parts, in every format.
_AT = re.compile(r"\s*(?:[(\[{<]\s*(?:at|@|艾特)\s*[)\]}>]|@|#|\*|艾特|圈a|小老鼠|[\s_-]+at[\s_-]+)\s*", re.IGNORECASE)
_DOT = re.compile(r"\s*(?:[(\[{<]\s*(?:dot|\.|点)\s*[)\]}>]|[.。·]|点|(?<=[\s_-])dot(?=[\s_-]))\s*", re.IGNORECASE)
_URL = re.compile(r"(?P<scheme>[a-z]{2,6}:/*)?[^/?:]*(?P<path>.*)", re.DOTALL)
_HAN_NAMES = (
    ("安静", "慢慢", "路过", "晴天", "午后", "傍晚", "海边", "山里", "窗边", "楼下"),
    ("橘子", "云", "茶杯", "小石头", "面包", "风", "纸船", "葡萄", "台灯", "枫叶"),
)
_RANGES = ("192.0.2", "198.51.100", "203.0.113")


def plain_email(value: str) -> str:
    """An address or a URL in lower case, its marks plain: what its spellings have in common."""
    return _DOT.sub(".", _AT.sub("@", plain(value).lower())).replace(" ", "")


def email(draw: SeededRandom, value: str) -> str:
    """An address at example.com, .org or .net; the name before it has as many letters and digits."""
    return f"{draw.scramble(plain_email(value).split('@')[0])}@{draw.choice(_DOMAINS)}"


def url(draw: SeededRandom, value: str) -> str:
    """An invented part of example.com, .org or .net, other letters and digits in its path."""
    found = _URL.fullmatch(plain_email(value))
    scheme, path = (found["scheme"] or "", found["path"]) if found else ("", "")
    host = "".join(draw.choice("bcdfghjklmnprstvwz" if at % 2 == 0 else "aeiou") for at in range(6))
    return f"{scheme}{host}.{draw.choice(_DOMAINS)}{draw.scramble(path)}"


def handle(draw: SeededRandom, value: str) -> str:
    """The name of an account of as many letters and digits; Chinese ones of common words and digits."""
    front = re.match("@|u/|", value, re.IGNORECASE)
    kept = front[0] if front else ""
    if not re.search("[\u4e00-\u9fff]", value):
        return kept + draw.scramble(value[len(kept) :])
    return f"{kept}{draw.choice(_HAN_NAMES[0])}的{draw.choice(_HAN_NAMES[1])}{draw.digits(3)}"


def ip_address(draw: SeededRandom, value: str) -> str:
    """One of the 768 addresses kept for documentation, or of 2001:db8::/32."""
    if plain(value).count(":") > 1:
        return "2001:db8::" + ":".join(f"{draw.below(0x10000):x}" for _ in range(3))
    return f"{draw.choice(_RANGES)}.{1 + draw.below(254)}"
