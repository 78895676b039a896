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
_NAMING = frozenset({"call", "name", "rename", "named", "renamed", "calling", "naming", "christen", "christened"})
_ARTICLES = frozenset({"inner", "a", "an", "such", "every", "another", "total", "proper", "triple", "double"})
_POINTERS = frozenset({"my", "our", "the", "this", "that", "his", "her", "a", "an"})
_IS_CALLED = frozenset({"is", "was", "s", "named", "called", "name", "names"})
_CONTINUES = frozenset({"is", "was", "has", "had", "died", "needs", "keeps", "finally", "just", "still", ""})
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
_ANNOUNCED = _GIVEN | frozenset(
    {"with", "told", "tell", "asked", "texted", "called", "dating", "met", "miss", "dear", "cousin"}
)


def block_false_positives(tokens: Tokens) -> None:
    """Block the words of a text that are nobody's name. Linear in the number of words."""
    named = _named_things(tokens)
    media = _near(tokens, hint("media"))
    garden = _near(tokens, hint("garden"))
    animals = _near(tokens, _animals())
    for index, word in enumerate(tokens.words):
        if tokens.blocked[index]:
            continue
        if word in named:
            tokens.blocked[index] = tokens.word(index - 1) in _IS_CALLED or not is_private_person(tokens, index)
        elif word in tokens.famous and tokens.kinds[index] >= RARE and not _surname_follows(tokens, index):
            tokens.blocked[index] = not is_private_person(tokens, index)  # "Barbie and Ken, poor Ken"
        elif not tokens.kinds[index] and tokens.shapes[index] != CAPITAL:
            continue
        elif (
            _eponym(tokens, index)
            or _shop(tokens, index)
            or _is_type_word(tokens, index)
            or (garden[index] and word in hint("plant_names") and tokens.shapes[index] == LOWER)
            or _is_animal_name(tokens, index, animals[index])
            or (
                (media[index] or _is_played(tokens, index)) and word in _alone() and not _surname_follows(tokens, index)
            )
        ):
            tokens.blocked[index] = not is_private_person(tokens, index)


