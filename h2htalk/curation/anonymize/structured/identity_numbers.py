"""Which windows of digits are national ids, bank cards, accounts, QQ numbers and WeChat ids."""

from __future__ import annotations

import re
from datetime import datetime

import stdnum.luhn
from stdnum.au import tfn
from stdnum.cn import ric
from stdnum.gb import nhs

from h2htalk.curation.anonymize.structured.digit_runs import Window
from h2htalk.curation.anonymize.structured.patterns import patterns
from h2htalk.curation.anonymize.structured.reading import Reading

_RE = patterns("identity_numbers")
# Further off than this, a cue only says what a message is about.
_FAR = 70
# Provinces of a Chinese resident id; 81-83 are Hong Kong, Macau and Taiwan.
PROVINCE = re.compile("1[1-5]|2[1-3]|3[1-7]|4[1-6]|5[0-4]|6[1-5]|71|8[1-3]")


def luhn(digits: str) -> bool:
    """Cards and Canadian SINs: the Luhn check, not passed by one digit repeated."""
    return len(set(digits)) > 1 and stdnum.luhn.is_valid(digits)


def social_security(digits: str) -> bool:
    """Ranges of US social security numbers that are given out; stdnum also refuses three published ones, which people
    may still write as theirs."""
    return _RE["ssn"].fullmatch(digits) is not None


def resident(value: str) -> bool:
    """Whether the province and the birth date may be those of a Chinese resident; counties change too often to ask."""
    try:
        born = datetime.strptime(value[6:14], "%Y%m%d").year
    except ValueError:
        return False
    return 1900 <= born <= 2035 and PROVINCE.match(value) is not None


def resident_check(value: str) -> bool:
    """The check digit of a resident id of 18 characters (GB 11643)."""
    return ric.calc_check_digit(value) == value[17].upper()


def medicare(digits: str) -> bool:
    """An Australian Medicare number of ten digits, or eleven with the person's: mod 10."""
    weights = (1, 3, 7, 9, 1, 3, 7, 9)
    check = sum(int(char) * weight for char, weight in zip(digits, weights, strict=False)) % 10
    return digits[0] in "23456" and check == int(digits[8])


def resident_id(window: Window, _: Reading) -> float:
    """A Chinese resident id of 18 characters (the window's digits with a closing `X` added by the caller) or 15."""
    value = window.digits
    cued = window.near.distance("id") is not None
    if len(value) == 18 and resident(value) and resident_check(value):
        return 0.99 if cued else 0.96 if window.near.nearest != "other" else 0.0
    return 0.95 if len(value) == 15 and cued and resident(f"{value[:6]}19{value[6:]}") else 0.0


def national_id(window: Window, reading: Reading) -> float:
    """SSN, NHS number, SIN, TFN, Medicare; the cue around it names the country."""
    words = reading.text[max(0, window.start - 60) : window.end + 30]
    digits, near, distance = window.digits, window.near, window.near.distance("id")
    if len(digits) == 9 and window.shape == (3, 2, 4) and social_security(digits):
        if distance is not None:
            return 0.97
        alike = len({gap.strip() for gap in window.gaps}) == 1
        if not alike or not window.whole or near.nearest in ("account", "qq") or near.nearest_is_impersonal(8):
            return 0.0
        return 0.92 if window.gaps == ("-", "-") else 0.75 if near.nearest != "other" else 0.0
    if distance is None:
        return 0.0
    if len(digits) == 10 and "nhs" in words and nhs.is_valid(digits):
        return 0.97
    if len(digits) == 9:
        return 0.97 if luhn(digits) or tfn.is_valid(digits) else 0.85 if social_security(digits) else 0.0
    return 0.97 if len(digits) in (10, 11) and "medicare" in words and medicare(digits) else 0.0


def cued_card(window: Window, reading: Reading) -> float:
    """Digits as many as a card's right behind a word for one, whose check digit is wrong: somebody mistyped it."""
    distance, fits = window.near.distance("card"), 15 <= len(window.digits) <= 19
    near = distance is not None and distance <= 3 and window.near.nearest == "card"
    return 0.92 if near and fits and window.whole and not account(window, reading) else 0.0


