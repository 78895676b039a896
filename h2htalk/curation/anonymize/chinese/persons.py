"""People in Chinese text: which of the names that the segmenter reads are private persons'."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from h2htalk.curation.anonymize.chinese.latin_names import latin_names
from h2htalk.curation.anonymize.chinese.name_segmenter import KIN, STRONG
from h2htalk.curation.anonymize.chinese.name_segments import Segment
from h2htalk.curation.anonymize.chinese.nicknames import nicknames
from h2htalk.curation.anonymize.chinese.words import sections

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
_HAN = "\u4e00-\u9fff"
# A name in two parts: 买买提·阿不都. The dot joins what the segmenter parts.
_DOTTED = re.compile(f"[{_HAN}]{{1,7}}(?:[·•・‧][{_HAN}]{{1,7}}){{1,3}}")
_DOT = re.compile("[·•・‧]")
_WORK = re.compile(
    r"的?(?:新?歌|演得|演的|唱的那首|那首|原唱|代表作|新专|专辑|演唱会|新?电影|小说|新书|书里|作品|诗|词|画作|理论|粉丝|新剧|戏|动漫|动画|漫画|舞台|直播间|微博|定律|效应|心理学|语录|名言|传记?》)"
)
_FAMOUS = re.compile(
    r"(?:歌手|演员|导演|作家|明星|偶像|影星|歌星|主演|饰演|扮演|心理学家|哲学家|诗人|科学家|画家|音乐家|作曲家|主持人|博主|主播|网红|皇帝|总统|主席|古人|小说家|文学家|数学家|物理学家|企业家|教育家|思想家|听|听着|循环|翻唱|重温|读|偶像是|男神|女神|爱豆|追|粉|单曲循环|主人公|主角|角色|女主|男主|人物)$"
)


@cache
def _public() -> frozenset[str]:
    return sections("public_figures")[""] | sections("things")[""]


@cache
def _public_starts() -> frozenset[str]:
    return frozenset(name[:2] for name in _public())


def persons(text: str, read: Sequence[Segment]) -> Iterator[tuple[int, int, float]]:
    """(start, end, score in [0, 1]) of each person; none overlap.

    Args:
        read: the text's segments (`chinese_segments.segments`).
    """
    called = [span for span in nicknames(text) if not _listed(text, span[0], span[1])]
    yield from called
    dotted = [found.span() for found in _DOTTED.finditer(text)] if _DOT.search(text) else []
    for segment in read:
        if not segment.shape or any(start < segment.end and segment.start < end for start, end in dotted):
            continue
        if any(start < segment.end and segment.start < end for start, end, _ in called):
            continue
        if segment.cue < STRONG and _known(text, segment):
            continue
        score = _SCORES[segment.shape.partition("+")[0]]
        yield segment.start, segment.end, min(0.95, score + (0.1 if segment.cue >= KIN else 0.0))
    for start, end in dotted:
        yield from _two_parts(text, start, end, read)
    yield from latin_names(text)


def _known(text: str, segment: Segment) -> bool:
    """Whether a public or fictional figure is meant: by the list, or by what is said of the work."""
    if _listed(text, segment.start, segment.end):
        return True
    if segment.cue >= KIN or "+" in segment.shape or segment.shape in ("title", "nick"):
        return False
    before = text[max(0, segment.start - 6) : segment.start]
    return _WORK.match(text, segment.end) is not None or _FAMOUS.search(before) is not None


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


def _two_parts(text: str, start: int, end: int, read: Sequence[Segment]) -> Iterator[tuple[int, int, float]]:
    """A name with a dot starts with the segments of one character or of a name before the dot."""
    dot = next(at for at in range(start, end) if _DOT.match(text, at))
    first = dot
    after = end
    for segment in reversed([part for part in read if start <= part.start and part.end <= dot]):
        word = text[segment.start : segment.end]
        if segment.end != first or not (segment.shape or len(word) == 1) or word in _SMALL:
            break
        first = segment.start
    last_dot = max(at for at in range(start, end) if _DOT.match(text, at))
    for segment in read:
        if segment.start <= last_dot or segment.end > end:
            continue
        word = text[segment.start : segment.end]
        if segment.start > last_dot + 3 and (word in _SMALL or (len(word) > 1 and not segment.shape)):
            after = segment.start
            break
    if (
        first < dot
        and not _listed(text, first, after)
        and not _FAMOUS.search(text[max(0, first - 6) : first])
    ):
        yield first, after, 0.7


_SMALL = frozenset("像我你他她它的了是在和跟与给把被让叫说问找对向从到去来就都也又还很不没有这那吗呢吧啊")
