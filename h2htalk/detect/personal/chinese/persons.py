"""Names of people in Chinese text: the readings of its characters, and which of the names read are private persons'.

How likely a stretch is a name is a natural logarithm, on the scale of a unigram segmenter: a name is taken where it
explains the characters better than the dictionary's words do (`segment_text`). The priors were set on chat text by hand
(docs/measurements.md).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from math import log
from typing import NamedTuple

from h2htalk.detect.personal.chinese.words import (
    dictionary,
    patterns,
    sections,
    table,
    tags,
    usual,
    words,
)
from h2htalk.detect.personal.english import persons as english
from h2htalk.text.chinese_characters import TRANSLITERATION

# Of a thousand characters, a handful belong to names, in chat; each shape has its share.
_FULL = -6.0
_GIVEN = -7.5
_NICK = -8.0
_TITLED = -10.0
_DOUBLED = -9.5
_FOREIGN = -8.0
# How firm the context before a name is.
STRONG = 7.0
KIN = 3.5
BEFORE = 2.0
_EDGE = 1.2  # a name begins a clause
_INSIDE = -1.2
# The same behind a name.
_AFTER = 1.4
_RIGHT_EDGE = 0.6
_RIGHT_INSIDE = -1.5
_RARE = 0.4  # weight of a character that is not listed among those of given names
_LONGEST_CUE = 6  # characters
_LONGEST_TITLE = 4  # characters
_FAMILIAR = -8.5  # log probability of a usual given name after a surname
_KNOWN_GIVEN = -16.0  # log probability of a usual given name alone
_TITLE_WORD = -5.5  # log probability of a title of several characters after a name
_TITLE_LETTER = -5.0  # log probability of a title of one character after a name
_DIGITS = 9  # of log probabilities
_TIE = 1e-9  # two readings whose scores differ by less are equally good
_LARGEST_LOSS = 8.0  # of log probability
_LARGEST_OF_GIVEN = 5.0  # the same for a given name alone
_NAMING_ENDS = frozenset("叫名:人做称字我作款写是")
_KIN_LETTERS = frozenset("姐哥姨叔婶嫂爷妹")
_INNER = (
    -13.7
)  # sum of the log probabilities of a given name's characters, the least inside a clause
_JUNK = 20  # what the dictionary calls a name and has seen less often is often a wrong cut
_NAME_TAGS = frozenset({"nr", "nrfg", "nrt"})
_FOREIGN_LETTERS = TRANSLITERATION | frozenset("·・")
_LONGEST_PUBLIC = 10  # characters
_COMMON_SURNAME = log(0.0055)
_PERSON = patterns("persons")
_LATIN = patterns("latin_names")


class Segment(NamedTuple):
    """A way to read `text[start:end]`, with its log probability: a word of the dictionary, or a name: of which `shape`,
    how firm the context is (`cue`), by how much worse than the best reading (`loss`) and better than words (`gain`)."""

    start: int
    end: int
    score: float
    cue: float = 0.0
    shape: str = ""
    loss: float = 0.0
    gain: float = 0.0


def _log_shares(weights: Mapping[str, float]) -> dict[str, float]:
    """The logarithm of each weight's share, rounded: sums of floats differ between versions of Python."""
    total = sum(weights.values())
    return {key: round(log(weight / total), _DIGITS) for key, weight in weights.items()}


@cache
def surnames() -> dict[str, float]:
    """Log probabilities of surnames."""
    rows = table("persons")["surnames"]
    weights = {
        letter: float(weight)
        for weight, row in rows.items()
        if weight != "double"
        for letter in row
    }
    return _log_shares(weights | dict.fromkeys(rows["double"].split(), 0.8))


@cache
def _given() -> dict[str, float]:
    rows = reversed(table("persons")["given"].items())  # the first that holds a character counts
    return _log_shares({letter: float(weight) for weight, row in rows for letter in row})


@cache
def _rare() -> float:
    total = sum(float(weight) * len(row) for weight, row in table("persons")["given"].items())
    return round(log(_RARE / total), _DIGITS)


@cache
def given(letter: str, left: float = 0.0) -> float | None:
    """Log probability of a character of a given name; None where no name has it."""
    characters = table("persons")["characters"]
    if letter in characters["never"] or (left < STRONG and letter in characters["seldom"]):
        return None
    return _given().get(letter, _rare() if is_letter(letter, 0) else None)


@cache
def _cues() -> dict[str, float]:
    gains = (("before", BEFORE), ("kin", KIN), ("strong", STRONG))
    return {word: gain for key, gain in gains for word in words("persons", "context", key)}


