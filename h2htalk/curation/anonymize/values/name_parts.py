"""The parts of a name: 张老师 is a surname and a title, "Dr Emily Carter's" a title, a given name and a surname.

By its parts a name is known again where it is said in another way, and its surrogate keeps its form of address.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from h2htalk.curation.anonymize.chinese.words import sections, words
from h2htalk.curation.anonymize.normalization import plain
from h2htalk.text.chinese_characters import DOUBLE_SURNAMES, SURNAMES, looks_foreign
from h2htalk.text.language_data import read_data

Role = Literal["surname", "given", "nick", "doubled", "foreign", "latin_given", "latin_surname", "pinyin_surname",
               "pinyin_given", "initial", "kept"]  # fmt: skip
Gender = Literal["female", "male", "neutral"]

_HAN = re.compile("[\u4e00-\u9fff]")
_WORD = re.compile(r"[^\W\d_]+(?:['’\-][^\W\d_]+)*\.?|[^\w\s]|\s+|[\w]", re.UNICODE)
# One or two syllables, roughly: the surname before them says the rest.
_PINYIN = re.compile("(?:(?:zh|ch|sh|[bpmfdtnlgkhjqxrzcsyw])?[aeiouv]{1,3}(?:ng|n|r)?){1,2}")
_PREFIXES = "小老阿大"
_FEMALE_TITLES = re.compile("姐|妹|姨|婶|姑|嫂|奶|婆|妈|娘|女士|小姐|太太|夫人|姥姥|师姐|学姐")
_MALE_TITLES = re.compile("哥|弟|叔|伯|爷|公|爸|先生|兄|学长|姥爷|大爷")


@cache
def name_words() -> dict[str, frozenset[str]]:
    """The sets of words.toml: of characters where no space parts them."""
    raw = read_data(Path(__file__).parent / "words.toml")
    return {key: frozenset(value if key.endswith("characters") else value.split()) for key, value in raw.items()}


@dataclass(frozen=True, slots=True)
class NamePart:
    """A piece of a name as it is written, and what it is; `kept` pieces stay as they are."""

    text: str
    role: Role

    @property
    def key(self) -> str:
        """What it is known by, in any format."""
        return plain(self.text).lower().replace("’", "'")


@dataclass(frozen=True, slots=True)
class NameParts:
    """A name in its parts; joined they are the name. `gender` is what its form of address says."""

    parts: tuple[NamePart, ...]
    gender: Gender = "neutral"

    def with_role(self, *roles: Role) -> list[NamePart]:
        """The parts that are one of these."""
        return [part for part in self.parts if part.role in roles]


def name_parts(names: Iterable[str]) -> dict[str, NameParts]:
    """The parts of all names of a dialogue, each read with the others in mind: 文静 is a given name beside 张文静.

    The order of the names makes no difference.
    """
    every = sorted(set(names))
    givens = frozenset(p.key for n in every for p in _chinese(n, frozenset()).with_role("given") if len(_han(n)) > 2)
    surnames = frozenset(
        p.key for n in every if not _HAN.search(n) for p in _latin(n, frozenset()).with_role("latin_surname")
    )
    return {n: _chinese(n, givens) if _HAN.search(n) else _latin(n, surnames) for n in every}


def _han(name: str) -> str:
    return "".join(_HAN.findall(name))


@cache
def _titles() -> tuple[str, ...]:
    """Forms of address that follow a name, the longest first."""
    return tuple(sorted(words("persons", "titles", "after_surname"), key=lambda title: (-len(title), title)))


def _chinese(name: str, givens: frozenset[str]) -> NameParts:
    """A name that holds Han characters."""
    title = next((t for t in _titles() if name.endswith(t) and len(t) < len(name)), "")
    core = name.removesuffix(title)
    gender: Gender = "neutral"
    if title:
        gender = "female" if _FEMALE_TITLES.search(title) else "male" if _MALE_TITLES.search(title) else "neutral"
    prefix = core[0] if len(core) in (2, 3) and core[0] in _PREFIXES and _is_form_of_address(core[1:]) else ""
    rest = core.removeprefix(prefix)
    parts = [NamePart(prefix, "kept")] if prefix else []
    parts += _core(rest, givens, addressed=bool(prefix))
    parts += [NamePart(title, "kept")] if title else []
    return NameParts(tuple(parts), gender)


def _is_form_of_address(rest: str) -> bool:
    """Whether 小 before it is a form of address: 小王, 小婷婷; 小林志 is no such."""
    return len(rest) == 1 or rest in DOUBLE_SURNAMES or (len(rest) == 2 and rest[0] == rest[1])


def _core(core: str, givens: frozenset[str], *, addressed: bool) -> list[NamePart]:
    """The name itself, without what stands around it."""
    if not all(_HAN.match(letter) for letter in core):
        return _mixed(core)
    if len(core) < 2 or core in DOUBLE_SURNAMES:
        surname = core in SURNAMES or core in _surnames() or core in DOUBLE_SURNAMES
        return [NamePart(core, "surname" if surname else "nick")] if core else []
    if len(core) == 2 and core[0] == core[1]:
        return [NamePart(core, "doubled")]
    if core in givens or addressed:
        return [NamePart(core, "given")]
    if looks_foreign(core) and (len(core) > 3 or core[0] not in SURNAMES):
        return [NamePart(core, "foreign")]
    surnames: tuple[str, ...] = ()
    if core[:2] in DOUBLE_SURNAMES and len(core) <= 4:
        surnames = (core[:2],)
    elif core[0] in _surnames() and len(core) <= 3 and core not in _given_alone():
        surnames = (core[0],)
    elif len(core) == 4 and core[0] in SURNAMES and core[1] in SURNAMES:  # 王李思琪: both parents'
        surnames = (core[0], core[1])
    elif len(core) > 3:
        return [NamePart(core, "foreign")]
    given = core[len("".join(surnames)) :]
    return [*(NamePart(surname, "surname") for surname in surnames), NamePart(given, "given")]


@cache
def _surnames() -> frozenset[str]:
    from h2htalk.curation.anonymize.chinese.name_segmenter import surnames

    return frozenset(SURNAMES) | {name for name in surnames() if len(name) == 1}


@cache
def _given_alone() -> frozenset[str]:
    """Two characters that begin like a surname and are said as a given name: 文静, 安琪."""
    return frozenset(w for w in words("persons", "nicknames", "given") if w[0] not in SURNAMES[:60])


def _mixed(core: str) -> list[NamePart]:
    """Han and other characters: 买买提·阿不都, Vivian姐, 阿May."""
    parts: list[NamePart] = []
    runs = re.findall("[\u4e00-\u9fff]+|[^\u4e00-\u9fff]+", core)
    dotted = any(run.strip() in "·•・‧.-" for run in runs if not _HAN.match(run))
    for run in runs:
        if _HAN.match(run):
            short = len(run) == 1 and not dotted
            role: Role = "kept" if short and run in _PREFIXES else "nick" if short else "foreign"
            parts.append(NamePart(run, role))
        else:
            parts += _latin(run, frozenset()).parts
    return parts


def _latin(name: str, surnames: frozenset[str]) -> NameParts:
    """A name in Latin (or other) letters."""
    lists = name_words()
    pieces = _WORD.findall(name)
    keys = [plain(piece).lower().rstrip(".") for piece in pieces]
    spoken = [at for at, piece in enumerate(pieces) if piece[0].isalpha()]
    gender: Gender = "neutral"
    titled = False
    while len(spoken) > 1 and keys[spoken[0]] in lists["male"] | lists["female"] | lists["neutral"]:
        title = keys[spoken.pop(0)]
        gender = "male" if title in lists["male"] else "female" if title in lists["female"] else "neutral"
        titled = titled or title in lists["before_surnames"]
    initials = [at for at in spoken if pieces[at][:1].isupper() and len(keys[at]) == 1]
    names = [at for at in spoken if keys[at] not in lists["particles"] or len(spoken) == 1 or at in initials]
    roles = dict(zip(names, _roles([keys[at] for at in names], titled, surnames), strict=True))
    parts = []
    for at, piece in enumerate(pieces):
        role = roles.get(at, "kept")
        ending = ""
        if role != "kept" and piece.endswith(("'s", "’s")) and len(piece) > 3:
            ending = piece[-2:]
        elif role not in ("kept", "initial") and piece.endswith("."):
            ending = "."
        parts.append(NamePart(piece.removesuffix(ending), role))
        parts += [NamePart(ending, "kept")] if ending else []
    return NameParts(tuple(parts), gender)


def _roles(keys: Sequence[str], titled: bool, surnames: frozenset[str]) -> list[Role]:
    """What each word of a name is."""
    chinese = len(keys) in (2, 3) and keys[0] in sections("foreign_names")["pinyin_surnames"]
    if chinese and all(_PINYIN.fullmatch(key.replace("-", "").replace("'", "")) for key in keys[1:]):
        given: Role = "pinyin_given"
        return ["pinyin_surname", *(given for _ in keys[1:])]
    if len(keys) == 1:
        return ["latin_surname" if titled or keys[0] in surnames else "latin_given"]
    last = len(keys) - 1
    return ["initial" if len(k) == 1 else "latin_surname" if at == last else "latin_given" for at, k in enumerate(keys)]


def chinese_gender(given: str) -> Gender:
    """What the characters of a given name say, the last before the others."""
    for letter in reversed(given):
        if letter in name_words()["female_characters"]:
            return "female"
        if letter in name_words()["male_characters"]:
            return "male"
    return "neutral"
