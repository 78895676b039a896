"""Which windows of digits are phone numbers: China, the North American plan, UK, AU, IE, NZ, IN, any `+`.

Numbers of other countries are found behind a word for a phone, and by `phonenumbers` where a source names its
countries.
"""

from __future__ import annotations

from collections.abc import Sequence

import phonenumbers

from h2htalk.curation.anonymize.structured.digit_runs import Window
from h2htalk.curation.anonymize.structured.patterns import patterns, read_table

_RE = patterns("phones")
_CUES = ("phone", "landline")
_SHAPES_EN = {(3, 3, 4), (1, 3, 3, 4), (3, 7), (1, 3, 7), (6, 4), (3, 4, 3)}
_ANYWHERE = 1000


_HOTLINES = frozenset(read_table("phones")["hotlines"])


def is_toll_free(digits: str, language: str) -> bool:
    """Whether calls to a number cost nothing, as to help lines and offices."""
    return _RE[f"toll_free_{language}"].fullmatch(digits) is not None


def is_hotline(digits: str) -> bool:
    """A public line for help or service: content, not personal data."""
    return digits in _HOTLINES


def phone(window: Window, language: str, countries: Sequence[str] = (), *, told: bool = False) -> float:
    """How sure we are, in [0, 1], that a window is a phone number. 0: it is none.

    Args:
        window: the digits.
        language: `en` or `zh`.
        countries: of whose numbers the source may hold some (ISO 3166: `DE`).
        told: a word for a phone stands right before it.
    """
    near = window.near
    if _RE["plus"].search(window.lead):
        return 0.97 if window.whole and _is_valid(f"+{window.digits}", None, possible=True) else 0.0
    if near.nearest_is_impersonal(_impersonal_reach(window, language)):
        return 0.0
    if near.nearest in ("card", "id") and language == "en" and not _cued(window):
        return 0.0
    score = max(_mobile(window), _landline(window), _beyond_the_mainland(window)) if language == "zh" else 0.0
    score = score or (_english(window) if language == "en" else 0.0) or _of_countries(window, countries)
    return score or (0.7 if told and window.whole and 7 <= len(window.digits) <= 12 else 0.0)


def _impersonal_reach(window: Window, language: str) -> int:
    """How near a word for nobody's numbers must stand to be believed: a form of its own speaks against it."""
    if language == "zh" and _RE["mobile"].fullmatch(window.digits):
        return 2 if window.shape == (3, 4, 4) else 3 if len(window.shape) == 1 and not window.glued else _ANYWHERE
    return 10 if language == "en" and window.shape == (3, 3, 4) and window.whole else _ANYWHERE


def _cued(window: Window, reach: int = 99) -> bool:
    distance = window.near.distance(*_CUES)
    return distance is not None and distance <= reach


def _is_valid(number: str, country: str | None, *, possible: bool = False) -> bool:
    """Whether `phonenumbers` knows a number as given out, or only as of a `possible` length."""
    try:
        parsed = phonenumbers.parse(number, country)
    except phonenumbers.NumberParseException:
        return False
    return phonenumbers.is_possible_number(parsed) if possible else phonenumbers.is_valid_number(parsed)


def _of_countries(window: Window, countries: Sequence[str]) -> float:
    """A number of a source's countries, in groups where no cue stands beside it."""
    if not window.whole or window.glued or not (_cued(window) or (len(window.shape) > 1 and _no_list(window))):
        return 0.0
    known = any(_is_valid(window.digits, country) for country in countries)
    return (0.9 if _cued(window) else 0.7) if known else 0.0


def _mobile(window: Window) -> float:
    if not _RE["mobile"].fullmatch(window.digits):
        return 0.0
    return 0.97 if _cued(window) else 0.9 if window.whole and not window.glued else 0.0


def _beyond_the_mainland(window: Window) -> float:
    """Taiwan, Hong Kong, Macau: their own forms, surer with a cue."""
    if not window.whole or window.glued or not _no_list(window):
        return 0.0
    if _RE["taiwan"].fullmatch(window.digits) or _RE["from_abroad"].fullmatch(window.digits):
        alone = 0.7 if window.digits.startswith("09") else 0.0
        return 0.95 if _cued(window) else 0.8 if len(window.shape) > 1 else alone
    return 0.7 if _RE["hong_kong"].fullmatch(window.digits) and _cued(window, 6) else 0.0


def _landline(window: Window) -> float:
    """A landline with its area code, perhaps an extension behind; a local number near a word for one."""
    digits, near = window.digits, window.near
    if digits.startswith(("0086", "86")) and len(digits) > 11:
        digits = "0" + digits.removeprefix("00").removeprefix("86").removeprefix("0")
    extension = len(window.shape) > 2 and window.shape[-1] <= 5 and window.gaps[-1] == "-" and window.whole
    if _RE["landline"].fullmatch(digits):
        split = 0.85 if window.shape[0] in (3, 4) and len(window.shape) > 1 else 0.65 if len(window.shape) == 1 else 0.0
        return 0.95 if _cued(window) else split if window.whole and not window.glued else 0.0
    if extension and _RE["landline"].fullmatch(digits[: -window.shape[-1]]):
        return 0.95 if _cued(window) else 0.85
    if window.glued or not window.whole or not _RE["local"].fullmatch(digits):
        return 0.0
    if _cued(window, 3):
        return 0.7
    if near.around & {*_CUES} and near.nearest in ("", *_CUES):
        return 0.65 if _cued(window) else 0.55
    alone = len(window.shape) == 1 and not near.kinds and not near.around - {*_CUES, "vehicle"}
    return 0.52 if alone and _RE["uncued_local"].fullmatch(digits) else 0.0


def _english(window: Window) -> float:
    digits, shape = window.digits, window.shape
    cued = _cued(window)
    abroad = digits.removeprefix("011").removeprefix("00")
    if len(abroad) >= 11 and digits[0] != "1" and _is_valid(f"+{abroad}", None, possible=cued):
        return 0.9 if cued else 0.85 if window.whole and abroad != digits and len(shape) > 1 else 0.0
    ten = digits[1:] if len(digits) == 11 and digits[0] == "1" else digits
    if len(ten) == 10 and ten[0] in "23456789":
        return _north_american(window, ten, cued)
    if _RE["trunk"].fullmatch(digits):
        return _trunk(window, cued)
    local = len(digits) == 7 and digits[0] in "23456789" and shape in ((3, 4), (7,)) and window.whole
    return 0.7 if local and _cued(window, 30 if window.gaps == ("-",) else 12) else 0.0


def _north_american(window: Window, ten: str, cued: bool) -> float:
    grouped = window.shape in _SHAPES_EN
    if cued and (window.whole or grouped):
        return 0.95
    if not window.whole or window.glued:
        return 0.0
    if grouped and len(window.shape) > 2:
        return 0.85
    indian = ten[0] in "6789" and window.shape == (5, 5)
    return 0.65 if indian or (_no_list(window) and _is_valid(ten, "US")) else 0.0


def _trunk(window: Window, cued: bool) -> float:
    if cued:
        return 0.93 if window.whole or len(window.shape) <= 4 else 0.75
    if not window.whole or window.glued or not _no_list(window):
        return 0.0
    return 0.75 if window.digits[:2] in ("07", "04") or len(window.shape) > 1 else 0.0


def _no_list(window: Window) -> bool:
    """Not a row of small numbers ("4 8 15 16 23 42")."""
    return len(window.shape) == 1 or max(window.shape) >= 3
