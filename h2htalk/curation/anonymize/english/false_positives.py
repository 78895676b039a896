"""What looks like a person's name in English chat and is none: works and their figures, brands, dishes, sayings,
things, plants and animals with names, and the companion where somebody names it.

The lists (`english_words/works.txt`, `grammar.toml`) say what may be meant; what stands around a name decides. A name
that is told ("my name is", "my friend"), or of whom is said what one says of people ("told me"), is a person's.
"""

from __future__ import annotations

from functools import cache

from h2htalk.curation.anonymize.english.token_features import CAPITAL, LOWER, Tokens
from h2htalk.curation.anonymize.english.word_lists import RARE, hint, words, works_section

_REACH = 25  # words to either side in which a work is spoken of
_NAMING = frozenset(
    {"call", "name", "rename", "named", "renamed", "calling", "naming", "christen", "christened"}
)
_ARTICLES = frozenset({"inner", "a", "an", "such", "every", "another", "total", "proper", "triple", "double"})
_POINTERS = frozenset({"my", "our", "the", "this", "that", "his", "her", "a", "an"})
_IS_CALLED = frozenset({"is", "was", "s", "named", "called", "name", "names"})
_GOES_ON = frozenset({"is", "was", "has", "had", "died", "needs", "keeps", "finally", "just", "still", ""})
_GIVEN = frozenset(
    [
        "gave",
        "give",
        "gives",
        "giving",
        "lent",
        "lend",
        "showed",
        "show",
        "bought",
        "sent",
        "sold",
        "handed",
        "owe",
        "owes",
        "taught",
        "offered",
    ]
)
_TOLD = _GIVEN | frozenset(
    {"with", "told", "tell", "asked", "texted", "called", "dating", "met", "miss", "dear", "cousin"}
)


def block_look_alikes(found: Tokens) -> None:
    """Block the words of a text that are nobody's name. Linear in the number of words."""
    named = _named_things(found)
    media = _near(found, hint("media"))
    garden = _near(found, hint("garden"))
    animals = _near(found, _animals())
    for place, word in enumerate(found.words):
        if found.blocked[place]:
            continue
        if word in named:
            found.blocked[place] = found.word(place - 1) in _IS_CALLED or not is_told(found, place)
        elif word in found.famous and found.kinds[place] >= RARE and not _full(found, place):
            found.blocked[place] = not is_told(found, place)  # "Barbie and Ken, poor Ken"
        elif not found.kinds[place] and found.shapes[place] != CAPITAL:
            continue
        elif (
            _eponym(found, place)
            or _shop(found, place)
            or _a_type(found, place)
            or (garden[place] and word in hint("plant_names") and found.shapes[place] == LOWER)
            or _of_an_animal(found, place, animals[place])
            or ((media[place] or _played(found, place)) and word in _alone() and not _full(found, place))
        ):
            found.blocked[place] = not is_told(found, place)


def is_told(found: Tokens, place: int, length: int = 1) -> bool:
    """Whether the words around say that a private person is meant: "my friend", "told me", "I'm", "with"."""
    before, second = found.word(place - 1), found.word(place - 2)
    if before in words().hints["kin"] or before in _TOLD or before in hint("plain_titles"):
        return True
    if before in ("is", "s", "names") and second in ("name", "names", "this"):
        return True
    if before in ("im", "am") or (before == "i" and second == "and"):
        return True
    after = place + length
    if found.possessive[place] and found.word(after) in (
        "book",
        "books",
        "playlist",
        "game",
        "games",
        "xbox",
        "kindle",
        "gig",
    ):
        return True
    verb = found.word(after) if after < len(found) and found.same_clause(after) else ""
    if verb in hint("deeds") | {"broke", "left", "cooks", "moved"}:
        return True
    return verb in hint("told_verbs") or (verb == "and" and found.word(after + 1) in ("i", "me"))


@cache
def _alone() -> frozenset[str]:
    """Names that are a work's or a figure's where works are spoken of."""
    return frozenset(" ".join(works_section("alone")).split())


@cache
def _animals() -> frozenset[str]:
    """Words for animals, one or many."""
    kinds = words().hints["pets"]
    return kinds | {f"{kind}s" for kind in kinds}


def _of_an_animal(found: Tokens, place: int, spoken: bool) -> bool:
    """ "Milo chewed my shoes", "walked Stella twice", where animals are spoken of."""
    if found.kinds[place] < RARE or not spoken:
        return False
    after = place + 1
    acts = after < len(found) and found.same_clause(after) and found.words[after] in hint("animal_verbs")
    return acts or found.word(place - 1) in (
        "walked",
        "walking",
        "feeding",
        "fed",
        "petting",
        "neutered",
        "spayed",
    )


def _played(found: Tokens, place: int) -> bool:
    """ "Iris came on", "put on Roxanne", "Layla on repeat"."""
    after = (found.word(place + 1), found.word(place + 2))
    before = (found.word(place - 2), found.word(place - 1))
    if after in (
        ("came", "on"),
        ("comes", "on"),
        ("on", "repeat"),
        ("on", "loop"),
        ("on", "shuffle"),
        ("on", "guitar"),
    ):
        return True
    return before in (
        ("put", "on"),
        ("putting", "on"),
        ("blasting", "some"),
        ("hum", "some"),
        ("stop", "humming"),
    )


