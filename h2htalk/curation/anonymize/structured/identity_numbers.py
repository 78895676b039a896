"""Which windows of digits are national ids, bank cards, accounts and QQ numbers."""

from __future__ import annotations

import re
from datetime import datetime

import stdnum.luhn
from stdnum.au import tfn
from stdnum.cn import ric
from stdnum.gb import nhs

from h2htalk.curation.anonymize.structured.digit_runs import Window
from h2htalk.curation.anonymize.structured.number_cues import Near

# Brands by their first digits, and how long their cards are: enough to believe Luhn without a cue.
_BRANDS = re.compile(
    r"62[0-9]{14,17}|4[0-9]{15}|5[1-5][0-9]{14}|(?:222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}"
    r"|3[47][0-9]{13}|35[0-9]{14}|6(?:011|5[0-9]{2}|4[4-9][0-9])[0-9]{12}|3(?:0[0-5]|[68][0-9])[0-9]{11}"
)
_CARD_CUES = ("card",)
_ACCOUNT_CUES = ("account",)
# Further off than this, a cue only says what a message is about.
_FAR = 70
# Numbers that say something ("I love you"), and rows that count.
_SAYINGS = re.compile(
    r"520|521|1314|5201314|1314520|5211314|52013[0-9]*|([0-9])\1{4,}|0?123456789?0?|987654321|12345|54321"
)

# Rows of a telephone's keys.
_KEYS = frozenset(["147258369", "1472583690", "963852741", "159357", "357159", "789456123", "123789456", "741852963"])
_DAY = re.compile(
    r"(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])(?:(?:[01][0-9]|2[0-3])[0-5][0-9](?:[0-5][0-9])?)?"
)
# Arithmetic before and behind a number.
_SUM_BEFORE = re.compile(r"[0-9²³)）]\s?[=≈]\s?$|[×÷^√]\s?$")
_SUM_AFTER = re.compile(r"\s?(?:[=×÷^√²³]|除以|乘|等于)")
# Seconds or milliseconds since 1970.
_INSTANT = re.compile(r"1[5-8][0-9]{8}(?:[0-9]{3})?")


_SSN = re.compile("(?!000|666|9)[0-9]{3}(?!00)[0-9]{2}(?!0000)[0-9]{4}")
# Provinces of a Chinese resident id; 81-83 are Hong Kong, Macau and Taiwan.
PROVINCE = re.compile("1[1-5]|2[1-3]|3[1-7]|4[1-6]|5[0-4]|6[1-5]|71|8[1-3]")


def luhn(digits: str) -> bool:
    """Cards and Canadian SINs: the Luhn check, not passed by one digit repeated."""
    return len(set(digits)) > 1 and stdnum.luhn.is_valid(digits)


def social_security(digits: str) -> bool:
    """Ranges of US social security numbers that are given out; stdnum also refuses three published ones, which people
    may still write as theirs."""
    return _SSN.fullmatch(digits) is not None


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


def national_id_zh(window: Window) -> float:
    """A Chinese resident id of 18 characters (the window's digits with a closing `X` added by the caller) or 15."""
    value = window.digits
    distance = window.near.distance("id")
    other = window.near.nearest == "other"
    if len(value) == 18:
        if resident(value) and resident_check(value):
            if distance is not None:
                return 0.99
            return 0.96 if not other and (window.whole or len(window.shape) < 4) else 0.0
        near = distance is not None and distance <= 6
        return 0.6 if near and not other and resident(value) and window.whole else 0.0
    if len(value) == 15 and distance is not None and resident(f"{value[:6]}19{value[6:]}"):
        return 0.95
    return 0.0


def national_id_en(window: Window, words: str) -> float:
    """SSN, NHS number, SIN, TFN, Medicare. `words`: the text before, in which the cue names the country."""
    digits, distance = window.digits, window.near.distance("id")
    if len(digits) == 9 and window.shape == (3, 2, 4) and social_security(digits):
        if distance is not None:
            return 0.97
        if window.gaps == ("-", "-") and window.whole and not window.near.nearest_is_impersonal(8):
            return 0.92
        alike = len({gap.strip() for gap in window.gaps}) == 1
        sure = window.gaps[0].strip() == "-" or "id" in window.near.around
        if not alike or not window.whole or window.near.nearest in ("other", "account", "qq"):
            return 0.0
        return 0.9 if sure else 0.75
    if distance is None and len(digits) == 9 and window.near.nearest == "" and "id" in window.near.around:
        return 0.65 if window.whole and social_security(digits) else 0.0
    if distance is None or window.near.nearest == "other":
        return 0.0
    if len(digits) == 10 and nhs.is_valid(digits) and "nhs" in words:
        return 0.97
    if len(digits) == 10 and window.shape == (3, 3, 4) and nhs.is_valid(digits) and " gp " in f" {words} ":
        return 0.9
    nearer = window.near.distance("phone", "account")
    if nearer is not None and nearer < distance and (len(digits) > 9 or nearer <= 3):
        return 0.0
    if len(digits) == 9:
        checked = luhn(digits) or tfn.is_valid(digits)
        return 0.97 if checked else 0.85 if social_security(digits) else 0.0
    if len(digits) in (10, 11):
        return 0.97 if medicare(digits) and "medicare" in words else 0.0
    if len(digits) == 12 and ("aadhaar" in words or "aadhar" in words):
        return 0.8
    return 0.0


