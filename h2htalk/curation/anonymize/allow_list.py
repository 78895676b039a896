"""What stays: names of the companion, people and figures whom everybody knows, titles of works between 《》.

They are marked before anything is looked for, so that no part of them is taken for somebody private. (Help lines stay
too: `phones.is_hotline` knows them.) A figure's name beside a telephone number or an address is a person's all the
same, and so is one that somebody says is theirs ("my name is").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module, resources
from typing import Literal

from h2htalk.curation.anonymize.chinese.jieba_dictionary import usual
from h2htalk.curation.anonymize.english.word_lists import words
from h2htalk.curation.anonymize.normalization import plain
from h2htalk.curation.anonymize.spans import Span
from h2htalk.data.languages import find_language
from h2htalk.data.persona import bundled_personas

Kind = Literal["companion", "figure", "title"]
# A cue between a name and a value that is this person's, and little else.
_BETWEEN = re.compile(
    r"[\s,，:：;；、/|()（）。.\-]{0,4}(?:的|'s)?\s?"
    r"(?:(?:my|the|his|her|their)\s)?"
    r"(?:电话|手机号?|号码|联系方式|地址|住址|住在|家住|住|微信号?|邮箱|身份证号?|收货地址|tel|telephone|phone|cell|mobile|number|address|"
    r"email|e-mail|mail|lives at|lives)?"
    r"(?:码|是| is| at| number)?[\s,，:：;；、/|()（）。.\-]{0,3}"
)
_NEAR = frozenset(
    {
        "PHONE_NUMBER",
        "ADDRESS",
        "NATIONAL_ID",
        "CREDIT_CARD",
        "ACCOUNT_NUMBER",
        "EMAIL_ADDRESS",
        "QQ",
        "WECHAT",
    }
)
_LONGEST_GAP = 24
# Before a name: that it is the speaker's, or on a form.
_SPEAKERS_OWN = re.compile(
    r"(?:叫|名字是|本名|真名|姓名|户名|收件人|收货人|联系人|my name is|my name's|name is|name:|"
    r"i am called|call me|im called|i'm called)[\s:：是]{0,3}$"
)
# Before a name that private people bear too: that it is the speaker's, or one of their circle.
_KIN_EN = (
    "ex|boss|sister|brother|mom|mum|mother|dad|father|wife|husband|girlfriend|boyfriend|partner|fiance|fiancee|friend|"
    "bestie|roommate|housemate|flatmate|neighbor|neighbour|coworker|colleague|manager|supervisor|teacher|professor|"
    "tutor|coach|therapist|counselor|counsellor|doctor|dentist|landlord|landlady|daughter|son|kid|cousin|uncle|aunt|"
    "nephew|niece|grandma|grandmother|grandpa|grandfather|classmate|crush|stepdad|stepmom|stepfather|stepmother|"
    "bully|stalker|abuser|client|patient|student|pastor"
)
_KIN_ZH = (
    "前男友|前女友|前任|男朋友|女朋友|男友|女友|对象|老公|老婆|丈夫|妻子|爱人|同桌|同学|室友|舍友|闺蜜|朋友|发小|邻居|同事|"
    "老板|领导|上司|主管|经理|组长|老师|班主任|导师|教练|医生|咨询师|房东|女儿|儿子|孩子|爸爸|妈妈|爸|妈|父亲|母亲|哥哥|姐姐|"
    "弟弟|妹妹|哥|姐|弟|妹|表哥|表姐|表弟|表妹|堂哥|堂姐|堂弟|堂妹|叔叔|舅舅|姑姑|阿姨|学长|学姐|学弟|学妹|客户|学生"
)
_PRIVATE_CUE = re.compile(
    r"(?:(?<![a-z])(?:(i'm|i’m|im|i am|this is)|(?:my|his|her|our|their)\s(?:[a-z]{2,10}[\s-])?"
    rf"(?:{_KIN_EN})(?:,|\snamed|\scalled|\sis|\swas|'s\sname\sis)?)\s|"
    rf"(?:我是|我就是|(?:我|他|她|我们|咱)(?:的|们|家)?.{{0,2}}(?:{_KIN_ZH})(?:叫|是|名叫)?))$"
)
_NO_NAME_WORD = re.compile(r"\s*(?:$|[^\w\s]|(?:and|from|here|but|speaking|writing|by the way|btw|again)(?![a-z]))")
_TITLES = re.compile(r"《[^《》\n]{1,60}》")
_BESIDE = 0.7
# A run of Latin letters and digits, in lower case.
_RUN = re.compile("[0-9a-z\u00df-\u024f]+")
_FOLLOWING = re.compile(r" ([A-Z][a-zà-ÿ]{2,})")
_LETTER = re.compile(r"[^\W\d_]")
_HAN = re.compile("[\u4e00-\u9fff]")
# Surnames that are said as words as well do not count in front of a companion's name (和, 向, 于).
_NAMING_SURNAMES = frozenset(
    "王李张刘陈杨黄赵吴周徐孙朱胡郭林罗郑梁谢宋唐许韩邓冯曹彭曾肖田董潘袁蔡蒋余杜苏魏吕丁沈姚卢钟姜崔谭陆汪范廖贾韦邹熊孟秦邱侯江尹薛闫段"
)
_GIVEN_LETTERS = frozenset("婷彤萱琪妍怡薇瑶莹倩颖蕾菲娜媛婉嫣雯蓉涵轩宇桐晴琳霖萌欣佳芸")
_CALLED = re.compile("(?:叫|是|名字|姓名)$")
_AFTER = re.compile("(?:^|[^\u4e00-\u9fff]|[叫是跟和找给好让被问])$")
_ENDS = re.compile(r"$|[^\u4e00-\u9fff]|[是的说和好也在我你她他很]")


@dataclass(frozen=True, slots=True)
class AllowedSpan:
    """Characters `start` to `end` stay, because of what they are."""

    start: int
    end: int
    kind: Kind

    def span(self) -> Span:
        """As recognisers take what they must leave alone."""
        return Span(self.start, self.end, f"allowed:{self.kind}", 1.0)


class NameIndex:
    """Names, found in a text in one walk over it: Latin ones as whole words, in any case."""

    def __init__(self, names: Iterable[str]) -> None:
        self._by_word: dict[str, list[str]] = {}
        self._by_start: dict[str, list[str]] = {}
        for name in sorted({to_lower(name) for name in names if name.strip()}, key=lambda n: (-len(n), n)):
            first = _RUN.match(name)
            if first is not None and name[0].isascii():
                self._by_word.setdefault(first.group(), []).append(name)
            else:
                self._by_start.setdefault(name[:1], []).append(name)
        starts = "".join(map(re.escape, self._by_start))
        self._start = re.compile(f"[{starts}]") if starts else None

    def find(self, lowered: str) -> list[tuple[int, int]]:
        """Where names stand in a text in lower case, from left to right, the longest where several begin."""
        matches = []
        if self._by_word and not self._by_word.keys().isdisjoint(_RUN.findall(lowered)):
            for run in _RUN.finditer(lowered):
                for name in self._by_word.get(run.group(), ()):
                    if lowered.startswith(name, run.start()) and is_whole_word(lowered, run.start(), name):
                        matches.append((run.start(), run.start() + len(name)))
                        break
        for start in self._start.finditer(lowered) if self._start else ():
            for name in self._by_start[start.group()]:
                if lowered.startswith(name, start.start()):
                    matches.append((start.start(), start.start() + len(name)))
                    break
        return sorted(matches)


def is_whole_word(text: str, at: int, name: str) -> bool:
    """Whether a name that begins and ends in Latin letters or digits stands in a text as words of its own."""
    end = at + len(name)
    return not (
        (name[0].isascii() and _is_latin_word_char(text[at - 1 : at]) and _is_latin_word_char(name[0]))
        or (name[-1].isascii() and _is_latin_word_char(text[end : end + 1]) and _is_latin_word_char(name[-1]))
    )


def _is_latin_word_char(char: str) -> bool:
    """Whether a character is a Latin letter or a digit; Han characters part words."""
    return char != "" and (char.isascii() or ord(char) < 0x250) and char.isalnum()


def to_lower(text: str) -> str:
    """In lower case, one character for one."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def companion_names(names: Iterable[str]) -> list[str]:
    """How companions are called: their names, and the first of several Latin words."""
    return [form for name in names for form in dict.fromkeys([name, *[w for w in name.split()[:1] if len(w) > 1]])]


