"""Surrogates of persons: part by part, so that 张伟, 小张 and 张老师 share a surname, and "Emily" stays her first name.

Every surname, given name and so on of a dialogue gets one other of its kind: of the same gender where the name or its
form of address says one, and of the same length. Case, titles, 小 and possessives stay as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from functools import cache

from h2htalk.curation.anonymize.normalization import plain
from h2htalk.curation.anonymize.surrogates.pools import latin_names, pools
from h2htalk.curation.anonymize.surrogates.seeded_random import LETTERS, SeededRandom
from h2htalk.curation.anonymize.values.name_parts import Gender, NameParts, Role, chinese_gender, name_parts
from h2htalk.text.chinese_characters import DOUBLE_SURNAMES

_ENOUGH_DRAWS = 60  # draws from a pool before two of it are joined
_ATTEMPTS = 20  # drawings of a whole dialogue before names that still clash become placeholders
_GIVEN: tuple[Role, ...] = ("given", "nick", "doubled", "latin_given")
Key = tuple[Role, str]  # a part's role, and what it is known by


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
    shift = 1 + SeededRandom(secret, salt, "initial").below(25)
    mapped: dict[Key, str] = {}
    for role, key in keys:
        if role == "initial":
            letter = LETTERS[(LETTERS.find(key[0]) + shift) % 26]
            mapped[role, key] = letter.upper() + key[1:]
            continue
        pool = _pool(role, key, genders.get(key, "neutral"))
        attempt, made = 0, ""
        while not made or made.lower() in taken:
            draw = SeededRandom(secret, salt, role, key, str(attempt))
            joint = "-" if role.startswith(("latin", "pinyin")) else ""
            made = joint.join(draw.choice(pool) for _ in range(1 if attempt < _ENOUGH_DRAWS else 2))
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


def _pool(role: Role, key: str, gender: Gender) -> tuple[str, ...]:
    """What a part is drawn from: of its kind, its gender and, of Chinese names, its length."""
    own = pools("people_zh")
    if role in ("latin_given", "latin_surname"):
        return latin_names()["surname" if role == "latin_surname" else gender]
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


def match_case(written: str, other: str) -> str:
    """`other` in lower case, in capitals or as it is, as `written` was."""
    if written.islower():
        return other.lower()
    if written.isupper() and (len(written) > 1 or len(other) == 1):
        return other.upper()
    return other
