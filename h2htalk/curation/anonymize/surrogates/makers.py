"""Surrogates of numbers, and of persons, addresses and organisations from Faker's lists, in the form of the original.

A person's go part by part, so that 张伟, 小张 and 张老师 share a surname, and "Emily" stays her first name: every
surname, given name and so on of a dialogue gets one other of its kind, of the same gender where the name or its form of
address says one, and of the same length in Chinese. Case, titles, 小 and possessives stay.

Of addresses and organisations the words that say what it is stay: 清泉路18号2单元 stays a road, a number and a unit.
Numbers become others of as many digits; a ZIP code begins with 000 and a British postcode with Q, which none does.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from importlib import import_module
from itertools import islice
from pathlib import Path
from random import Random
from string import ascii_lowercase, digits
from typing import Any

from stdnum import iban
from stdnum.au import tfn
from stdnum.gb import nhs
from stdnum.us import rtn

from h2htalk.curation.anonymize.english.tokens import words
from h2htalk.curation.anonymize.normalization import plain, value_shape
from h2htalk.curation.anonymize.structured.numbers import luhn, medicare
from h2htalk.curation.anonymize.structured.reading import read_table
from h2htalk.curation.anonymize.values.name_parts import Gender, NameParts, Role, chinese_gender, name_parts
from h2htalk.text.chinese_characters import DOUBLE_SURNAMES
from h2htalk.text.language_data import read_data

_HAN = re.compile("[\u4e00-\u9fff]")
# Locales whose names Faker lists by gender, in letters that English writes.
_LOCALES = "en_US en_GB en_IE en_NZ es_ES es_MX fr_FR de_DE it_IT pt_BR nl_NL pl_PL sv_SE tr_TR"
_ENOUGH_DRAWS = 60  # draws from a list before two of it are joined
_ATTEMPTS = 20  # drawings of a whole dialogue before names that still clash become placeholders
_GIVEN: tuple[Role, ...] = ("given", "nick", "doubled", "latin_given")
Key = tuple[Role, str]  # a part's role, and what it is known by


def _faker(kind: str, locale: str) -> Any:
    """Faker's provider of `person` or `address` in a locale, whose lists are read as they are."""
    return import_module(f"faker.providers.{kind}.{locale}").Provider


@cache
def latin_names() -> dict[str, tuple[str, ...]]:
    """Given names (`female`, `male`, `neutral`: both) and surnames (`surname`) that are no words, in order."""
    lists: dict[str, set[str]] = {}
    for provider in (_faker("person", locale) for locale in _LOCALES.split()):
        for kind in ("first_names_female", "first_names_male", "last_names"):
            lists.setdefault(kind, set()).update(n for n in getattr(provider, kind, ()) if _is_plain(n))
    female, male = lists["first_names_female"], lists["first_names_male"]
    kinds = {"female": female - male, "male": male - female, "neutral": female & male, "surname": lists["last_names"]}
    return {kind: tuple(sorted(names)) for kind, names in kinds.items()}


def _is_plain(name: str) -> bool:
    return (
        name.isascii() and name.isalpha() and name[1:].islower() and len(name) > 2 and name.lower() not in words().words
    )


@cache
def chinese_names() -> dict[str, Sequence[str]]:
    """Single characters of given names (`female`, `male`, `neutral`: all), surnames, and both in Latin letters."""
    own = _faker("person", "zh_CN")
    female, male = ({n for n in names if len(n) == 1} for names in (own.first_names_female, own.first_names_male))
    return {
        "female": sorted(female - male),
        "male": sorted(male - female),
        "neutral": sorted(female | male),
        "surname": sorted(name for name in own.last_names if len(name) == 1),
        "double_surname": sorted(DOUBLE_SURNAMES),
        "pinyin_surname": sorted(own.last_romanized_names),
        "pinyin_given": sorted(own.first_romanized_names),
    }


@cache
def places() -> dict[str, tuple[str, ...]]:
    """Faker's provinces, cities and districts of China and states of the US, and the words of `words.toml`."""
    zh, us = _faker("address", "zh_CN"), _faker("address", "en_US")
    file = read_data(Path(__file__).with_name("words.toml"))
    return {key: tuple(value.split()) for key, value in file.items()} | {
        "province": tuple(name[:2] for name in zh.provinces if len(name) == 3 and name.endswith("省")),
        "city": tuple(name for name in zh.cities if len(name) == 2),
        "place": (*zh.cities, *zh.districts),
        "state": tuple(filter(str.isalpha, us.states)),
        "state_code": tuple(us.states_abbr),
    }


# --- Persons ---


