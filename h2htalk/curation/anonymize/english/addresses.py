"""Addresses in English text: what leads to a door or a building, from the first word of it to the last.

An address is a chain of pieces: "Flat 3" and "27 Camden High "
    "Street" and "London" and "NW1 7JE". Each kind of piece has
one pattern of bounded length; a chain counts where a piece is sure by itself or two weak ones hold each other up.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from h2htalk.curation.anonymize.english.address_edges import house_before, spelled_streets
from h2htalk.curation.anonymize.english.word_lists import COMMON, hint, words
from h2htalk.curation.anonymize.spans import Span

_FILE = Path(__file__).parent / "words" / "address_words.toml"
_SCORE = 0.85
_NUMBER = r"(?:\d{1,3}/\d{1,3},?[ ]{1,2})?\d{1,6}(?:[ ]1/2|[-/–]\d{1,5})?[A-Za-z]?"
_WORD = r"[^\W\d_][\w'’.-]{0,24}"
_ORDINAL = r"\d{1,3}(?:st|nd|rd|th|ST|ND|RD|TH)"
_DIRECTION = r"(?:[NSEWnsew]|[NSns][EWew]|(?i:north|south|east|west)(?i:east|west)?)"
_POSTCODE = r"(?:[A-Z]{1,2}\d[A-Z\d]?[ ]?\d[ABD-HJLNP-UW-Z]{2}|[ABCEGHJ-NPRSTVXY]\d[A-Z][ ]?\d[A-Z]\d)"
_ZIP = r"\d{5}(?:-\d{4})?(?![\w-])"
# Without a number only a house's name and its lane make an address: worth a look where a lane is named.
_LANE = re.compile(r"[A-Z][\w'’-]{1,24}[ ](?:Lane|Road|Street|Close|Avenue|Walk|Drive|Row|Terrace)\b")
_DIGIT = re.compile(r"\d")
_CITY = r"[^\W\d_a-z][\w'’.-]{1,24}(?:[ ](?:[^\W\d_a-z][\w'’.-]{1,24}|upon|on|de|la|of|by|le|under)){0,3}"


class _Piece(NamedTuple):
    start: int
    end: int
    kind: str  # street, unit, building, lane, code, box


@dataclass(frozen=True, slots=True)
class _Patterns:
    street: re.Pattern[str]
    typed: re.Pattern[str]
    unit: re.Pattern[str]
    building: re.Pattern[str]
    small_building: re.Pattern[str]
    code: re.Pattern[str]
    box: re.Pattern[str]
    tails: tuple[re.Pattern[str], ...]
    lists: dict[str, frozenset[str]]


@cache
def _patterns() -> _Patterns:
    with _FILE.open("rb") as file:
        raw: dict[str, str] = tomllib.load(file)
    lists = {key: frozenset(value.split()) for key, value in raw.items()}
    either = {key: "|".join(sorted(value, key=len, reverse=True)) for key, value in lists.items()}
    state = "|".join([*sorted(lists["states"], key=len, reverse=True), *re.split(r"[|\n]", raw["state_names"].strip())])
    starts = r"(?<![\w$£€#@.:/%+-])"
    street, building = rf"(?i:{either['street']})", rf"(?i:{either['building']})"
    unit_number = r"(?:[A-Za-z][-‑]?\d{1,5}|\d{1,5}(?:[-/]\d{1,5})?[A-Za-z]?|[A-Z])(?![\w'])"
    unit = rf"(?i:{either['unit']})\b\.?[ ]?(?:#|(?i:no\.?|number)[ ])?[ ]?{unit_number}"
    return _Patterns(
        street=re.compile(
            rf"{starts}(?P<number>{_NUMBER}),?[ ]{{1,2}}(?:{_DIRECTION}\.?[ ])?"
            rf"(?P<name>(?:(?:St|Saint|Mt|Ft)\.?[ ]{_WORD}[ ])?(?:(?:{_WORD}|{_ORDINAL})[ ]){{0,4}}?)"
            rf"(?P<kind>{street})\b(?!['’])\.?"
            rf"(?:[ ](?:(?=[A-Z]){street}|{either['sure_street']}|way|dr|drive|place)\b(?!['’])\.?){{0,2}}"
            rf"(?:[ ]{_DIRECTION}(?![\w'’]))?"
        ),
        typed=re.compile(
            rf"{starts}(?P<number>{_NUMBER}),?[ ](?P<kind>(?i:{either['street_before']}))[ ]"
            r"(?P<name>(?:(?i:road|route|rd|to market)[ ])?"
            r"(?:\d{1,4}[A-Z]?\b|(?:(?i:of|the|de|del|la|des|du|da|das)[ ]){0,2}"
            rf"[^\W\d_a-z][\w'’-]{{1,24}}(?:[ ][A-Z][\w'’-]{{1,24}}){{0,2}}))(?:[ ]{_DIRECTION}(?![\w'’]))?"
        ),
        unit=re.compile(
            rf"(?<![\w'’-]){unit}"
            r"|(?<![\w-])#[ ]?\d{1,5}(?:-\d{1,5})?[A-Za-z]?(?![\w-])|(?<![\w-])[A-Z]-\d{2,4}(?!\w)"
            r"|(?<!\w)(?:\d{1,3}(?:st|nd|rd|th)|(?i:ground|first|second|third|fourth|fifth|top))"
            r"[ ](?i:floor|flat)(?:[ ](?i:flat))?\b"
        ),
        building=re.compile(
            r"(?<![\w'’-])(?:(?:[^\W\d_a-z]|\d{1,4}[A-Za-z]?[ ][^\W\d_a-z])[\w'’.-]{1,24}[ ]){1,4}"
            rf"(?P<kind>{building})\b(?!['’])(?:,?[ ](?P<door>#?\d{{1,4}}[A-Za-z]?)(?![\w'’.:]))?"
        ),
        small_building=re.compile(rf"(?:[^\W\d_]{{2,20}}[ ]){{1,2}}{building}\b"),
        code=re.compile(rf"(?<![\w-]){_POSTCODE}(?![\w-])"),
        box=re.compile(
            r"(?<!\w)(?:(?i:p\.?[ ]?o\.?|post office)[ ]?)?(?i:box)[ ]?#?\d{1,6}(?!\w)"
            r"|(?<!\w)(?i:rural route|rr|r\.r\.)[ ]?\d{1,3}(?:,?[ ](?i:box)[ ]\d{1,5})?(?!\w)"
        ),
        tails=(
            re.compile(
                rf",?\s{{1,2}}(?:{_CITY},?[ ])?(?:{state})(?![\w'’])\.?"
                rf"(?:,?[ ]{{1,2}}(?:{_ZIP}|\d{{4}}(?!\w)|{_POSTCODE}))?"
            ),
            re.compile(
                rf",?\s{{0,2}}[a-z]{{2,20}}(?:[ ][a-z]{{2,20}}){{0,2}},?[ ](?i:{'|'.join(lists['states'])}),?[ ]{_ZIP}"
            ),
            re.compile(rf",?\s{{1,2}}{_ZIP}"),
            re.compile(rf",?\s{{1,2}}(?:(?P<town>{_CITY}),?[ ])?{_POSTCODE}(?![\w-])"),
            re.compile(rf",[ ]?(?:\d{{1,5}}[ ])?(?P<city>{_CITY})(?:[ ]\d{{1,6}}(?!\w))?"),
        ),
        lists=lists,
    )


def find_addresses(text: str) -> list[Span]:
    """Spans of ADDRESS in a text, in order; none overlap. A bare city, state or country is none.

    Linear in the text's length: every pattern is bounded.
    """
    if not (_DIGIT.search(text) or _LANE.search(text) or any(True for _ in spelled_streets(text))):
        return []
    patterns = _patterns()
    spans: list[Span] = []
    for chain in _chains(text, _pieces(text, patterns)):
        # A town's post code may be another chain.
        if _counts(chain) and not (spans and chain[0].start < spans[-1].end):
            start = house_before(text, chain[0].start, chain[0].kind)
            spans.append(Span(start, _with_tail(text, chain[-1].end, patterns), "ADDRESS", _SCORE))
    return spans


def _pieces(text: str, patterns: _Patterns) -> list[_Piece]:
    pieces = [
        _Piece(*m.span(), "street") for m in patterns.street.finditer(text) if _is_street(text, m, patterns.lists)
    ]
    pieces += [_Piece(*m.span(), "street") for m in patterns.typed.finditer(text)]
    pieces += [_Piece(*span, "street") for span in spelled_streets(text)]
    units = [_Piece(*m.span(), "unit") for m in patterns.unit.finditer(text)]
    pieces += units
    pieces += [_building(m) for m in patterns.building.finditer(text)]
    pieces += [_Piece(*m.span(), "code") for m in patterns.code.finditer(text)]
    pieces += [_Piece(*m.span(), "box") for m in patterns.box.finditer(text)]
    for unit in units:
        between = text[unit.end : unit.end + 2]
        after = unit.end + (2 if between == ", " else int(between[:1] in (" ", ",")))
        small = patterns.small_building.match(text, after)
        if small and not set(small[0].lower().split()[:-1]) & patterns.lists["no_name"]:
            pieces.append(_Piece(*small.span(), "building"))
    return sorted(pieces)


def _building(match: re.Match[str]) -> _Piece:
    """A house's name; with the number of a room behind it it is a place by itself ("Kessler Hall 112")."""
    kind = match["kind"].lower()
    if match["door"] and kind in hint("with_rooms") and not match["door"].startswith(("19", "20")):
        return _Piece(*match.span(), "street")
    return _Piece(match.start(), match.end("kind"), "lane" if kind in hint("lanes") else "building")