def is_private_person(tokens: Tokens, index: int, length: int = 1) -> bool:
    """Whether the words around say that a private person is meant: "my friend", "told me", "I'm", "with"."""
    before, second = tokens.word(index - 1), tokens.word(index - 2)
    if before in words().hints["kin"] or before in _ANNOUNCED or before in hint("plain_titles"):
        return True
    if before in ("is", "s", "names") and second in ("name", "names", "this"):
        return True
    if before in ("im", "am") or (before == "i" and second == "and"):
        return True
    after = index + length
    if tokens.possessive[index] and tokens.word(after) in (
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
    verb = tokens.word(after) if after < len(tokens) and tokens.same_clause(after) else ""
    if verb in hint("deeds") | {"broke", "left", "cooks", "moved"}:
        return True
    return verb in hint("told_verbs") or (verb == "and" and tokens.word(after + 1) in ("i", "me"))


@cache
def _alone() -> frozenset[str]:
    """Names that are a work's or a figure's where works are spoken of."""
    return frozenset(" ".join(works_section("alone")).split())


@cache
def _animals() -> frozenset[str]:
    """Words for animals, one or many."""
    kinds = words().hints["pets"]
    return kinds | {f"{kind}s" for kind in kinds}


def _is_animal_name(tokens: Tokens, index: int, spoken: bool) -> bool:
    """ "Milo chewed my shoes", "walked Stella twice", where animals are spoken of."""
    if tokens.kinds[index] < RARE or not spoken:
        return False
    after = index + 1
    acts = after < len(tokens) and tokens.same_clause(after) and tokens.words[after] in hint("animal_verbs")
    return acts or tokens.word(index - 1) in (
        "walked",
        "walking",
        "feeding",
        "fed",
        "petting",
        "neutered",
        "spayed",
    )


def _is_played(tokens: Tokens, index: int) -> bool:
    """ "Iris came on", "put on Roxanne", "Layla on repeat"."""
    after = (tokens.word(index + 1), tokens.word(index + 2))
    before = (tokens.word(index - 2), tokens.word(index - 1))
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


def _near(tokens: Tokens, spoken: frozenset[str]) -> list[bool]:
    """Of each word, whether one of `spoken` stands within reach."""
    near = [False] * len(tokens)
    reached = 0
    for index, word in enumerate(tokens.words):
        if word in spoken:
            first = max(reached, index - _REACH)
            reached = min(len(tokens), index + _REACH + 1)
            near[first:reached] = [True] * (reached - first)
    return near


def _surname_follows(tokens: Tokens, index: int) -> bool:
    """Whether a surname follows: then it is somebody else."""
    after = index + 1
    return (
        after < len(tokens)
        and tokens.spaced[after]
        and tokens.shapes[after] == CAPITAL
        and tokens.words[after] in words().surnames
    )


def _eponym(tokens: Tokens, index: int) -> bool:
    """Murphy's law, Wilson's disease."""
    return tokens.possessive[index] and tokens.word(index + 1) in hint("eponyms")


def _shop(tokens: Tokens, index: int) -> bool:
    """Wendy's at midnight, from Tiffany's; not Wendy's mother."""
    if not tokens.possessive[index] or tokens.words[index] not in hint("shops"):
        return False
    after = tokens.word(index + 1)
    ends = index + 1 >= len(tokens) or not tokens.same_clause(index + 1)
    return ends or after in hint("after_shops") or tokens.word(index - 1) in ("at", "from", "some", "a")


def _is_type_word(tokens: Tokens, index: int) -> bool:
    """ "such a karen": a name with an article, in small letters, is a kind of person."""
    if tokens.shapes[index] != LOWER or tokens.opens[index] or tokens.kinds[index] < RARE:
        return False
    after = tokens.word(index + 1) if index + 1 < len(tokens) and tokens.same_clause(index + 1) else ""
    return tokens.word(index - 1) in _ARTICLES and after not in ("from", "who", "in", "i", "at")


def _named_things(tokens: Tokens) -> set[str]:
    """Names that a text gives to things, plants and animals ("Steve the basil") and to the companion."""
    things = words().hints["pets"] | hint("things")
    named: set[str] = set()
    for index, word in enumerate(tokens.words):
        if word in things:
            named.update(_beside_a_thing(tokens, index))
        elif _may_name(tokens, index + 1) and _names_the_companion(tokens, index):
            named.add(tokens.words[index + 1])
    return named - hint("stop")


def _names_the_companion(tokens: Tokens, index: int) -> bool:
    """ "I'll call you ...", "your name is ..."."""
    before, second = tokens.word(index - 1), tokens.word(index - 2)
    if tokens.words[index] == "you":
        return before in _NAMING
    return tokens.words[index] in ("is", "was", "be", "to") and (second, before) == ("your", "name")


def _may_name(tokens: Tokens, index: int) -> bool:
    return index < len(tokens) and (tokens.shapes[index] == CAPITAL or tokens.kinds[index] > 0)


def _beside_a_thing(tokens: Tokens, index: int) -> set[str]:
    """The name of the thing or animal whose word stands at a place."""
    owner = next((b for b in range(index - 1, max(-1, index - 4), -1) if tokens.word(b) in _POINTERS), -1)
    named = {_name_behind(tokens, index, owner), _name_before(tokens, index, owner)}
    # "Henry needs to lose a kilo, he's a beagle"
    if owner > 1 and tokens.word(owner) in ("a", "an") and tokens.word(owner - 1) in ("he", "she", "hes", "shes", "is"):
        for back in range(owner - 2, max(-1, owner - 14), -1):
            if tokens.kinds[back] >= RARE and not tokens.blocked[back]:
                named.add(tokens.words[back])
                break
    return named - {""}


def _name_behind(tokens: Tokens, index: int, owner: int) -> str:
    """The name after a thing's word: "the roomba is named Dave", "my fern Doris is dying", "I call my car Betty"."""
    after = index + 1
    while after < min(len(tokens), index + 5) and tokens.word(after) in _IS_CALLED:
        after += 1
    if after >= len(tokens) or tokens.opens[after] or tokens.kinds[after] < RARE:
        return ""
    if tokens.gap(after).strip() not in ("", ":", '"', "(", ","):
        return ""
    told = {tokens.word(at) for at in range(index + 1, after)} & {"named", "called", "name"}
    called = owner > 0 and tokens.word(owner - 1) in _NAMING
    lives = owner >= 0 and tokens.word(owner) in ("my", "our") and tokens.word(after + 1) in _CONTINUES
    return tokens.words[after] if told or called or (lives and after == index + 1) else ""


def _name_before(tokens: Tokens, index: int, owner: int) -> str:
    """The name before a thing's word: "Steve the basil", "Susan, my sewing machine, jammed", "Gerald (the hamster)"."""
    if owner < 1 or tokens.word(owner) not in ("my", "our", "the") or not tokens.kinds[owner - 1]:
        return ""
    gap = tokens.gap(owner).strip()
    closed = index + 1 >= len(tokens) or tokens.after(index).lstrip()[:1] in (",", ")", "-")
    beside = tokens.word(owner) == "the" and gap == "" and not tokens.opens[owner]
    apart = gap in (",", "(", "-") and closed
    return tokens.words[owner - 1] if beside or apart else ""
