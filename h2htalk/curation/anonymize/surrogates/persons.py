"""Surrogates of persons: part by part, so that 张伟, 小张 and 张老师 share a surname, and "Emily" stays her first name.

Every surname, given name and so on of a dialogue gets one other of its kind: of the same gender where the name or its
form of address says one, and of the same length. Case, titles, 小 and possessives stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache

from h2htalk.curation.anonymize.english.word_lists import words
from h2htalk.curation.anonymize.normalization import plain
from h2htalk.curation.anonymize.surrogates.pools import latin_names, pools
from h2htalk.curation.anonymize.surrogates.seeded_random import LETTERS, SeededRandom
from h2htalk.curation.anonymize.values.name_parts import (
    Gender,
    NamePart,
    NameParts,
    Role,
    chinese_gender,
    name_parts,
)
from h2htalk.text.chinese_surnames import DOUBLE_SURNAMES

_ENOUGH_DRAWS = 60  # draws from a pool before two of it are joined
_LAST = 80  # drawings of a whole dialogue before names that still clash become placeholders
_MAPPED: tuple[Role, ...] = (
    "surname", "given", "nick", "doubled", "foreign", "latin_given", "latin_surname", "pinyin_surname", "pinyin_given",
)  # fmt: skip
_GIVEN: tuple[Role, ...] = ("given", "nick", "doubled", "latin_given", "foreign")
Key = tuple[str, str]  # a part's role, and what it is known by


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
    for attempt in range(_LAST):
        mapped = _mapping(secret, parts.values(), said, "person" if attempt == 0 else f"person {attempt}")
        made = {name: "".join(_render_part(part, mapped) for part in found.parts) for name, found in parts.items()}
        # A name that nothing can stand in for part by part (no letters) is a placeholder.
        made = {
            name: other if other.lower() != name.lower() else f"[PERSON {n}]"
            for n, (name, other) in enumerate(sorted(made.items()), 1)
        }
        clashing = _clashing(made)
        if not clashing and (attempt >= _ENOUGH_DRAWS or not any(map(refused, made.values()))):
            return made
    return made | {name: f"[PERSON {n}]" for n, name in enumerate(sorted(clashing), len(made) + 1)}


def _clashing(made: Mapping[str, str]) -> set[str]:
    """Names that share a surrogate with another name, or whose surrogate is one of the names."""
    sharing: dict[str, set[str]] = {}
    for name, surrogate in made.items():  # O'Brien and O’BRIEN are one name
        sharing.setdefault(surrogate.lower(), set()).add(plain(name).lower().replace("’", "'"))
    real = {name.lower() for name in made}
    shared = {surrogate for surrogate, owners in sharing.items() if len(owners) > 1 or surrogate in real}
    return {name for name, surrogate in made.items() if surrogate.lower() in shared}


def _mapping(secret: bytes, names: Collection[NameParts], said: Collection[str], salt: str) -> dict[Key, str]:
    """What stands in for each part; the parts in an order of their own, so that where they were found says nothing."""
    genders = _genders(names)
    keys = {(part.role, part.key) for name in names for part in name.parts if part.role != "kept"}
    # An initial is one of 26: it only has to be another.
    taken = {word for word in {key for _, key in keys} | set(said) if len(word) > 1 or not word.isascii()}
    mapped: dict[Key, str] = {}
    for role in _MAPPED:
        for key in sorted(key for own, key in keys if own == role):
            attempt, made = 0, ""
            while not made or made.lower() in taken:
                draw = SeededRandom(secret, salt, role, key, str(attempt))
                made = _draw_part(draw, role, key, genders.get(key, "neutral"), attempt)
                attempt += 1
            taken.add(made.lower())
            mapped[role, key] = made
    # Each initial is the next one in a drawn round of all letters: another one, and no two alike.
    draw, left = SeededRandom(secret, salt, "initial"), list(LETTERS)
    order = "".join(left.pop(draw.below(len(left))) for _ in LETTERS)
    following = dict(zip(order, order[1:] + order[0], strict=True))
    initials = sorted(key for role, key in keys if role == "initial")
    return mapped | {("initial", key): following.get(key[0]) or draw.choice(LETTERS) for key in initials}


def _genders(names: Iterable[NameParts]) -> dict[str, Gender]:
    """Of each given name (by its key) what it says itself, else what it is called by anywhere in the dialogue."""
    called: dict[str, set[Gender]] = {}
    for name in names:
        for part in name.with_role(*_GIVEN):
            own = latin_gender(part.key) if part.role == "latin_given" else chinese_gender(part.key)
            known = own != "neutral" and part.role != "foreign"
            called.setdefault(part.key, set()).add(own if known else name.gender)
    said = {key: found - {"neutral"} for key, found in called.items()}
    return {key: next(iter(found)) if len(found) == 1 else "neutral" for key, found in said.items()}


@cache
def _latin_genders() -> dict[str, Gender]:
    kinds: tuple[Gender, ...] = ("female", "male", "neutral")
    return {name.lower(): kind for kind in kinds for name in latin_names()[kind]}


def latin_gender(name: str) -> Gender:
    """Whose name it mostly is: by Faker's lists, else by its ending; `name` is in lower case."""
    known = _latin_genders().get(name)
    if known is not None or len(name) < 4:
        return known or "neutral"
    return "female" if name.endswith(("ella", "elle", "ette", "ina", "issa", "lyn", "lynn", "ia")) else "neutral"


def _draw_part(draw: SeededRandom, role: Role, key: str, gender: Gender, attempt: int) -> str:
    """One of the same kind; after many draws that were taken, two of them joined."""
    pool = _pool(role, key, gender)
    if attempt < _ENOUGH_DRAWS:
        return draw.choice(pool)
    return draw.choice(pool) + ("-" if role.startswith(("latin", "pinyin")) else "") + draw.choice(pool)


def _pool(role: Role, key: str, gender: Gender) -> tuple[str, ...]:
    """What a part is drawn from: of its kind, its gender and, of Chinese names, its length."""
    own = pools("people_zh")
    if role in ("latin_given", "latin_surname"):
        return _latin_pool("surname" if role == "latin_surname" else gender)
    if role == "pinyin_given":
        return own["pinyin_given2" if len(key) > 5 else "pinyin_given1"]
    if role == "surname" and key in DOUBLE_SURNAMES:
        return own["surname2"]
    if role == "doubled":
        return tuple(letter * 2 for letter in own["doubled"])
    if role == "nick":
        return tuple(name for name in own["nick"] if gender in (chinese_gender(name), "neutral"))
    if role == "foreign":
        return own[f"foreign{min(max(len(key), 2), 4)}"]
    return own[f"given{min(len(key), 2)}_{gender}" if role == "given" else role]


@cache
def _latin_pool(kind: str) -> tuple[str, ...]:
    """Faker's names that are no English words."""
    return tuple(name for name in latin_names()[kind] if name.lower() not in words().words)


def _render_part(part: NamePart, mapped: Mapping[Key, str]) -> str:
    """A part's surrogate, in the case it was written in."""
    other = mapped.get((part.role, part.key))
    if other is None:
        return part.text
    if part.role == "initial" and part.text.endswith("."):
        other += "."
    return match_case(part.text, other)


def match_case(written: str, other: str) -> str:
    """`other` in lower case, in capitals or as it is, as `written` was."""
    if written.islower():
        return other.lower()
    if written.isupper() and (len(written) > 1 or len(other) == 1):
        return other.upper()
    return other