def person_surrogates(
    secret: bytes, names: Collection[str], said: Collection[str], refused: Callable[[str], bool]
) -> dict[str, str]:
    """A surrogate for each name of a dialogue.

    Args:
        secret: the dialogue's (`dialogue_secret`).
        names: persons as they are written in it.
        said: words in lower case that no part of a surrogate may be: those of the dialogue.
        refused: whether a surrogate must not be.

    Returns:
        name -> surrogate; names that differ (in more than case) get surrogates that differ, and none is a name given.
    """
    parts = name_parts(names)
    real = {_folded(name) for name in names}
    made: dict[str, str] = {}
    bad: set[str] = set()
    for attempt in range(_ATTEMPTS):
        mapped = _mapping(secret, parts.values(), said, f"person {attempt}")
        made = {
            name: "".join(match_case(part.text, mapped.get((part.role, part.key), part.text)) for part in found.parts)
            for name, found in parts.items()
        }
        owners = Counter(other for _, other in {(_folded(name), _folded(other)) for name, other in made.items()})
        bad = {n for n, other in made.items() if owners[_folded(other)] > 1 or _folded(other) in real or refused(other)}
        if not bad:
            break
    return made | {name: f"[PERSON {n}]" for n, name in enumerate(sorted(bad), 1)}


def _folded(name: str) -> str:
    """What O'Brien and O’BRIEN have in common."""
    return plain(name).lower().replace("’", "'")


def _mapping(secret: bytes, names: Collection[NameParts], said: Collection[str], salt: str) -> dict[Key, str]:
    """What stands in for each part; the parts in an order of their own, so that where they were found says nothing."""
    genders = _genders(names)
    keys = sorted({(part.role, part.key) for name in names for part in name.parts if part.role != "kept"})
    taken = {key for _, key in keys} | set(said)
    # Initials all move by the same number of letters: each is another one, and no two are alike.
    shift = 1 + keyed_random(secret, salt, "initial").randrange(25)
    mapped: dict[Key, str] = {}
    for role, key in keys:
        if role == "initial":
            letter = ascii_lowercase[(ascii_lowercase.find(key[0]) + shift) % 26]
            mapped[role, key] = letter.upper() + key[1:]
            continue
        attempt, made = 0, ""
        while not made or made.lower() in taken:
            draw = keyed_random(secret, salt, role, key, str(attempt))
            joint = "-" if role.startswith(("latin", "pinyin")) else ""
            count = 1 if attempt < _ENOUGH_DRAWS else 2
            made = joint.join(_other_part(draw, role, key, genders.get(key, "neutral")) for _ in range(count))
            attempt += 1
        taken.add(made.lower())
        mapped[role, key] = made
    return mapped


def _genders(names: Iterable[NameParts]) -> dict[str, Gender]:
    """Of each given name (by its key) what it says itself, else what it is called by anywhere in the dialogue."""
    called: dict[str, set[Gender]] = {}
    for name in names:
        for part in name.with_role(*_GIVEN):
            latin = part.role == "latin_given"
            own = _latin_genders().get(part.key, "neutral") if latin else chinese_gender(part.key)
            called.setdefault(part.key, set()).add(name.gender if own == "neutral" else own)
    said = {key: found - {"neutral"} for key, found in called.items()}
    return {key: next(iter(found)) if len(found) == 1 else "neutral" for key, found in said.items()}


@cache
def _latin_genders() -> dict[str, Gender]:
    kinds: tuple[Gender, ...] = ("female", "male", "neutral")
    return {name.lower(): kind for kind in kinds for name in latin_names()[kind]}


def _other_part(draw: Random, role: Role, key: str, gender: Gender) -> str:
    """Another part of a name: of its kind, its gender and, of Chinese names, its length."""
    own = chinese_names()
    if role in ("latin_given", "latin_surname"):
        return draw.choice(latin_names()["surname" if role == "latin_surname" else gender])
    if role in ("given", "nick"):
        return "".join(draw.choice(own[gender]) for _ in key[:2])
    if role == "doubled":
        return draw.choice(own[gender]) * 2
    if role == "foreign":
        return draw.choice(places()[f"foreign{min(max(len(key), 2), 4)}"])
    return draw.choice(own["double_surname" if role == "surname" and key in DOUBLE_SURNAMES else role])


def match_case(written: str, other: str) -> str:
    """`other` in lower case, in capitals or as it is, as `written` was."""
    if written.islower():
        return other.lower()
    if written.isupper() and (len(written) > 1 or len(other) == 1):
        return other.upper()
    return other


# --- Addresses and organisations ---

