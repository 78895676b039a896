"""Other names that are like a name: of its sex, its origin and its form, as frequent, and given in the same years.

`names_en.txt` says of names in Latin letters what they are (`tools/make_surrogate_names.py`), `words.toml` of Chinese
given names, and Faker's order of surnames how frequent they are.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from importlib import import_module
from pathlib import Path
from random import Random
from string import ascii_lowercase, digits
from typing import Any

from h2htalk.detect.personal.english.persons import words
from h2htalk.detect.personal.values.dialogue_values import Gender, Role
from h2htalk.text.chinese_characters import DOUBLE_SURNAMES
from h2htalk.text.language_data import read_data, read_lines

_HERE = Path(__file__).parent
_ENOUGH = 8  # names to draw from; of fewer the group is widened
_SEXES: dict[str, Gender] = {"f": "female", "m": "male", "n": "neutral", "s": "neutral"}
_ENDING: tuple[Gender, Gender] = (
    "male",
    "female",
)  # of an unknown name that ends in a, e or i the second


def faker_lists(kind: str, locale: str) -> Any:
    """Faker's provider of `person` or `address` in a locale, whose lists are read as they are."""
    return import_module(f"faker.providers.{kind}.{locale}").Provider


@cache
def word_lists() -> dict[str, tuple[str, ...]]:
    """The lists of `words.toml`."""
    return {key: tuple(value.split()) for key, value in read_data(_HERE / "words.toml").items()}


@cache
def _latin_groups() -> dict[str, list[str]]:
    """The names of each group."""
    return {group: names for group, *names in map(str.split, read_lines(_HERE / "names_en.txt"))}


@cache
def _group_of(*, surname: bool) -> dict[str, str]:
    """The group of each name in lower case; of one that is both, of the kind that is asked for."""
    ordered = sorted(_latin_groups().items(), key=lambda one: (one[0][0] == "s") == surname)
    return {name.lower(): group for group, names in ordered for name in names}


def latin_group(key: str, *, surname: bool = False) -> str:
    """The group of a name in lower case, "" if no list has it; a surname may be all that somebody is called by."""
    return _group_of(surname=surname).get(key, "")


def latin_gender(key: str) -> Gender:
    """The sex of nine in ten bearers of a given name."""
    return _SEXES[(latin_group(key) or "n")[0]]


@cache
def _alike(group: str, length: int, initial: str) -> tuple[str, ...]:
    """Names of a group that are no words, of another initial and about as long; of a wider group if they are few. What
    the list writes small is known and never drawn."""
    wider = (f"n{group[1:3]}", f"{group[0]}en{group[3:5]}", f"{group[0]}en")
    for prefix in (group, group[:5], group[:4], group[:3], *wider):
        own = [
            name for of, names in _latin_groups().items() if of.startswith(prefix) for name in names
        ]
        fitting = [name for name in own if abs(len(name) - length) <= 2 and name[0].isupper()]
        found = [
            n for n in fitting if n[0].lower() != initial.lower() and n.lower() not in words().words
        ]
        if len(found) >= _ENOUGH:
            break
    return tuple(found)


_SYLLABLE = re.compile(
    "(?:(?:zh|ch|sh|[bpmfdtnlgkhjqxrzcsyw])?(?:[iu]?[aeo]{1,2}[iu]?|i|u|iu|ui|er)(?:ng|n)?)"
)
_PINYIN = re.compile(f"([^aeiou]{{0,2}}?)((?:{_SYLLABLE.pattern}){{1,6}})([^aeiou]{{0,2}})")


