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
from importlib import resources
from typing import Literal

from h2htalk.curation.pii.chinese_words import sections
from h2htalk.curation.pii.english_lists import words
from h2htalk.curation.pii.normalize import plain
from h2htalk.curation.pii.spans import Span
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
_OWN = re.compile(
    r"(?:叫|名字是|本名|真名|姓名|户名|收件人|收货人|联系人|my name is|my name's|name is|name:|"
    r"i am called|call me|im called|i'm called)[\s:：是]{0,3}$"
)
_TITLES = re.compile(r"《[^《》\n]{1,60}》")
_BESIDE = 0.7
# A run of Latin letters and digits, in lower case.
_RUN = re.compile("[0-9a-z\u00df-\u024f]+")
_FOLLOWING = re.compile(r" ([A-Z][a-zà-ÿ]{2,})")
_LETTER = re.compile(r"[^\W\d_]")


@dataclass(frozen=True, slots=True)
class Allowance:
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
        for name in sorted({low(name) for name in names if name.strip()}, key=lambda n: (-len(n), n)):
            first = _RUN.match(name)
            if first is not None and name[0].isascii():
                self._by_word.setdefault(first.group(), []).append(name)
            else:
                self._by_start.setdefault(name[:1], []).append(name)
        starts = "".join(map(re.escape, self._by_start))
        self._start = re.compile(f"[{starts}]") if starts else None

    def find(self, lowered: str) -> list[tuple[int, int]]:
        """Where names stand in a text in lower case, from left to right, the longest where several begin."""
        found = []
        if self._by_word and not self._by_word.keys().isdisjoint(_RUN.findall(lowered)):
            for run in _RUN.finditer(lowered):
                for name in self._by_word.get(run.group(), ()):
                    if lowered.startswith(name, run.start()) and whole(lowered, run.start(), name):
                        found.append((run.start(), run.start() + len(name)))
                        break
        for start in self._start.finditer(lowered) if self._start else ():
            for name in self._by_start[start.group()]:
                if lowered.startswith(name, start.start()):
                    found.append((start.start(), start.start() + len(name)))
                    break
        return sorted(found)


def whole(text: str, at: int, name: str) -> bool:
    """Whether a name that begins and ends in Latin letters or digits stands in a text as words of its own."""
    end = at + len(name)
    return not (
        (name[0].isascii() and _word(text[at - 1 : at]) and _word(name[0]))
        or (name[-1].isascii() and _word(text[end : end + 1]) and _word(name[-1]))
    )


def _word(char: str) -> bool:
    """Whether a character is a Latin letter or a digit; Han characters part words."""
    return char != "" and (char.isascii() or ord(char) < 0x250) and char.isalnum()


def low(text: str) -> str:
    """In lower case, one character for one."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def forms(name: str) -> list[str]:
    """How a companion is called: the name, and the first of several Latin words."""
    words = name.split()
    return [name, words[0]] if len(words) > 1 and len(words[0]) > 1 else [name]


@cache
def _figures(language: str) -> NameIndex:
    path = resources.files("h2htalk.curation.pii.allowed") / f"figures_{language}.txt"
    lines = [x for x in path.read_text(encoding="utf-8").splitlines() if not x.startswith("#")]
    own = [name for line in lines for name in (line.split("|") if language == "en" else line.split())]
    return NameIndex([*own, *_recognisers_own(language)])


def _recognisers_own(language: str) -> list[str]:
    """Of the figures that the recognisers know themselves those whose names are long enough to be nobody else's."""
    if language == "en":
        return [" ".join(name) for names in words().known.values() for name in names if len(name) > 1]
    return [name for name in sections("public_figures")[""] if len(name) > 2]


@lru_cache(maxsize=64)
def _companions(names: tuple[str, ...]) -> NameIndex:
    return NameIndex([*_bundled(), *(form for name in names for form in forms(name))])


@cache
def _bundled() -> tuple[str, ...]:
    return tuple(name for persona in bundled_personas().values() for name in persona.names.values())


def spoken_to(texts: Iterable[str]) -> list[str]:
    """Names of bundled personas that a dialogue names in full: there "Nora" is Nora Vale, elsewhere somebody's."""
    said = low(plain("\n".join(texts)))
    return [name for name in _bundled() if low(name) in said]


def allowances(text: str, language: str, companions: Sequence[str] = ()) -> list[Allowance]:
    """What stays in a text, in order; none overlap.

    Args:
        text: normalised one character to one character.
        language: `en` or `zh`.
        companions: names, of which the first word alone stays too; bundled personas stay by their full names.
    """
    found = [Span(m.start(), m.end(), "title", 1.0) for m in _TITLES.finditer(text)] if "《" in text else []
    lowered = low(text)
    found += [
        Span(a, b, "companion", 1.0)
        for a, b in _companions(tuple(companions)).find(lowered)
        if not _more_of_a_name(text, a, b)
    ]
    for start, end in _figures(language).find(lowered):
        if not _OWN.search(lowered[max(start - 16, 0) : start]):
            found.append(Span(start, end, "figure", 0.9))
    # Names inside titles and the like: whichever holds the other stays.
    return [Allowance(span.start, span.end, span.type) for span in _apart(found)]  # type: ignore[arg-type]


def _more_of_a_name(text: str, start: int, end: int) -> bool:
    """Whether a word follows that makes it somebody else's: the companion is "Nora", and "Nora Smith" is not."""
    if " " in text[start:end] or not text[start].isascii():
        return False
    following = _FOLLOWING.match(text, end)
    return following is not None and low(following[1]) not in words().words


def _apart(spans: list[Span]) -> list[Span]:
    """In order, without overlaps: of those that begin earlier, the longer."""
    kept: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start, -s.end)):
        if not kept or span.start >= kept[-1].end:
            kept.append(span)
    return kept


def beside(text: str, allowed: Sequence[Allowance], found: Sequence[Span]) -> list[Span]:
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
            near = gap is not None and _BETWEEN.fullmatch(low(gap)) is not None
            if near or (back is not None and len(back) <= 3 and not _LETTER.search(back)):
                persons.append(Span(figure.start, figure.end, "PERSON", _BESIDE))
                break
    return persons
