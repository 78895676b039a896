"""Chinese addresses: a run of parts from province to room that leads to a door, a building or a village."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from h2htalk.curation.anonymize.chinese.address_parts import AddressPart, address_parts, divisions, weak
from h2htalk.curation.anonymize.chinese.jieba_dictionary import tags
from h2htalk.curation.anonymize.chinese.name_segmenter import Segment
from h2htalk.curation.anonymize.chinese.words import patterns, words

_RE = patterns("addresses")

_NO_HOME = ("院", "宿", "宿舍", "过", "着", "进", "在", "到", "第", "快递", "外卖", "酒店第")
_LEVEL = "省市州盟旗县区镇乡"
_LONGEST_DIVISION = 7
_VERBS = frozenset({"v", "vn", "d", "p", "r", "c", "u", "uj", "ul", "y", "e"})
ScoredRange = tuple[int, int, float]


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


def widen_addresses(text: str, found: Iterable[ScoredRange], segments: Sequence[Segment]) -> list[ScoredRange]:
    """The addresses from their first word to their last, those that overlap as one.

    Args:
        found: (start, end, score) from left to right.
        segments: the text's segments.
    """
    ends = {segment.end: segment for segment in segments}
    wide: list[ScoredRange] = []
    for start, end, score in found:
        if wide and start < wide[-1][1]:
            start, before, least = wide.pop()
            wide.append((start, max(before, _right(text, end)), max(score, least)))
        else:
            start = _left(text, start, ends, wide[-1][1] if wide else 0)
            wide.append((start, _right(text, end), score))
    return wide


_BREAKS = frozenset("我你他她它的了是在到去来和跟与给把被让住从往寄送搬回家就也都还有没不")


def _left(text: str, start: int, ends: dict[int, Segment], free: int) -> int:
    """Over divisions that the list does not hold: 甘孜州, 格木乡."""
    while start > free + 1:
        level = start - 1 - (text[start - 1] in " ,，、")
        at = _run(text, level + 1, ends, free) if text[level] in _LEVEL else level
        if not 1 < level - at < _LONGEST_DIVISION:
            break
        start = at
    return start


def _run(text: str, at: int, ends: dict[int, Segment], free: int) -> int:
    """The left end of the words that may stand in a place's name and end at `at`."""
    stops = words("places", "stop", "words")
    first = at
    while at > free and first - at < _LONGEST_DIVISION:
        segment = ends.get(at)
        if segment is None or segment.start < free:
            break
        word = text[segment.start : segment.end]
        named = all("\u4e00" <= letter <= "\u9fff" for letter in word)
        if not named or word in stops or tags().get(word) in _VERBS:
            break
        at = segment.start
    return at


def _right(text: str, end: int) -> int:
    """On to the door, at most ten steps."""
    for _ in range(10):
        step = _step(text, end)
        if step == end:
            break
        end = step
    return end


def _step(text: str, end: int) -> int:
    numbered = _RE["ends_numbered"].search(text, max(0, end - 2), end) is not None
    for pattern in (_RE["door"], _RE["dashed"], _RE["tail"], _RE["bare"]):
        found = pattern.match(text, end)
        if found and (numbered or pattern is not _RE["bare"]):
            return found.end()
    if text[end - 1].isdigit() and (unit := _RE["unit"].match(text, end)):
        return unit.end()
    named = _RE["name"].match(text, end) if numbered else None
    if named is None or _is_sentence(named.group()):
        return end
    behind = _RE["door"].match(text, named.end()) or _RE["bare"].match(text, named.end())
    return behind.end() if behind else end


def _is_sentence(name: str) -> bool:
    """Whether what stands between two parts is a sentence and no house's name."""
    stripped = name.strip(" ,，")
    return not (set(stripped) - {"和"}).isdisjoint(_BREAKS)


def cued_homes(text: str) -> Iterator[ScoredRange]:
    """What is numbered like a house after "I live at": 住|临江门12-8."""
    for hit in _RE["cued_home"].finditer(text):
        name = hit.group("name")
        if not ((_BREAKS - {"和"}) & set(name)) and not name.startswith(_NO_HOME):
            yield hit.start("name"), hit.end(), 0.6