def is_letter(text: str, at: int) -> bool:
    return 0 <= at < len(text) and "\u4e00" <= text[at] <= "\u9fff"


def left_cue(text: str, start: int) -> float:
    """What stands before says of a name here, from none (negative) to "my name is"."""
    near = text[max(0, start - 3) : start]
    gap = start - len(near) + len(near.rstrip("\"“”'‘’「」:：( （【*"))
    for length in range(min(_LONGEST_CUE, gap), 0, -1):
        gain = _cues().get(text[gap - length : gap])
        if gain is not None and (gap == start or gain >= KIN):
            return gain
    return _INSIDE if is_letter(text, start - 1) else _EDGE


def right_cue(text: str, end: int) -> float:
    if not words("persons", "context", "after").isdisjoint(
        (text[end : end + 2], text[end : end + 1])
    ):
        return _AFTER
    return _RIGHT_INSIDE if is_letter(text, end) else _RIGHT_EDGE


def _title_end(text: str, at: int) -> int:
    """Where a title that starts here ends, `at` where there is none."""
    titles = words("persons", "titles", "after_surname")
    return next(
        (
            end
            for end in range(min(at + _LONGEST_TITLE, len(text)), at, -1)
            if text[at:end] in titles
        ),
        at,
    )


@cache
def _beginnings() -> frozenset[str]:
    """The characters with which a name may begin."""
    return frozenset("小老阿大").union(
        _FOREIGN_LETTERS, _given(), (name[0] for name in (*surnames(), *_whole_names()))
    )


def name_candidates(text: str, start: int) -> Iterator[Segment]:
    """The ways in which a name may begin here."""
    first = text[start]
    second = text[start + 1 : start + 2]
    family = surnames()
    two_given = first in _given() and (second in _given() or second == "儿")
    listed = text[start : start + 2] in _starts(_whole_names()) or _FOREIGN_LETTERS.issuperset(
        text[start : start + 3]
    )
    kin = second in _KIN_LETTERS and first in _given() and not dictionary()[0].get(first + second)
    if not (
        listed
        or two_given
        or kin
        or first in family
        or first + second in family
        or first in "小老阿大"
    ):
        return
    left = left_cue(text, start)
    if kin:  # 红姐, 萍姨
        yield Segment(
            start,
            start + 2,
            _TITLED + _given()[first] + right_cue(text, start + 2),
            left,
            "given+title",
        )
    for end in (start + 1, start + 2):
        if text[start:end] in family:
            yield from _after_surname(text, start, end, left)
    if first in "小老阿大":
        yield from _nick(text, start, left)
    if two_given:
        yield from _given_only(text, start, left)
    alone = not is_letter(text, start + 1) or text[start + 1] == "的"
    if first in family and text[start - 1 : start] == "姓" and alone:
        yield Segment(start, start + 1, 0.0, STRONG, "surname")
    if listed:
        yield from _listed_name(text, start, left)


def _after_surname(text: str, start: int, at: int, left: float) -> Iterator[Segment]:
    family = surnames()[text[start:at]]
    # 对于|妈妈, 或许|姐姐, 连|老板: the surname is a word, or belongs to the word before.
    function = left < STRONG and text[start] in table("persons")["characters"]["weak"]
    end = _title_end(text, at)
    inside = start > 0 and usual(text[start - 1 : at])
    word = left < KIN and (inside or text[start:end] in words("persons", "titles", "not_title"))
    if (
        end > at
        and not word
        and not (function and text[start] in table("persons")["characters"]["before_nouns"])
    ):
        around = max(left, 0.0) + max(right_cue(text, end), -0.5)
        yield Segment(start, end, _TITLED + family + around, left, "title")
    score = _FULL + family + left
    if len(text[start:at]) > 1 and not word:  # 欧阳 alone
        yield Segment(start, at, score + right_cue(text, at), left, "surname")
    one = given(text[at : at + 1], left)
    two = given(text[at + 1 : at + 2], left)
    if one is None or (left < KIN and function and not _given().keys() >= set(text[at : at + 2])):
        return
    yield from _closed(text, start, at + 1, score + one - 1.0, left, "full")
    known = text[at] in _given() or text[at + 1 : at + 2] in _given()
    known = known and (
        left >= KIN or not (_is_common(text[start : at + 1]) or _is_common(text[at : at + 2]))
    )
    ordinary = left < STRONG and text[start : at + 1] in words("persons", "ordinary", "words")
    if two is not None and (known or left >= BEFORE) and not ordinary:
        pair = _FAMILIAR if text[at : at + 2] in words("persons", "nicknames", "given") else -99.0
        yield from _closed(text, start, at + 2, score + max(one + two, pair), left, "full")


