"""Which windows of digits are phone numbers: China, the North American plan, UK, AU, IE, NZ, IN, any `+`.

Numbers of other countries are found behind a word for a phone, and by `phonenumbers` where a source names its
countries.
"""

from __future__ import annotations

import phonenumbers

from h2htalk.curation.anonymize.structured.digit_runs import Window
from h2htalk.curation.anonymize.structured.identity_numbers import luhn
from h2htalk.curation.anonymize.structured.patterns import patterns, read_table
from h2htalk.curation.anonymize.structured.reading import Reading

_RE = patterns("phones")
_WORD = patterns("digit_spans")["phone_word"]
_CUES = ("phone", "landline")
_SHAPES_EN = {(3, 3, 4), (1, 3, 3, 4), (3, 7), (1, 3, 7), (6, 4), (3, 4, 3)}
_ANYWHERE = 1000
_HOTLINES = frozenset(read_table("phones")["hotlines"])


def is_public(window: Window, language: str) -> bool:
    """Whether a number is a public line for help or service, or one that costs nothing: content, no personal data."""
    near = window.near
    claimed = near.nearest in ("qq", "wechat", "account") and near.kinds[0][1] <= 3 and len(window.digits) <= 5
    service = language == "zh" and _RE["service"].fullmatch(window.digits) is not None
    if (service or window.digits in _HOTLINES) and not claimed:
        return window.whole or len(window.digits) >= 8
    return window.whole and _RE[f"toll_free_{language}"].fullmatch(window.digits) is not None


def has_form(digits: str) -> bool:
    """Whether digits are a Chinese phone's or a bank card's, whatever stands beside them."""
    card = _RE["card_form"].fullmatch(digits) is not None and luhn(digits)
    return card or _RE["phone_form"].fullmatch(digits) is not None


def _may_be_phone(window: Window, reading: Reading) -> bool:
    """Whether no word for other numbers stands nearer than one for a phone; a form of its own speaks against it."""
    near, reach = window.near, _ANYWHERE
    if reading.language == "zh" and _RE["mobile"].fullmatch(window.digits):
        reach = 2 if window.shape == (3, 4, 4) else 3 if len(window.shape) == 1 and not window.glued else _ANYWHERE
    if reading.language == "en" and window.shape == (3, 3, 4) and window.whole:
        reach = 10
    other = near.nearest in ("card", "id") and reading.language == "en" and not _cued(window)
    return not (near.nearest_is_impersonal(reach) or other or _RE["plus"].search(window.lead))


def _cued(window: Window, reach: int = 99) -> bool:
    distance = window.near.distance(*_CUES)
    return distance is not None and distance <= reach


def _stands_alone(window: Window) -> bool:
    """Whether digits are no piece of a longer value, and no row of small numbers ("4 8 15 16 23 42")."""
    return window.whole and not window.glued and (len(window.shape) == 1 or max(window.shape) >= 3)


def _is_valid(number: str, country: str | None, *, possible: bool = False) -> bool:
    """Whether `phonenumbers` knows a number as given out, or only as of a `possible` length."""
    try:
        parsed = phonenumbers.parse(number, country)
    except phonenumbers.NumberParseException:
        return False
    return phonenumbers.is_possible_number(parsed) if possible else phonenumbers.is_valid_number(parsed)


def with_plus(window: Window, _: Reading) -> float:
    """An international number behind its `+`."""
    known = window.whole and _RE["plus"].search(window.lead) and _is_valid(f"+{window.digits}", None, possible=True)
    return 0.97 if known else 0.0


def mobile(window: Window, reading: Reading) -> float:
    """A mobile of the mainland."""
    if not _RE["mobile"].fullmatch(window.digits) or not _may_be_phone(window, reading):
        return 0.0
    return 0.97 if _cued(window) else 0.9 if window.whole and not window.glued else 0.0


def beyond_the_mainland(window: Window, reading: Reading) -> float:
    """A number of Taiwan, Hong Kong or Macau: its own form, surer with a cue."""
    if not _stands_alone(window) or not _may_be_phone(window, reading):
        return 0.0
    if _RE["taiwan"].fullmatch(window.digits) or _RE["from_abroad"].fullmatch(window.digits):
        alone = 0.7 if window.digits.startswith("09") else 0.0
        return 0.95 if _cued(window) else 0.8 if len(window.shape) > 1 else alone
    return 0.7 if _RE["hong_kong"].fullmatch(window.digits) and _cued(window, 6) else 0.0


