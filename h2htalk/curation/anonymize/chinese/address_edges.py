"""Where Chinese addresses begin and end: the division before, and what leads on to the door behind."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from h2htalk.curation.anonymize.chinese.jieba_dictionary import tags
from h2htalk.curation.anonymize.chinese.name_segmenter import Segment
from h2htalk.curation.anonymize.chinese.words import words

_N = "0-9零〇一二两三四五六七八九十"
_DOORS = (
    "号楼(?!下)|号院|号底楼|号门|号房|号铺|号店|号馆|号床|号|弄|栋|幢|座|单元|期|区|楼(?!下)|层|室|房"
    "|户|门(?!口)|排|组|档|舍|床|铺|苑|阁|院|座楼|塔|#楼|#"
)
_NUMBER = (
    f"(?:[甲乙丙丁附负]{{0,2}}[{_N}]{{1,6}}|[A-Za-z](?![a-z])[0-9]{{0,4}}"
    f"|[甲乙丙丁])(?:[-—–][0-9A-Za-z]{{1,5}}){{0,4}}[A-Za-z]?"
)
# No amount, year, time or number of something else.
_NO_AMOUNT = r"(?![0-9A-Za-z.:：%]|[年月日天点分秒元块个人岁次米斤平万千百条张件公路站折度])"
_DOOR = re.compile(rf"[ ,，、\-—/之]{{0,2}}{_NUMBER} ?(?:{_DOORS})(?![铃卡费])")
_BARE = re.compile(
    rf"(?:[-—–/ 之]|[,，、] ?)?[A-Za-z]?(?:[0-9]{{2,5}}|[0-9](?=[-—–]))(?:[-—–][0-9A-Za-z]{{1,5}}){{0,3}}{_NO_AMOUNT}"
)
_DASHED = re.compile(rf"(?:[-—–][0-9A-Za-z]{{1,5}}){{1,4}}{_NO_AMOUNT}")
_UNIT = re.compile("#?(?:号楼|楼(?!下)|栋|幢|座|单元|舍|档|铺|号|室|#)")
_CUED_HOME = re.compile(
    r"(?:我住|住在|住|新家|家在|家是|搬到了?|搬去了?|搬进了?|寄到|寄给我|寄|地址是|地址[:：]|住址[:：是]"
    r"|送到|送货到|快递放|导航到?|打车到|接我|租在|租了|藏在|躲在|我在|人在)"
    rf"(?P<name>[一-龥]{{2,12}}?) ?(?:(?:{_NUMBER})(?:号楼|号院|号房|栋|幢|座|单元|舍|室|号)(?![人码线车店的])"
    rf"|[0-9]{{1,3}}[-—–][0-9]{{1,4}}(?:[-—–][0-9]{{1,4}})?{_NO_AMOUNT})"
)
_NO_HOME = ("院", "宿", "宿舍", "过", "着", "进", "在", "到", "第", "快递", "外卖", "酒店第")
# On foot from the gate: 东门, 楼顶, 左手第二间, 村东头.
_TAIL = re.compile(
    r" ?(?:[东西南北前后侧正大]{1,2}门(?![子口])|[东西南北]{1,2}(?:[侧头角户]|(?=[，。,. ]|$))"
    r"|底楼(?!疼|痛)|[左右中]户|负[一二三四1-4]楼|地下[一二三负1-3]{1,2}[层楼]"
    r"|地下室|阁楼|顶[层楼]|楼?顶(?![上级多着])|楼上(?=[0-9])|临街|沿街|底商|门面房?|[左右]手?(?:边"
    r"|侧)?(?=第)|靠?[左右]手边?第?[一二三四五六七八九十0-9]+[间户家个]|后院|前院"
    rf"|第[{_N}]{{1,3}}(?:间|家|户|排|栋|个门|道门|个院子|幢)|倒数第[{_N}](?:间|家|户|排)"
    rf"|[{_N}]{{1,2}}[单层]|老?[一-龥]{{1,2}}树(?:下|旁|底下)(?=第)|(?:的)?(?:丰巢|菜鸟驿站|快递柜"
    rf"|传达室|收发室|保安亭|门卫室|门岗))"
)
# Names a house between a number and a floor: 华星时代 十一楼. Han and Latin letters, no number.
_NAME = re.compile(
    r"[ ,，]?[一-龥A-Za-z·]{2,10}?(?=[ ]?(?:[A-Z]?[0-9]|[A-Z]座|[A-Z]栋"
    r"|[一二三四五六七八九十]{1,3}[号楼层栋幢座区期]|负[一二三]))"
)
_LEVEL = "省市州盟旗县区镇乡"
_LONGEST_DIVISION = 7
_ENDS_NUMBERED = re.compile(rf"(?:[0-9A-Za-z]|[{_N}路街巷道段口号村]|(?:{_DOORS}))$")
_VERBS = frozenset({"v", "vn", "d", "p", "r", "c", "u", "uj", "ul", "y", "e"})
ScoredRange = tuple[int, int, float]


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
    numbered = _ENDS_NUMBERED.search(text, max(0, end - 2), end) is not None
    for pattern in (_DOOR, _DASHED, _TAIL, _BARE):
        found = pattern.match(text, end)
        if found and (numbered or pattern is not _BARE):
            return found.end()
    if text[end - 1].isdigit() and (unit := _UNIT.match(text, end)):
        return unit.end()
    named = _NAME.match(text, end) if numbered else None
    if named is None or _is_sentence(named.group()):
        return end
    behind = _DOOR.match(text, named.end()) or _BARE.match(text, named.end())
    return behind.end() if behind else end


def _is_sentence(name: str) -> bool:
    """Whether what stands between two parts is a sentence and no house's name."""
    stripped = name.strip(" ,，")
    return not (set(stripped) - {"和"}).isdisjoint(_BREAKS)


def cued_homes(text: str) -> Iterator[ScoredRange]:
    """What is numbered like a house after "I live at": 住|临江门12-8."""
    for hit in _CUED_HOME.finditer(text):
        name = hit.group("name")
        if not ((_BREAKS - {"和"}) & set(name)) and not name.startswith(_NO_HOME):
            yield hit.start("name"), hit.end(), 0.6