def _reach(digits: str, *, grouped: bool) -> int:
    """How near a word for nobody's numbers must stand to be believed against a card's first digits and check digit."""
    return 3 if digits.startswith("62") else 8 if grouped else 20


def card(window: Window) -> float:
    """Bank cards: Luhn always; without a cue also a brand's first digits and length."""
    digits = window.digits
    if not 12 <= len(digits) <= 19 or not digits.isdecimal():
        return 0.0
    brand = _BRANDS.fullmatch(digits) is not None
    grouped = window.shape in ((4, 4, 4, 4), (4, 6, 5))
    if window.near.nearest_is_impersonal(_reach(digits, grouped=grouped) if brand else 1000):
        return 0.0
    distance = window.near.distance(*_CARD_CUES)
    if not luhn(digits):
        return 0.0
    if window.near.distance(*_CARD_CUES, *_ACCOUNT_CUES) is not None:
        if brand:
            return 0.97 if window.whole else 0.85
        return 0.93 if window.near.nearest != "account" and distance is not None and window.whole else 0.0
    if not brand or not window.whole or window.glued:
        return 0.0
    return 0.9 if len(window.shape) <= 5 or max(window.shape) >= 4 or min(window.shape) == max(window.shape) else 0.0


def account(window: Window, language: str) -> float:
    """Numbers of accounts, insurances, schools and firms: a cue names them, nothing checks them."""
    digits = window.digits
    distance = window.near.distance(*_ACCOUNT_CUES)
    nearest = window.near.nearest
    if not window.whole or _amount(window) or len(digits) < 5:
        return 0.0
    if window.shape == (2, 2, 2, 8) and window.gaps[:2] == ("-", "-"):
        return 0.85  # sort code and account
    if distance is None or distance > _FAR:
        about = "account" in window.near.around and nearest in ("", "card", "account", "adding")
        if about and len(digits) >= 9 and not _day(digits):
            return 0.6
        return _uncued_account(window, language)
    if nearest in ("qq", "wechat", "id") or (nearest == "landline" and (len(digits) < 9 or _phone_like(digits))):
        return 0.0
    if len(digits) < 8 and distance > (30 if nearest == "account" and _is_not_round(digits) else 12):
        return 0.0
    if nearest == "phone" and (_phone_like(digits) or (distance > 24 and len(digits) < 9)):
        return 0.0
    if nearest == "card" and distance > 24:
        return 0.0
    return 0.9 if distance <= 10 else 0.75 if distance <= 24 else 0.6 if not _day(digits) else 0.0


def member(window: Window) -> float:
    """A number right behind "id", "patient", "student"."""
    near = window.near
    if near.nearest not in ("", "account", "phone", "vehicle") or not window.whole or not 6 <= len(window.digits) <= 14:
        return 0.0
    return 0.0 if _amount(window) or _day(window.digits) else 0.7


def _is_not_round(digits: str) -> bool:
    """No round sum."""
    return len(digits) >= 6 and not digits.endswith("00")


def _uncued_account(window: Window, language: str) -> float:
    """A long number in one piece in a message that names nothing: most often somebody's account."""
    digits, near = window.digits, window.near
    if near.nearest == "card" and near.kinds[0][1] <= 10 and not _BRANDS.fullmatch(digits):
        return 0.55 if len(digits) >= 9 else 0.0  # a library's, a shop's
    others = {kind for kind, _ in near.kinds}
    if len(digits) >= 12 and language == "zh":
        others -= {"phone", "landline", "qq", "wechat"}  # too long for any of them
    if len(window.shape) != 1 or window.glued or others or _near_impersonal_words(near, len(digits)):
        return 0.0
    if not 7 <= len(digits) <= 19 or _INSTANT.fullmatch(digits) or _is_impersonal(window):
        return 0.0
    if _HOME_PHONE.fullmatch(digits) if language == "zh" else _phone_like(digits):
        return 0.0
    if "counter" in near.around and not near.around & {"adding", "profile", "qq"}:
        return 0.62
    if len(digits) < 8 or (len(digits) == 8 and window.lead not in ("to ", "as ", " im", "'m ", "im ", "am ")):
        return 0.0
    return 0.0 if digits.endswith("000") else 0.52


