"""Chinese addresses: a run of parts from province to room that leads to a door, a building or a village."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from h2htalk.curation.anonymize.chinese.address_edges import cued_homes
from h2htalk.curation.anonymize.chinese.address_parts import AddressPart, address_parts, divisions, weak
from h2htalk.curation.anonymize.chinese.name_segmenter import Segment
from h2htalk.curation.anonymize.chinese.words import patterns, words

_RE = patterns("addresses")


def addresses(text: str, segments: Sequence[Segment]) -> Iterator[tuple[int, int, float]]:
    """(start, end, score in [0, 1]) of each address, from left to right.

    Args:
        segments: the text's segments (`name_segmenter.segment_text`).
    """
    chain: list[AddressPart] = []
    for part in address_parts(text, segments):
        if chain and not _joined(text, chain[-1], part):
            yield from _address(text, chain)
            chain = []
        chain.append(part)
    yield from _address(text, chain)
    yield from cued_homes(text)


def _joined(text: str, before: AddressPart, after: AddressPart) -> bool:
    gap = text[before.end : after.start]
    if before.kind == after.kind == "street" and gap in ("与", "和", "跟", "、", "/"):
        return True
    if gap and after.kind in ("door", "room"):
        return before.kind != "division" and gap in (" ", "-", ",", "，", "—")
    return _RE["separator"].fullmatch(gap) is not None


def _address(text: str, chain: list[AddressPart]) -> Iterator[tuple[int, int, float]]:
    # Doors alone lead somewhere only where one follows another: 3栋2单元501.
    while chain and chain[0].kind in ("door", "room") and [p.kind for p in chain[:2]] != ["door", "door"]:
        chain = chain[1:]
    if not chain:
        return
    score, told = _score(text, chain), text[chain[0].start : chain[-1].end]
    if score and _RE["leads_home"].search(told) and not _RE["repeated"].search(told):
        yield chain[0].start, chain[-1].end, score


def _score(text: str, chain: list[AddressPart]) -> float:
    """How sure a chain of parts is an address; 0 for none."""
    kinds = [part.kind for part in chain]
    places = [text[part.start : part.end] for part in chain if part.kind in ("street", "area", "estate")]
    numbered = sum(kind in ("door", "room") for kind in kinds)
    if places and numbered:
        return 0.9
    if kinds[0] == "division":
        if numbered > 1 or len(places) > 1:
            return 0.85
        full = any(divisions().get(text[part.start : part.end]) for part in chain if part.kind == "division")
        unsure = "estate" in kinds and places[0].endswith(tuple(weak()))
        return 0.75 if places and not unsure and (full or kinds.count("division") > 1) else 0.0
    if len(places) > 1:
        return 0.7 if {"street", "area"} & set(kinds) and "，" not in text[chain[0].start : chain[-1].end] else 0.0
    if numbered > 1:
        return 0.6
    return 0.6 if kinds[0] in ("estate", "area") and _is_home(text, chain[0]) else 0.0


def _is_home(text: str, part: AddressPart) -> bool:
    """Whether somebody lives at an estate or a village without a number."""
    name = text[part.start : part.end]
    village = name.endswith(("村", "屯", "庄", "寨", "堡")) and len(name) > 2
    estate = part.kind == "estate" and len(name) > 3 and not name.endswith(tuple(weak()))
    return (village or estate) and text[: part.start].endswith(tuple(words("places", "stop", "home")))
