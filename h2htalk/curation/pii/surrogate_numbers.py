"""Surrogates of numbers, unusable on purpose: ranges kept for films, wrong check digits, prefixes nobody has.

Telephone: US and Canada 555-01xx (NANPA), UK ranges for drama (Ofcom), Australia's for creative works (ACMA), France's
(Arcep); Chinese mobiles of prefixes that are not given out, Chinese landlines whose local number begins with 0 or 1,
which none does; elsewhere a subscriber's number of zeros in front. Ids and cards fail their check digits; QQ numbers
begin with 0 and WeChat ids with a digit, which neither may; plates hold I or O, which plates leave out.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from h2htalk.curation.pii import checksums
from h2htalk.curation.pii.surrogate_draws import DIGITS, LETTERS, Draw
from h2htalk.curation.pii.surrogate_shapes import scrambled

# (draw, compact value, language, number of the draw) -> as long
Make = Callable[[Draw, str, str, int], str]
_ENOUGH = 60  # draws from a small range before zeros in front will do
# Identity numbers that begin with letters (the compact value, in any case).
_HONG_KONG = re.compile("[a-z]{1,2}[0-9]{6}[0-9a]", re.IGNORECASE)
_TAIWAN = re.compile("[a-z][0-9]{9}", re.IGNORECASE)
# Not given out (numbering plan of the Ministry of Industry and Information Technology).
_NO_MOBILE = ("154", "160", "161", "163", "164", "168", "169", "179")
_NO_LINE = ("0", "1")  # no local number of a Chinese landline begins so
_AREAS = (
    "202",
    "206",
    "212",
    "303",
    "305",
    "312",
    "404",
    "415",
    "503",
    "512",
    "602",
    "612",
    "617",
    "702",
    "713",
    "808",
)
_SHORT_AREAS = "021 022 023 024 025 027 028 029"
_LONG_AREAS = "0311 0371 0451 0512 0531 0571 0592 0731 0755 0771 0851 0871 0931 0991"
_ZH_AREAS = {3: tuple(_SHORT_AREAS.split()), 4: tuple(_LONG_AREAS.split())}
_AU_KEPT = """
570006 570156 570157 570158 570159 570110 570313 570737 571266 571491 571804 572549 572665 572983 573770 573087 574118
574632 575254 575789 576398 576801 577426 577644 578957 578148 578888 579212 579760 579455
"""
_AU_MOBILES = tuple(_AU_KEPT.split())
_ID_PROVINCES = "11 12 13 14 15 21 22 23 31 32 33 34 35 36 37 41 42 43 44 45 46 50 51 52 53 54 61 62 63 64 65"
_PROVINCES = tuple(_ID_PROVINCES.split())
# Country codes of two and three digits are told apart by their first two.
_LONG = "21 22 23 24 25 26 29 35 37 38 42 50 59 67 68 69 80 85 87 88 96 97 99"
_LONG_CODES = frozenset(_LONG.split())


def phone(draw: Draw, compact: str, language: str, attempt: int = 0) -> str:
    """A telephone number of as many digits that nobody has."""
    digits = compact
    if not digits.isdigit():
        return scrambled(draw, compact)
    if attempt >= _ENOUGH:
        return _zeros(draw, len(digits))
    if digits.startswith("00") and len(digits) > 9:
        return "00" + _international(draw, digits[2:])
    if language == "zh":
        return _chinese(draw, digits)
    if len(digits) == 10 and digits[0] in "23456789":
        return _american(draw, digits)
    if len(digits) == 11 and digits[0] == "1":
        return "1" + _american(draw, digits[1:])
    if len(digits) >= 11 and digits[0] != "0":
        return _international(draw, digits)
    if len(digits) == 11 and digits[0] == "0":
        return _british(draw, digits)
    if len(digits) == 10 and digits[0] == "0":
        return _australian(draw, digits)
    if len(digits) == 7:
        return "55501" + draw.digits(2)
    return _zeros(draw, len(digits))


def _chinese(draw: Draw, digits: str) -> str:
    if len(digits) == 11 and digits[0] == "1":
        return draw.one(_NO_MOBILE) + draw.digits(8)
    if len(digits) == 13 and digits[:2] == "86":
        return "86" + draw.one(_NO_MOBILE) + draw.digits(8)
    if digits[0] == "0" and 10 <= len(digits) <= 12:
        area = 3 if digits[1] in "12" else 4
        return draw.one(_ZH_AREAS[area]) + draw.one(_NO_LINE) + draw.digits(len(digits) - area - 1)
    if len(digits) == 10 and digits[:3] in ("400", "800"):
        return digits[:3] + "000" + draw.digits(4)
    if len(digits) in (7, 8):
        return draw.one(_NO_LINE) + draw.digits(len(digits) - 1)
    if len(digits) > 11:
        return _international(draw, digits)
    return _american(draw, digits) if len(digits) == 10 else _zeros(draw, len(digits))


def _american(draw: Draw, digits: str) -> str:
    area = draw.one(_AREAS) if digits[0] != "8" else digits[:3]
    return area + "55501" + draw.digits(2)


def _british(draw: Draw, digits: str) -> str:
    if digits[1] == "7":
        return "07700900" + draw.digits(3)
    if digits[1:3] == "20":
        return "02079460" + draw.digits(3)
    return "01632960" + draw.digits(3) if digits[1] != "8" else "08081570" + draw.digits(3)


def _australian(draw: Draw, digits: str) -> str:
    if digits[1] == "4":
        return "0491" + draw.one(_AU_MOBILES)
    if digits[1] in "2378":
        return digits[:2] + draw.one(("5550", "7010")) + draw.digits(4)
    return "0" + _zeros(draw, len(digits) - 1)


def _international(draw: Draw, digits: str) -> str:
    """A number that begins with its country's code."""
    if digits[0] == "1" and len(digits) == 11:
        return "1" + _american(draw, digits[1:])
    if digits[:2] == "86":
        return (
            "86" + _chinese(draw, digits[2:]) if len(digits) == 13 else "86" + _zeros(draw, len(digits) - 2)
        )
    if digits[:2] == "44" and len(digits) == 12:
        return "44" + _british(draw, "0" + digits[2:])[1:]
    if digits[:2] == "61" and len(digits) == 11:
        return "61" + _australian(draw, "0" + digits[2:])[1:]
    if digits[:2] == "33" and len(digits) == 11:
        return "33" + ("63998" if digits[2] in "67" else "19900") + draw.digits(4)
    code = 1 if digits[0] in "17" else 3 if digits[:2] in _LONG_CODES else 2
    return digits[:code] + _zeros(draw, len(digits) - code)


