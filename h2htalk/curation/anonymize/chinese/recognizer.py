"""Names of people and addresses in Chinese text. Organisations are not looked for.

An address is a run of parts from province to room that leads to a door, a building or a village.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from h2htalk.curation.anonymize.chinese.persons import Segment, persons, segment_text
from h2htalk.curation.anonymize.chinese.words import patterns, sections, tags, words
from h2htalk.curation.anonymize.spans import Span, plain, resolve_overlaps
from h2htalk.text.chinese_characters import simplified

_RE, _ADDRESS, _PART = map(patterns, ("recognizer", "addresses", "address_parts"))

# Stands where something was found before or must not be read. No letter, so that nothing runs over it.
MASK = "\u25a1"
LONGEST_STRETCH = 1000  # characters read at once
_CUTS = (re.compile("[\n。！？!?；;]+"), re.compile("[，,、 ]+"))


def reads(text: str) -> bool:
    """Whether a message of a dialogue in another language holds Chinese words."""
    return _RE["han_name"].search(text) is not None


def known_figures() -> list[str]:
    """Names of public and fictional figures that are long enough to belong to nobody else."""
    return [name for name in sections("public_figures")[""] | sections("cedict")["figures"] if len(name) > 2]


def find_names(texts: Sequence[str], taken: Sequence[Sequence[Span]]) -> list[list[Span]]:
    """Find people and addresses in Chinese texts: jieba's dictionary with priors for names, and rules.

    A person's span is the whole form of address (小王, 张老师), an address goes from its first word to its last.
    Public and fictional figures and what stands in 《》 are left out; so is a city or a country alone.

    Args:
        texts: n texts of any length; time is proportional to it.
        taken: for each of them spans found before; nothing is found inside them.

    Returns:
        n lists of PERSON and ADDRESS spans that do not overlap. Scores 0.5 to 0.95: a ranking, no
        probability.
    """
    return [_find_in_text(text, spans) for text, spans in zip(texts, taken, strict=True)]


def _find_in_text(text: str, taken: Sequence[Span]) -> list[Span]:
    masked = _masked(simplified(plain(text)), ((span.start, span.end) for span in taken))
    spans: list[Span] = []
    for start, end in _stretches(masked):
        if _RE["nameable"].search(masked, start, end):
            # Resolved stretch by stretch: the time that it takes grows with the square of their number.
            spans += resolve_overlaps(_find(masked[start:end], start))
    return spans


def _masked(text: str, places: Iterable[tuple[int, int]]) -> str:
    parts = []
    at = 0
    for start, end in sorted(places):
        if end > at:
            start = max(start, at)
            parts += [text[at:start], MASK * (end - start)]
            at = end
    return "".join([*parts, text[at:]]) if parts else text


def _stretches(text: str) -> Iterator[tuple[int, int]]:
    """Pieces of bounded length, cut where sentences or clauses end, else anywhere."""
    start = 0
    while len(text) - start > LONGEST_STRETCH:
        end = start + LONGEST_STRETCH
        for mark in _CUTS:
            cuts = [found.end() for found in mark.finditer(text, start + LONGEST_STRETCH // 2, end)]
            if cuts:
                end = cuts[-1]
                break
        yield start, end
        start = end
    if start < len(text):
        yield start, len(text)


def _find(stretch: str, offset: int) -> Iterator[Span]:
    seen, at = _without(stretch, _RE["lettered"])
    close, joined = _without(seen, _RE["spaced"])
    segments = segment_text(seen)
    titles = [found.span() for found in _RE["titled"].finditer(seen)]
    near = segments if close == seen else segment_text(close)
    wide = widen_addresses(close, sorted(addresses(close, near)), near)
    placed = [Span(joined[start], joined[end - 1] + 1, "ADDRESS", score) for start, end, score in wide]
    blocked = [*titles, *((span.start, span.end) for span in placed)]
    people = [
        Span(start, end, "PERSON", score)
        for start, end, score in persons(seen, segments)
        if not any(start < last and first < end for first, last in blocked)
    ]
    for span in (*placed, *people):
        yield Span(offset + at[span.start], offset + at[span.end - 1] + 1, span.type, span.score)


def _without(text: str, dropped: re.Pattern[str]) -> tuple[str, Sequence[int]]:
    """The text without what a pattern finds, and where each of its characters stood."""
    gaps = [found.span() for found in dropped.finditer(text)]
    if not gaps:
        return text, range(len(text))
    left = list(range(len(text)))
    for start, end in reversed(gaps):
        del left[start:end]
    return "".join(text[at] for at in left), left


# --- Addresses ---

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
    if gap and after.kind in ("door", "room"):
        return before.kind != "division" and gap in (" ", "-", ",", "，", "—")
    return _ADDRESS["separator"].fullmatch(gap) is not None


def _address(text: str, chain: list[AddressPart]) -> Iterator[tuple[int, int, float]]:
    # Doors alone lead somewhere only where one follows another: 3栋2单元501.
    while chain and chain[0].kind in ("door", "room") and [p.kind for p in chain[:2]] != ["door", "door"]:
        chain = chain[1:]
    if not chain:
        return
    score, told = _score(text, chain), text[chain[0].start : chain[-1].end]
    if score and _ADDRESS["leads_home"].search(told) and not _ADDRESS["repeated"].search(told):
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
    return 0.6 if numbered > 1 else 0.0


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
    numbered = _ADDRESS["ends_numbered"].search(text, max(0, end - 2), end) is not None
    for pattern in (_ADDRESS["door"], _ADDRESS["dashed"], _ADDRESS["tail"], _ADDRESS["bare"]):
        found = pattern.match(text, end)
        if found and (numbered or pattern is not _ADDRESS["bare"]):
            return found.end()
    if text[end - 1].isdigit() and (unit := _ADDRESS["unit"].match(text, end)):
        return unit.end()
    named = _ADDRESS["name"].match(text, end) if numbered else None
    if named is None or _is_sentence(named.group()):
        return end
    behind = _ADDRESS["door"].match(text, named.end()) or _ADDRESS["bare"].match(text, named.end())
    return behind.end() if behind else end


def _is_sentence(name: str) -> bool:
    """Whether what stands between two parts is a sentence and no house's name."""
    stripped = name.strip(" ,，")
    return not (set(stripped) - {"和"}).isdisjoint(_BREAKS)


