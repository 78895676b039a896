"""Chinese organisations by name: a private person's employer, school, hospital, church or club.

Only on strong evidence: a registered form of name (…有限公司), or a proper name that somebody belongs to (我在…上班).
Everyday words before 公司, 大学 or 医院 are no name, and an organisation that nobody belongs to stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from h2htalk.curation.anonymize.chinese.address_parts import divisions
from h2htalk.curation.anonymize.chinese.jieba_dictionary import tags, usual
from h2htalk.curation.anonymize.chinese.name_segmenter import Segment
from h2htalk.curation.anonymize.chinese.words import patterns, words

_RE = patterns("organizations")

_KINDS = ("firm", "school", "care", "worship", "club", "office")
_LONGEST_NAME = 14
_REGISTERED = ("有限公司", "有限责任公司", "股份公司", "集团公司", "律师事务所", "会计师事务所", "合伙企业")
_CLAUSES = 14  # characters before the name in which somebody is spoken of
_NAMED_TAGS = frozenset({"nz", "nt", "nr", "nrt", "nrfg", "ns"})
# Occurrences in the dictionary's corpus from which a word is everyday, and from which a verb is one.
_EVERYDAY, _SEEN = 400, 20


@cache
def _suffixes() -> dict[str, str]:
    found = {word: kind for kind in _KINDS for word in words("organizations", "suffixes", kind)}
    return found | dict.fromkeys(_REGISTERED, "firm")


@cache
def _loose() -> frozenset[str]:
    """Suffixes that have other uses."""
    return words("organizations", "suffixes", "loose")


def _set(name: str) -> frozenset[str]:
    """A set of words that names are made of."""
    return words("organizations", "inside", name)


@cache
def _generic() -> frozenset[str]:
    return (
        words("organizations", "generic", "words")
        | words("organizations", "generic", "leading")
        | frozenset(_suffixes())
    )


@cache
def _suffix_pattern() -> re.Pattern[str]:
    return re.compile("|".join(sorted(map(re.escape, _suffixes()), key=lambda word: (-len(word), word))))


def organizations(text: str, segments: Sequence[Segment]) -> Iterator[tuple[int, int, float]]:
    """(start, end, score in [0, 1]) of each organisation, from left to right; none overlap.

    Args:
        segments: the text's segments (`name_segmenter.segment_text`).
    """
    free = 0
    for start, end, score in sorted([*_with_suffix(text, segments), *_without_suffix(text)]):
        if start >= free:
            yield start, end, score
            free = end


def _with_suffix(text: str, segments: Sequence[Segment]) -> Iterator[tuple[int, int, float]]:
    ends = {segment.end: segment for segment in segments}
    for hit in _suffix_pattern().finditer(text):
        if text[hit.end() : hit.end() + 1] in ("生", "习", "到", "会") or not _is_apart(text, hit, ends):
            continue
        start = _start(text, hit, ends)
        inner = [segment for segment in segments if start <= segment.start < hit.start()]
        whole = text[start] not in _POINTING and _FUNCTION_CHARACTERS.isdisjoint(text[start : hit.start()])
        if not inner or not whole or not _is_proper(text, inner):
            continue
        if hit.group() in _REGISTERED:
            yield start, hit.end(), 0.85
        elif _belongs(text, start, hit.end(), hit.group()):
            yield start, hit.end(), 0.75
        elif _is_distinct(text, inner, hit.group()):
            yield start, hit.end(), 0.65


def _is_apart(text: str, hit: re.Match[str], ends: dict[int, Segment]) -> bool:
    """Whether the suffix is no part of another word: 二小 of 十二小时; 南昌大学 is a word, and a name."""
    last = ends.get(hit.end())
    if last is None or last.start >= hit.start() or last.shape:
        return last is not None
    return text[last.start : hit.end()] not in tags() or text[last.start : hit.start()] in divisions()


def _start(text: str, hit: re.Match[str], ends: dict[int, Segment]) -> int:
    """The left end of the name before a suffix."""
    last = ends[hit.end()]
    start = min(last.start, hit.start())
    while start not in ends and start > 0 and hit.start() - start < _LONGEST_NAME and text[start - 1].isalnum():
        start -= 1
    while hit.start() - start < _LONGEST_NAME and (segment := ends.get(start)) and _may_name(text, segment):
        start = segment.start
    return start


def _may_name(text: str, segment: Segment) -> bool:
    word = text[segment.start : segment.end]
    if not word.isalnum() or word in _stops():
        return False
    if (
        len(word) == 1
        or word in _set("auspicious")
        or word in divisions()
        or _RE["ordinal"].fullmatch(word)
        or word in _generic()
    ):
        return word not in "的了是在我你他她它们去来到和跟与就都也这那有个位家所读上进从被把给让对为向"
    return not (tags().get(word, "n")[0] in "vadrpcutmfqsily" and usual(word, _EVERYDAY))


@cache
def _stops() -> frozenset[str]:
    return words("places", "stop", "words") | words("organizations", "generic", "leading")


def _is_proper(text: str, inner: Sequence[Segment]) -> bool:
    """Whether the words of a name hold a place, a name or a word that few use, and nothing of every day."""
    proper = False
    for segment in inner:
        word = text[segment.start : segment.end]
        if len(word) == 1 or word in _generic() or _RE["ordinal"].fullmatch(word):
            continue
        common = usual(word, _EVERYDAY) or (tags().get(word) == "v" and usual(word, _SEEN))
        if word not in _set("auspicious") and word not in divisions() and common:
            return False
        proper = True
    letters = sum(segment.end - segment.start == 1 and not text[segment.start].isdigit() for segment in inner)
    return (proper and text[inner[0].start : inner[-1].end] not in _set("countries")) or letters > 1


def _belongs(text: str, start: int, end: int, suffix: str) -> bool:
    """Whether somebody works, learns or is treated there, by the words before and behind, and who is spoken of."""
    before, after = _RE["before"].search(text, max(start - 6, 0), start), _RE["after"].match(text, end)
    spoken_of = _RE["person"].search(text, max(start - _CLAUSES, 0), start) is not None
    told = (before is not None) + (after is not None)
    if suffix not in _loose():
        return told > 0
    # 装修 and 咨询 are done as well.
    return told > 1 or (told == 1 and spoken_of and tags().get(suffix, "n")[0] != "v")


def _is_distinct(text: str, inner: Sequence[Segment], suffix: str) -> bool:
    """Whether a school, a hospital or a works is named by words that no dictionary has, and by no everyday one:
    江陵县云岗高级中学. A place alone (杭州小学) names none."""
    if suffix in _loose() or len(suffix) < 2 or _suffixes()[suffix] not in ("firm", "school", "care"):
        return False
    named = [text[segment.start : segment.end] for segment in inner]
    if len(named[0]) < 2:
        return False
    own = [word for word in named if word in divisions() or tags().get(word, "ns") in ("ns", "nt", "nz")]
    return any(word not in divisions() for word in own) and all(
        word in own or word in _generic() or word in _set("auspicious") for word in named
    )


def _without_suffix(text: str) -> Iterator[tuple[int, int, float]]:
    """A name behind "joined" or "our shop is called", and between 在 and 上班 one that no dictionary has."""
    for pattern in (_RE["bare"], _RE["at_work"]):
        for hit in pattern.finditer(text):
            name = hit["name"]
            if not _FUNCTION_CHARACTERS.isdisjoint(name):
                continue
            if name in _generic() | _stops() or name in divisions() or name[0] in _POINTING + "外家":
                continue
            unknown = name not in tags() or tags()[name] in _NAMED_TAGS
            brand = name in words("organizations", "brands", "words")
            if unknown and (brand or (pattern is _RE["bare"] and not usual(name, _EVERYDAY))):
                yield hit.start("name"), hit.end("name"), 0.65


_POINTING = "我你他她一那这哪某什"
_FUNCTION_CHARACTERS = frozenset("你我他她去的就是不了很会定要把被和跟时")
