"""People in Chinese text: which of the names that the segmenter reads are private persons'."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from math import log

from h2htalk.curation.anonymize.chinese.jieba_dictionary import dictionary, tags, usual
from h2htalk.curation.anonymize.chinese.latin_names import latin_names
from h2htalk.curation.anonymize.chinese.name_segmenter import (
    BEFORE,
    KIN,
    STRONG,
    Segment,
    is_letter,
    listed_characters,
    ordinary,
    right_cue,
    surnames,
)
from h2htalk.curation.anonymize.chinese.words import patterns, sections, words
from h2htalk.text.chinese_surnames import looks_foreign

_RE = patterns("persons")

_SCORES = {
    "full": 0.85,
    "title": 0.8,
    "nick": 0.75,
    "given": 0.65,
    "doubled": 0.65,
    "foreign": 0.7,
    "surname": 0.6,
}
_LONGEST_PUBLIC = 10
_NAMES = frozenset({"nr", "nrfg", "nrt"})
_RARE_SURNAME, _FREQUENT_SURNAME = log(0.002), log(0.0055)
_EVERYDAY = 60  # occurrences in the dictionary's corpus


@cache
def _public() -> frozenset[str]:
    return sections("public_figures")[""] | sections("things")[""] | sections("cedict")["figures"]


@cache
def _public_starts() -> frozenset[str]:
    return frozenset(name[:2] for name in _public())


def persons(text: str, segments: Sequence[Segment]) -> Iterator[tuple[int, int, float]]:
    """(start, end, score in [0, 1]) of each person; none overlap.

    Args:
        segments: the text's segments (`name_segmenter.segment_text`).
    """
    dotted = [found.span() for found in _RE["dotted"].finditer(text)]
    named = [s for s in segments if s.shape and not any(a < s.end and s.start < b for a, b in dotted)]
    # Whom a text introduces as a figure is one wherever it names them.
    figures = {text[s.start : s.end] for s in named if _known(text, s)}
    for segment in named:
        if text[segment.start : segment.end] in figures or _is_word(text, segment):
            continue
        score = _SCORES[segment.shape.partition("+")[0]]
        yield segment.start, segment.end, min(0.95, score + (0.1 if segment.cue >= KIN else 0.0))
    for hit in _RE["parent"].finditer(text):
        if hit["child"] not in _NO_CHILD and not _listed(text, hit.start(), hit.end()):
            yield hit.start(), hit.end(), 0.65
    for start, end in dotted:
        figure = _RE["famous"].search(text[max(0, start - 6) : start])
        figure = figure or _RE["theory"].match(text, end) or _RE["law"].match(text, end)
        if not figure and not _listed(text, start, end):
            yield start, end, 0.7
    yield from latin_names(text)


_NO_CHILD = frozenset(
    "陪想问试劝帮聊说走坐抱亲听写管催妈爸爷奶姥婆公哥姐弟妹叔姑舅姨宝常天人个家时刚偷悄慢渐默轻狠好早乖等看谢骂哭笑"
)
_LONG_TITLES = ("妈妈", "爸爸", "奶奶", "爷爷")


def _is_word(text: str, segment: Segment) -> bool:
    """Whether the characters are rather words: in the dictionary, or a rare surname before what no name is made of."""
    start, end = segment.start, segment.end
    if segment.shape == "surname" or _RE["naming"].search(text, max(start - 5, 0), start):
        return False
    word, shape = text[start:end], segment.shape
    if word in ordinary() or word in words("persons", "context", "kin"):
        return True
    if shape in ("full", "given") and segment.cue < STRONG and word in sections("cedict")["words"]:
        return True
    if _weakly_placed(text, segment):
        return True
    if usual(word, 5 if tags().get(word, "nr") not in _NAMES else _EVERYDAY):
        # The dictionary calls many words names; behind "my sister" a name may be a rarer word.
        family = surnames().get(word[0], -99.0) > _FREQUENT_SURNAME or word[0] == "小"
        if word[0] in "老小" and surnames().get(word[1:], -99.0) > _FREQUENT_SURNAME:
            return False
        if shape == "foreign" and right_cue(text, end) > 1 and tags().get(word, "nr") in _NAMES:
            return False
        return segment.cue < KIN or (usual(word, 100) and not (family and tags().get(word) in _NAMES))
    if shape in ("nick", "doubled", "given") and usual(text[start : end + 1], 5) and is_letter(text, end):
        return True  # 小可|爱
    if shape == "given+title" and len(word) == 4 and usual(word[:2], 5) and usual(word[2:], 5):
        return True  # 学长学姐
    if text[max(start - 3, 0) : start].rstrip('“"「').endswith("叫做") or (start and text[start - 1].isdigit()):
        return True
    if len(word) > 2 and segment.cue < STRONG and dictionary()[0].get(word) == 0:
        return True  # 万念俱灰: a word of the dictionary begins so
    if word.endswith("老师") and _RE["teaching"].match(text, end):
        return True
    own = _RE["own"].search(text, max(start - 10, 0), start) is not None
    if shape == "full+title" and word.endswith("老师") and not own and _RE["speaking"].match(text[end : end + 20]):
        return True  # who teaches in public
    if shape == "title" and (word.endswith(_LONG_TITLES) or word[0] == "于") and is_letter(text, start - 1):
        return word[0] in "向于对从"
    if segment.cue >= KIN:
        return False
    if shape == "foreign":
        return right_cue(text, end) < 1
    if shape != "full":
        return False
    if start and usual(text[start - 1 : start + 1]) and surnames().get(word[0], -99.0) < _FREQUENT_SURNAME:
        return True  # 有钱|可挣
    rare = surnames().get(word[:2], surnames().get(word[0], -99.0)) < _RARE_SURNAME
    if not listed_characters(word) and (rare or len(word) == 2) and word[0] != word[1]:
        return True
    # 像盛满水, 欢乐颂安迪: what something is like, and two characters with nothing before that announces a name.
    return text[start - 1 : start] == "像" or (
        rare and len(word) == 2 and (segment.cue < 0 or right_cue(text, end) < 0.6)
    )


def _weakly_placed(text: str, segment: Segment) -> bool:
    """Whether nothing on either side says that a person is meant; real chat has more such words than such names."""
    shape, left, right = segment.shape, segment.cue, right_cue(text, segment.end)
    if left < 0 and shape in ("full+title", "foreign+title"):
        return True
    if left < KIN and any(looks_foreign(text[segment.start : segment.end + more]) for more in (1, 2)):
        return shape == "full" and right < 0  # 费洛伊|德
    if shape == "full":
        long = segment.end - segment.start > 2 and listed_characters(text[segment.start : segment.end])
        return (right < 0 and left < (0 if long else BEFORE)) or (right < 1 and left < 0 and not long)
    return left < BEFORE and ((shape == "given" and right < 0) or (shape == "doubled" and right < 1))


def _known(text: str, segment: Segment) -> bool:
    """Whether a public or fictional figure is meant: by the list, or by what is said of the work."""
    if segment.cue < STRONG and _listed(text, segment.start, segment.end):
        return True
    before = text[max(0, segment.start - 8) : segment.start]
    if before.endswith("叫"):
        return _RE["famous"].search(before[:-1]) is not None
    if _RE["law"].match(text, segment.end):
        return True
    if segment.cue >= KIN:
        return False
    if _RE["theory"].match(text, segment.end):
        return True
    if "+" in segment.shape or segment.shape in ("title", "nick"):
        return False
    return _RE["work"].match(text, segment.end) is not None or _RE["famous"].search(before) is not None


def _listed(text: str, start: int, end: int) -> bool:
    """Whether a name of the list holds this one, or starts it (its title follows)."""
    names = _public()
    for first in range(max(0, start - 4), start + 1):
        if text[first : first + 2] not in _public_starts():
            continue
        for last in range(max(first + 2, start + 2), min(len(text), first + _LONGEST_PUBLIC) + 1):
            if text[first:last] in names and (last >= end or first == start):
                return True
    return False