@cache
def _figures(language: str) -> NameIndex:
    record = find_language(language)
    path = resources.files("h2htalk.curation.anonymize.public_figures") / f"figures_{language}.txt"
    lines = [x for x in path.read_text(encoding="utf-8").splitlines() if not x.startswith("#")]
    own = [name for line in lines for name in line.split("|" if record.spaced else None)]
    return NameIndex([*own, *import_module(record.name_recognizer).known_figures()])


@lru_cache(maxsize=64)
def _companions(names: tuple[str, ...]) -> NameIndex:
    return NameIndex([*_bundled(), *names])


@cache
def _bundled() -> tuple[str, ...]:
    return tuple(name for persona in bundled_personas().values() for name in persona.names.values())


def addressed_personas(texts: Iterable[str]) -> list[str]:
    """Names of bundled personas that a dialogue names in full: there "Nora" is Nora Vale, elsewhere somebody's."""
    lowered = to_lower(plain("\n".join(texts)))
    return [name for name in _bundled() if to_lower(name) in lowered]


def find_allowed(text: str, language: str, companions: Sequence[str] = ()) -> list[AllowedSpan]:
    """What stays in a text, in order; none overlap.

    Args:
        text: normalised one character to one character.
        language: `en` or `zh`.
        companions: names, each as it is (`companion_names` adds first words); bundled personas stay by their full
            names.
    """
    allowed = [Span(m.start(), m.end(), "title", 1.0) for m in _TITLES.finditer(text)] if "《" in text else []
    lowered = to_lower(text)
    allowed += [
        Span(a, b, "companion", 1.0)
        for a, b in _companions(tuple(companions)).find(lowered)
        if not _name_continues(text, a, b) and _inside_han_name(text, a, b) is None
    ]
    for start, end in _figures(language).find(lowered):
        if not _SPEAKERS_OWN.search(lowered[max(start - 16, 0) : start]) and not _is_private_mention(
            text, lowered, start, end
        ):
            allowed.append(Span(start, end, "figure", 0.9))
    # Names inside titles and the like: whichever holds the other stays.
    return [AllowedSpan(span.start, span.end, span.type) for span in _without_overlaps(allowed)]  # type: ignore[arg-type]


