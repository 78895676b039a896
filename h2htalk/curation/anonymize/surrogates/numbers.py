"""Surrogates of numbers, unusable on purpose: ranges kept for films, wrong check digits, prefixes nobody has.

Telephone: the ranges of `structured/words/phones.toml`; elsewhere zeros in front. Ids and cards fail their
check digits; QQ numbers begin with 0 and WeChat ids with a digit, which neither may; plates hold I or O, which plates
leave out.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from functools import cache
from importlib import resources

from phonenumbers import COUNTRY_CODE_TO_REGION_CODE
from stdnum import iban
from stdnum.au import tfn
from stdnum.gb import nhs
from stdnum.us import rtn

from h2htalk.curation.anonymize.structured.identity_numbers import (
    PROVINCE,
    luhn,
    medicare,
    resident_check,
    social_security,
)
from h2htalk.curation.anonymize.surrogates.seeded_random import DIGITS, LETTERS, SeededRandom

# (draw, compact value, language, number of the draw) -> as long
MakeNumber = Callable[[SeededRandom, str, str, int], str]
_ENOUGH_DRAWS = 60  # draws from a small range before zeros in front will do
_RESIDENT = re.compile("[0-9]{17}[0-9Xx]")
# Identity numbers of Hong Kong and Taiwan, which begin with letters.
_HONG_KONG = re.compile("[A-Z]{1,2}[0-9]{6}[0-9A]")
_TAIWAN = re.compile("[A-Z][0-9]{9}")
_TAIWAN_LETTERS = "ABCDEFGHJKLMNPQRSTUVXYWZIO"
_PROVINCES = [str(n) for n in range(11, 66) if PROVINCE.match(str(n))]
_CHECKS: dict[int, tuple[Callable[[str], bool], ...]] = {
    8: (tfn.is_valid,),
    9: (social_security, tfn.is_valid, rtn.is_valid),
    10: (nhs.is_valid, medicare),
    11: (medicare,),
}


@cache
def _fictional() -> list[tuple[str, re.Pattern[str], list[list[str]]]]:
    """Of each form of a telephone number its language ("" for any), and what follows its kept part (its groups)."""
    raw = (
        resources.files("h2htalk.curation.anonymize.structured")
        .joinpath("words/phones.toml")
        .read_text(encoding="utf-8")
    )
    return [(r["language"], re.compile(r["form"]), r["then"]) for r in tomllib.loads(raw)["fictional"]]


def phone(draw: SeededRandom, compact: str, language: str, attempt: int = 0) -> str:
    """A telephone number of as many digits that nobody has."""
    if not compact.isdigit():
        return draw.scramble(compact)
    if attempt >= _ENOUGH_DRAWS:
        return _leading_zeros(draw, len(compact))
    if compact.startswith("00") and len(compact) > 9:
        return "00" + (_of_a_range(draw, compact[2:], "abroad") or _of_a_country(draw, compact[2:]))
    made = _of_a_range(draw, compact, language) or _of_a_range(draw, compact, "abroad")
    if made or len(compact) < 11 or compact[0] == "0":
        return made or _leading_zeros(draw, len(compact))
    return _of_a_country(draw, compact)


def _of_a_range(draw: SeededRandom, digits: str, language: str) -> str:
    """One of a fictional range for its form; "" where there is none."""
    for own, form, then in _fictional():
        if own == language and (found := form.fullmatch(digits)):
            made = "".join([*(found.groups("")), *(draw.choice(parts) for parts in then)])
            return made + draw.digits(len(digits) - len(made))
    return ""


def _of_a_country(draw: SeededRandom, digits: str) -> str:
    code = next((n for n in (1, 2, 3) if int(digits[:n]) in COUNTRY_CODE_TO_REGION_CODE), 2)
    return digits[:code] + _leading_zeros(draw, len(digits) - code)


def _leading_zeros(draw: SeededRandom, n: int) -> str:
    """`n` digits, the first ones zeros: no subscriber's number begins so."""
    front = 2 if n > 6 else 1
    return "0" * min(front, n) + draw.digits(max(n - front, 0))


def national_id(draw: SeededRandom, compact: str, language: str, attempt: int = 0) -> str:
    """As many characters that no state gives out."""
    n = len(compact)
    if n == 18 and language == "zh":
        return _with_wrong_check_digit(
            lambda: draw.choice(_PROVINCES) + draw.digits(4) + _day(draw) + draw.digits(3) + draw.choice(DIGITS + "x")
        )
    if n == 15 and compact.isdigit() and language == "zh":
        return draw.choice(_PROVINCES) + draw.digits(6) + "00" + draw.digits(5)  # a month 00
    if n == 9 and social_security(compact):
        return draw.choice(("000", "666")) + draw.digits(6)
    if n == 9 and compact[:2].isalpha():  # National Insurance: no prefix holds Q
        return "qq" + draw.digits(6) + compact[8]
    return _with_wrong_check_digit(lambda: draw.scramble(compact))


