"""Chinese addresses: a run of parts from province to room that leads to a door, a building or a village."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from h2htalk.curation.anonymize.chinese.address_edges import cued_homes
from h2htalk.curation.anonymize.chinese.address_parts import (
    CROSSING_END,
    AddressPart,
    address_parts,
    divisions,
    weak,
)
from h2htalk.curation.anonymize.chinese.name_segmenter import Segment
from h2htalk.curation.anonymize.chinese.words import words

_SEPARATOR = re.compile(r"[ \t,，、\-—·./]{0,2}")


# Rows, seats and lines of buses have numbers as houses have.
_SEATED = re.compile(
    r"(?:票|影厅|号厅|看台|座位|车厢|演唱会|包厢)[^，。,]{0,6}[0-9一二三四五六七八九十]+[排座区]"
    r"|(?<![路街])[0-9]{1,3}路[0-9]{1,3}(?=路|[和、或]|$)"
)


# One mouthful after another.
_REPEATED = re.compile(r"(\w{2})\1")
_LEADS_HOME = re.compile(
    "[0-9０-９一二三四五六七八九十百号栋幢楼室路街巷弄里苑园村庄屯寨组队院府邸湾居阁轩庭城座层门排]"
)


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
    if gap and after.kind in ("door", "room") and before.kind != "division":
        return gap in ((" ", "-", ",", "，", "—") if after.kind == "door" else (" ", "-", ",", "，"))
    return _SEPARATOR.fullmatch(gap) is not None and not (gap and after.kind in ("door", "room"))


def _address(text: str, chain: list[AddressPart]) -> Iterator[tuple[int, int, float]]:
    while chain and chain[0].kind in ("door", "room") and not _inner_door(chain):
        chain = chain[1:]
    if not chain:
        return
    score = _weight(text, chain)
    end = chain[-1].end
    crossing = CROSSING_END.match(text, end)
    if crossing and chain[-1].kind == "street":
        end = crossing.end()
        score = max(score, 0.75)
    told = text[chain[0].start : end]
    if _REPEATED.search(told) or not _LEADS_HOME.search(told):
        return
    if score >= 0.5 and not _SEATED.search(text, max(0, chain[0].start - 8), end):
        yield chain[0].start, end, score


def _inner_door(chain: list[AddressPart]) -> bool:
    """Whether doors alone lead somewhere: 3栋2单元501."""
    return len(chain) > 1 and chain[0].kind == chain[1].kind == "door"


def _weight(text: str, chain: list[AddressPart]) -> float:
    kinds = [part.kind for part in chain]
    places = [part for part in chain if part.kind in ("street", "area", "estate")]
    named = sum(kind in ("street", "area", "estate") for kind in kinds)
    numbered = sum(kind in ("door", "room") for kind in kinds)
    if named and numbered:
        return 0.9
    if kinds[0] == "division":
        if numbered > 1 or named > 1:
            return 0.85
        full = any(part.kind == "division" and divisions().get(text[part.start : part.end]) for part in chain)
        if (
            len(places) == 1
            and places[0].kind == "estate"
            and text[places[0].start : places[0].end].endswith(tuple(weak()))
        ):
            return 0.0
        return 0.75 if named and (full or kinds.count("division") > 1) else 0.0
    if named > 1 and ("street" in kinds or "area" in kinds) and "，" not in text[chain[0].start : chain[-1].end]:
        return 0.7
    if numbered > 1 and not named:
        return 0.6
    if named == 1 and kinds[0] in ("estate", "area"):
        return _alone(text, chain[0])
    return 0.0


def _alone(text: str, part: AddressPart) -> float:
    """An estate or a village without a number is an address where somebody lives."""
    before, name = text[max(0, part.start - 4) : part.start], text[part.start : part.end]
    home = before.endswith(tuple(words("places", "stop", "home")))
    village = name.endswith(("村", "屯", "庄", "寨", "堡")) and len(name) > 2
    estate = part.kind == "estate" and len(name) > 3 and not name.endswith(tuple(weak()))
    return 0.6 if home and (village or estate) else 0.0
