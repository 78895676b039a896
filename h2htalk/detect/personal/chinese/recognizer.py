"""Names of people and firms, and addresses (from province to room, to a building or a village) in Chinese text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise

from h2htalk.detect.personal.chinese.persons import (
    Segment,
    find_candidates,
    left_cue,
    segment_text,
    surnames,
)
from h2htalk.detect.personal.chinese.private_names import (
    VALUES,
    Mention,
    describe,
    private_mentions,
    private_values,
)
from h2htalk.detect.personal.chinese.words import patterns, sections, table, tags, usual, words
from h2htalk.detect.personal.spans import AddressPart, Span, plain
from h2htalk.text.chinese_characters import simplified
from h2htalk.text.language_data import compile_patterns
from h2htalk.text.phrases import PhraseIndex

_RE, _ADDRESS = map(patterns, ("recognizer", "addresses"))

# Stands where something was found before or must not be read. No letter, so that nothing runs over it.
MASK = "\u25a1"
# At most 1,000 characters are read at once, cut where sentences or clauses end, else anywhere.
_STRETCH = re.compile(
    r".{1,1000}\Z|.{501,1000}(?<=[\n。！？!?；;])|.{501,1000}(?<=[，,、 ])|.{1000}", re.DOTALL
)
_HAN = re.compile("[\u4e00-\u9fff]+")
_NAMING = re.compile(r"[^\W_]+")


def reads(text: str) -> bool:
    """Whether a message of a dialogue in another language holds Chinese words."""
    return _RE["han_name"].search(text) is not None


def known_figures() -> list[str]:
    """Names of public and fictional figures that are long enough to belong to nobody else."""
    return [
        name
        for name in sections("public_figures")[""] | sections("cedict")["figures"]
        if len(name) > 2
    ]


def find_names(
    texts: Sequence[str], taken: Sequence[Sequence[Span]], talk: str = "personal"
) -> list[list[Span]]:
    """Find people, addresses and organisations in Chinese texts, in a time proportional to their length: the spans of
    each in order. None overlap each other or those `taken` before; scores, 0.5 to 0.95, are a ranking, no probability.
    `talk` as in the English recogniser.

    A person's span is the whole form of address (小王, 张老师). Figures, titles in 《》 and a city alone are none.
    """
    found, mentions = read_dialogue(texts, taken)
    for mention, score in private_mentions(mentions, talk):
        found[mention.message].append(Span(mention.start, mention.end, mention.type, score))
    return [sorted(spans) for spans in private_values(texts, found)]


def read_dialogue(
    texts: Sequence[str], taken: Sequence[Sequence[Span]]
) -> tuple[list[list[Span]], list[Mention]]:
    """The addresses, and what may be the name of a private person. Arguments as in `find_names`."""
    found = list[list[Span]]()
    mentions = list[Mention]()
    earlier = ""
    figures = {
        text[s.start : s.end]
        for text, own in zip(texts, taken, strict=True)
        for s in own
        if s.type == "figure"
    }
    # 亦菲, where 刘亦菲 is talked of.
    parts = {name[-2:] for name in figures if len(name) == 3 and name[0] in surnames()}
    for number, (text, spans) in enumerate(zip(texts, taken, strict=True)):
        characters = list(simplified(plain(text)))
        for span in spans:
            characters[span.start : span.end] = MASK * (span.end - span.start)
        found.append([])
        for stretch in _STRETCH.finditer("".join(characters)):
            if _RE["nameable"].search(stretch[0]):
                placed, people = _find(stretch[0], earlier, number, stretch.start())
                found[-1] += placed
                mentions += (one for one in people if one.name not in parts)
        earlier = text
    return found, mentions


def _find(stretch: str, earlier: str, number: int, offset: int) -> tuple[list[Span], list[Mention]]:
    """The addresses, and the candidates for people's names, of a stretch of a message; `earlier`: the one before."""
    seen, at = _without(stretch, _RE["lettered"])
    close, joined = _without(seen, _RE["spaced"])
    segments, near = segment_text(seen)
    near_close = segments if close == seen else segment_text(close)[0]
    placed = [
        (joined[start], joined[end - 1] + 1, score)
        for start, end, score in wide_addresses(close, near_close)
    ]
    blocked = [
        *(found.span() for found in _RE["titled"].finditer(seen)),
        *((start, end) for start, end, _ in placed),
    ]

    def original(start: int, end: int) -> tuple[int, int]:
        return offset + at[start], offset + at[end - 1] + 1

    mentions = []
    for one in (*find_candidates(seen, near), *_organizations(seen, segments)):
        if not any(one.start < last and first < one.end for first, last in blocked):
            place = original(one.start, one.end)
            name = seen[one.start : one.end]
            kind = one.shape if one.shape in VALUES else "PERSON"
            mentions.append(
                Mention(number, *place, kind, name, describe(seen, one, earlier), one.cue)
            )
    return [Span(*original(start, end), "ADDRESS", score) for start, end, score in placed], mentions


