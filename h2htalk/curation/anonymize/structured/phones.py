"""Which windows of digits are phone numbers: mainland China, the North American plan, UK, AU, IE, NZ, IN, any `+`."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources

import phonenumbers
from phonenumbers import COUNTRY_CODE_TO_REGION_CODE, PhoneNumber

from h2htalk.curation.anonymize.structured.digit_runs import Window

_CUES = ("phone", "landline")
# Chinese mobiles and area codes by their form: `phonenumbers` leaves out machines' prefixes and merged areas (024 for
# Fushun's 0413), which people still write.
_MOBILE = re.compile("1(?:[38][0-9]|4[1-9]|5[0-35-9]|6[2567]|7[0-8]|9[0-35-9])[0-9]{8}")
_AREA = re.compile("0(?:10|2[0-9]|[3-9][0-9]{2})")
# Numbers that begin with 0 at home: UK, Ireland, Australia, New Zealand, and (mobile) India with its trunk 0.
_TRUNK = re.compile(
    r"07[0-9]{9}|0[1-3][0-9]{9}|08[04][0-9]{8}|01[0-9]{8,9}"
    r"|04[0-9]{8}|0[2378][0-9]{8}"
    r"|08[35679][0-9]{7}|0[1-9][0-9]{7,8}|02[0-9]{7,9}|0[6-9][0-9]{9}"
)
# What stands right before a local number: 打8231 4456.
_RUNG = re.compile(r"(?:[打拨呼]|拨号|老家|物业|家里|店里|单位|医院|学校|公司)[:：]?\s?$")
_PAIR = re.compile(r"(?!20|.*(\d)\1\1\1)[2-8][0-9]{7}(?<!00)")
_LOCAL = re.compile("(?!20)[2-8][0-9]{6,7}")
_SHAPES_EN = {(3, 3, 4), (1, 3, 3, 4), (3, 7), (1, 3, 7), (6, 4), (3, 4, 3)}


@cache
def _hotlines() -> frozenset[str]:
    raw = resources.files(__package__).joinpath("words/phones.toml").read_text(encoding="utf-8")
    return frozenset(tomllib.loads(raw)["hotlines"])


# Toll-free numbers of North America, Britain, Australia and China are offices' and help lines', nobody's own.
_TOLL_FREE = {
    "en": re.compile("1?8(?:00|33|44|55|66|77|88)[2-9][0-9]{6}|0?800[0-9]{6,7}|1[38]00[0-9]{6}"),
    "zh": re.compile("[48]00[0-9]{7}"),
}


def is_toll_free(digits: str, language: str) -> bool:
    """Whether calls to a number cost nothing, as to help lines and offices."""
    return _TOLL_FREE[language].fullmatch(digits) is not None


def is_hotline(digits: str) -> bool:
    """A public line for help or service: content, not personal data."""
    return digits in _hotlines()


def phone(window: Window, language: str) -> float:
    """How sure we are, in [0, 1], that a window is a phone number. 0: it is none."""
    if not window.plus and window.near.nearest_is_impersonal(_foreign_reach(window, language)):
        return 0.0
    if window.plus:
        return 0.97 if _international(window.digits) and window.whole else 0.0
    if window.near.nearest in ("card", "id") and language == "en" and not _cue(window):
        return 0.0
    if language == "zh":
        score = max(_mobile(window), _landline(window), _beyond_the_mainland(window))
        return score or _cued_english(window)
    return _english(window)


def _foreign_reach(window: Window, language: str) -> int:
    """How near a word for nobody's numbers must stand to be believed: a form of its own speaks against it."""
    if language == "zh" and _MOBILE.fullmatch(window.digits):
        return 2 if window.shape == (3, 4, 4) else 3 if len(window.shape) == 1 and not window.glued else 1000
    if language == "en" and window.shape == (3, 3, 4) and window.whole:
        return 10
    return 1000


def _cue(window: Window, reach: int = 99) -> bool:
    distance = window.near.distance(*_CUES)
    return distance is not None and distance <= reach