def _near(found: Tokens, spoken: frozenset[str]) -> list[bool]:
    """Of each word, whether one of `spoken` stands within reach."""
    near = [False] * len(found)
    reached = 0
    for place, word in enumerate(found.words):
        if word in spoken:
            first = max(reached, place - _REACH)
            reached = min(len(found), place + _REACH + 1)
            near[first:reached] = [True] * (reached - first)
    return near


def _full(found: Tokens, place: int) -> bool:
    """Whether a surname follows: then it is somebody else."""
    after = place + 1
    return (
        after < len(found)
        and found.spaced[after]
        and found.shapes[after] == CAPITAL
        and found.words[after] in words().surnames
    )


def _eponym(found: Tokens, place: int) -> bool:
    """Murphy's law, Wilson's disease."""
    return found.possessive[place] and found.word(place + 1) in hint("eponyms")


def _shop(found: Tokens, place: int) -> bool:
    """Wendy's at midnight, from Tiffany's; not Wendy's mother."""
    if not found.possessive[place] or found.words[place] not in hint("shops"):
        return False
    after = found.word(place + 1)
    ends = place + 1 >= len(found) or not found.same_clause(place + 1)
    return ends or after in hint("after_shops") or found.word(place - 1) in ("at", "from", "some", "a")


def _a_type(found: Tokens, place: int) -> bool:
    """ "such a karen": a name with an article, in small letters, is a kind of person."""
    if found.shapes[place] != LOWER or found.opens[place] or found.kinds[place] < RARE:
        return False
    after = found.word(place + 1) if place + 1 < len(found) and found.same_clause(place + 1) else ""
    return found.word(place - 1) in _ARTICLES and after not in ("from", "who", "in", "i", "at")


def _named_things(found: Tokens) -> set[str]:
    """Names that a text gives to things, plants and animals ("Steve the basil") and to the companion."""
    things = words().hints["pets"] | hint("things")
    named: set[str] = set()
    for place, word in enumerate(found.words):
        if word in things:
            named.update(_beside_a_thing(found, place))
        elif _may_name(found, place + 1) and _names_the_companion(found, place):
            named.add(found.words[place + 1])
    return named - hint("stop")


def _names_the_companion(found: Tokens, place: int) -> bool:
    """ "I'll call you ...", "your name is ..."."""
    before, second = found.word(place - 1), found.word(place - 2)
    if found.words[place] == "you":
        return before in _NAMING
    return found.words[place] in ("is", "was", "be", "to") and (second, before) == ("your", "name")


def _may_name(found: Tokens, place: int) -> bool:
    return place < len(found) and (found.shapes[place] == CAPITAL or found.kinds[place] > 0)


def _beside_a_thing(found: Tokens, place: int) -> set[str]:
    """The name of the thing or animal whose word stands at a place."""
    owner = next((b for b in range(place - 1, max(-1, place - 4), -1) if found.word(b) in _POINTERS), -1)
    named = {_name_behind(found, place, owner), _name_before(found, place, owner)}
    # "Henry needs to lose a kilo, he's a beagle"
    if (
        owner > 1
        and found.word(owner) in ("a", "an")
        and found.word(owner - 1) in ("he", "she", "hes", "shes", "is")
    ):
        for back in range(owner - 2, max(-1, owner - 14), -1):
            if found.kinds[back] >= RARE and not found.blocked[back]:
                named.add(found.words[back])
                break
    return named - {""}


def _name_behind(found: Tokens, place: int, owner: int) -> str:
    """The name after a thing's word: "the roomba is named Dave", "my fern Doris is dying", "I call my car Betty"."""
    after = place + 1
    while after < min(len(found), place + 5) and found.word(after) in _IS_CALLED:
        after += 1
    if after >= len(found) or found.opens[after] or found.kinds[after] < RARE:
        return ""
    if found.gap(after).strip() not in ("", ":", '"', "(", ","):
        return ""
    told = {found.word(at) for at in range(place + 1, after)} & {"named", "called", "name"}
    called = owner > 0 and found.word(owner - 1) in _NAMING
    lives = owner >= 0 and found.word(owner) in ("my", "our") and found.word(after + 1) in _GOES_ON
    return found.words[after] if told or called or (lives and after == place + 1) else ""


def _name_before(found: Tokens, place: int, owner: int) -> str:
    """The name before a thing's word: "Steve the basil", "Susan, my sewing machine, jammed", "Gerald (the hamster)"."""
    if owner < 1 or found.word(owner) not in ("my", "our", "the") or not found.kinds[owner - 1]:
        return ""
    gap = found.gap(owner).strip()
    closed = place + 1 >= len(found) or found.after(place).lstrip()[:1] in (",", ")", "-")
    beside = found.word(owner) == "the" and gap == "" and not found.opens[owner]
    apart = gap in (",", "(", "-") and closed
    return found.words[owner - 1] if beside or apart else ""