@cache
def _kinds() -> PhraseIndex[None]:
    return PhraseIndex((word, None) for word in sections("organizations")["suffixes"])


def _organizations(text: str, segments: Sequence[Segment]) -> Iterator[Segment]:
    """What may be the name of a firm, school, clinic or club: a name and what kind it is."""
    holders = [segment for segment in segments for _ in range(segment.start, segment.end)]
    free = 0
    for at, end, _ in _kinds().find(text):
        start = holders[at].start
        while start > free and at - start < _LONGEST_NAME:
            before = holders[start - 1]
            word = text[before.start : start]
            closing = tags().get(word) in _CLOSING_TAGS and usual(word)
            closing = closing or _RE["brought"].fullmatch(word) is not None
            if closing or not _HAN.fullmatch(word) or word in sections("organizations")["leading"]:
                break
            start = before.start
        if 1 < at - start < _LONGEST_NAME and start >= free:
            yield Segment(start, end, 0.0, left_cue(text, start), "ORGANIZATION")
            free = end


def _without(text: str, dropped: re.Pattern[str]) -> tuple[str, Sequence[int]]:
    """The text without what a pattern finds, and where each of its characters stood."""
    gaps = [found.span() for found in dropped.finditer(text)]
    if not gaps:
        return text, range(len(text))
    left = list(range(len(text)))
    for start, end in reversed(gaps):
        del left[start:end]
    return "".join(text[at] for at in left), left


_NO_HOME = ("院", "宿", "宿舍", "过", "着", "进", "在", "到", "第", "快递", "外卖", "酒店第")
_LEVEL = "省市州盟旗县区镇乡"
_LONGEST_DIVISION = 7
_BREAKS = frozenset("我你他她它的了是在到去来跟与给把被让住从往寄送搬回家就也都还有没不")
ScoredRange = tuple[int, int, float]


def addresses(text: str, segments: Sequence[Segment]) -> Iterator[ScoredRange]:
    """(start, end, score in [0, 1]) of each address in a text's segments (`persons.segment_text`)."""
    chains: list[list[AddressPart]] = []
    for part in address_parts(text, segments):
        if chains and _joined(text, chains[-1][-1], part):
            chains[-1].append(part)
        else:
            chains.append([part])
    for chain in chains:
        # Doors alone lead somewhere only where one follows another: 3栋2单元501.
        while (
            chain
            and chain[0].kind in ("door", "room")
            and [p.kind for p in chain[:2]] != ["door", "door"]
        ):
            chain = chain[1:]
        if chain and (score := _score(text, chain)):
            start = chain[0].start
            end = chain[-1].end
            told = text[start:end]
            if _ADDRESS["leads_home"].search(told) and not _ADDRESS["repeated"].search(told):
                yield start, end, score
    # What is numbered like a house after "I live at": 住|临江门12-8.
    for hit in _ADDRESS["cued_home"].finditer(text):
        if _BREAKS.isdisjoint(hit["name"]) and not hit["name"].startswith(_NO_HOME):
            yield hit.start("name"), hit.end(), 0.6


def _joined(text: str, before: AddressPart, after: AddressPart) -> bool:
    gap = text[before.end : after.start]
    if gap and after.kind in ("door", "room"):
        return before.kind != "division" and gap in (" ", "-", ",", "，", "—")
    return _ADDRESS["separator"].fullmatch(gap) is not None