def national(digits: str) -> str:
    """A telephone number as it is dialled at home: without the code of China or Britain."""
    bare = digits.removeprefix("00")
    if len(bare) == 13 and bare.startswith("861"):
        return bare[2:]
    if len(bare) == 12 and bare.startswith("44"):
        return "0" + bare[2:]
    return digits


def _zeros(draw: Draw, n: int) -> str:
    """`n` digits, the first ones zeros: no subscriber's number begins so."""
    front = 2 if n > 6 else 1
    return "0" * min(front, n) + draw.digits(max(n - front, 0))


def national_id(draw: Draw, compact: str, language: str, attempt: int = 0) -> str:
    """As many characters that no state gives out."""
    n = len(compact)
    if n == 18 and language == "zh":
        return _wrong(
            lambda: (
                draw.one(_PROVINCES) + draw.digits(4) + _day(draw) + draw.digits(3) + draw.one("0123456789x")
            ),
        )
    if n == 15 and compact.isdigit() and language == "zh":
        return draw.one(_PROVINCES) + draw.digits(6) + "00" + draw.digits(5)  # a month 00
    if compact.isdigit():
        if n == 9 and checksums.social_security(compact):
            return draw.one(("000", "666")) + draw.digits(6)
        return _wrong(lambda: draw.digits(n))
    if n == 9 and compact[:2].isalpha():  # National Insurance: no prefix holds Q
        return "qq" + draw.digits(6) + compact[8]
    return _wrong(lambda: scrambled(draw, compact))


def _day(draw: Draw) -> str:
    return f"{1950 + draw.below(56)}{1 + draw.below(12):02}{1 + draw.below(28):02}"


def _wrong(make: Callable[[], str]) -> str:
    """The first that no check digit speaks for; of numbers too short to have one, any."""
    made = make()
    for _ in range(_ENOUGH):
        if not passes(made):
            break
        made = make()
    return made


