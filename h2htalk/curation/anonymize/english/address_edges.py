"""English addresses beyond their chain of pieces: a house's name before it, numbers in words, corners and blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from h2htalk.curation.anonymize.english.word_lists import COMMON, hint, is_word, words

_CAPITALS = r"(?:(?:The|Old) )?[A-Z][\w'’-]{1,24}(?: (?:of |on |the )?[A-Z][\w'’-]{1,24}){0,3}"
_BEFORE = re.compile(rf"(?P<names>(?:{_CAPITALS}, ){{1,3}})$")
_LONGEST = 110  # characters before an address that may name its house and village
_MORE = re.compile(
    r"(?<![\w$£€#])(?:"
    r"[0-9]{1,4}[A-Za-z]? The [A-Z][a-z]{3,18}(?=[,.\n]|$)"
    r"|[A-Z\u00c0-\u00de][a-z\u00df-\u00ff]{1,20}(?:straße|strasse|str\.|weg|gasse|platz|allee|damm"
    r"|laan|straat|gracht|gatan|vägen|gade|vej|veien|katu|utca) [0-9]{1,4}[a-z]?\b"
    r"|(?:the )?(?:corner|intersection|crossing) of (?:[A-Z0-9][\w'’]{1,15} ){1,2}(?:and|&) "
    r"[A-Z0-9][\w'’]{1,15}(?: (?:St|Street|Ave|Avenue|Rd|Road|Blvd))?"
    r"|[0-9]{2,5} block of (?:[NSEW]\.? )?[A-Z][a-z]{2,15}(?: [A-Z][a-z]{1,10})?)"
)


@cache
def _spelled() -> re.Pattern[str]:
    numbers, streets = "|".join(sorted(hint("numbers"))), "|".join(sorted(hint("spelled_streets")))
    return re.compile(
        rf"(?<![\w-])(?i:{numbers})(?:[ -](?i:and |{numbers})){{0,5}} (?:[A-Z][\w'’-]{{1,20}} ){{1,3}}(?i:{streets})\b"
    )


def spelled_streets(text: str) -> Iterator[tuple[int, int]]:
    """(start, end) of numbers in words with their street (four two oh nine Rosewood Lane), of corners and blocks."""
    for pattern in (_spelled(), _MORE):
        for match in pattern.finditer(text):
            yield match.span()


def house_before(text: str, start: int, kind: str) -> int:
    """Where the house and the village named before an address begin: The Old Forge, Nether Compton, DT9 4QE.

    Args:
        start: where the address starts without them.
        kind: of its first piece; before a post code any name belongs to it, else only a house's.
    """
    match = _BEFORE.search(text, max(0, start - _LONGEST), start)
    names = match["names"].split(", ")[:-1] if match else []
    while names and not _names_place(names[0].lower().split(), kind):
        names = names[1:]
    return start - sum(len(name) + 2 for name in names)


def _names_place(name: list[str], kind: str) -> bool:
    first, last = name[0], name[-1]
    if first in hint("not_names") - {"the"} or (words().given.get(first) == COMMON and kind != "code"):
        return False
    if kind == "code":
        return len(name) > 1 or not (is_word(last) or words().given.get(last) == COMMON)
    return len(name) > 1 and (first in ("the", "old") or not hint("houses").isdisjoint(name))