def _day(draw: SeededRandom) -> str:
    return f"{1950 + draw.below(56)}{1 + draw.below(12):02}{1 + draw.below(28):02}"


def _with_wrong_check_digit(make: Callable[[], str]) -> str:
    """The first that no check digit speaks for; of numbers too short to have one, any."""
    made = make()
    for _ in range(_ENOUGH_DRAWS):
        if not has_valid_check_digit(made):
            break
        made = make()
    return made


def has_valid_check_digit(value: str) -> bool:
    """Whether a value has a right check digit of any kind that fits its length."""
    if _RESIDENT.fullmatch(value) and resident_check(value):
        return True
    if value.isdigit():
        return luhn(value) or any(check(value) for check in _CHECKS.get(len(value), ()))
    upper = value.upper()
    if _HONG_KONG.fullmatch(upper):
        figures = [36 if c == " " else int(c, 36) for c in upper.rjust(9)]
        return sum(f * w for f, w in zip(figures, range(9, 0, -1), strict=True)) % 11 == 0
    if _TAIWAN.fullmatch(upper):  # the letter counts as two digits, 10 to 35
        code = 10 + _TAIWAN_LETTERS.index(upper[0])
        figures = [code // 10, code % 10, *map(int, upper[1:])]
        return sum(f * w for f, w in zip(figures, (1, 9, 8, 7, 6, 5, 4, 3, 2, 1, 1), strict=True)) % 10 == 0
    return iban.is_valid(upper, check_country=False)


def card(draw: SeededRandom, compact: str, language: str, attempt: int = 0) -> str:
    """As many digits, the first two the same (its kind), failing Luhn."""
    kept = 2 if len(compact) > 4 else 0
    return _with_wrong_check_digit(lambda: compact[:kept] + draw.digits(len(compact) - kept))


def account(draw: SeededRandom, compact: str, language: str, attempt: int = 0) -> str:
    """An account's number that begins with zeros; an IBAN whose check digits are 00, which none has."""
    n = len(compact)
    if compact[:2].isalpha() and compact[2:4].isdigit() and n >= 15:
        return _with_wrong_check_digit(lambda: compact[:2] + "00" + draw.scramble(compact[4:]))
    if compact.isdigit():
        return _with_wrong_check_digit(lambda: _leading_zeros(draw, n))
    # Two letters say whose number it is, more may say whose account: "EMILYK-20031".
    lead = len(compact) - len(compact.lstrip(LETTERS))
    front = compact[: min(lead, 2)] + draw.scramble(compact[2:lead])
    return _with_wrong_check_digit(
        lambda: front + "0" + draw.scramble(compact[lead + 1 :]) if lead < n else draw.scramble(compact)
    )


def qq(draw: SeededRandom, compact: str, language: str, attempt: int = 0) -> str:
    """A QQ number that begins with 0, as none does."""
    return "0" + draw.digits(len(compact) - 1) if compact.isdigit() else draw.scramble(compact)


def wechat(draw: SeededRandom, compact: str, language: str, attempt: int = 0) -> str:
    """A WeChat id that begins with a digit, as none may; of a telephone number or QQ number, such a one."""
    if compact.isdigit():
        make = phone if len(compact) == 11 else qq
        return make(draw, compact, "zh", attempt)
    return "0" + draw.scramble(compact[1:])


def plate(draw: SeededRandom, compact: str, language: str, attempt: int = 0) -> str:
    """Letters and digits of a plate, with an I or an O among them, which plates leave out."""
    made = [draw.choice(DIGITS) if c.isdigit() else draw.choice("abcdefghjklmnpqrstuvwxyz") for c in compact]
    letters = [at for at, c in enumerate(compact) if c.isalpha()]
    if letters:
        made[letters[-1]] = draw.choice("io")
    return "".join(made)


NUMBERS: dict[str, MakeNumber] = {
    "PHONE_NUMBER": phone,
    "NATIONAL_ID": national_id,
    "CREDIT_CARD": card,
    "ACCOUNT_NUMBER": account,
    "QQ": qq,
    "WECHAT": wechat,
    "LICENSE_PLATE": plate,
}