def cued_homes(text: str) -> Iterator[ScoredRange]:
    """What is numbered like a house after "I live at": 住|临江门12-8."""
    for hit in _ADDRESS["cued_home"].finditer(text):
        name = hit.group("name")
        if not ((_BREAKS - {"和"}) & set(name)) and not name.startswith(_NO_HOME):
            yield hit.start("name"), hit.end(), 0.6


# --- Their parts: divisions, streets, areas, estates, doors and rooms ---

_NUMERAL = "0-9零〇一二两三四五六七八九十百千"
_NUMBER = f"(?:[甲乙丙丁]?[{_NUMERAL}]{{1,7}}|[A-Za-z](?![a-z])[0-9]{{0,4}})(?:[-—–][0-9A-Za-z]{{1,5}}){{0,4}}[A-Za-z]?"
_CROSSINGS = ("交叉", "交汇", "交界", "路口", "拐角", "十字路口")
_LONGEST_NAME = 9  # characters of a street's or an estate's name before its suffix
_SKIPPED_TAGS = frozenset({"r", "p", "c", "u", "uj", "ul", "y", "e", "o"})
_NAME_TAGS = frozenset({"ns", "nz", "nt", "nr", "nrt", "nrfg"})
# After a name that has ended.
_CLOSING_TAGS = frozenset({"u", "uj", "ul", "p", "c", "v", "d", "y", "f", "r", "vn", "zg", "t", "s"})
# A part may be followed so closely by the name of the next one: 石桥乡大李庄村. An estate's last character is seldom
# one, but stands in the next name.
_NEAR = {"street": 6, "area": 6, "estate": 0}


@dataclass(frozen=True, slots=True)
class AddressPart:
    """A part of an address: division, street, area, estate, door (a number with its word) or room (a bare number)."""

    start: int
    end: int
    kind: str


@cache
def _suffixes() -> re.Pattern[str]:
    kinds = []
    for kind in ("estate", "area", "street"):
        found = "|".join(sorted(words("places", "suffixes", kind), key=lambda word: (-len(word), word)))
        tail = "(?:(?:[东西南北中上下]|[一二三四五六七八])段)?(?:店|口(?=[0-9]))?" if kind == "street" else ""
        kinds.append(f"(?P<{kind}>(?:{found}){tail})" + ("(?!口)" if kind == "street" else ""))
    door = "|".join(sorted(words("places", "suffixes", "door"), key=lambda word: (-len(word), word)))
    # Not 39号 of "39号楼下", not 门 of "1204门口".
    door = f"{_NUMBER}\\s?(?:(?:{door})(?<!楼(?=下))(?<!门(?=口))(?<!街(?=路)))"
    door += f"|[东南西北中]?[{_NUMERAL}A-Z]?区(?![别分域])"
    return re.compile(f"(?P<door>{door})|" + "|".join(kinds))


@cache
def divisions() -> dict[str, bool]:
    """Names of provinces, cities and districts; whether each is the full one, that shows its rank."""
    found: dict[str, bool] = {}
    for level in ("provinces", "cities", "districts"):
        for entry in sections("divisions")[level]:
            full, _, short = entry.partition("/")
            found[full] = len(full) > 2
            if len(short) > 1:
                found.setdefault(short, False)
    return found


@cache
def _stops() -> frozenset[str]:
    return words("places", "stop", "words")


@cache
def _ordinary() -> frozenset[str]:
    return words("places", "stop", "ordinary")