def private_namesakes(text: str, language: str, companions: Sequence[str] = ()) -> list[Span]:
    """Persons after all: figures' names that are somebody's whom the speaker knows, names longer than a companion's.

    Arguments as in `find_allowed`.
    """
    lowered = to_lower(text)
    longer = [_inside_han_name(text, a, b) for a, b in _companions(tuple(companions)).find(lowered)]
    return [span for span in longer if span is not None] + [
        Span(start, end, "PERSON", _BESIDE)
        for start, end in _figures(language).find(lowered)
        if _is_private_mention(text, lowered, start, end)
    ]


def _is_private_mention(text: str, lowered: str, start: int, end: int) -> bool:
    """Whether a name that a private person may bear ("Chris Evans"; no "Gandalf") is said of one."""
    name = text[start:end]
    private = len(name.split()) == 2 if name[0].isascii() else len(name) <= 3 and name[0] in _any_surnames()
    cue = _PRIVATE_CUE.search(lowered, max(start - 48, 0), start) if private else None
    # "I'm Harry Potter obsessed" says nobody's name.
    return cue is not None and (cue[1] is None or _NO_NAME_WORD.match(lowered, end) is not None)


@cache
def _any_surnames() -> frozenset[str]:
    from h2htalk.curation.anonymize.chinese.name_segmenter import surnames

    return frozenset(name[0] for name in surnames())


def _name_continues(text: str, start: int, end: int) -> bool:
    """Whether a word follows that makes it somebody else's: the companion is "Nora", and "Nora Smith" is not."""
    if " " in text[start:end] or not text[start].isascii():
        return False
    following = _FOLLOWING.match(text, end)
    return following is not None and to_lower(following[1]) not in words().words


def _inside_han_name(text: str, start: int, end: int) -> Span | None:
    """Somebody else's name that a companion's is part of: 苏晚 in 叫苏晚彤, 小雨 in 陈小雨."""
    if not _HAN.fullmatch(text[start]) or end - start < 2:
        return None
    before, after = text[max(start - 3, 0) : start], text[end : end + 2]
    if before[-1:] in _NAMING_SURNAMES and _AFTER.search(before[:-1]):
        return Span(start - 1, end, "PERSON", _BESIDE)
    if not _HAN.match(after) or after[0] not in _GIVEN_LETTERS or usual(after):
        return None
    if _CALLED.search(before) or _ENDS.match(after[1:]):
        return Span(start, end + 1, "PERSON", _BESIDE)
    return None


def _without_overlaps(spans: list[Span]) -> list[Span]:
    """In order, without overlaps: of those that begin earlier, the longer."""
    kept: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start, -s.end)):
        if not kept or span.start >= kept[-1].end:
            kept.append(span)
    return kept


def namesakes_beside_data(text: str, allowed: Sequence[AllowedSpan], found: Sequence[Span]) -> list[Span]:
    """Figures' names that stand beside what is somebody's: persons after all."""
    figures = [a for a in allowed if a.kind == "figure"]
    if not figures:
        return []
    values = sorted(span for span in found if span.type in _NEAR)
    persons = []
    for figure in figures:
        for value in values:
            if value.start - figure.end > _LONGEST_GAP:
                break
            gap = text[figure.end : value.start] if value.start >= figure.end else None
            back = text[value.end : figure.start] if value.end <= figure.start else None
            near = gap is not None and _BETWEEN.fullmatch(to_lower(gap)) is not None
            if near or (back is not None and len(back) <= 3 and not _LETTER.search(back)):
                persons.append(Span(figure.start, figure.end, "PERSON", _BESIDE))
                break
    return persons
