"""Surrogates of addresses and organisations: the words that say what it is stay, names and numbers change.

清泉路18号2单元 stays a road, a number and a unit; "14 Maple Street, Apt 3" stays a street and a flat. Provinces and
cities become others of their tier, roads and estates invented ones of the same length, numbers others of as many
digits; a ZIP code begins with 000 and a British postcode with Q, V or X, which none does.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from h2htalk.curation.anonymize.normalization import plain
from h2htalk.curation.anonymize.surrogates.persons import match_case
from h2htalk.curation.anonymize.surrogates.pools import pools
from h2htalk.curation.anonymize.surrogates.seeded_random import DIGITS, LETTERS, SeededRandom
from h2htalk.curation.anonymize.values.value_shape import value_shape

_HAN = re.compile("[\u4e00-\u9fff]")
_HAN_NUMBER = "〇零一二三四五六七八九十百"
_POSTCODE = re.compile(r"\b[A-Za-z]{1,2}[0-9][A-Za-z0-9]?\s?[0-9][A-Za-z]{2}\b")
_ZIP = re.compile(r"(?<![0-9])[0-9]{5}(?:-[0-9]{4})?$")
_TIERS = ("province", "city1", "city2", "city3")
_NUMBERS_FIRST = 20  # tries with other numbers before the names change too


@dataclass(frozen=True, slots=True)
class AddressDraws:
    """What an address is drawn from: its numbers for itself, a name in it wherever the dialogue says that name."""

    secret: bytes
    value: str
    attempt: int

    def name(self, word: str) -> SeededRandom:
        return SeededRandom(self.secret, "place", word.lower(), str(self.attempt // _NUMBERS_FIRST))

    def numbers(self) -> SeededRandom:
        return SeededRandom(self.secret, "place numbers", self.value, str(self.attempt))


def address(draws: AddressDraws, value: str) -> str:
    """An address of the same make."""
    return _chinese(draws, value) if _HAN.search(value) else _english(draws, value)


def _replaced(pattern: re.Pattern[str], value: str, other: Callable[[re.Match[str]], str]) -> str:
    """A value with something else for each match of a pattern in its plain characters."""
    parts, at = [], 0
    for found in pattern.finditer(plain(value)):
        parts += [value[at : found.start()], other(found)]
        at = found.end()
    return "".join([*parts, value[at:]])


@cache
def _any_of(*sections: str) -> str:
    return "|".join(word for section in sections for word in pools("places_zh")[section])


@cache
def _chinese_parts() -> re.Pattern[str]:
    return re.compile(
        rf"(?P<count>[0-9a-zA-Z{_HAN_NUMBER}]+(?:[-—~之\s][0-9]+)*(?:{_any_of('tail_count')}))|(?P<digits>[0-9]+)|"
        rf"(?P<head>[\u4e00-\u9fff]{{1,8}}?)(?P<tail>(?:{_any_of('tail_area', 'tail_road', 'tail_estate')})"
        rf"(?:{_any_of('tail_more')})?)|(?P<rest>[\u4e00-\u9fff]+)|(?P<latin>[a-zA-Z]+)"
    )


def _chinese(draws: AddressDraws, value: str) -> str:
    numbers = draws.numbers()

    def other(found: re.Match[str]) -> str:
        if found["count"] or found["digits"]:
            return _renumbered(numbers, value[found.start() : found.end()])
        if found["latin"]:
            return _letters(draws.name(found["latin"]), found["latin"])
        name = found["head"] or found["rest"]
        return _chinese_name(draws.name(name), name, _section(found["tail"] or "")) + (found["tail"] or "")

    return _replaced(_chinese_parts(), value, other)


def _section(tail: str) -> str:
    """The section of `places_zh` with the names that stand before a word for a place."""
    if tail in ("省", "自治区", "市"):
        return "city3" if tail == "市" else "province"
    if re.fullmatch(_any_of("tail_area"), tail):
        return "district"
    return "road" if re.match(_any_of("tail_road"), tail) else "estate"


def _chinese_name(draw: SeededRandom, name: str, section: str) -> str:
    """Another name, as long: of a province or city one of its tier, else one of a section, else invented characters."""
    own = pools("places_zh")
    tiers = {city: tier for tier in _TIERS for city in own[tier]}
    if name in tiers:
        return draw.choice([word for word in own[tiers[name]] if word != name])
    if name[:2] in tiers:  # 北京朝阳区: a city, then the rest
        return _chinese_name(draw, name[:2], "") + _chinese_name(draw, name[2:], section)
    fitting = [word for word in own[section] if len(word) == len(name) and word != name]
    return draw.choice(fitting) if fitting else "".join(_character(draw, char) for char in name)


def _character(draw: SeededRandom, char: str) -> str:
    """Another character of its kind."""
    if _HAN.match(char):
        return draw.choice([c for c in pools("places_zh")["character"] if c != char])
    if char.isdigit():
        return draw.choice(DIGITS[1:])
    return match_case(char, draw.choice(LETTERS)) if char.isalpha() and char.isascii() else char


def _letters(draw: SeededRandom, written: str) -> str:
    """A building's letter, another; a word in Latin letters, an invented one."""
    if len(written) == 1:
        return match_case(written, draw.choice([c for c in LETTERS[:12] if c != written.lower()]))
    return match_case(written, draw.choice(pools("places_en")["place"]))


