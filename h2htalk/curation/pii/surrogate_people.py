"""Surrogates of persons: part by part, so that 张伟, 小张 and 张老师 share a surname, and "Emily" stays her first name.

Every surname, given name and so on of a dialogue gets one other of its kind: of the same gender where the name or its
form of address says one, and of the same length. Case, titles, 小 and possessives stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache

from h2htalk.curation.pii.name_parts import Gender, Part, Parts, Role, chinese_gender, name_parts
from h2htalk.curation.pii.normalize import plain
from h2htalk.curation.pii.pools import pools
from h2htalk.curation.pii.surrogate_draws import LETTERS, Draw, distinct
from h2htalk.text.chinese_surnames import DOUBLE_SURNAMES

_ENOUGH = 60  # draws from a pool of one class before any of the kind will do
_LAST = 80  # drawings of a whole dialogue before names that still clash become placeholders
_SHORT, _MIDDLE = 4, 7  # letters: length classes of Latin names end here
_MAPPED: tuple[Role, ...] = (
    "surname", "given", "nick", "doubled", "foreign", "latin_given", "latin_surname", "pinyin_surname", "pinyin_given",
    "initial",
)  # fmt: skip


def person_surrogates(
    secret: bytes,
    names: Collection[str],
    said: Collection[str],
    refused: Callable[[str], bool] = lambda made: False,
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
    attempt = 0
    while True:
        mapped = _mapping(secret, parts, said, attempt)
        made = {name: "".join(_said(part, mapped) for part in found.parts) for name, found in parts.items()}
        # A name that nothing can stand in for part by part (no letters) is a placeholder.
        made = {
            name: other if other.lower() != name.lower() else f"[PERSON {n}]"
            for n, (name, other) in enumerate(sorted(made.items()), 1)
        }
        clashing = _clashing(made)
        if not clashing and (attempt >= _ENOUGH or not any(map(refused, made.values()))):
            return made
        attempt += 1
        if attempt >= _LAST:
            return made | {name: f"[PERSON {n}]" for n, name in enumerate(sorted(clashing), len(made) + 1)}


def _clashing(made: Mapping[str, str]) -> set[str]:
    """Names that share a surrogate with another name, or whose surrogate is one of the names."""
    sharing: dict[str, set[str]] = {}
    for name, surrogate in made.items():
        sharing.setdefault(surrogate.lower(), set()).add(_same(name))
    real = {name.lower() for name in made}
    shared = {surrogate for surrogate, owners in sharing.items() if len(owners) > 1 or surrogate in real}
    return {name for name, surrogate in made.items() if surrogate.lower() in shared}


def _same(name: str) -> str:
    """What spellings of one name have in common that get one surrogate: O'Brien, O’BRIEN."""
    return plain(name).lower().replace("’", "'")


def _mapping(
    secret: bytes, parts: Mapping[str, Parts], said: Collection[str], attempt: int
) -> dict[tuple[str, ...], str]:
    """(role, key) -> what stands in for it."""
    genders = _genders(parts.values())
    keys: dict[Role, set[tuple[str, ...]]] = {role: set() for role in _MAPPED}
    for found in parts.values():
        for part in found.parts:
            if part.role in keys:
                keys[part.role].add((part.role, part.key))
    real = {key for every in keys.values() for _, key in every}
    # An initial is one of 26: it only has to be another.
    taken = {word for word in (real | set(said)) if len(word) > 1 or not word.isascii()}
    mapped: dict[tuple[str, ...], str] = {}
    salt = "person" if attempt == 0 else f"person {attempt}"

    def make(draw: Draw, key: tuple[str, ...], attempt: int) -> str:
        return _other(draw, key[1], key[2], genders.get(key[2], "neutral"), attempt)

    for role in _MAPPED:
        if role == "initial":
            mapped |= _initials(Draw(secret, salt, role), sorted(keys[role]))
            continue
        found_ = distinct(secret, {(salt, *key) for key in keys[role]}, make, taken)
        mapped |= {key[1:]: made for key, made in found_.items()}
    return mapped


def _initials(draw: Draw, keys: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], str]:
    """Each letter is the next one in a drawn round of all 26: another one, and no two alike."""
    left, order = list(LETTERS), []
    while left:
        order.append(left.pop(draw.below(len(left))))
    following = dict(zip(order, [*order[1:], order[0]], strict=True))
    return {key: following.get(key[1][0]) or draw.one(LETTERS) for key in keys}


def _genders(names: Iterable[Parts]) -> dict[str, Gender]:
    """Of each given name (by its key) what it says itself, else what it is called by anywhere in the dialogue."""
    called: dict[str, set[Gender]] = {}
    for name in names:
        for part in name.of("given", "nick", "doubled", "latin_given", "foreign"):
            own = _own_gender(part)
            called.setdefault(part.key, set()).update({own} if own != "neutral" else {name.gender})
    return {
        key: "neutral" if len(found - {"neutral"}) != 1 else next(iter(found - {"neutral"}))
        for key, found in called.items()
    }