def _is_street(text: str, match: re.Match[str], lists: dict[str, frozenset[str]]) -> bool:
    """In lower case, no word between number and street may be one that sentences are made of."""
    kind, capital = match["kind"].lower(), match["kind"][0].isupper()
    name = match["name"].split()
    small = [word for word in name if word[0].islower()]
    if not name:
        # "5 Broadway" and "12 The Crescent", not "3 way" nor "2 Park".
        two = len(match[0].split()) > len(match["number"].split()) + 1
        return (two or kind in hint("streets_alone")) and capital
    if set(small) & lists["no_name"] or name[-1].lower().rstrip(".") in lists["no_name"] - {"the"}:
        return False
    if not small and (capital or kind not in ("dr", "way", "place", "run", "view")):
        return True
    before = text[max(0, match.start() - 24) : match.start()].lower().split()
    cued = any(word.strip(":,") in lists["cues"] for word in before) or before[-1:] in (["at"], ["on"])
    return cued or kind in lists["sure_street"]


def _chains(text: str, pieces: Sequence[_Piece]) -> Iterator[list[_Piece]]:
    """Pieces with no more than a comma, a space, "at" or "on" between them."""
    chain: list[_Piece] = []
    for piece in pieces:
        if chain and piece.start < chain[-1].end:
            if piece.end > chain[-1].end:
                chain.append(piece)
            elif piece.kind == "street" and chain[-1].kind in ("building", "lane"):
                chain[-1] = _Piece(chain[-1].start, chain[-1].end, "street")
            continue
        if chain and not _near(text[chain[-1].end : piece.start]):
            yield chain
            chain = []
        chain.append(piece)
    if chain:
        yield chain