def _renumbered(draw: SeededRandom, written: str) -> str:
    """Other digits for digits, as many, none beginning with 0; what they count stays."""
    numeric = [at for at, c in enumerate(plain(written)) if c.isdigit() or written[at] in _HAN_NUMBER[:11]]
    made = list(written)
    for n, at in enumerate(numeric):
        first = n == 0 or numeric[n - 1] != at - 1
        old = value_shape(written[at], numeric=True)
        digit = draw.choice(DIGITS[1:] if first else DIGITS)
        if first and len(numeric) == 1 and digit == old.compact:
            digit = str(int(digit) % 9 + 1)
        made[at] = old.reformatted(digit)
    return "".join(made)


def _english_name(draw: SeededRandom, section: str, besides: str) -> str:
    """A word of a section of `places_en`, another than this."""
    return draw.choice([word for word in pools("places_en")[section] if word.lower() != besides])


@cache
def _states() -> dict[str, str]:
    own = pools("places_en")
    return {state.lower(): kind for kind in ("state", "state2") for state in own[kind]}


@cache
def _english_parts() -> re.Pattern[str]:
    """States of two words, numbers, words."""
    states = "|".join(state for state in _states() if " " in state)
    return re.compile(rf"\b(?:{states})\b|[0-9]+(?:st|nd|rd|th)\b|[0-9]+|[^\W\d_]+(?:['’][^\W\d_]+)*\.?", re.IGNORECASE)


@cache
def _kept(section: str) -> frozenset[str]:
    return frozenset(word.rstrip(".") for word in pools("places_en")[section])


def _english(draws: AddressDraws, value: str) -> str:
    draw, seen = draws.numbers(), plain(value)
    postcode, zipped = _POSTCODE.search(seen), _ZIP.search(seen)
    named = -2  # where the name before ends

    def other(found: re.Match[str]) -> str:
        nonlocal named
        start, end = found.span()
        written, word = value[start:end], found.group().lower().rstrip(".")
        if postcode and postcode.start() <= start < postcode.end():
            return "".join(_of_postcode(draw, c, at == postcode.start()) for at, c in enumerate(found.group(), start))
        if zipped and start >= zipped.start():
            return "000" + draw.digits(2) if start == zipped.start() else draw.digits(4)
        if word[0].isdigit():
            return _renumbered(draw, written)
        late = start > len(seen) // 2
        if word in _states() and (" " in word or (late and (written.isupper() or len(word) > 2))):
            return match_case(written, _english_name(draws.name(word), _states()[word], word))
        if word in _kept("kept"):
            return written
        follows, named = start - named == 1, end
        if len(word) == 1:
            return _letters(draws.name(word), written)
        return match_case(written, _english_name(draws.name(word), "place" if late or follows else "street", word))

    return _replaced(_english_parts(), value, other)


def _of_postcode(draw: SeededRandom, char: str, first: bool) -> str:
    """Letters for letters and digits for digits; the first letter is one that no area begins with."""
    if char.isdigit():
        return draw.choice(DIGITS)
    return match_case(char, draw.choice("qvx" if first else LETTERS)) if char.isalpha() else char


def organization(draws: AddressDraws, value: str) -> str:
    """An organisation of the same kind under an invented name."""
    draw = draws.name(value) if draws.attempt == 0 else draws.numbers()
    if not _HAN.search(value):
        return _english_organization(draw, value)
    tail = re.search(f"(?:{_any_of('tail_organization')})$", value)
    head = value[: tail.start()] if tail and tail.start() > 0 else value
    return _chinese_name(draw, head, "organization") + value[len(head) :]


def _english_organization(draw: SeededRandom, value: str) -> str:
    named = False

    def other(found: re.Match[str]) -> str:
        nonlocal named
        written, word = value[found.start() : found.end()], found.group().lower().rstrip(".")
        if word[0].isdigit():
            return _renumbered(draw, written)
        if word in _kept("organization_kept") and (named or found.start() or found.end() < len(value)):
            return written
        made = match_case(written, _english_name(draw, "street" if named else "place", word))
        named = True
        return made + (written[-2:] if word.endswith(("'s", "’s")) else "")

    made = _replaced(_english_parts(), value, other)
    # All of it says what kind it is ("the Community College"): a name in front makes it another.
    return made if named else f"{match_case(value, draw.choice(pools('places_en')['place']))} {made}"