def _international(digits: str) -> bool:
    """Country code and 6 to 12 digits: E.164."""
    if not 8 <= len(digits) <= 15:
        return False
    if digits.startswith("1"):
        return len(digits) == 11
    if digits.startswith("86"):
        return len(digits) in (11, 12, 13, 14)
    if digits.startswith("44"):
        return len(digits) in (11, 12, 13)
    return any(int(digits[:n]) in COUNTRY_CODE_TO_REGION_CODE for n in (1, 2, 3))


def _mobile(window: Window) -> float:
    digits = window.digits
    for prefix in ("0086", "86", "0", ""):  # 0: as dialled from another province
        if digits.startswith(prefix) and len(digits) == 11 + len(prefix):
            if not _MOBILE.fullmatch(digits, len(prefix)):
                continue
            if _cue(window):
                return 0.97
            return 0.9 if window.whole and not window.glued else 0.0
    return 0.0


# Numbers of Taiwan as dialled there, and of Hong Kong, Macau and Taiwan from abroad without a plus.
_TAIWAN_MOBILE = re.compile("09[0-9]{8}")
_TAIWAN_LANDLINE = re.compile("0(?:2[0-9]{8}|[3-8][0-9]{7,8})")
_FROM_ABROAD = re.compile("(?:00)?(?:85[23][235689][0-9]{7}|8869[0-9]{8})")
_LOCAL_SHAPES = {(4, 4), (8,)}


def _beyond_the_mainland(window: Window) -> float:
    """Taiwan, Hong Kong, Macau: their own forms, surer with a cue."""
    digits, shape = window.digits, window.shape
    cued = _cue(window)
    if not window.whole or (window.glued and not cued):
        return 0.0
    if _TAIWAN_MOBILE.fullmatch(digits):
        return 0.95 if cued else 0.85 if shape in ((4, 3, 3), (4, 6)) else 0.7 if len(shape) == 1 else 0.0
    if _TAIWAN_LANDLINE.fullmatch(digits) and shape[0] in (2, 3) and len(shape) > 1 and min(shape[1:]) >= 3:
        return 0.9 if cued else 0.7
    if _FROM_ABROAD.fullmatch(digits) and (cued or len(shape) > 1):
        return 0.9 if cued else 0.75
    # Eight digits beginning with 5, 6 or 9 are a mobile in Hong Kong, with 6 in Macau.
    if digits[0] in "569" and shape in _LOCAL_SHAPES and _cue(window, 6):
        return 0.7
    return 0.0


def _landline(window: Window) -> float:
    digits = window.digits
    if digits.startswith("0086"):
        digits = "0" + digits[4:]
    elif digits.startswith("860"):
        digits = digits[2:]
    elif digits.startswith("86") and window.shape[0] == 2 and len(digits) > 11:
        digits = "0" + digits[2:]
    if re.fullmatch(r"[48]00[0-9]{7}", digits):
        spaced = window.shape in ((3, 3, 4), (3, 4, 3), (4, 3, 3), (3, 7), (10,))
        return 0.95 if _cue(window) else 0.8 if spaced and window.whole else 0.0
    if digits[:1] == "0":
        area = _AREA.match(digits)
        if area and _local(digits, area.end()):
            return 0.95 if _cue(window) else _uncued_landline(window, area.end())
        if len(window.shape) > 2 and window.shape[-1] <= 5 and window.gaps[-1] == "-" and window.whole:
            whole = digits[: -window.shape[-1]]  # an extension behind it
            if area and _local(whole, area.end()):
                return 0.95 if _cue(window) else 0.85
    if _RUNG.search(window.lead) and window.whole and _LOCAL.fullmatch(digits):
        return 0.7 if window.shape in ((7,), (8,), (3, 4), (4, 4)) else 0.0
    if len(window.shape) == 1 and not window.near.kinds and _PAIR.fullmatch(digits) and not window.glued:
        return 0.52 if window.whole and not window.near.around - {"phone", "landline", "vehicle"} else 0.0
    if window.gaps == ("-",) and not window.near.kinds and window.whole and _PAIR.fullmatch(digits):
        return 0.55 if window.shape == (4, 4) else 0.0
    if window.gaps == ("-",) and window.whole and window.shape in ((8, 3), (8, 4), (7, 3)) and _LOCAL.match(digits):
        return 0.6 if not window.near.kinds or _cue(window) else 0.0  # an extension
    direct = window.near.distance("landline")
    direct = window.near.distance("phone") if direct is None else direct
    if len(digits) in (7, 8) and digits[0] in "2345678" and window.whole and not window.glued:
        if direct is not None and direct <= 3:
            return 0.7
        about = window.near.around & {"phone", "landline"} and window.near.nearest in (
            "",
            "phone",
            "landline",
        )
        if about and not digits.startswith(("19", "20")):
            return 0.65 if direct is not None else 0.55
    return 0.0