def _own_gender(part: Part) -> Gender:
    if part.role == "latin_given":
        return latin_gender(part.key)
    return chinese_gender(part.key) if part.role in ("given", "nick", "doubled") else "neutral"


@cache
def _latin_genders() -> dict[str, Gender]:
    listed = dict.fromkeys(pools("gender_en")["female"], "female")
    listed |= dict.fromkeys(pools("gender_en")["male"], "male")
    own = pools("people_en")
    listed |= {name.lower(): "female" for name in own["female"]} | {
        name.lower(): "male" for name in own["male"]
    }
    return listed  # type: ignore[return-value]


def latin_gender(name: str) -> Gender:
    """Whose name it mostly is: by lists, else by its ending; `name` is in lower case."""
    known = _latin_genders().get(name)
    if known is not None or len(name) < 4:
        return known or "neutral"
    return (
        "female" if name.endswith(("ella", "elle", "ette", "ina", "issa", "lyn", "lynn", "ia")) else "neutral"
    )


def _other(draw: Draw, role: str, key: str, gender: Gender, attempt: int) -> str:
    """One of the same kind; after many draws that were taken, any of the kind, then two of them joined."""
    joined = attempt >= 2 * _ENOUGH
    wide = attempt >= _ENOUGH
    if role in ("latin_given", "latin_surname", "pinyin_surname", "pinyin_given"):
        pool = _latin_pool(role, len(key), gender, wide)
        return draw.one(pool) + (f"-{draw.one(pool)}" if joined else "")
    if role == "surname":
        pool = pools("people_zh")["surname2" if key in DOUBLE_SURNAMES and not wide else "surname"]
        return draw.one(pool) + (draw.one(pools("people_zh")["surname"]) if joined else "")
    if role == "doubled":
        letter = draw.one(pools("people_zh")["doubled"])
        return letter * 2 if not joined else letter + draw.one(pools("people_zh")["doubled"])
    if role == "nick":
        nick = draw.one(
            [n for n in pools("people_zh")["nick"] if gender in (chinese_gender(n), "neutral") or wide]
        )
        return nick + (draw.one(pools("people_zh")["nick"]) if joined else "")
    if role == "foreign":
        return _foreign(draw, len(key), joined)
    return _given(draw, len(key), gender, wide, joined)


def _given(draw: Draw, length: int, gender: Gender, wide: bool, joined: bool) -> str:
    own = pools("people_zh")
    ones = own[f"given1_{gender}"]
    if length == 1 and not joined:
        return draw.one(
            ones if not wide else [n for g in ("neutral", "female", "male") for n in own[f"given1_{g}"]]
        )
    if length <= 2 and not wide:
        return draw.one(own[f"given2_{gender}"])
    return draw.one(ones) + "".join(draw.one(ones) for _ in range(max(length, 2) - 1))


def _foreign(draw: Draw, length: int, joined: bool) -> str:
    own = pools("people_zh")
    pool = own[f"foreign{min(max(length, 2), 4)}"]
    made = draw.one(pool) + (draw.one(own["foreign_last"]) if joined else "")
    return (
        made
        if length <= 4
        else made + "".join(draw.one(own["foreign2"]) for _ in range((length - 4 + 1) // 2))
    )


@cache
def _latin_pool(role: str, length: int, gender: Gender, wide: bool) -> tuple[str, ...]:
    own = pools("people_en")
    if role == "pinyin_surname":
        return own["pinyin_surname"]
    if role == "pinyin_given":
        return own["pinyin_given2" if length > 5 else "pinyin_given1"] if not wide else (
            *own["pinyin_given1"], *own["pinyin_given2"])  # fmt: skip
    if role == "latin_surname":
        names = own["surname"]
    else:
        names = own[gender] if gender != "neutral" else own["neutral"]
    fitting = tuple(name for name in names if _length_class(len(name)) == _length_class(length))
    return names if wide or len(fitting) < 8 else fitting


def _length_class(length: int) -> int:
    return 0 if length <= _SHORT else 1 if length <= _MIDDLE else 2


def _said(part: Part, mapped: Mapping[tuple[str, ...], str]) -> str:
    """A part's surrogate, in the case it was written in."""
    other = mapped.get((part.role, part.key))
    if other is None:
        return part.text
    if part.role == "initial" and part.text.endswith("."):
        other += "."
    return in_case_of(part.text, other)


def in_case_of(written: str, other: str) -> str:
    """`other` in lower case, in capitals or as it is, as `written` was."""
    if written.islower():
        return other.lower()
    if written.isupper() and (len(written) > 1 or len(other) == 1):
        return other.upper()
    return other