_ENGLISH = re.compile(
    r"(?P<postcode>\b[a-z]{1,2}[0-9][a-z0-9]?\s?[0-9][a-z]{2}\b)|(?P<zip>(?<![0-9])[0-9]{5}(?:-[0-9]{4})?$)"
    r"|(?P<number>[0-9]+)(?:st|nd|rd|th)?\b|[0-9]+|(?<!['’])[^\W\d_]+(?:['’](?!s\b)[^\W\d_]+)*",
    re.IGNORECASE,
)
# Draws for a word, or for a whole value: a place that the dialogue names twice has one surrogate.
Draws = Callable[[str], Random]


def address(draws: Draws, value: str) -> str:
    """An address of the same make."""
    if not _HAN.search(value):
        return _english(draws, value, "kept")

    def other(found: re.Match[str]) -> str:
        if found["count"]:
            figures = found["figures"] or found["count"]
            return _renumbered(draws, figures) + found["count"][len(figures) :]
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
    return _chinese_name(draws(head), head, "") + value[len(head) :]


@cache
def _any_of(*sections: str) -> str:
    return "|".join(word for section in sections for word in places()[section])


@cache
def _chinese_parts() -> re.Pattern[str]:
    counted = rf"(?P<figures>[0-9a-zA-Z〇零一二三四五六七八九十百]+(?:[-—~之\s][0-9]+)*)\s?(?:{_any_of('tail_count')})"
    tails = _any_of("tail_area", "tail_road", "tail_estate")
    return re.compile(
        rf"(?P<count>{counted}|[0-9]+)|(?P<head>[\u4e00-\u9fff]{{1,8}}?)(?P<tail>(?:{tails})"
        rf"(?:{_any_of('tail_more')})?)|(?P<rest>[\u4e00-\u9fff]+)|(?P<latin>[a-zA-Z]+)"
    )


def _chinese_name(draw: Random, name: str, section: str) -> str:
    """Another name, as long: of a province or city such a one, else one of a section, else characters of names."""
    own = places()
    for kind in ("province", "city"):
        if name[:2] in own[kind]:  # 北京朝阳区: a city, then the rest
            first = draw.choice([word for word in own[kind] if word != name[:2]])
            return first + (_chinese_name(draw, name[2:], section) if name[2:] else "")
    fitting = [word for word in own.get(section, ()) if len(word) == len(name) and word != name]
    if fitting:
        return draw.choice(fitting)
    return "".join(draw.choice([c for c in chinese_names()["neutral"] if c != char]) for char in name)


def _renumbered(draws: Draws, written: str) -> str:
    """Other digits and letters, as many; none is 0, which no number begins with."""
    shape = value_shape(written)
    draw = draws(shape.compact)
    made = [draw.choice([c for c in ("123456789" if old.isdigit() else ascii_lowercase[:12]) if c != old])
            for old in shape.compact]  # fmt: skip
    return shape.reformatted("".join(made))


def _word(draws: Draws, written: str) -> str:
    """A building's letter, another; a state's abbreviation or name, another; any other word, a surname."""
    if len(written) == 1:
        return _renumbered(draws, written)
    own = next((places()[kind] for kind in ("state_code", "state") if written in places()[kind]), None)
    draw, other = draws(written), written
    while other.lower() == written.lower():
        other = draw.choice(own or latin_names()["surname"])
    return match_case(written, other)


def _english(draws: Draws, value: str, section: str) -> str:
    """Other numbers, and other words for all that do not say what kind of place it is (`section` of `words.toml`)."""
    kept = {*places()[section]}
    spoken = [found[0].lower() for found in _ENGLISH.finditer(value) if found[0][0].isalpha() and not found["postcode"]]
    if kept.issuperset(spoken):  # all of it says what kind it is ("the Community College", "12 Hill Road")
        kept -= {*(spoken[-2:-1] or spoken)}

    def other(found: re.Match[str]) -> str:
        written = found[0]
        if found["postcode"]:
            return match_case(written[0], "Q") + scramble(draws(re.sub(r"\s", "", written)), written[1:])
        if found["zip"]:
            return "000" + scramble(draws(written[:5]), written[3:])
        if written[0].isdigit():
            digits = found["number"] or written
            return _renumbered(draws, digits) + written[len(digits) :]
        return written if written.lower() in kept else _word(draws, written)

    return _ENGLISH.sub(other, value)


# --- Numbers, unusable on purpose, and draws by the workspace's key ---
# Telephone: the ranges kept for films in `structured/words/phones.toml`; elsewhere zeros in front. Ids and accounts
# begin with zeros, or with Q where they begin with letters, and fail every check digit; QQ numbers begin with 0 and
# WeChat ids with a digit, which neither may; plates hold I or O, which plates leave out.