def _is_common(word: str) -> bool:
    """Whether a word is usual and no name: 周末 in 周末更, 可能 in 时可能."""
    return (
        usual(word)
        and tags().get(word) not in _NAME_TAGS
        and word not in words("persons", "nicknames", "given")
    )


@cache
def _may_be_given(word: str) -> bool:
    """Whether a word of everyday language may be somebody's given name or nickname: 高兴, 栋梁, 猴子."""
    named = (
        len(word) == 2
        and word[0] not in "小老阿大"
        and word[1] != "天"
        and _given().keys() >= set(word)
    )
    named = named and tags().get(word, "-")[0] in "nazb" and not usual(word, 6000)
    return named or word in words("persons", "nicknames", "words")


def _closed(
    text: str, start: int, end: int, score: float, left: float, shape: str
) -> Iterator[Segment]:
    """The name as it is, and with a title that follows it."""
    name = text[start:end]
    if left < STRONG and name in words("persons", "ordinary", "words"):  # looks like a full name
        return
    yield Segment(start, end, score + right_cue(text, end), left, shape)
    titled = _title_end(text, end)
    # A word before a title may be none of its name: 照顾|妈妈, 语文|老师, 学长|学姐.
    word = usual(name, 60) and tags().get(name) not in _NAME_TAGS
    word = word or name in words("persons", "titles", "after_surname")
    if titled > end and not word:
        score += _AFTER + (_TITLE_WORD if titled - end > 1 else _TITLE_LETTER)
        yield Segment(start, titled, score, left, shape + "+title")


def _nick(text: str, start: int, left: float) -> Iterator[Segment]:
    prefix = text[start]
    name = text[start + 1 : start + 2]
    refused = {"小": "not_small", "老": "not_old", "阿": "not_a"}.get(prefix)
    if not name or (refused and prefix + name in words("persons", "nicknames", refused)):
        return
    family = surnames().get(name, -99.0)
    if prefix in "老大":
        score = family if family > log(0.004) or prefix == "老" else -99.0
        if prefix == "大":
            score -= 3.0
    else:
        least = _rare() if left >= KIN else -99.0
        score = max(family, (_given().get(name, least) if given(name) is not None else -99.0) + 0.5)
    if score > -20.0:
        yield from _closed(text, start, start + 2, _NICK + score + left + 1.0, left, "nick")


def _given_only(text: str, start: int, left: float) -> Iterator[Segment]:
    first = text[start]
    second = text[start + 1]
    word = text[start : start + 2]
    known = word in words("persons", "nicknames", "given")
    rare = usual(word, 1) or second == "儿" or _given()[first] + _given()[second] < _INNER
    if left < 0 and first != second and not known and rare:
        return
    allowed = left >= KIN or word not in words("persons", "nicknames", "not_doubled")
    if allowed and known:
        yield from _closed(text, start, start + 2, _KNOWN_GIVEN + left, left, "given")
    one = given(first)
    two = _rare() if second == "儿" else given(second)
    if first == second:
        if allowed and first not in (text[start - 1 : start], text[start + 2 : start + 3]):
            yield from _closed(
                text, start, start + 2, _DOUBLED + _given()[first] + left, left, "doubled"
            )
    elif one is not None and two is not None:
        loss = 9.0 * usual(text[start - 1 : start + 1]) + 2.0 * (
            second in surnames()
        )  # 一声|磊爸, 留|闻女士
        loss *= _title_end(text, start + 2) > start + 2
        yield from _closed(text, start, start + 2, _GIVEN + one + two + left - loss, left, "given")


@cache
def _whole_names() -> frozenset[str]:
    """Foreign names in Chinese, and names of one word such as 阿凡提."""
    listed = sections("foreign_names")
    return (
        listed["transliterated"] | listed["japanese_surnames"] | words("persons", "nicknames", "zi")
    )


@cache
def _starts(names: frozenset[str]) -> frozenset[str]:
    return frozenset(name[:2] for name in names)


