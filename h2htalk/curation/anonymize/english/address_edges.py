"""English addresses beyond their chain of pieces: a house's name before, numbers in words, homes told in lower case."""

from __future__ import annotations

import re
from collections.abc import Iterator

from h2htalk.curation.anonymize.english.word_lists import COMMON, hint, is_word, words

_CAPITALS = r"(?:(?:The|Old) )?[A-Z][\w'’-]{1,24}(?: (?:of |on |the )?[A-Z][\w'’-]{1,24}){0,3}"
_BEFORE = re.compile(rf"(?P<names>(?:{_CAPITALS}, ){{1,3}})$")
_LONGEST = 110  # characters before an address that may name its house and village
_UNITS = (
    "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen"
    "|seventeen|eighteen|nineteen"
    "|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|oh|zero|hundred|double"
)
_STREETS = (
    "street|road|avenue|lane|drive|court|close|terrace|boulevard|crescent|grove|gardens|square|parade"
    "|place|hill|walk|mews|row|parkway|highway|way"
)
_SPELLED = re.compile(
    rf"(?<![\w-])(?i:{_UNITS})(?:[ -](?i:and |{_UNITS})){{0,5}} (?:[A-Z][\w'’-]{{1,20}} "
    rf"){{1,3}}(?i:{_STREETS}|st|rd|ave|ln|dr)\b"
)
_MORE = re.compile(
    r"(?<![\w$£€#])(?:"
    r"[0-9]{1,4}[A-Za-z]? The [A-Z][a-z]{3,18}(?=[,.\n]|$)"
    r"|[A-Z\u00c0-\u00de][a-z\u00df-\u00ff]{1,20}(?:straße|strasse|str\.|weg|gasse|platz|allee|damm"
    r"|laan|straat|gracht|gatan|vägen|gade|vej|veien|katu|utca) [0-9]{1,4}[a-z]?\b"
    r"|(?:the )?(?:corner|intersection|crossing) of (?:[A-Z0-9][\w'’]{1,15} ){1,2}(?:and|&) "
    r"[A-Z0-9][\w'’]{1,15}(?: (?:St|Street|Ave|Avenue|Rd|Road|Blvd))?"
    r"|[0-9]{2,5} block of (?:[NSEW]\.? )?[A-Z][a-z]{2,15}(?: [A-Z][a-z]{1,10})?)"
)
_AFTER = (
    re.compile(r",? #[0-9]{1,4}(?:-[0-9]{1,4})?[A-Za-z]?(?!\w)"),
    re.compile(r" [0-9]{1,3}(?= #|, [A-Z#0-9])"),
    re.compile(r",? [0-9]{4,5}(?:, | )[A-Z][\w'’]{2,20}"),
)
_TOWN = re.compile(r",? (?P<town>[A-Za-z][a-z'’]{2,18})(?![\w'’])")
_SECOND = re.compile(r" (?:trailer |mobile home |holiday )?(?:park|estate|village|court|apartments|campground)\b")


def house_before(text: str, start: int, kind: str) -> int:
    """Where the house and the village named before an address begin: The Old Forge, Nether Compton, DT9 4QE.

    Args:
        start: where the address starts without them.
        kind: of its first piece; before a post code any name belongs to it, else only a house's.
    """
    head = text[max(0, start - _LONGEST) : start]
    match = _BEFORE.search(head)
    if match is None:
        return start
    names = match["names"]
    first = start - len(names)
    parts = names.removesuffix(", ").split(", ")
    while parts and not _names_place(parts[0], kind):
        first += len(parts[0]) + 2
        parts = parts[1:]
    return first


def _names_place(name: str, kind: str) -> bool:
    inner = name.split()
    last = inner[-1].lower()
    lists = words()
    if inner[0].lower() in hint("not_names") and inner[0] not in ("The", "Old"):
        return False
    if lists.given.get(inner[0].lower()) == COMMON and kind != "code":
        return False
    if kind == "code":
        return len(inner) > 1 or not (is_word(last) or lists.given.get(last) == COMMON)
    return len(inner) > 1 and (inner[0] in ("The", "Old") or any(part.lower() in _HOUSES for part in inner))


_HOUSES_WORDS = (
    "house cottage barn farm farmhouse lodge mill forge court tower towers hall manor grange villa "
    "villas mansions mansion apartments flats rectory vicarage chapel croft school building block "
    "estate park heights point wharf works hostel shelter home"
)
_HOUSES = frozenset(_HOUSES_WORDS.split())


def spelled_streets(text: str) -> Iterator[tuple[int, int]]:
    """(start, end) of numbers in words with their street: four two oh nine Rosewood Lane."""
    for pattern in (_SPELLED, _MORE):
        for match in pattern.finditer(text):
            yield match.span()


def extend(text: str, end: int, last: bool) -> int:
    """Where an address ends with a unit's number, a post code before its town, and `last` with a town of the list."""
    for pattern in (*_AFTER, _SECOND):
        if match := pattern.match(text, end):
            end = match.end()
    town = _TOWN.match(text, end) if last else None
    return town.end() if town and town["town"].lower() in words().hints["places"] else end