def passes(value: str) -> bool:
    """Whether a value has a right check digit of any kind that fits its length."""
    if (
        len(value) == 18
        and value[:17].isdigit()
        and value[17] in "0123456789xX"
        and checksums.resident_id(value)
    ):
        return True
    if _HONG_KONG.fullmatch(value) or _TAIWAN.fullmatch(value):
        return _lettered(value.upper())
    if not value.isdigit():
        return checksums.iban(value.upper()) if 15 <= len(value) <= 34 and value[:2].isalpha() else False
    n = len(value)
    if checksums.luhn(value):
        return True
    if n == 9:
        return checksums.social_security(value) or checksums.tax_file(value) or checksums.routing(value)
    if n == 8:
        return checksums.tax_file(value)
    return (n == 10 and (checksums.nhs(value) or checksums.medicare(value))) or (
        n == 11 and checksums.medicare(value)
    )


def _lettered(value: str) -> bool:
    """Whether the last character of a Hong Kong or Taiwan identity number is the right one."""
    if len(value) == 10:  # a letter counts as two digits, 10 to 35
        code = 10 + "ABCDEFGHJKLMNPQRSTUVXYWZIO".index(value[0])
        weights = (1, 9, 8, 7, 6, 5, 4, 3, 2, 1, 1)
        figures = [code // 10, code % 10, *map(int, value[1:])]
        return sum(f * w for f, w in zip(figures, weights, strict=True)) % 10 == 0
    figures = [36 if c == " " else int(c, 36) for c in value.rjust(9)]
    return sum(f * w for f, w in zip(figures, range(9, 0, -1), strict=True)) % 11 == 0


def card(draw: Draw, compact: str, language: str, attempt: int = 0) -> str:
    """As many digits, the first two the same (its kind), failing Luhn."""
    kept = 2 if len(compact) > 4 else 0
    return _wrong(lambda: compact[:kept] + draw.digits(len(compact) - kept))


def account(draw: Draw, compact: str, language: str, attempt: int = 0) -> str:
    """An account's number that begins with zeros; an IBAN whose check digits are 00, which none has."""
    n = len(compact)
    if compact[:2].isalpha() and compact[2:4].isdigit() and n >= 15:
        return _wrong(lambda: compact[:2] + "00" + scrambled(draw, compact[4:]))
    if compact.isdigit():
        return _wrong(lambda: _zeros(draw, n))
    # Two letters say whose number it is, more may say whose account: "EMILYK-20031".
    lead = len(compact) - len(compact.lstrip(LETTERS))
    front = compact[: min(lead, 2)] + scrambled(draw, compact[2:lead])
    return _wrong(
        lambda: front + "0" + scrambled(draw, compact[lead + 1 :]) if lead < n else scrambled(draw, compact)
    )


def qq(draw: Draw, compact: str, language: str, attempt: int = 0) -> str:
    """A QQ number that begins with 0, as none does."""
    return "0" + draw.digits(len(compact) - 1) if compact.isdigit() else scrambled(draw, compact)


def wechat(draw: Draw, compact: str, language: str, attempt: int = 0) -> str:
    """A WeChat id that begins with a digit, as none may; of a telephone number or QQ number, such a one."""
    if compact.isdigit():
        return (
            phone(draw, compact, "zh", attempt)
            if len(compact) == 11
            else qq(draw, compact, language, attempt)
        )
    return "0" + scrambled(draw, compact[1:])


def plate(draw: Draw, compact: str, language: str, attempt: int = 0) -> str:
    """Letters and digits of a plate, with an I or an O among them, which plates leave out."""
    made = [draw.one(DIGITS) if c.isdigit() else draw.one("abcdefghjklmnpqrstuvwxyz") for c in compact]
    letters = [at for at, c in enumerate(compact) if c.isalpha()]
    if letters:
        made[letters[-1]] = draw.one("io")
    return "".join(made)


NUMBERS: dict[str, Make] = {
    "PHONE_NUMBER": phone,
    "NATIONAL_ID": national_id,
    "CREDIT_CARD": card,
    "ACCOUNT_NUMBER": account,
    "QQ": qq,
    "WECHAT": wechat,
    "LICENSE_PLATE": plate,
}