def _listed_name(text: str, start: int, left: float) -> Iterator[Segment]:
    ends = [
        end
        for end in range(min(start + 7, len(text)), start + 1, -1)
        if text[start:end] in _whole_names()
    ]
    for end in (end + (text[end : end + 1] in ("桑", "君", "酱")) for end in ends):
        yield from _closed(text, start, end, _FOREIGN - 3.0 + left, left, "foreign")
    longest = ends[0] if ends else len(text)
    foreign = sections("foreign_names")
    # 扎西顿珠, 田中美咲: two names of a list, or a Japanese surname and a given name.
    japanese = text[start:longest] in foreign["japanese_surnames"]
    letters = foreign["japanese_given"] | _given().keys()
    for end in range(longest + 2, min(longest + 5, len(text) + 1)):
        second = text[longest:end]
        if second in _whole_names() or (japanese and letters.issuperset(second)):
            yield from _closed(text, start, end, _FOREIGN - 8.0 + left, left, "foreign")


def segment_text(text: str) -> tuple[list[Segment], list[Segment]]:
    """The best reading of a text, without a gap; and the names that are nearly as likely, some of which overlap: each
    begins where a segment of the best reading does."""
    (frequencies, total), beginnings = dictionary(), _beginnings()
    best = [0.0] * (len(text) + 1)
    choice = [Segment(at, at + 1, 0.0) for at in range(len(text))]
    near = defaultdict[int, list[Segment]](list)
    for at in range(len(text) - 1, -1, -1):
        best[at] = best[at + 1]
        if not "\u4e00" <= text[at] <= "\u9fff":
            continue
        best[at] += log(frequencies.get(text[at]) or 1) - total
        readings = list[Segment]()
        end = at + 2
        while end <= len(text) and (count := frequencies.get(text[at:end])) is not None:
            if count and not (count < _JUNK and tags().get(text[at:end]) in _NAME_TAGS):
                readings.append(Segment(at, end, log(count) - total))
            end += 1
        names = list(name_candidates(text, at)) if text[at] in beginnings else []
        plain = best[at]
        for reading in (*readings, *names):
            score = reading.score + best[reading.end]
            if score > best[at] + _TIE:
                best[at], choice[at] = score, reading
                plain = plain if reading.shape else score
        for name in names:
            gain = name.score + best[name.end]
            most = _LARGEST_OF_GIVEN if name.shape == "given" else _LARGEST_LOSS
            if (loss := best[at] - gain) < most or name.cue >= STRONG:
                near[at].append(name._replace(loss=loss, gain=gain - plain))
    segments = list[Segment]()
    at = 0
    while at < len(text):
        segments.append(choice[at])
        end = choice[at].end
        word = not choice[at].shape
        # Behind "my name is" a word is a name, too; some may be one beside what tells of a person: 高兴没来.
        if (
            word
            and 1 < end - at < 4
            and (text[at - 1 : at] in _NAMING_ENDS or _may_be_given(text[at:end]))
        ):
            cue = left_cue(text, at)
            given_word = _may_be_given(text[at:end])
            if cue >= STRONG or (
                given_word and (cue >= BEFORE or (cue >= 0 and right_cue(text, end) == _AFTER))
            ):
                near[at].append(Segment(at, end, -99.0, cue, "word", _LARGEST_LOSS))
        at = end
    return segments, [name for segment in segments for name in near.get(segment.start, ())]


@cache
def _public() -> frozenset[str]:
    return sections("public_figures")[""] | sections("things")[""] | sections("cedict")["figures"]


def find_candidates(text: str, near: Sequence[Segment]) -> Iterator[Segment]:
    """What may be a person's name: the names in a text's readings (`segment_text`), and Latin words."""
    dotted = [_trimmed(*hit.span(), text) for hit in _PERSON["dotted"].finditer(text)]
    shaped = [(hit.span(), "parent") for hit in _PERSON["parent"].finditer(text)] + [
        (at, "dotted") for at in dotted
    ]
    by_form = [Segment(*at, 0.0, left_cue(text, at[0]), shape) for at, shape in shaped]
    inside = [s for s in near if not any(start < s.end and s.start < end for start, end in dotted)]
    for segment in (*inside, *by_form, *latin_names(text)):
        listed = segment.shape != "word" and _listed(text, segment)
        if segment.cue >= STRONG or not (listed or _is_word(text, segment)):
            yield segment
        elif (
            not listed
            and segment.shape == "given"
            and _may_be_given(text[segment.start : segment.end])
        ):
            yield segment._replace(shape="word")