def address_parts(text: str, segments: Sequence[Segment]) -> Iterator[AddressPart]:
    """Parts from left to right; none overlap."""
    ends = {segment.end: segment for segment in segments}
    starts = {segment.start: segment for segment in segments}
    free = 0  # where the last part ended
    hits = list(_hits(text))
    for number, hit in enumerate(hits):
        after = hits[number + 1] if number + 1 < len(hits) else None
        touched = after is not None and after.start == hit.end
        if hit.kind in ("division", "door", "room"):
            doors = touched and after is not None and after.kind in ("door", "room")
            if (
                hit.kind == "door"
                and hit.start > free
                and (doors or _PART["building"].search(text, hit.start, hit.end))
            ):
                start = _name_start(text, AddressPart(hit.start, hit.start, "estate"), ends, free)
                if hit.start - start > 1 and text[start : hit.start] not in _ordinary():
                    yield AddressPart(start, hit.start, "estate")
            yield hit
            free = hit.end
            continue
        if touched and after is not None and after.kind in ("street", "area", "estate"):
            continue  # 花园路, 龙泽苑小区: a part of the next one's name
        near = after is not None and after.kind != "division" and after.start - hit.end <= _NEAR[hit.kind]
        open_end = not (touched or near or _closes(text, hit.end, starts))
        if open_end and text[hit.start : hit.end] in weak():
            continue
        start = _name_start(text, hit, ends, free)
        numbered = touched and after is not None and after.kind in ("door", "room")
        named = start < hit.start and not _common(text, start, hit, ends, numbered)
        if named or (touched and hit.end - hit.start > 2):
            yield AddressPart(start, hit.end, hit.kind)
            free = hit.end


@cache
def weak() -> frozenset[str]:
    return words("places", "suffixes", "weak")


def _closes(text: str, at: int, starts: dict[int, Segment]) -> bool:
    """Whether a name may end here: no more of it follows."""
    if at >= len(text) or not "\u4e00" <= text[at] <= "\u9fff" or text.startswith(_CROSSINGS, at):
        return True
    segment = starts.get(at)
    if segment is None:
        return False
    word = text[segment.start : segment.end]
    return word in _stops() or tags().get(word, "") in _CLOSING_TAGS


def _hits(text: str) -> Iterator[AddressPart]:
    """Divisions, numbered doors, rooms, and the suffixes of streets, areas and estates."""
    suffixes = _suffixes()
    at = 0
    roomy = -1  # where a bare number would be a room's
    before = -1  # where the last division ended
    while at < len(text):
        length = _division(text, at, at == before) if text[at] in _division_starts() else 0
        if length:
            yield AddressPart(at, at + length, "division")
            at = before = at + length
            continue
        found = suffixes.match(text, at)
        if found:
            yield AddressPart(at, found.end(), found.lastgroup or "")
            at = roomy = found.end()
            continue
        room = _PART["room"].match(text, at) if at == roomy else None
        if room and room.group().strip():
            yield AddressPart(at, room.end(), "room")
            at = roomy = room.end()
            continue
        at += 1


def _division(text: str, at: int, follows: bool) -> int:
    """Length of the division that starts here, 0 for none: a short name only where it is no street's or estate's."""
    known = divisions()
    for length in range(11, 1, -1):
        word = text[at : at + length]
        if word not in known or len(word) < length:
            continue
        if known[word]:
            return length
        if _suffixes().match(text, at + length) or (word not in _large_divisions() and not follows):
            return 0
        return length
    return 0


@cache
def _large_divisions() -> frozenset[str]:
    """Short names of provinces and cities."""
    return frozenset(
        entry.partition("/")[2] for level in ("provinces", "cities") for entry in sections("divisions")[level]
    )


@cache
def _division_starts() -> frozenset[str]:
    return frozenset(name[0] for name in divisions())


def _name_start(text: str, hit: AddressPart, ends: dict[int, Segment], free: int) -> int:
    """Where the name before a suffix starts: at the left end of the words that a name may hold."""
    at = hit.start
    # The segment that holds the suffix may begin before it.
    holder = next(
        (ends[end] for end in range(hit.start + 1, hit.end + 5) if end in ends and ends[end].start < hit.start),
        None,
    )
    if holder is not None and holder.end <= hit.end:
        at = holder.start
    while at > free and hit.start - at < _LONGEST_NAME:
        segment = ends.get(at)
        if segment is None or not _may_name(text, segment, at == hit.start):
            break
        at = segment.start
    return max(at, free)


def _may_name(text: str, segment: Segment, last: bool) -> bool:
    word = text[segment.start : segment.end]
    if word in _stops() or not all("\u4e00" <= letter <= "\u9fff" or letter.isalnum() for letter in word):
        return False
    tag = tags().get(word, "")
    return not (tag in _SKIPPED_TAGS and (len(word) == 1 or not last))


def _common(text: str, start: int, hit: AddressPart, ends: dict[int, Segment], numbered: bool) -> bool:
    """Whether it is a word of every day. With a number behind it, 云|山路 is a street."""
    word = text[start : hit.end]
    last = ends.get(hit.end)
    if word in _ordinary() or (
        last is not None
        and last.start < hit.start
        and not (numbered and start < last.start)
        and text[last.start : last.end] in _ordinary()
    ):
        return True
    single = hit.end - hit.start == 1
    return single and len(word) == 2 and tags().get(word, "ns") not in _NAME_TAGS
