"""Check digits: arithmetic alone. Each takes characters `0`-`9` (and letters where said), without separators."""

from __future__ import annotations

import datetime

_RESIDENT_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
# The first two digits of a Chinese resident id: provinces, regions, and 81-83 for Hong Kong, Macau and Taiwan.
_PROVINCES = frozenset(
    [
        "11",
        "12",
        "13",
        "14",
        "15",
        "21",
        "22",
        "23",
        "31",
        "32",
        "33",
        "34",
        "35",
        "36",
        "37",
        "41",
        "42",
        "43",
        "44",
        "45",
        "46",
        "50",
        "51",
        "52",
        "53",
        "54",
        "61",
        "62",
        "63",
        "64",
        "65",
        "71",
        "81",
        "82",
        "83",
    ]
)
_IBAN_LENGTHS = {
    "AD": 24,
    "AE": 23,
    "AT": 20,
    "BE": 16,
    "BG": 22,
    "CH": 21,
    "CY": 28,
    "CZ": 24,
    "DE": 22,
    "DK": 18,
    "EE": 20,
    "ES": 24,
    "FI": 18,
    "FR": 27,
    "GB": 22,
    "GI": 23,
    "GR": 27,
    "HR": 21,
    "HU": 28,
    "IE": 22,
    "IL": 23,
    "IS": 26,
    "IT": 27,
    "LI": 21,
    "LT": 20,
    "LU": 20,
    "LV": 21,
    "MC": 27,
    "MT": 31,
    "NL": 18,
    "NO": 15,
    "PK": 24,
    "PL": 28,
    "PT": 25,
    "QA": 29,
    "RO": 24,
    "RS": 22,
    "SA": 24,
    "SE": 24,
    "SI": 19,
    "SK": 24,
    "SM": 27,
    "TR": 26,
    "UA": 29,
    "BR": 29,
    "KW": 30,
    "MU": 30,
    "SC": 31,
    "GE": 22,
    "MD": 24,
}


def luhn(digits: str) -> bool:
    """Cards and Canadian SINs: ISO/IEC 7812-1, annex B. Not a row of one digit."""
    if len(set(digits)) == 1:
        return False
    total = 0
    for place, char in enumerate(reversed(digits)):
        value = int(char) * (1 + place % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def birth_date(digits: str) -> bool:
    """Eight digits, year first, that are a day between 1900 and today's century."""
    year, month, day = int(digits[:4]), int(digits[4:6]), int(digits[6:])
    if not 1900 <= year <= 2035:
        return False
    try:
        datetime.date(year, month, day)
    except ValueError:
        return False
    return True


def resident_shape(value: str) -> bool:
    """Eighteen characters whose province and birth date may be a Chinese resident's; the check digit is not asked."""
    return value[:2] in _PROVINCES and birth_date(value[6:14])


def resident_id(value: str) -> bool:
    """A Chinese resident id of eighteen: GB 11643, check digit by ISO 7064 mod 11-2 (`0`-`9`, `X`)."""
    total = sum(int(char) * weight for char, weight in zip(value, _RESIDENT_WEIGHTS, strict=False))
    return resident_shape(value) and "10X98765432"[total % 11] == value[17].upper()


def old_resident_id(digits: str) -> bool:
    """A Chinese resident id of fifteen, as given out until 1999: no check digit, a birth date of the 20th century."""
    return digits[:2] in _PROVINCES and birth_date("19" + digits[6:12])


def nhs(digits: str) -> bool:
    """An NHS number of ten digits: mod 11."""
    check = 11 - sum(int(char) * weight for char, weight in zip(digits, range(10, 1, -1), strict=False)) % 11
    return len(digits) == 10 and check % 11 == int(digits[9]) and check != 10


def tax_file(digits: str) -> bool:
    """An Australian tax file number of nine (eight, of old) digits: mod 11."""
    weights = (1, 4, 3, 7, 5, 8, 6, 9, 10) if len(digits) == 9 else (10, 7, 8, 4, 6, 3, 5, 1)
    return sum(int(char) * weight for char, weight in zip(digits, weights, strict=True)) % 11 == 0


def medicare(digits: str) -> bool:
    """An Australian Medicare number of ten digits, or eleven with the person's: mod 10."""
    weights = (1, 3, 7, 9, 1, 3, 7, 9)
    check = sum(int(char) * weight for char, weight in zip(digits, weights, strict=False)) % 10
    return digits[0] in "23456" and check == int(digits[8])


def routing(digits: str) -> bool:
    """A routing number of a US bank, nine digits: mod 10."""
    weights = (3, 7, 1, 3, 7, 1, 3, 7, 1)
    return sum(int(char) * weight for char, weight in zip(digits, weights, strict=True)) % 10 == 0


def social_security(digits: str) -> bool:
    """A US social security number of nine digits: ranges that are given out (no check digit)."""
    area, group, serial = digits[:3], digits[3:5], digits[5:]
    return area not in ("000", "666") and area[0] != "9" and group != "00" and serial != "0000"


def iban(value: str) -> bool:
    """An IBAN, letters in upper case: ISO 13616, mod 97, and the length of its country."""
    if _IBAN_LENGTHS.get(value[:2]) != len(value):
        return False
    return int("".join(str(int(char, 36)) for char in value[4:] + value[:4])) % 97 == 1