def landline(window: Window, reading: Reading) -> float:
    """A Chinese landline with its area code, perhaps an extension behind; a local number near a word for one."""
    if not _may_be_phone(window, reading):
        return 0.0
    digits, near = window.digits, window.near
    extension = len(window.shape) > 2 and window.shape[-1] <= 5 and window.gaps[-1] == "-" and window.whole
    if _RE["landline"].fullmatch(digits):
        split = 0.85 if window.shape[0] in (3, 4) and len(window.shape) > 1 else 0.65 if len(window.shape) == 1 else 0.0
        return 0.95 if _cued(window) else split if window.whole and not window.glued else 0.0
    if extension and _RE["landline"].fullmatch(digits[: -window.shape[-1]]):
        return 0.95 if _cued(window) else 0.85
    if window.glued or not window.whole or not _RE["local"].fullmatch(digits):
        return 0.0
    if near.around & {*_CUES} and near.nearest in ("", *_CUES):
        return 0.65 if _cued(window) else 0.55
    return 0.0


def north_american(window: Window, reading: Reading) -> float:
    """Ten digits of the North American plan, with its 1 or without."""
    digits = window.digits
    ten = digits[1:] if len(digits) == 11 and digits[0] == "1" else digits
    if len(ten) != 10 or ten[0] not in "23456789" or not _may_be_phone(window, reading):
        return 0.0
    grouped = window.shape in _SHAPES_EN
    if _cued(window) and (window.whole or grouped):
        return 0.95
    if not window.whole or window.glued:
        return 0.0
    if grouped and len(window.shape) > 2:
        return 0.85
    indian = ten[0] in "6789" and window.shape == (5, 5)
    return 0.65 if indian or (_stands_alone(window) and _is_valid(ten, "US")) else 0.0


def trunk(window: Window, reading: Reading) -> float:
    """A number that begins with 0 at home."""
    if not _RE["trunk"].fullmatch(window.digits) or not _may_be_phone(window, reading):
        return 0.0
    if _cued(window):
        return 0.93 if window.whole or len(window.shape) <= 4 else 0.75
    alone = window.digits[:2] in ("07", "04") or len(window.shape) > 1
    return 0.75 if alone and _stands_alone(window) else 0.0


def local(window: Window, reading: Reading) -> float:
    """Seven digits right behind a word for a phone."""
    seven = len(window.digits) == 7 and window.digits[0] in "23456789" and window.shape in ((3, 4), (7,))
    near = seven and window.whole and _cued(window, 30 if window.gaps == ("-",) else 12)
    return 0.7 if near and _may_be_phone(window, reading) else 0.0


def abroad(window: Window, reading: Reading) -> float:
    """An international number without its `+`."""
    digits, cued = window.digits, _cued(window)
    bare = digits.removeprefix("011").removeprefix("00")
    if len(bare) < 11 or digits[0] == "1" or not _may_be_phone(window, reading):
        return 0.0
    if not _is_valid(f"+{bare}", None, possible=cued):
        return 0.0
    return 0.9 if cued else 0.85 if window.whole and bare != digits and len(window.shape) > 1 else 0.0


def of_countries(window: Window, reading: Reading) -> float:
    """A number of a source's countries, in groups where no cue stands beside it."""
    may_be = reading.countries and window.whole and not window.glued and _may_be_phone(window, reading)
    if not may_be or not (_cued(window) or (len(window.shape) > 1 and _stands_alone(window))):
        return 0.0
    known = any(_is_valid(window.digits, country) for country in reading.countries)
    return (0.9 if _cued(window) else 0.7) if known else 0.0


def told(window: Window, reading: Reading) -> float:
    """Digits of any country right behind a word for a phone."""
    said = _WORD.search(reading.text[max(0, window.start - 30) : window.start])
    possible = said and window.whole and 7 <= len(window.digits) <= 12
    return 0.7 if possible and _may_be_phone(window, reading) else 0.0