def _near(gap: str) -> bool:
    return len(gap) < 8 and gap.strip(" ,.\n-–").lower() in ("", "at", "on", "in", "of") and gap.count("\n") < 2


def _counts(chain: Sequence[_Piece]) -> bool:
    kinds = [piece.kind for piece in chain]
    if {"street", "box", "code"} & set(kinds):
        return True
    if "unit" in kinds:
        return "building" in kinds or "lane" in kinds or kinds.count("unit") > 1
    return "building" in kinds and "lane" in kinds


def _with_tail(text: str, end: int, patterns: _Patterns) -> int:
    """Where the address ends with its town, state and post code."""
    for _ in range(4):
        for tail in patterns.tails:
            match = tail.match(text, end)
            if match and not _is_somebody(match.groupdict().get("city") or ""):
                end = match.end()
                break
        else:
            break
    return end - 1 if text[end - 1] in ".-" and text[end - 2 : end - 1].islower() is False else end


def _is_somebody(city: str) -> bool:
    """Whether a capitalised word after a comma begins the next clause: 45 Elm Court, Danny said."""
    lists, name = words(), city.lower()
    word = name in lists.words - lists.surnames or name in ("i", "i'm")
    return name not in lists.hints["places"] and (word or lists.given.get(name) == COMMON)