def card(window: Window, _: Reading) -> float:
    """Bank cards: Luhn always; without a cue also a brand's first digits and length."""
    digits, near = window.digits, window.near
    if not 12 <= len(digits) <= 19 or not digits.isdecimal() or not luhn(digits):
        return 0.0
    brand = _RE["brand"].fullmatch(digits) is not None
    # A brand's first digits speak against a word for nobody's numbers that stands a little apart.
    grouped = window.shape in ((4, 4, 4, 4), (4, 6, 5))
    reach = 1000 if not brand else 3 if digits.startswith("62") else 8 if grouped else 20
    if near.nearest_is_impersonal(reach):
        return 0.0
    if brand and near.distance("card", "account") is not None:
        return 0.97 if window.whole else 0.85
    if not window.whole:
        return 0.0
    if brand:
        return 0.0 if window.glued else 0.9
    return 0.93 if near.nearest != "account" and near.distance("card") is not None else 0.0


def account(window: Window, _: Reading) -> float:
    """Numbers of accounts, insurances, schools and firms: a cue names them, nothing checks them."""
    digits, nearest, distance = window.digits, window.near.nearest, window.near.distance("account")
    if not window.whole or _is_amount(window):
        return 0.0
    if window.shape == (2, 2, 2, 8) and window.gaps[:2] == ("-", "-"):
        return 0.85  # a sort code and an account; with a cue they are found apart
    if distance is None or distance > _FAR:
        around = window.near.around
        about = "account" in around and nearest in ("", "account", "card", "adding") and len(digits) >= 9
        papers = "counter" in around and not around & {"adding", "profile", "qq"} and not window.near.kinds
        return 0.6 if (about or (papers and len(digits) >= 7)) and not _is_impersonal(window) else 0.0
    round_sum = len(digits) < 6 or digits.endswith("00")
    if len(digits) < 8 and distance > (12 if nearest != "account" or round_sum else 30):
        return 0.0
    return 0.9 if distance <= 10 else 0.75 if distance <= 24 else 0.6


def qq(window: Window, _: Reading) -> float:
    """QQ numbers: 5 to 11 digits, not 0 first, and a cue; without one where a message speaks of QQ."""
    digits, near, distance = window.digits, window.near, window.near.distance("qq")
    if not 5 <= len(digits) <= 11 or digits[0] == "0" or not window.whole or _is_amount(window):
        return 0.0
    if distance is None:
        mobile = len(digits) == 11 and digits[0] == "1"
        about = "qq" in near.around and near.nearest in ("", "phone") and not mobile and len(digits) >= 6
        return 0.6 if about and not _is_impersonal(window) else 0.0
    return 0.93 if distance <= 8 else 0.75


def qq_without_cue(window: Window, _: Reading) -> float:
    """A QQ number in a Chinese message that does not name QQ: nobody has another number of nine or ten digits, and
    what is said of a number (its age, its picture, who added whom) tells shorter ones."""
    digits, near = window.digits, window.near
    if len(window.shape) != 1 or not window.whole or window.glued or not 6 <= len(digits) <= 10:
        return 0.0
    if digits[0] == "0" or _is_impersonal(window) or re.match("[48]00|95", digits):
        return 0.0
    if near.nearest not in ("", "phone", "qq", "wechat", "url") and not (
        near.nearest == "landline" and len(digits) > 8
    ):
        return 0.0
    if "profile" in near.around and "landline" not in near.around:
        return 0.72
    if len(digits) >= 8 and ("adding" in near.around or near.nearest in ("phone", "wechat")):
        return 0.72 if len(digits) > 8 else 0.6 if "adding" in near.around else 0.0
    # Where the net is spoken of, a site may show the number.
    elsewhere = near.around & {"account", "card", "id", "url"} or any(kind == "other" for kind, _ in near.kinds)
    return 0.55 if len(digits) > 8 and not elsewhere else 0.0


def _is_impersonal(window: Window) -> bool:
    """Digits that stand for themselves: days, sums, sayings, round and repeated ones, powers of two, arithmetic."""
    digits = window.digits
    if any(_RE[name].fullmatch(digits) for name in ("day", "saying", "keys")) or digits.endswith("0000"):
        return True
    value = int(digits) if digits.isdecimal() else 3
    if len(set(digits)) < (4 if len(digits) > 8 else 3) or value & (value - 1) == 0:
        return True
    return _RE["sum_before"].search(window.lead) is not None or _RE["sum_after"].match(window.tail) is not None


def _is_amount(window: Window) -> bool:
    """Digits with a decimal point."""
    return window.gaps == (".",) and window.shape[1] <= 2
