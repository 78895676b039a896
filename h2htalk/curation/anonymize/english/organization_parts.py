"""What organisations' names are made of: their words, and how far a name reaches to either side."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from h2htalk.curation.anonymize.english.token_features import CAPITAL, INITIAL, UPPER, Tokens
from h2htalk.curation.anonymize.english.word_lists import folded, hint

_FILE = Path(__file__).parent / "words" / "organization_words.toml"
NAMED, PLACED = 0.8, 0.65  # by its own words, by the sentence
LONGEST = 6  # words of a name on either side of its kind
PLACE = frozenset(
    ("at", "for", "from", "with", "of", "by", "in", "to", "into", "called", "named", "off", "as")
)
STRICT = frozenset(("at", "for"))


@cache
def org_words() -> dict[str, frozenset[str]]:
    with _FILE.open("rb") as file:
        return {key: frozenset(folded(w) for w in value.split()) for key, value in tomllib.load(file).items()}


def joined(found: Tokens, place: int) -> bool:
    """Whether a word and the one before it can stand in one name."""
    if place >= len(found) or place < 1 or found.blocked[place]:
        return False
    gap = found.text[found.ends[place - 1] : found.starts[place]]
    if found.possessive[place - 1]:
        gap = gap[2:]
    return gap in (" ", " & ", "&", "-") or (gap == ". " and found.words[place - 1] == "st")


def is_part(found: Tokens, place: int) -> bool:
    """Whether a word can be inside a name: capitalised, or a small word between such."""
    word = found.words[place]
    if found.blocked[place]:
        return False
    if is_capital(found, place):
        return word not in hint("not_names")
    return word in ("of", "and", "st") and place > 0 and is_capital(found, place - 1) and joined(found, place)


def is_capital(found: Tokens, place: int) -> bool:
    return (
        0 <= place < len(found)
        and found.shapes[place] in (CAPITAL, UPPER, INITIAL)
        and found.words[place] != "i"
    )


def last_word(found: Tokens, place: int) -> int:
    """The last word of the name whose word at `place` is surely in it."""
    last = place
    while last - place < LONGEST and last + 1 < len(found):
        after = last + 1
        if joined(found, after) and is_capital(found, after) and found.words[after] not in hint("not_names"):
            last = after
        elif (
            found.words[after] in ("of", "and", "de", "the")
            and found.spaced[after]
            and is_capital(found, after + 1)
            and joined(found, after + 1)
            and found.words[after + 1] not in hint("not_names")
            and (found.words[after] == "of" or found.words[after + 1] in org_words()["suffix"])
        ):
            last = after + 1
        elif (further := _of_the(found, last)) > last:
            last = further
        else:
            break
    return last


def _of_the(found: Tokens, last: int) -> int:
    """The word in capitals after "of the", after "for" behind a kind: Institute for Coastal Studies."""
    small = found.word(last + 1)
    kind = found.words[last] in org_words()["suffix"] | hint("fronted")
    if small not in ("of", "for", "on") or (small != "of" and not kind) or not found.spaced[last + 1]:
        return last
    at = last + 3 if found.word(last + 2) == "the" else last + 2
    if at >= len(found) or not is_capital(found, at) or not joined(found, at) or not found.spaced[at - 1]:
        return last
    return at if found.words[at] not in hint("not_names") else last
