"""Words and contexts that organisations are told by."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from h2htalk.curation.anonymize.chinese.address_parts import divisions
from h2htalk.curation.anonymize.chinese.jieba_dictionary import tags, usual
from h2htalk.curation.anonymize.chinese.name_segmenter import Segment
from h2htalk.curation.anonymize.chinese.words import words

KINDS = ("firm", "school", "care", "worship", "club", "office")
BRANCH = re.compile(
    r"[(（][^()（）\s]{1,12}(?:店|支行|分行|分公司|分校|校区|分院|院区|门诊|厂)[)）]"
    r"|(?:(?![门那这的在]|旁边|楼下|对面)[^\W\d_]){1,5}(?:店|支行|分行|分公司|分校|校区|分院|院区|分店|门店)"
)
CUT = 4


@cache
def suffixes() -> dict[str, str]:
    return {word: kind for kind in KINDS for word in words("organizations", "suffixes", kind)}


@cache
def loose_suffixes() -> frozenset[str]:
    """Suffixes that have other uses: organisations only where the context says so."""
    return words("organizations", "suffixes", "loose")


@cache
def leading_words() -> frozenset[str]:
    return words("organizations", "generic", "leading")


@cache
def generic_words() -> frozenset[str]:
    return words("organizations", "generic", "words") | frozenset(suffixes())


@cache
def ends_name() -> frozenset[str]:
    """Words that no name begins with or holds."""
    return words("places", "stop", "words") - {
        *(
            "同学",
            "朋友",
            "老师",
            "希望",
            "未来",
            "需要",
            "存在",
            "一直",
            "大家",
            "自己",
            "常",
            "三",
            "东",
            "西",
        ),
    }


@cache
def words_before() -> frozenset[str]:
    return words("organizations", "context", "before")


@cache
def words_after() -> tuple[tuple[str, ...], tuple[str, ...]]:
    return (
        tuple(sorted(words("organizations", "context", "after"))),
        tuple(sorted(words("organizations", "context", "cut"))),
    )


def context_of(text: str, start: int, end: int) -> int:
    """Whether somebody works, learns or is treated there.

    0 for nothing, 1 at the start of a clause, 2 for a word before or after, 3 for both, `CUT` for what only an
    organisation does or has.
    """
    head = text[max(0, start - 5) : start]
    if any(head.endswith(word) for word in words("organizations", "context", "sure")):
        return CUT
    before = any(head.endswith(word) for word in words_before())
    after, cut = words_after()
    if text.startswith(cut, end):
        return CUT
    found = before + text.startswith(after, end)
    return found + 1 if found else int(not head or not head[-1].isalnum())


def only_generic(core: str) -> bool:
    """Whether a name is put together from words that name a kind alone."""
    generic = generic_words()
    reach = {0}
    for at in range(len(core)):
        if at in reach:
            reach |= {end for end in range(at + 1, min(len(core), at + 5) + 1) if core[at:end] in generic}
    return len(core) in reach


@cache
def stating() -> tuple[str, ...]:
    return tuple(sorted(word for word in words("organizations", "context", "sure") if len(word) > 1))


_LONGEST_BARE = 12  # characters of a name that no suffix ends
_BARE_BEFORE = re.compile(
    r"(?:入职|跳槽到|跳槽去|就职于|签了|签约|签到|去了|进了|考上了?|考进了?|拿到|跳到|投了|收到|接到"
    r"|加盟|混进|挂靠在?|外派到?|派到|派驻|就职|任职|服务于|效力于|辞了|离开|我们公司|我公司|我司|东家"
    r"|上家|下家|供职于|任职于|毕业于|就读于|待过|公司叫|学校叫|单位叫|店叫|应聘了?|加入了?|面试了?"
    r"|(?<![现实存内自潜所正好还就都])在|报了|从)"
)
_BARE_AFTER = re.compile(
    r"(?:上(?:夜|早|晚|白|中)?班|夜班|值班|端盘子|洗碗|刷碗|切菜|配菜|搬砖|搬货|卖(?![力萌惨弄命])|后厨"
    r"|柜员|收银|理货|分拣|打包|送餐|送货|跑业务|驻[场唱]|站柜台|站岗|排练|彩排|集训|军训|培训|出差"
    r"|开会|值夜|带[班课团]|教[书课]|代课|办了?卡|续费|学[琴车画舞]|练[车琴舞]|做礼拜|做义工|化疗|透析"
    r"|抢救|急诊|坐月子|待了|呆了|熬了|混了|混日子|流水线|工作|实习|打工|任职|兼职|当[^时然初天晚年]"
    r"|做[^梦]|干了|读[书大高初研博]|念书|上学|住院|裁员|裁了|倒闭|的?offer|的HR|的hr|辞职|离职"
    r"|的(?:司机|员工|同事|客户经理|导游|护士))"
)


def names_without_suffix(text: str, segments: Sequence[Segment]) -> Iterator[tuple[int, int, float]]:
    """A name without a suffix between 在 and 上班."""
    starts = {segment.start: segment for segment in segments}
    for hit in _BARE_BEFORE.finditer(text):
        at = hit.end()
        strange = 0
        while at - hit.end() < _LONGEST_BARE and at in starts:
            segment = starts[at]
            word = text[segment.start : segment.end]
            tag = tags().get(word, "")
            if (at > hit.end() and _BARE_AFTER.match(text, at)) or word in ends_name() or not word.isalnum():
                break
            if tag in _BARE_ENDS or (segment.shape in ("full", "title") and segment.cue >= 2):
                break
            if word in _INNER or (len(word) > 1 and tag in ("v", "a", "d") and usual(word)):
                strange = -9
            strange += len(word) == 1 or tag in ("nz", "nt", "nr", "nrt", "")
            at = segment.end
        unusual = strange > 0 or (hit.group() in _SURE and strange >= 0)
        core = text[hit.end() : at]
        sure = hit.group() in _SURE and (
            at == len(text) or not "\u4e00" <= text[at] <= "\u9fff" or text[at] in "的了第半一两三做当快整才刚"
        )
        closed = _BARE_AFTER.match(text, at) is not None
        if unusual and len(core) > 1 and (closed or sure) and not only_generic(core) and not _place(core, bool(sure)):
            yield hit.end(), at, 0.65
    yield from _named(text)
    yield from _hiring(text, starts, segments)
    for hit in _brands().finditer(text):
        branch = BRANCH.match(text, hit.end())
        if hit.lastgroup or branch or context_of(text, hit.start(), hit.end()) > 2:
            yield hit.start(), branch.end() if branch else hit.end(), 0.6


def _named(text: str) -> Iterator[tuple[int, int, float]]:
    """ "Our shop is called X": whatever stands there."""
    for hit in _CALLED.finditer(text):
        name = hit.group("name")
        if not name.startswith(_NO_NAME) and not only_generic(name):
            yield hit.start("name"), hit.end("name"), 0.65


def _hiring(text: str, starts: dict[int, Segment], segments: Sequence[Segment]) -> Iterator[tuple[int, int, float]]:
    """What hires and fires: the words from the start of the clause on."""
    ends = {segment.end: segment for segment in segments}
    for hit in _HIRING.finditer(text):
        at = hit.start()
        strange = 0
        while at in ends and hit.start() - at < _LONGEST_BARE:
            segment = ends[at]
            word = text[segment.start : segment.end]
            tag = tags().get(word, "")
            if not word.isalnum() or word in ends_name() or tag in _BARE_ENDS or word in _INNER:
                break
            if len(word) > 1 and tag in ("v", "a", "d", "vn") and usual(word):
                break
            strange += tag in ("nz", "nt", "nr", "nrt", "") or bool(segment.shape)
            strange += len(word) == 1
            at = segment.start
        core = text[at : hit.start()]
        kin = any(segment.shape and segment.cue >= 2 for segment in segments if at <= segment.start < hit.start())
        if len(core) > 1 and strange and not kin and not only_generic(core) and not _place(core):
            yield at, hit.start(), 0.6


_HIRING = re.compile(
    r"(?:的(?:面试官|面试)|的?(?:offer|Offer|OFFER|录用通知|录取通知)|面试(?:挂|没过|凉|通过|官|那天)"
    r"|裁员|要裁|裁了|欠薪|拖欠工资|的(?:HR|hr|人事|猎头)|发不出工资|爆雷|暴雷)"
)
_CALLED = re.compile(
    r"(?:公司|店|琴行|乐队|社团|工作室|学校|工厂|厂子|机构|俱乐部|餐厅|诊所|饭店|酒吧|书店|画室|球队"
    r"|跑团|团队|组织|幼儿园|健身房|驾校|剧团|单位|医院|民宿|客栈|茶馆|咖啡馆|教会|互助组|小组|补习班"
    r"|培训班|社区团购|品牌)"
    r"(?:的?名字|名)?(?:就?叫做?|是叫|名叫|名为|叫作) "
    r"?[\"“]?(?P<name>[一-龥A-Za-z0-9]{2,12}?)(?=[\"”，。,.!！?？、;； \n]|$|就|的|，|在|是|吧|哈|呢|啊)"
)
_NO_NAME = tuple("我你他她它您咱停什啥得人来去不没")
# No employer is called by what a time or a place inside something ends with.
_INNER = frozenset("中里上下前后外内间时着过边处面个些们天年月号")
_BARE_ENDS = frozenset({"m", "t", "q", "f", "s", "r", "p", "c", "u", "uj", "ul", "y", "e", "o"})


@cache
def _brands() -> re.Pattern[str]:
    found = words("organizations", "brands", "words")
    listed = "|".join(sorted(found, key=lambda word: (-len(word), word)))
    return re.compile(f"(?P<bureau>{_BUREAUS})|{listed}")


_BUREAUS = (
    r"(?:中[铁建交水电冶]|铁建|水电|中水|中核|中化)[一二三四五六七八九十0-9]{1,3}局"
    r"|中(?:科院|国科学院|社科院|农科院)[一-龥]{1,6}?(?:研究)?所"
    r"|(?<![一二三四五六七八九十第0-9])[二三四五六七八九]?十[一二三四五六七八九]?中(?=老师|的[^间]|读"
    r"|念|毕业|上学|校|学生|初|高)"
    r"|(?<![一-龥])(?:省|市|县|区)(?:妇幼|实验|儿童医院|人医|中医院|图书馆)(?=[^保]|$)"
    r"|(?<=[在去到进])(?:省|市|县|区)(?:妇幼|实验|人医)(?=[^保]|$)"
    r"|(?:协和|湘雅|华西|同济|中山|郑大|苏大|南医大|安医大|重医|河医|山大|浙大|武大|西安交大|医大|中南"
    r"|广医|川医|哈医大|中国医大)(?:附属?[一二三四五]院?|[一二三四]院|医院|附院)"
    r"|(?<![A-Za-z])[A-Z][A-Za-z]{1,15}(?: [A-Z][a-z]{1,15}){0,2} "
    r"(?:Studio|Coffee|Inc|Lab|Labs|Tech|Group|Club|School|Hospital|College|University|Cafe|Bar|Gym"
    r"|Bank|Media|Design|Education|Fitness|Yoga)(?![A-Za-z])"
)
_SURE = frozenset(
    {"入职", "跳槽到", "跳槽去", "就职于", "供职于", "任职于", "待过", "公司叫", "店叫", "面试了", "应聘"}
)


def _place(core: str, sure: bool = False) -> bool:
    if any(core.endswith(word) for word in suffixes()):
        return True
    if sure and core not in divisions():
        return tags().get(core) in ("s", "t", "f", "m") or core in ends_name()
    return core in divisions() or tags().get(core) in ("ns", "s", "t", "n", "f", "v", "m")
