"""What is left of an address or an organisation when it is said again: its street, its postcode, its own name."""

from __future__ import annotations

import re
from collections.abc import Iterator

from h2htalk.curation.anonymize.allow_list import low
from h2htalk.curation.anonymize.english.word_lists import WORD_NAME, words
from h2htalk.curation.anonymize.surrogates.pools import pools

_HAN = re.compile("[\u4e00-\u9fff]")
_SHORT = {"street": "st", "road": "rd", "avenue": "ave", "lane": "ln", "drive": "dr", "court": "ct", "place": "pl",
          "boulevard": "blvd", "terrace": "ter", "square": "sq"}  # fmt: skip
_LONG = {short: long for long, short in _SHORT.items()}
_KINDS = "|".join([*_SHORT, *_LONG, "close", "crescent", "gardens", "grove", "row", "mews", "way"])
_STREET = re.compile(rf"(?<![^\W_])([^\W\d_]+(?: [^\W\d_]+)?) ({_KINDS})(?![^\W_])")
_POSTCODE = re.compile(r"\b([a-z]{1,2}[0-9][a-z0-9]?)\s?([0-9][a-z]{2})\b")
_ZIP = re.compile(r"[A-Za-z.]{2},? ([0-9]{5})(?:-[0-9]{4})?$")
_ROAD = re.compile("(?:^|(?<=[省市区县镇乡旗州]))[\u4e00-\u9fff]{2,4}?(?:大街|大道|胡同|路|街|巷|弄)")
_ESTATE = re.compile("(?:^|(?<=[号路街区市县]))[\u4e00-\u9fff]{2,5}?(?:小区|花园|公寓|家园|新村|山庄|苑)")
_FIRM = re.compile("(?:股份)?(?:有限)?(?:责任)?公司$|集团$")
_WORD = re.compile(r"[^\W\d_]+")
_OWN_NAME = 5  # letters: a firm's first word is its own name, and long enough to mean nothing else


def address_forms(written: str) -> Iterator[str]:
    """Streets (with the kind of street in full and short) and estates of an address, in lower case."""
    if _HAN.search(written):
        for found in (*_ROAD.finditer(written), *_ESTATE.finditer(written)):
            yield found.group()
        return
    for street in _STREET.finditer(low(written)):
        name, kind = street.groups()
        for other in {kind, _SHORT.get(kind, kind), _LONG.get(kind, kind)}:
            yield f"{name} {other}"


def postcodes(written: str) -> list[str]:
    """British postcodes of an address, letters and digits alone; else the ZIP code that ends an American one."""
    british = ["".join(found.groups()) for found in _POSTCODE.finditer(low(written))]
    return british or _ZIP.findall(written)


def organization_forms(written: str) -> Iterator[str]:
    """An organisation without the words that many have: 云帆科技, "Bluefin"."""
    if _HAN.search(written):
        core = _FIRM.sub("", written)
        own = pools("places_zh")
        if any(core[:2] in own[tier] for tier in ("province", "city1", "city2", "city3")):
            core = core[2:].removeprefix("市")
        if (
            len(core) >= 4
            and core != written
            and core.endswith(("科技", "传媒", "教育", "网络", "物流", "文化"))
        ):
            yield core
        return
    found = _WORD.match(low(written))
    if found is not None and len(found.group()) >= _OWN_NAME and found.end() < len(written):
        first = found.group()
        lists = words()
        if first not in lists.words | lists.hints["places"] and lists.given.get(first) != WORD_NAME:
            yield first
