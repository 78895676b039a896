"""Chinese organisations by name: employers, schools, hospitals, churches, clubs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from h2htalk.curation.anonymize.chinese.address_parts import divisions, joined_by_and
from h2htalk.curation.anonymize.chinese.jieba_dictionary import tags, usual
from h2htalk.curation.anonymize.chinese.name_segmenter import Segment
from h2htalk.curation.anonymize.chinese.organization_words import (
    BRANCH,
    CUT,
    context_of,
    ends_name,
    generic_words,
    leading_words,
    loose_suffixes,
    names_without_suffix,
    only_generic,
    stating,
    suffixes,
    words_before,
)

_NEVER_TAGS = frozenset({"r", "p", "c", "u", "uj", "ul", "y", "e", "o", "d"})
# Verbs, numbers, times and the like end a name where they are everyday words (建设 and 第七 do not).
_OFTEN_TAGS = frozenset({"v", "m", "t", "f", "q", "s", "l", "i"})
_NAMED_TAGS = frozenset({"nz", "nt", "nr", "nrt", "nrfg", "ns"})
_LONGEST_NAME = 14


@cache
def _suffix_pattern() -> re.Pattern[str]:
    return re.compile("|".join(sorted(map(re.escape, suffixes()), key=lambda word: (-len(word), word))))


def organizations(text: str, segments: Sequence[Segment]) -> Iterator[tuple[int, int, float]]:
    """(start, end, score in [0, 1]) of each organisation, from left to right; none overlap.

    Args:
        segments: the text's segments (`name_segmenter.segment_text`).
    """
    free = 0
    suffixed = list(_suffixed(text, segments))
    covered = {at for start, end, _ in suffixed for at in range(start, end)}
    bare = [span for span in names_without_suffix(text, segments) if covered.isdisjoint(range(span[0], span[1]))]
    for start, end, score in sorted([*suffixed, *bare], key=lambda span: (span[0], -span[1])):
        if start >= free:
            yield start, end, score
            free = end


def _suffixed(text: str, segments: Sequence[Segment]) -> Iterator[tuple[int, int, float]]:
    ends = {segment.end: segment for segment in segments}
    free = 0
    hits = list(_kinds(text))
    for number, hit in enumerate(hits):
        if (
            number + 1 < len(hits)
            and hits[number + 1].start() == hit.end()
            and hits[number + 1].group() not in loose_suffixes()
        ):
            continue
        end = hit.end()
        cut = len(hit.group()) < 3 and hit.group() not in _GENERIC_NAMES
        if cut and end not in ends and not any(at in ends and ends[at].shape for at in range(end + 1, end + 4)):
            continue  # 二小 of 十二小时
        if _other_words(text, hit, ends):
            continue
        start = _start(text, hit.start(), end, ends, free)
        core = text[start : hit.start()]
        if len(core.strip()) > 4 and core.strip().isdigit():
            continue  # 95306 物流: a number is called
        score = _score(text, core, hit.group(), start, end)
        if score < 0.5 or start < free:
            continue
        branch = BRANCH.match(text, end)
        if branch and branch.end() in ends and ends[branch.end()].start >= end:
            end = branch.end()
        yield start, end, score
        free = end


def _kinds(text: str) -> Iterator[re.Match[str]]:
    """Suffixes from left to right; one that is cut through by another goes: 八中 of 第八|中学."""
    pattern = _suffix_pattern()
    for hit in pattern.finditer(text):
        for at in range(hit.start() + 1, hit.end()):
            other = pattern.match(text, at)
            if other and other.end() > hit.end():
                hit = other
                break
        yield hit


def _other_words(text: str, hit: re.Match[str], ends: dict[int, Segment]) -> bool:
    """Whether the suffix is cut through or said in another sense: 失败中|学到, 教会我, 大学生."""
    suffix = hit.group()
    follows = text[hit.end() : hit.end() + 1]
    if suffix == "教会" and follows in tuple("我你他她它人了孩"):
        return True
    if (suffix == "中学" and follows in tuple("到会习了")) or (suffix == "大学" and follows == "习"):
        return True
    if follows == "生" and suffix in ("大学", "中学", "小学", "高中", "初中", "幼儿园", "学校"):
        return True
    last = ends.get(hit.end())
    if (
        last is not None
        and len(suffix) == 1
        and last.end - last.start > 1
        and tags().get(text[last.start : last.end], "n")[0] in "nvti"
    ):
        return True  # 迷宫
    apart = last is not None and last.end - last.start == 1 and len(suffix) == 2
    return apart and usual(suffix)


def _start(text: str, at: int, limit: int, ends: dict[int, Segment], free: int) -> int:
    """The left end of the name before a suffix that starts at `at`."""
    start = next((ends[end].start for end in range(at + 1, limit + 1) if end in ends and ends[end].start < at), at)
    while start > free and at - start < _LONGEST_NAME:
        segment = ends.get(start)
        if segment is None or segment.start < free or not _may_name(text, segment, at):
            inner = joined_by_and(text, start, ends)
            if inner >= free and inner >= 0:
                start = inner
            elif segment is not None and segment.end == at and _stated(text, segment, at):
                start = segment.start
            break
        if text[max(0, start - 4) : start].endswith(stating()):
            break
        start = segment.start
    return start


def _stated(text: str, segment: Segment, at: int) -> bool:
    """Whether an everyday word is a name, since a place is told: 在|安定|医院."""
    word = text[segment.start : at]
    return (
        len(word) == 2
        and text[segment.start - 1 : segment.start] in ("在", "到", "于", "进")
        and (tags().get(word) in ("v", "f", "s") and word not in leading_words() and word not in ends_name())
    )


def _may_name(text: str, segment: Segment, at: int) -> bool:
    word = text[segment.start : segment.end]
    if word in ends_name() or word in words_before() or word in leading_words() or not word.isalnum():
        return False
    tag = tags().get(word, "")
    if word in _NAMING_WORDS:
        return True
    if tag == "m" and all(letter in _NUMERALS for letter in word):
        return True  # 第|三十九|中学
    if len(word) > 1 and (tag in _NEVER_TAGS or (tag in _OFTEN_TAGS and usual(word) and word[0] != "第")):
        return False
    # A person before it is not its name: 我跟陈晨在…
    return not (segment.shape in ("full", "title") and segment.cue >= 2 and segment.end < at)


def _score(text: str, core: str, suffix: str, start: int, end: int) -> float:
    """How sure it is that a name with a suffix is one, in [0, 1]."""
    context = context_of(text, start, end)
    kind = suffixes()[suffix]
    placed = core[:1] in tuple("市省县区") and kind in ("school", "care", "office")
    placed = placed and (
        len(core) > 1 or suffix[:1] in _ORDINALS or suffix in _STATE_SUFFIXES or len(suffix) > 3 or context > 1
    )
    if not core or placed or (suffix == "人民医院" and core in divisions()):
        own = placed or suffix in _COMPLETE_SUFFIXES or (suffix[:1] in _ORDINALS and len(suffix) == 2)
        return 0.6 if own and context > (0 if placed else 1) else 0.0
    if kind == "office" and _governed(core):
        return 0.7
    spread = core in divisions() and suffix in loose_suffixes() | _EVERYWHERE
    if core in generic_words() or (spread and context < 3):
        return 0.0
    if suffix in loose_suffixes() and core.endswith(("心理", "性", "学校", "家庭", "个人", "社会")):
        return 0.0
    named, plain = not only_generic(core), _plain(core)
    if suffix in loose_suffixes():
        sure = context == CUT or context > (2 if plain else 1)
        if named and not sure and context and not plain and 1 < len(core) < 4 and _FUNCTION_CHARACTERS.isdisjoint(core):
            return 0.55
        return 0.7 if named and sure and len(core) > 1 else 0.0
    if not named:
        numbered = _ORDINAL.match(core) is not None and context > 0
        return 0.6 if numbered or (context > 1 and _placed(core)) else 0.0
    if len(core) == 1 or plain:
        return 0.6 if context > (1 if len(core) == 1 else 0) else 0.0
    return 0.85 if context > 1 else 0.75


# Words of every day that firms and schools are named by.
_NAMING_WORD_LIST = (
    "希望 未来 成长 起点 起航 腾飞 飞翔 绽放 启蒙 启航 奋斗 飞跃 超越 领航 卓越 自在 自由 遇见 悦己 "
    "爱心 春天 阳光 幸福 快乐 开心 美丽"
)
_NAMING_WORDS = frozenset(_NAMING_WORD_LIST.split())
_GENERIC_NAMES = frozenset({"中学", "大学", "学院", "医院", "小学", "公司", "法院", "工厂", "药店", "超市", "诊所"})
_ORDINAL = re.compile("第[一二三四五六七八九十百0-9]{1,4}")
_FUNCTION_CHARACTERS = frozenset("了着过的不于到中里上下别没在是有去来我你他她能会要想得把被给和点")
_NUMERALS = frozenset("第零〇一二三四五六七八九十百0123456789")
_ORDINALS = tuple("一二三四五六七八九十")
_COMPLETE_SUFFIXES = frozenset(
    {"疗护中心", "灵光堂", "县中", "省实验", "人民医院", "恩典堂", "实验二小", "实验一小", "福音堂"}
)
_STATE_SUFFIXES = frozenset(
    {
        "卫校",
        "党校",
        "人民医院",
        "妇幼保健院",
        "医院",
        "中医院",
        "公安局",
        "民政局",
        "教育局",
        "法院",
        "税务局",
    }
)
_EVERYWHERE = frozenset(
    {
        "银行",
        "公司",
        "超市",
        "集团",
        "餐厅",
        "饭店",
        "书店",
        "花店",
        "火锅店",
        "便利店",
        "海关",
        "面馆",
        "学校",
    }
)


def _governed(core: str) -> bool:
    """Whether a court or a bureau is a district's: 四方台区|法院."""
    return any(core[:length] in divisions() and core[:length][-1] in "省市区县" for length in range(2, 8))


def _placed(core: str) -> bool:
    """Whether a place or a number tells which one it is: 市第三人民医院, 武汉职业技术学院."""
    return any(core[:length] in divisions() for length in range(2, 6)) or core[:1] in "市省县区" or "第" in core


def _plain(core: str) -> bool:
    """Whether a name is one common word of the language: 互联网, 星座."""
    return tags().get(core, "nz") not in _NAMED_TAGS and usual(core, 1000)