def other_latin(draw: Random, key: str, gender: Gender, *, surname: bool = False) -> str:
    """Another given name, or surname, for one in lower case; of hyphenated ones each part."""
    key = (
        "".join(char for char in unicodedata.normalize("NFKD", key) if char.isascii()) or key
    )  # Oisín is oisin
    if (
        len(key) < 4 and not set(key) & set("aeiou") and not latin_group(key)
    ):  # initials: ljy, not Ty
        return scramble(draw, key)
    made = {}
    parts = (
        key.split("-")
        if any(latin_group(part, surname=surname) for part in key.split("-"))
        else [key]
    )
    if gender == "neutral" and len(parts) > 1:  # Jean-Luc is a man, and both parts are his
        gender = next(
            (sex for part in reversed(parts) if (sex := latin_gender(part)) != "neutral"), gender
        )
    for part in parts:
        sex = gender if gender != "neutral" else _ENDING[part[-1] in "aei"]
        kind = "s" if surname else sex[0]
        group = latin_group(part, surname=surname) or f"{kind}en-3"
        if len(parts) > 1 or (
            gender != "neutral" and group[0] == "n"
        ):  # of Hyun-woo no list has but the surnames
            group = kind + group[1:]
        made[part] = draw.choice(_alike(group, min(max(len(part), 4), 8), part[:1]))
    return "-".join(made[part] for part in parts)


def given_list(given: str, gender: Gender) -> str:
    """The list of `words.toml` that a Chinese given name is most like, of the sex that is known."""
    own = word_lists()
    length = "1" if len(given) == 1 else ""
    if special := [key for key in ("given_nick", "given_pet", "given_er") if given in own[key]]:
        return special[0]
    sexes = "fm" if gender == "neutral" else gender[0]

    def likeness(group: str) -> float:
        both = " ".join((*own[f"given_{group}"], *own[f"given_{group}1"]))
        return sum(both.count(char) for char in given) / len(both) + (
            given in own[f"given_{group}{length}"]
        )

    # Of those that are alike the years 1985 to 1999.
    return f"given_{max((sex + age for age in 'cbda' for sex in sexes), key=likeness)}{length}"