# The zeros that a kind of number begins with; of cards the first two digits stay.
_ZEROS = {"NATIONAL_ID": 3, "ACCOUNT_NUMBER": 2, "CREDIT_CARD": 0, "QQ": 1, "WECHAT": 1}
NUMBERS = frozenset({"PHONE_NUMBER", "LICENSE_PLATE", *_ZEROS})
_CHECKS: tuple[Callable[[str], bool], ...] = (
    lambda value: value.isdigit() and luhn(value),
    lambda value: value.isdigit() and len(value) in (10, 11) and medicare(value),
    lambda value: iban.is_valid(value, check_country=False),
    nhs.is_valid,
    rtn.is_valid,
    tfn.is_valid,
)


def dialogue_secret(key: bytes, texts: Sequence[str]) -> bytes:
    """The secret of one dialogue: HMAC-SHA256 of its texts (digested one by one, so that none runs into the next)."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
    return hmac.new(key, b"surrogates\0" + digest.digest(), hashlib.sha256).digest()


def keyed_random(secret: bytes, *words: str) -> Random:
    """A generator for one value, seeded by HMAC-SHA256 of the secret and the words."""
    return Random(hmac.digest(secret, "\0".join(words).encode("utf-8", "surrogatepass"), "sha256"))


def scramble(draw: Random, text: str) -> str:
    """Other letters for letters (of any script Latin ones), other digits for digits; what is neither stays."""
    return "".join(_other_character(draw, char) if char.isalnum() else char for char in text)


def _other_character(draw: Random, char: str) -> str:
    other = draw.choice(digits if char.isdigit() else ascii_lowercase)
    return other.upper() if char.isupper() else other


def number(kind: str, draw: Random, compact: str, language: str, attempt: int = 0) -> str:
    """A number of a kind (one of `NUMBERS`, or a user's own) that nobody has, of as many characters.

    Args:
        kind: the type of personal data.
        draw: the generator of this value.
        compact: its letters and digits in lower case.
        language: the dialogue's.
        attempt: how many draws were taken already.
    """
    if kind == "PHONE_NUMBER" or (kind == "WECHAT" and compact.isdigit() and len(compact) == 11):
        return _phone(draw, compact, "zh" if kind == "WECHAT" else language, attempt)
    if kind == "LICENSE_PLATE":
        letters = [at for at, char in enumerate(compact) if char.isalpha()]
        made = scramble(draw, compact)
        return made[: letters[-1]] + draw.choice("io") + made[letters[-1] + 1 :] if letters else made
    letters_in_front = len(compact) - len(compact.lstrip(ascii_lowercase))
    front = "q" * letters_in_front
    if kind == "CREDIT_CARD" and len(compact) > 4:
        front = compact[:2]
    elif kind == "WECHAT":
        front = ""
    elif letters_in_front == 2 and len(compact) > 14:  # an IBAN, of which the country stays
        front = compact[:2]
    front = (front + "0" * _ZEROS.get(kind, 2))[: len(compact)]
    for _ in range(_ENOUGH_DRAWS):
        made = front + scramble(draw, compact[len(front) :])
        if not has_valid_check_digit(made):
            break
    return made


def has_valid_check_digit(value: str) -> bool:
    """Whether a value has a right check digit of any kind that fits its length."""
    return any(check(value.upper()) for check in _CHECKS)


@cache
def _fictional() -> list[tuple[str, re.Pattern[str], list[list[str]]]]:
    """Of each form of a telephone number its language, and what follows its kept part (its groups)."""
    return [(r["language"], re.compile(r["form"]), r["then"]) for r in read_table("phones")["fictional"]]


def _phone(draw: Random, compact: str, language: str, attempt: int) -> str:
    """A telephone number of the first fictional range that fits; where none does, zeros behind a country's code."""
    if not compact.isdigit():
        return scramble(draw, compact)
    code = 4 if compact.startswith("00") else 2
    made = "0" * min(2 if len(compact) > 6 else 1, len(compact))
    if attempt < _ENOUGH_DRAWS:
        made = (compact[:code] if len(compact) > 10 else "") + made
        ranges = [row for own in (language, "abroad") for row in _fictional() if row[0] == own]
        fitting = ((found, then) for _, form, then in ranges if (found := form.fullmatch(compact)))
        for found, then in islice(fitting, 1):
            made = "".join([*found.groups(""), *map(draw.choice, then)])
    return made + scramble(draw, compact[len(made) :])
