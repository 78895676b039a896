"""Digits and letters as they are said: "double seven", "bravo as in boy", yao san er, 幺三八洞."""

from __future__ import annotations

import re

from h2htalk.curation.anonymize.normalization import HAN_DIGITS
from h2htalk.curation.anonymize.structured.patterns import patterns, read_table

# A stretch of a text, and what it means.
Edit = tuple[int, int, str]
_RE = patterns("deobfuscation")
_TABLES = read_table("deobfuscation")
_ONES, _TEENS, _TENS, _TIMES = (_TABLES[name] for name in ("ones", "teens", "tens", "times"))
_NATO, _SOUNDS, _RADIO = _TABLES["nato"], _TABLES["sounds"], _TABLES["radio"]


def digits_of_words(match: re.Match[str]) -> list[Edit]:
    """ "double seven", "forty two", "oh": as digits, where two or more stand in a row."""
    at = match.start()
    found = [(at + m.start(), at + m.end(), _figures(m.group())) for m in _RE["spoken"].finditer(match.group())]
    total = sum(char.isdigit() for char in match.group()) + sum(len(meant) for _, _, meant in found)
    if total < 2 or "12345" in "".join(meant for _, _, meant in found):  # somebody counts
        return []
    edits: list[Edit] = []
    for edit in found:  # "one forty two": what a space alone parts is one number
        if edits and match.string[edits[-1][1] : edit[0]] == " ":
            edits.append((edits[-1][1], edit[0], ""))
        edits.append(edit)
    return edits


def _figures(said: str) -> str:
    first, *more = re.split(r"[ -]", said)
    if first in _TIMES:
        return str(_ONES.get(more[0], more[0])) * int(_TIMES[first])
    if first in _TENS:
        return str(_TENS[first]) + (_ONES[more[0]] if more else "0")
    return str(_TEENS.get(first) or _ONES[first]) + ("00" if more else "")


def spelt_letters(match: re.Match[str]) -> list[Edit]:
    """Letters by their names, joined: only where two names or "as in" show that somebody spells."""
    edits: list[Edit] = []
    names = others = 0
    last = match.start()
    for sign in _RE["spelt"].finditer(match.string, match.start(), match.end()):
        said = sign.group()
        spoken = len(said) > 1 and _RE["spoken"].fullmatch(said) is not None
        names += len(said) > 2 and not spoken and not said[0].isdigit()
        others += spoken or said.isdigit()
        letter = _NATO.get(said, said[0]).upper()
        edits += [(last, sign.start(), "")] if sign.start() > last else []
        edits.append((*sign.span(), _figures(said) if spoken else said if said.isdigit() else letter))
        last = sign.end()
    return edits if names > 1 or (names and others) else []


def digits_of_pinyin(match: re.Match[str]) -> list[Edit]:
    """yao san er: digits in the letters of their sounds."""
    sounds = list(_RE["sound"].finditer(match.string, match.start(), match.end()))
    return [(*m.span(), _TABLES["pinyin"][m.group()]) for m in sounds] if len(sounds) > 2 else []


def repeated_digit(match: re.Match[str]) -> list[Edit]:
    """四个6"""
    count = int(HAN_DIGITS.get(match[1]) or _RADIO.get(match[1]) or match[1])
    return [(*match.span(), HAN_DIGITS.get(match[2], match[2]) * count)]


def digits_of_homophones(match: re.Match[str]) -> list[Edit]:
    """幺三八洞两拐, 1三8林: Han characters that are said for digits, among digits."""
    found = match.group()
    table = HAN_DIGITS | _SOUNDS | _RADIO
    strange = any(char in _SOUNDS for char in found)
    certain = sum(map(str.isdecimal, found)) > 1 or sum(char in HAN_DIGITS for char in found) > 4
    if (strange and not certain) or not (strange or any(char in _RADIO for char in found)):
        return []
    return [(at, at + 1, table[char]) for at, char in enumerate(found, match.start()) if char in table]
