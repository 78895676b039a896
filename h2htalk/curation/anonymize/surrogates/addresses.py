"""Surrogates of addresses and organisations: the words that say what it is stay, names and numbers change.

清泉路18号2单元 stays a road, a number and a unit; "14 Maple Street, Apt 3" stays a street and a flat. Numbers become
others of as many digits; a ZIP code begins with 000 and a British postcode with Q, which none does.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from h2htalk.curation.anonymize.surrogates.persons import match_case
from h2htalk.curation.anonymize.surrogates.pools import pools
from h2htalk.curation.anonymize.surrogates.seeded_random import LETTERS, SeededRandom
from h2htalk.curation.anonymize.values.value_shape import value_shape

_HAN = re.compile("[\u4e00-\u9fff]")
_ENGLISH = re.compile(
    r"(?P<postcode>\b[a-z]{1,2}[0-9][a-z0-9]?\s?[0-9][a-z]{2}\b)|(?P<zip>(?<![0-9])[0-9]{5}(?:-[0-9]{4})?$)"
    r"|(?P<number>[0-9]+)(?:st|nd|rd|th)?\b|[0-9]+|(?<!['’])[^\W\d_]+(?:['’](?!s\b)[^\W\d_]+)*",
    re.IGNORECASE,
)
# Draws for a word, or for a whole value: a place that the dialogue names twice has one surrogate.
Draws = Callable[[str], SeededRandom]


def address(draws: Draws, value: str) -> str:
    """An address of the same make."""
    if not _HAN.search(value):
        return _english(draws, value, "kept")
    numbers = draws(value)

    def other(found: re.Match[str]) -> str:
        if found["count"]:
            figures = found["figures"] or found["count"]
            return _renumbered(numbers, figures) + found["count"][len(figures) :]
        if found["latin"]:
            return _word(draws, found["latin"])
        name, tail = found["head"] or found["rest"], found["tail"] or ""
        return _chinese_name(draws(name), name, {"省": "province", "市": "city"}.get(tail, "place")) + tail

    return _chinese_parts().sub(other, value)


def organization(draws: Draws, value: str) -> str:
    """An organisation of the same kind under an invented name."""
    if not _HAN.search(value):
        return _english(draws, value, "organization_kept")
    tail = re.search(f"(?:{_any_of('tail_organization')})$", value)
    head = value[: tail.start()] if tail and tail.start() > 0 else value
    return _chinese_name(draws(head), head, "organization") + value[len(head) :]


@cache
def _any_of(*sections: str) -> str:
    return "|".join(word for section in sections for word in pools("places_zh")[section])


@cache
def _chinese_parts() -> re.Pattern[str]:
    counted = rf"(?P<figures>[0-9a-zA-Z〇零一二三四五六七八九十百]+(?:[-—~之\s][0-9]+)*)(?:{_any_of('tail_count')})"
    places = _any_of("tail_area", "tail_road", "tail_estate")
    return re.compile(
        rf"(?P<count>{counted}|[0-9]+)|(?P<head>[\u4e00-\u9fff]{{1,8}}?)(?P<tail>(?:{places})"
        rf"(?:{_any_of('tail_more')})?)|(?P<rest>[\u4e00-\u9fff]+)|(?P<latin>[a-zA-Z]+)"
    )


def _chinese_name(draw: SeededRandom, name: str, section: str) -> str:
    """Another name, as long: of a province or city such a one, else one of a section, else invented characters."""
    own = pools("places_zh")
    for kind in ("province", "city"):
        if name[:2] in own[kind]:  # 北京朝阳区: a city, then the rest
            first = draw.choice([word for word in own[kind] if word != name[:2]])
            return first + (_chinese_name(draw, name[2:], section) if name[2:] else "")
    fitting = [word for word in own[section] if len(word) == len(name) and word != name]
    if fitting:
        return draw.choice(fitting)
    return "".join(draw.choice([c for c in own["character"] if c != char]) for char in name)


def _renumbered(draw: SeededRandom, written: str) -> str:
    """Other digits and letters, as many; none is 0, which no number begins with."""
    shape = value_shape(written, numeric=True)
    made = [draw.choice([c for c in ("123456789" if old.isdigit() else LETTERS[:12]) if c != old])
            for old in shape.compact]  # fmt: skip
    return shape.reformatted("".join(made))


def _word(draws: Draws, written: str) -> str:
    """A building's letter, another; a state's abbreviation or name, another; any other word, an invented place."""
    own = pools("places_en")
    if len(written) == 1:
        return _renumbered(draws(written), written)
    section = "state_code" if written in own["state_code"] else "state" if written.title() in own["state"] else "place"
    return match_case(written, draws(written).choice([w for w in own[section] if w.lower() != written.lower()]))


def _english(draws: Draws, value: str, section: str) -> str:
    """Other numbers, and other words for all that do not say what kind of place it is (`section` of `places_en`)."""
    kept = frozenset(word.rstrip(".") for word in pools("places_en")[section])
    numbers = draws(value)

    def other(found: re.Match[str]) -> str:
        written = found[0]
        if found["postcode"]:
            return match_case(written[0], "Q") + numbers.scramble(written[1:])
        if found["zip"]:
            return "000" + numbers.scramble(written[3:])
        if written[0].isdigit():
            digits = found["number"] or written
            return _renumbered(numbers, digits) + written[len(digits) :]
        return written if written.lower() in kept else _word(draws, written)

    made = _ENGLISH.sub(other, value)
    # All of it says what kind it is ("the Community College"): a name in front makes it another.
    return made if made != value else f"{match_case(value, numbers.choice(pools('places_en')['place']))} {made}"