def other_part(draw: Random, role: Role, key: str, gender: Gender) -> str:
    """Another part of a name: of its kind and its gender; a Chinese one as long and without its characters."""
    own = word_lists()
    if role in ("latin_given", "latin_surname"):
        return other_latin(draw, key, gender, surname=role == "latin_surname")
    if role == "initial":
        return (
            draw.choice("AABCDEEFGHJJKLLMMNPRRSTW".replace(key[0].upper(), "")) + key[1:]
        )  # no U, X, Z
    if (
        role == "foreign"
    ):  # of the list that shares two characters with it, else a western one as long
        pairs = [key[at : at + 2] for at in range(len(key) - 1)]
        as_long = f"foreign_west{min(max(len(key), 2), 4)}"
        lists = [own[kind] for kind in (as_long, *own) if kind.startswith("foreign")]
        like = max(lists, key=lambda one: sum(pair in " ".join(one) for pair in pairs))
        return draw.choice([name for name in like if name != key])
    if role == "surname" and key in DOUBLE_SURNAMES:
        return draw.choice(sorted(DOUBLE_SURNAMES - {key}))
    if role == "surname":
        frequent = [
            str(name) for name in faker_lists("person", "zh_CN").last_names if len(name) == 1
        ][:250]
        at = frequent.index(key) if key in frequent else len(frequent) // 2
        return draw.choice(frequent[at // 2 : 2 * at + 12])
    if role.startswith("pinyin"):
        romanized = faker_lists("person", "zh_CN")
        short = romanized.first_romanized_names if len(key) < 6 else own["pinyin_given2"]
        return str(
            draw.choice(
                sorted(romanized.last_romanized_names if role == "pinyin_surname" else short)
            )
        )
    if role == "doubled":
        kind = "pet" if key[0] in own["doubled_pet"] else given_list(key[0], gender)[6]
        return draw.choice([char for char in own[f"doubled_{kind}"] if char != key[0]]) * 2
    like = own[given_list(key[:2], gender)]
    return draw.choice(
        [name for name in like if not set(name) & set(key)]
        or [name for name in like if name != key]
    )


def same_case(written: str, other: str) -> str:
    """`other` in lower case, in capitals, or with a capital in front, as `written` was."""
    if written.islower():
        return other.lower()
    if written.isupper() and (len(written) > 1 or len(other) == 1):
        return other.upper()
    return other[:1].upper() + other[1:] if written[:1].isupper() else other


def nearest(draw: Random, names: tuple[str, ...], length: int) -> str:
    """One of the names whose length is nearest."""
    off = min(abs(len(name) - length) for name in names)
    return draw.choice([name for name in names if abs(len(name) - length) <= max(off, 1)])


_APOSTROPHE = re.compile("['’]")
_RUN = re.compile("(?P<digits>[0-9]+)|(?P<letters>[A-Z]?[a-z]+|[A-Z]+)|(?P<han>[\u4e00-\u9fff]+)")


def renamed(draw: Random, text: str, people: dict[str, str], language: str) -> str:
    """The name of an account of the same build: names for names, words for words, digits for digits. `people` are names
    of the dialogue, in lower case, with what stands for them. An account has no apostrophe: O'Connor is OConnor in it.
    """
    own = word_lists()
    people = {name: _APOSTROPHE.sub("", other) for name, other in people.items()}

    def other(found: re.Match[str]) -> str:
        run = found[0]
        key = found[0].lower()
        if found["digits"]:
            return renumbered(draw, run)
        if key in people or key in own["handle_kept"]:
            return people.get(key, run)
        if found["han"]:
            inside = next((name for name in people if len(name) > 1 and name in run), None)
            return (
                run.replace(inside, people[inside])
                if inside
                else nearest(draw, own["handle_zh"], len(run))
            )
        if language == "zh" and key not in words().words and (pinyin := _PINYIN.fullmatch(key)):
            made = {
                one: draw.choice(own["pinyin_syllables"])
                for one in sorted(set(_SYLLABLE.findall(pinyin[2])))
            }
            spoken = "".join(made[one] for one in _SYLLABLE.findall(pinyin[2]))
            return same_case(
                run, "".join((scramble(draw, pinyin[1]), spoken, scramble(draw, pinyin[3])))
            )
        fronts = (
            key[:end] for end in (len(key), *range(len(key) - 3, 3, -1)) if key not in words().words
        )
        kinds = {front: latin_group(front)[:1] for front in fronts}
        named = (
            one
            for one, kind in kinds.items()
            if one in people or kind in {"f", "m", "n"} or (kind and one == key)
        )
        if name := next(named, ""):
            first = same_case(
                run, people.get(name) or _APOSTROPHE.sub("", other_latin(draw, name, "neutral"))
            )
            return first + _RUN.sub(other, run[len(name) :])
        if len(key) < 3 and key not in words().words:
            return scramble(draw, run)
        short = len(key) < 8 or re.search("[-._]", text)
        sizes = [min(len(key), 6)] if short else [len(key) // 2, len(key) - len(key) // 2]
        return "".join(same_case(run, nearest(draw, own["handle_en"], size)) for size in sizes)

    return _RUN.sub(other, text)


def scramble(draw: Random, text: str) -> str:
    """Other letters for letters (of any script Latin ones), other digits for digits; what is neither stays."""
    others = (
        draw.choice(digits if char.isdigit() else ascii_lowercase) if char.isalnum() else char
        for char in text
    )
    return "".join(
        other.upper() if char.isupper() else other for char, other in zip(text, others, strict=True)
    )


_ALIKE = ("0", "1234", "56789")


def renumbered(draw: Random, digits: str) -> str:
    """Other digits, as many: a year stays in its decade, zeros stay, and small digits stay small."""
    if re.fullmatch("(?:19[3-9]|20[0-3])[0-9](?:(?:0[1-9]|1[0-2])[0-3][0-9])?", digits):
        day = f"{1 + draw.randrange(12):02}{1 + draw.randrange(28):02}" if len(digits) > 4 else ""
        return (
            digits[:3] + draw.choice([digit for digit in "0123456789" if digit != digits[3]]) + day
        )
    return "".join(
        draw.choice(few.replace(old, "") or few) for old in digits for few in _ALIKE if old in few
    )