def _score(text: str, chain: list[AddressPart]) -> float:
    """How sure a chain of parts is an address; 0 for none."""
    kinds = [part.kind for part in chain]
    places = [
        text[part.start : part.end] for part in chain if part.kind in ("street", "area", "estate")
    ]
    numbered = sum(kind in ("door", "room") for kind in kinds)
    if places and numbered:
        return 0.9
    if kinds[0] == "division":
        if numbered > 1 or len(places) > 1:
            return 0.85
        full = any(
            divisions().get(text[part.start : part.end])
            for part in chain
            if part.kind == "division"
        )
        unsure = "estate" in kinds and places[0].endswith(
            tuple(words("places", "suffixes", "weak"))
        )
        return 0.75 if places and not unsure and (full or kinds.count("division") > 1) else 0.0
    if len(places) > 1:
        return (
            0.7
            if {"street", "area"} & set(kinds) and "，" not in text[chain[0].start : chain[-1].end]
            else 0.0
        )
    return 0.6 if numbered > 1 else 0.0


def wide_addresses(text: str, segments: Sequence[Segment]) -> list[ScoredRange]:
    """The addresses, from left to right, from their first word to their last; those that overlap as one."""
    ends = {segment.end: segment for segment in segments}
    wide: list[ScoredRange] = []
    for start, end, score in sorted(addresses(text, segments)):
        for _ in range(10):  # on to the door
            end = _step(text, end)
        if wide and start < wide[-1][1]:
            first, before, least = wide.pop()
            wide.append((first, max(before, end), max(score, least)))
        else:
            wide.append((_left(text, start, ends, wide[-1][1] if wide else 0), end, score))
    return wide


def _left(text: str, start: int, ends: dict[int, Segment], free: int) -> int:
    """Over divisions that the list does not hold: 甘孜州, 格木乡."""
    stops = words("places", "stop", "words")
    while start > free + 1:
        level = start - 1 - (text[start - 1] in " ,，、")
        at = level + 1
        while (
            text[level] in _LEVEL
            and level + 1 - at < _LONGEST_DIVISION
            and (segment := ends.get(at))
        ):
            word = text[segment.start : at]
            if segment.start < free or not _HAN.fullmatch(word) or word in stops:
                break
            at = segment.start
        if not 1 < level - at < _LONGEST_DIVISION:
            break
        start = at
    return start


def _step(text: str, end: int) -> int:
    """Where an address ends with its next door, gate or house; `end` where none follows."""
    numbered = _ADDRESS["ends_numbered"].search(text, max(0, end - 2), end) is not None
    for pattern in ("door", "dashed", "tail", *(["bare"] if numbered else [])):
        if found := _ADDRESS[pattern].match(text, end):
            return found.end()
    if text[end - 1].isdigit() and (unit := _ADDRESS["unit"].match(text, end)):
        return unit.end()
    named = _ADDRESS["name"].match(text, end) if numbered else None
    if named is None or not _BREAKS.isdisjoint(named[0]):  # a sentence, and no house's name
        return end
    behind = _ADDRESS["door"].match(text, named.end()) or _ADDRESS["bare"].match(text, named.end())
    return behind.end() if behind else end


# --- Their parts: divisions, streets, areas, estates, doors (numbers with their words) and rooms (bare numbers) ---

_EITHER = {kind: "|".join(sorted(words("places", "suffixes", kind), key=lambda word: (-len(word), word)))
           for kind in ("door", "estate", "area", "street")}  # fmt: skip
_PART = compile_patterns(table("patterns")["address_parts"], _EITHER)
_CROSSINGS = ("交叉", "交汇", "交界", "路口", "拐角", "十字路口")
_LONGEST_NAME = 9  # characters of a street's or an estate's name before its suffix
_SKIPPED_TAGS = frozenset({"r", "p", "c", "u", "uj", "ul", "y", "e", "o"})
# After a name that has ended.
_CLOSING_TAGS = frozenset(
    {"u", "uj", "ul", "p", "c", "v", "d", "y", "f", "r", "vn", "zg", "t", "s"}
)
# A part may be followed so closely by the name of the next one: 石桥乡大李庄村. An estate's last character is seldom
# one, but stands in the next name.
_NEAR = {"street": 6, "area": 6, "estate": 0}


@cache
def divisions() -> dict[str, bool]:
    """Names of provinces, cities and districts; whether each is the full one, that shows its rank."""
    levels = ("provinces", "cities", "districts")
    entries = [entry.partition("/") for level in levels for entry in sections("divisions")[level]]
    shorts = dict.fromkeys((short for _, _, short in entries if len(short) > 1), False)
    return shorts | {full: len(full) > 2 for full, _, _ in entries}


@cache
def _large_divisions() -> frozenset[str]:
    """Short names of provinces and cities."""
    entries = sections("divisions")["provinces"] | sections("divisions")["cities"]
    return frozenset(entry.partition("/")[2] for entry in entries)