def _trimmed(start: int, end: int, text: str) -> tuple[int, int]:
    """A name in parts without the words around it: 大卫·史密斯 in 同事大卫·史密斯打, 买买提·艾力 in 朋友买买提·艾力."""
    dots = [at for at in range(start, end) if not is_letter(text, at)]
    first = dots[0]
    last = dots[-1]
    listed = [at for at in range(start, first) if text[at:first] in _whole_names()]
    behind = [at for at in range(last + 2, end + 1) if text[last + 1 : at] in _whole_names()]
    start += not listed and first - start > 2 and usual(text[start - 1 : start + 1], 5)
    stop = max(behind, default=end)
    while stop < end and (
        text[stop] in TRANSLITERATION or not usual(text[stop:end], 3)
    ):  # 约翰 of 约翰逊
        stop += 1
    return min(listed, default=start), stop


def _is_word(text: str, segment: Segment) -> bool:
    """Whether the dictionary has the characters as a word that is no name; behind "my sister" a usual one."""
    word = text[segment.start : segment.end]
    common = surnames().get(word[1:], -99.0) > _COMMON_SURNAME
    if (
        (word[0] in "老小" and common)
        or word in words("persons", "nicknames", "given")
        or word in _whole_names()
    ):
        return False
    if segment.shape in ("word", "surname"):
        return False
    defined = segment.shape in ("full", "given") and word in sections("cedict")["words"]
    return defined or (
        tags().get(word, "nr") not in _NAME_TAGS and usual(word, 5 if segment.cue < KIN else 100)
    )


def _listed(text: str, segment: Segment) -> bool:
    """Whether a name of the list holds this one, or starts it and its title follows."""
    start = segment.start
    end = segment.end
    titled = segment.shape.endswith("title")
    return any(
        text[first:last] in _public() and (last >= end or (first == start and titled))
        for first in range(max(0, start - 4), start + 1)
        if text[first : first + 2] in _starts(_public())
        for last in range(start + 2, min(len(text), first + _LONGEST_PUBLIC) + 1)
    )


# --- Names in Latin letters inside Chinese text: `Kevin`, `David Chen`, `liu yang` ---

_LONGEST_RUN = 4  # more Latin words in a row are a foreign sentence


@cache
def _lowered(file: str, section: str) -> frozenset[str]:
    return frozenset(name.lower() for name in sections(file)[section])


def latin_names(text: str) -> Iterator[Segment]:
    """Each English given name or pinyin, from left to right."""
    runs: list[list[re.Match[str]]] = []
    for word in _LATIN["word"].finditer(text):
        if runs and text[runs[-1][-1].end() : word.start()] in (" ", "·"):
            runs[-1].append(word)
        else:
            runs.append([word])
    for run in runs:
        at = 0
        while at < len(run) <= _LONGEST_RUN:
            size, shape = _latin_name(text, run, at)
            start = run[at].start()
            end = run[at + size - 1].end()
            if shape and text[start:end].lower() not in _lowered("public_figures", ""):
                yield Segment(*_titled(text, start, end), 0.0, left_cue(text, start), shape)
            at += size


def _titled(text: str, start: int, end: int) -> tuple[int, int]:
    """With the form of address on either side: 阿May, Vivian姐."""
    title = _LATIN["title"].match(text, end)
    return start - (start > 0 and text[start - 1] in "阿小老"), title.end() if title else end


def _latin_name(text: str, run: list[re.Match[str]], at: int) -> tuple[int, str]:
    """How many words from `at` on may be a name, and its shape; one word without a shape is none."""
    word = run[at][0]
    second = run[at + 1][0] if at + 1 < len(run) else ""
    first = word.lower()
    capital = word[0].isupper()
    left = left_cue(text, run[at].start()) if at == 0 else 0.0
    family = sections("foreign_names")["pinyin_surnames"]
    listed = first in _lowered("foreign_names", "latin")
    if listed and (left >= KIN or first not in _lowered("foreign_names", "latin_words")):
        if (
            second
            and second[0].isupper() == capital
            and (second.lower() in family or len(run) == 2)
        ):
            return 2, "latin"
        return 1, "latin" if capital or len(run) == 1 else ""
    if len(run) == 1 and not (word.isupper() and len(word) > 1):
        # The English lists know it as a given name, or it stands with a form of address.
        name = english.folded(word)
        lists = english.words()
        titled = _titled(text, *run[at].span()) != run[at].span() and name not in lists.never
        known = lists.given.get(name, 0) >= (1 if left >= KIN else english.RARE)
        if titled or (known and (capital or name not in lists.words)):
            return 1, "rare latin"
    surname, given_name = (first, second.lower()) if first in family else (second.lower(), first)
    pinyin = surname in family and _LATIN["given"].fullmatch(given_name)
    if second and pinyin and sections("foreign_names")["english"].isdisjoint((surname, given_name)):
        return 2, "pinyin"
    return 1, ""