def _local(digits: str, area: int) -> bool:
    return len(digits) - area in ((8,) if area == 3 else (7, 8)) and digits[area] in "2345678"


def _uncued_landline(window: Window, area: int) -> float:
    if not window.whole or window.glued:
        return 0.0
    split = len(window.shape) > 1 and window.shape[0] == area
    return 0.85 if split else 0.65 if len(window.shape) == 1 else 0.0


def _nanp(digits: str) -> bool:
    return len(digits) == 10 and digits[0] in "23456789" and digits[3] in "23456789"


def _cued_english(window: Window) -> float:
    """Foreign numbers in a Chinese text: only in their own grouping and with a cue."""
    if window.shape in _SHAPES_EN and _cue(window, 10) and _nanp(window.digits[-10:]):
        return 0.8
    return 0.0


def _english(window: Window) -> float:
    digits, shape = window.digits, window.shape
    cued = _cue(window)
    if digits.startswith("00") and 10 <= len(digits) <= 16 and _international(digits[2:]):
        return 0.9 if cued or (window.whole and len(shape) > 1) else 0.0
    if digits.startswith("011") and 12 <= len(digits) <= 17 and _international(digits[3:]) and cued:
        return 0.9
    ten = digits[1:] if len(digits) == 11 and digits[0] == "1" else digits
    if len(ten) == 10 and ten[0] in "23456789":
        return _north_american(window, ten, cued)
    if digits[0] == "0" and _TRUNK.fullmatch(digits):
        return _trunk(window, cued)
    if len(digits) == 12 and digits[:2] == "91" and digits[2] in "6789" and cued:
        return 0.85
    if (
        len(digits) in (11, 12)
        and digits[:2] in ("44", "61")
        and digits[2] in "2347"
        and (cued or _mobile_abroad(window))
    ):
        return 0.85
    if (
        len(digits) == 7
        and digits[0] in "23456789"
        and shape in ((3, 4), (7,))
        and _cue(window, 30 if window.gaps == ("-",) else 12)
        and window.whole
    ):
        return 0.7
    return 0.0


def _mobile_abroad(window: Window) -> bool:
    """447700900461, without its plus."""
    return window.whole and not window.glued and re.fullmatch("447[0-9]{9}|614[0-9]{8}", window.digits) is not None


def _north_american(window: Window, ten: str, cued: bool) -> float:
    grouped = window.shape in _SHAPES_EN
    if cued and (window.whole or grouped):
        return 0.95
    if grouped and len(window.shape) > 2 and window.whole and not window.glued:
        return 0.85
    indian = ten[0] in "6789" and window.shape == (5, 5)
    known = phonenumbers.is_valid_number(PhoneNumber(country_code=1, national_number=int(ten)))
    if window.whole and not window.glued and (indian or (known and _no_list(window))):
        return 0.65
    return 0.0


def _trunk(window: Window, cued: bool) -> float:
    if cued:
        return 0.93 if window.whole or len(window.shape) <= 4 else 0.75
    if not window.whole or window.glued or not _no_list(window):
        return 0.0
    if window.digits[:2] in ("07", "04") or len(window.shape) > 1:
        return 0.75
    return 0.6 if len(window.digits) == 11 else 0.0


def _no_list(window: Window) -> bool:
    """Not a row of small numbers ("4 8 15 16 23 42")."""
    return len(window.shape) == 1 or max(window.shape) >= 3