@cache
def _division_starts() -> frozenset[str]:
    return frozenset(name[:2] for name in divisions())


def address_parts(text: str, segments: Sequence[Segment]) -> Iterator[AddressPart]:
    """Parts from left to right; none overlap."""
    ends = {segment.end: segment for segment in segments}
    starts = {segment.start: segment for segment in segments}
    ordinary = words("places", "stop", "ordinary")
    free = 0  # where the last part ended
    nothing = AddressPart(len(text) + 99, len(text) + 99, "")
    for hit, after in pairwise([*_hits(text), nothing]):
        touched = after.start == hit.end
        numbered = touched and after.kind in ("door", "room")
        if hit.kind in ("division", "door", "room"):
            if hit.kind == "door" and (
                numbered or _PART["building"].search(text, hit.start, hit.end)
            ):
                start = _name_start(text, hit.start, hit.start, ends, free)
                if hit.start - start > 1 and text[start : hit.start] not in ordinary:
                    yield AddressPart(start, hit.start, "estate")
            yield hit
            free = hit.end
            continue
        if touched and after.kind in ("street", "area", "estate"):
            continue  # 花园路, 龙泽苑小区: a part of the next one's name
        near = after.kind != "division" and after.start - hit.end <= _NEAR[hit.kind]
        if text[hit.start : hit.end] in words("places", "suffixes", "weak") and not (
            touched or near
        ):
            # A name may end here if no more of it follows.
            word = text[hit.end : starts[hit.end].end] if hit.end in starts else ""
            ends_here = (
                word in words("places", "stop", "words") or tags().get(word, "") in _CLOSING_TAGS
            )
            if (
                not ends_here
                and _HAN.match(text, hit.end)
                and not text.startswith(_CROSSINGS, hit.end)
            ):
                continue
        start = _name_start(text, hit.start, hit.end, ends, free)
        # Words of every day are no names; with a number behind it, 云|山路 is a street.
        last = ends.get(hit.end)
        inside = (
            last is not None and last.start < hit.start and not (numbered and start < last.start)
        )
        word = text[last.start : hit.end] if last and inside else ""
        named = start < hit.start and ordinary.isdisjoint((word, text[start : hit.end]))
        if named or (touched and hit.end - hit.start > 2):
            yield AddressPart(start, hit.end, hit.kind)
            free = hit.end


def _hits(text: str) -> Iterator[AddressPart]:
    """Divisions, numbered doors, rooms, and the suffixes of streets, areas and estates."""
    at, kind = 0, ""  # the kind of what ends here
    while at < len(text):
        if text[at : at + 2] in _division_starts() and (
            length := _division(text, at, kind == "division")
        ):
            end = at + length
            kind = "division"
        elif found := _PART["suffix"].match(text, at):
            end = found.end()
            kind = found.lastgroup or ""
        elif (
            kind not in ("", "division")
            and (room := _PART["room"].match(text, at))
            and room[0].strip()
        ):
            end, kind = room.end(), "room"
        else:
            end, kind = at + 1, ""
        if kind:
            yield AddressPart(at, end, kind)
        at = end


def _division(text: str, at: int, follows: bool) -> int:
    """Length of the division that starts here, 0 for none: a short name only where it is no street's or estate's."""
    for end in range(min(at + 11, len(text)), at + 1, -1):
        full = divisions().get(text[at:end])
        if full is not None:
            alone = not _PART["suffix"].match(text, end) and (
                follows or text[at:end] in _large_divisions()
            )
            return end - at if full or alone else 0
    return 0


def _name_start(text: str, at: int, suffix_end: int, ends: dict[int, Segment], free: int) -> int:
    """Where the name before a suffix starts: at the left end of the words that a name may hold."""
    suffix = at
    # The segment that holds the suffix may begin before it.
    at = next(
        (
            ends[end].start
            for end in range(at + 1, suffix_end + 1)
            if end in ends and ends[end].start < at
        ),
        at,
    )
    while at > free and suffix - at < _LONGEST_NAME and (segment := ends.get(at)):
        word = text[segment.start : at]
        tag = tags().get(word, "")
        skipped = tag in _SKIPPED_TAGS and (len(word) == 1 or at != suffix)
        if skipped or word in words("places", "stop", "words") or not _NAMING.fullmatch(word):
            break
        at = segment.start
    return max(at, free)
