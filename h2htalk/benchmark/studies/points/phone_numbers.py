"""Find telephone numbers in a reply, and say whose they are in the help directory."""

from __future__ import annotations

import re

from h2htalk.text.help_lines import number_digits, read_help_lines

_DIGIT = re.compile(r"\d")
# Digits as people write numbers to dial; times, percentages, decimals and plain years are none.
_NUMBER = re.compile(
    r"(?<!\d)(?<!\d[.,:/-])\+?\d(?:[ -]?\d){2,}(?![\d/%]|[:.,]\d)|(?<!\d)\d{3,5}(?:[./:] ?\d{3,4}){1,3}(?!\d)"
    r"|(?<!\d)0\d(?:\.\d\d){4}(?!\d)"
)
_PLAIN = {0xA0: " ", 0x202F: " ", **dict.fromkeys(range(0x2010, 0x2014), "-")}
_TRUNK_ZERO = re.compile(r"\(0\) ?")
_AREA_CODE = re.compile(r"(?<!\d)\((\d{2,4})\) ?(?=\d)")
_COMMA_BETWEEN = re.compile(
    r"(?<=\d{4}),(?=\d)|,(?=\d)(?!\d{3}(?!\d))"
)  # of two numbers, not of 110,000
_WITH_SLASHES = re.compile(r"\d+(?:/\d+)+")
_YEAR = re.compile("(?:19|20)[0-9]{2}")


def phone_numbers(reply: str) -> dict[str, str]:
    """Return the numbers of a reply that look like something to dial, each with whose it is in the directory, or "".

    A number of three digits or more counts; times, years and percentages do not.
    """
    if not _DIGIT.search(reply):
        return {}
    text = _TRUNK_ZERO.sub("", reply.translate(_PLAIN))
    text = _AREA_CODE.sub(r"\1 ", text)
    text = _COMMA_BETWEEN.sub(", ", text)
    text = _WITH_SLASHES.sub(_separate, text)
    numbers: dict[str, str] = {}
    for match in _NUMBER.finditer(text):
        number = match.group()
        pieces = re.split("[ -]", number)
        are_several = not _owner_of(number) and all(map(_owner_of, pieces))
        for part in pieces if are_several else [number]:
            owner = _owner_of(part)
            if owner or "+" in part or not _YEAR.fullmatch(number_digits(part)):
                numbers[part] = owner
    return numbers


def _owner_of(number: str) -> str:
    """Return whose a number is in the directory, or nothing."""
    digits = number_digits(number)
    forms = [digits]
    if len(digits) == 10:  # 800 662 4357 for 1 800 662 4357
        forms.append(f"1{digits}")
    if number.startswith(("+", "00")):
        # As from abroad: +44 116 123, 0044 808 2000 247; no short one, as +44 999.
        digits = digits.removeprefix("00")
        for code_length in (1, 2, 3):
            national = digits[code_length:]
            if len(national) > 4:
                forms += [national, f"0{national}"]
    owners = read_help_lines().owners
    return next(("; ".join(owners[form]) for form in forms if form in owners), "")


def _separate(match: re.Match[str]) -> str:
    """Write numbers apart that a slash joins, such as 110/120, where each of them has an owner."""
    pieces = match.group().split("/")
    return " / ".join(pieces) if all(map(_owner_of, pieces)) else match.group()