def _near_impersonal_words(near: Near, size: int = 99) -> bool:
    """Whether words for nobody's numbers stand near, or (of a number that a site may show) the net is spoken of."""
    return any(kind == "other" for kind, _ in near.kinds) or (size < 11 and "url" in near.around)


def _is_impersonal(window: Window) -> bool:
    """Digits that stand for themselves: days, sums, sayings, round and repeated ones, powers of two, arithmetic."""
    digits = window.digits
    if _day(digits) or _SAYINGS.fullmatch(digits) or digits in _KEYS or digits.endswith("0000"):
        return True
    if len(set(digits)) < (4 if len(digits) > 8 else 3):
        return True
    value = int(digits) if digits.isdecimal() else 5
    if value & (value - 1) == 0 or value & (value + 1) == 0:
        return True  # 4294967296, 2147483647
    return _SUM_BEFORE.search(window.lead) is not None or _SUM_AFTER.match(window.tail) is not None


def _day(digits: str) -> bool:
    """20240315, with hours and minutes or without."""
    return _DAY.fullmatch(digits) is not None


# A mobile or a number with its area code, in China.
_HOME_PHONE = re.compile("1[3-9][0-9]{9}|0[1-9][0-9]{8,10}")


def _phone_like(digits: str) -> bool:
    return (
        re.fullmatch(r"1[3-9][0-9]{9}|0[1-9][0-9]{8,10}|[2-9][0-9]{6}|1?[2-9][0-9]{2}[2-9][0-9]{6}", digits) is not None
    )


def qq(window: Window) -> float:
    """QQ numbers: 5 to 11 digits, not 0 first, and a cue."""
    digits, distance = window.digits, window.near.distance("qq")
    if not 5 <= len(digits) <= 11 or digits[0] == "0" or not window.whole or _amount(window):
        return 0.0
    mobile = len(digits) == 11 and digits[0] == "1"
    home = window.near.nearest == "landline" and len(digits) < 9
    if distance is None or home or window.near.nearest in ("other", "wechat", "card", "id"):
        about = "qq" in window.near.around and window.near.nearest in ("", "phone", "qq")
        return (
            0.6
            if about and not mobile and len(digits) >= 6 and not _day(digits) and not _SAYINGS.fullmatch(digits)
            else 0.0
        )
    if mobile and distance > 14:
        return 0.0
    if window.near.nearest != "qq" and distance > 12 and len(digits) == 11:
        return 0.0
    if distance > 3 and (_SAYINGS.fullmatch(digits) or digits.endswith("0000")):
        return 0.0
    if (len(digits) <= 5 and distance > 12) or (distance > 12 and _day(digits)):
        return 0.0
    return 0.93 if distance <= 8 else 0.75


def qq_without_cue(window: Window) -> float:
    """A QQ number in a Chinese message that does not name QQ: nobody has another number of nine or ten digits, and
    what is said of a number (its age, its picture, who added whom) tells shorter ones."""
    digits, near = window.digits, window.near
    if len(window.shape) != 1 or not window.whole or window.glued or not 6 <= len(digits) <= 10:
        return 0.0
    if digits[0] == "0" or _is_impersonal(window) or re.match("[48]00|95", digits):
        return 0.0
    if near.nearest not in ("", "phone", "qq", "wechat", "url", "landline"):
        return 0.0
    if near.distance("account", "card", "id") is not None and "qq" not in near.around:
        return 0.0
    if near.nearest == "landline" and len(digits) < 9:
        return 0.0
    if "profile" in near.around and not _near_impersonal_words(near) and "landline" not in near.around:
        return 0.71 if len(digits) < 9 else 0.72
    if len(digits) < 8:
        return 0.0
    if "adding" in near.around or (near.nearest in ("phone", "wechat") and near.kinds[0][1] <= 24):
        return 0.72 if len(digits) > 8 else 0.6 if "adding" in near.around or digits[0] in "19" else 0.0
    return (
        0.55
        if len(digits) > 8 and not _near_impersonal_words(near) and not near.around & {"account", "card", "id"}
        else 0.0
    )


def wechat_number(window: Window) -> float:
    """A WeChat id that is a phone or QQ number: a cue, right before it for anything but a mobile's eleven digits."""
    digits, distance = window.digits, window.near.distance("wechat")
    if distance is None or window.near.nearest != "wechat" or not window.whole or _amount(window):
        return 0.0
    if len(digits) == 11 and digits[0] == "1":
        return 0.98 if distance <= 12 else 0.0
    return (
        0.85
        if 6 <= len(digits) <= 11 and digits[0] != "0" and distance <= 4 and not _SAYINGS.fullmatch(digits)
        else 0.0
    )


def _amount(window: Window) -> bool:
    """Digits with a decimal point."""
    return len(window.gaps) == 1 and window.gaps[0] == "." and window.shape[1] <= 2
