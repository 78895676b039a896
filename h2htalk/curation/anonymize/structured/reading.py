"""A text as the rules of structured data read it, with what was found so far and the words beside its numbers.

A number alone is often ambiguous (an 11-digit mobile is a legal QQ number, one order number in ten passes Luhn), so the
nearest cue decides ("my number is", 身份证, 加我微信, "order no."). Which words are cues of what stands in
`words/cues_en.toml` and `words/cues_zh.toml`.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise, product
from pathlib import Path
from typing import Any

from h2htalk.curation.anonymize.normalization import HAN, NormalizedText
from h2htalk.curation.anonymize.spans import TakenCharacters
from h2htalk.text.language_data import compile_patterns, read_data
from h2htalk.text.phrases import PhraseIndex

_FOLDER = Path(__file__).parent / "words"


def read_table(name: str) -> Mapping[str, Any]:
    """A file of `words`."""
    return read_data(_FOLDER / f"{name}.toml")


@cache
def internet_words(name: str) -> frozenset[str]:
    """A list of `words/internet.toml`: `strong`, `weak`, `files`, ..."""
    return frozenset(read_table("internet")[name])


@cache
def patterns(table: str) -> dict[str, re.Pattern[str]]:
    """The compiled expressions of a table.

    `{name}` in an expression stands for an earlier one, of its table or of `[shared]`; `{han}` for all Han digits.
    """
    tables = read_table("patterns")
    return compile_patterns(tables[table], {"han": HAN, **tables["shared"]})


@cache
def rewrites(name: str) -> list[tuple[re.Pattern[str], str]]:
    """A list of `words/deobfuscation.toml`: expressions, which may name those of `[deobfuscation]`, and meanings."""
    parts = {"han": HAN, **read_table("patterns")["shared"]}
    parts |= {key: pattern.pattern for key, pattern in patterns("deobfuscation").items()}
    entries = read_table("deobfuscation")[name]
    return [(compile_patterns({"": one["pattern"]}, parts)[""], one["meant"]) for one in entries]


_NEW_SENTENCE = 12
_NOT_LED_BACK = 18
_RE = patterns("number_cues")
# Kinds that 编号 and "number" may be the number of.
_NUMBERED = frozenset(["account", "id", "card", "plate", "qq", "wechat", "other"])
# Kinds that name a situation, not a value: they count only as what a message is about.
_SITUATIONS = frozenset(["vehicle", "adding", "profile", "counter"])


@dataclass(frozen=True, slots=True)
class Cue:
    """A cue word at `start` to `end` of a reading, for a `kind` of number (`phone`, `qq`, ..., `other`)."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True, slots=True)
class Near:
    """The cues of one value: kinds, nearest first, with the characters in between; `around`: all kinds of cues in the
    message about it, wherever they stand."""

    kinds: tuple[tuple[str, int], ...]
    around: frozenset[str] = frozenset()

    @property
    def nearest(self) -> str:
        """The kind of the nearest cue, or ''."""
        return self.kinds[0][0] if self.kinds else ""

    def nearest_is_impersonal(self, reach: int) -> bool:
        """Whether the nearest cue is one of nobody's numbers, at most `reach` characters away."""
        return bool(self.kinds) and self.kinds[0][0] == "other" and self.kinds[0][1] <= reach

    def distance(self, *kinds: str) -> int | None:
        """Characters to the nearest cue of one of the kinds, if no cue of `other` stands nearer."""
        for kind, distance in self.kinds:
            if kind in kinds:
                return distance
            if kind == "other":
                return None
        return None


@dataclass(frozen=True, slots=True)
class Cues:
    """All cues of a text, in its order."""

    found: tuple[Cue, ...]
    starts: tuple[int, ...]
    text: str
    language: str
    reach: Mapping[str, int]
    generic: str

    def near(self, start: int, end: int, barrier: int = 0, *, formed: bool = False) -> Near:
        """Cues of the value at `start` to `end`. None before `barrier` (the end of a value before) counts.

        `formed`: it has a phone's or a bank card's form, of which the words of an errand say nothing; beside any other
        value they are words for nobody's numbers.
        """
        kinds: list[tuple[str, int]] = []
        at = bisect_right(self.starts, start)
        for cue in reversed(self.found[max(0, at - 12) : at]):
            gap = start - cue.end
            if gap > self.reach["before"] or cue.start < barrier:
                break
            if gap < 0 or cue.kind in _SITUATIONS or (formed and cue.kind == "errand"):
                continue
            kind = self._kind(cue)
            if kind == "other" and (
                gap > self.reach["impersonal"] or _RE["apart"].fullmatch(self.text, cue.end, start)
            ):
                continue
            ended = _RE["sentence_end"].search(self.text, cue.end, start) is not None
            kinds.append((kind, gap + (_NEW_SENTENCE if ended else 0)))
        kinds += self._behind(end, formed)
        return Near(tuple(sorted(kinds, key=lambda kind: kind[1])), self.around(start, end))

    def _kind(self, cue: Cue) -> str:
        """What a cue is of. 编号 or "number": of what was named just before; else nobody's in Chinese, a phone's in
        English."""
        if cue.kind != "generic":
            return "other" if cue.kind == "errand" else cue.kind
        at = bisect_left(self.starts, cue.start)
        for other in reversed(self.found[max(0, at - 3) : at]):
            if other.kind in _NUMBERED and cue.start - other.end <= self.reach["antecedent"]:
                return other.kind
        return self.generic

    def around(self, start: int, end: int) -> frozenset[str]:
        """The kinds of the cues within a few sentences of a value."""
        first = bisect_left(self.starts, start - self.reach["around"])
        last = bisect_right(self.starts, end + self.reach["around"])
        return frozenset(cue.kind for cue in self.found[first : min(last, first + 40)])

    def _behind(self, end: int, formed: bool) -> list[tuple[str, int]]:
        """Cues behind a value. They weigh less than those before it: the next value's cue stands there too."""
        found = []
        at = bisect_right(self.starts, end - 1)
        for cue in self.found[at : at + 4]:
            gap = cue.start - end
            if gap > self.reach["behind"]:
                break
            between = self.text[end : cue.start]
            if cue.kind in _SITUATIONS or _RE["digits"].search(between) or (formed and cue.kind == "errand"):
                continue
            leads = _RE["leads_back"].match(between)
            direct = leads is not None and leads.group().strip(" ，,。.!~)]'\"-\n") != ""
            kind = self._kind(cue)
            ended = _RE["sentence_end"].search(between) is not None
            if (direct or gap <= 1) and not ended:
                found.append((kind, gap + (4 if direct else 10)))
            elif kind != "other":
                found.append((kind, gap + _NOT_LED_BACK + (_NEW_SENTENCE if ended else 0)))
        return found


def find_cues(text: str, language: str) -> Cues:
    """The cues of a reading's `text` (lower case). A Chinese text is also searched for English ones."""
    own = read_table(f"cues_{language}")
    found = tuple(Cue(start, end, kind) for start, end, kind in _index(language).find(text))
    return Cues(found, tuple(cue.start for cue in found), text, language, own["reach"], own["bare_number"])


def _words(language: str) -> dict[str, str]:
    """The kind of each cue word; the table that stands first wins."""
    tables = read_table(f"cues_{language}")
    lists = {kind: words for kind, words in tables.items() if isinstance(words, list) and kind != "spellings"}
    spelt = {
        a + b: parts["kind"]
        for parts in reversed(tables.get("spellings", []))
        for a, b in product(parts["first"], parts["second"])
    }
    return spelt | {word.lower(): kind for kind, words in reversed(lists.items()) for word in words}


@cache
def _index(language: str) -> PhraseIndex[str]:
    return PhraseIndex({**_words("en"), **_words(language)}.items(), _stands_apart)


def _stands_apart(text: str, start: int, end: int) -> bool:
    """Whether a cue that begins and ends in Latin letters is no part of a longer word."""
    if not ("a" <= text[start] <= "z" and text[end - 1].isascii()):
        return True
    return not ("a" <= text[start - 1 : start] <= "z" or "a" <= text[end : end + 1] <= "z")


Hit = tuple[int, int, float]  # start, end, score


class Reading:
    """One text. `text`, `digits` and `visible` as in `NormalizedText`; `language` is that of its rules of numbers."""

    def __init__(self, normalized: NormalizedText, language: str, countries: Sequence[str] = ()) -> None:
        self.text, self.digits, self.visible = normalized.text, normalized.digits, normalized.visible
        self.language, self.countries = language, countries
        self.taken = TakenCharacters(len(self.text))
        self._gates: dict[re.Pattern[str], bool] = {}

    @cached_property
    def cues(self) -> Cues:
        """The words in it that say what a number is."""
        return find_cues(self.text, self.language)

    def near(self, start: int, end: int) -> Near:
        """The cues of the value at `start` to `end`."""
        return self.cues.near(start, end)

    def may_hold(self, gate: re.Pattern[str]) -> bool:
        """Whether an expression matches anywhere; each is searched once."""
        if gate not in self._gates:
            self._gates[gate] = gate.search(self.text) is not None
        return self._gates[gate]


# --- Runs of digits: rows of groups with short gaps; a window is a stretch of whole groups ---

_RUN = patterns("digit_runs")
_FEWEST_DIGITS, _MOST_DIGITS = 5, 20
_LONGEST_GAP = 4
# In a row of more groups (a table, a count) a number has few.
_LONG_ROW, _FEW = 80, 5


@dataclass(frozen=True, slots=True)
class Group:
    """Digits without a gap, at `start` to `end` of a reading."""

    start: int
    end: int
    digits: str


@dataclass(frozen=True, slots=True)
class Window:
    """Neighbouring groups of a run, as one number.

    `shape`: digits a group. `gaps`: between them. `before`, `after`: the gap to the neighbour groups, None at the end
    of the run. `lead`: the three characters before it, `tail`: the three behind it. `near`: its cues.
    """

    start: int
    end: int
    digits: str
    shape: tuple[int, ...]
    gaps: tuple[str, ...]
    before: str | None
    after: str | None
    lead: str
    tail: str
    near: Near

    @property
    def whole(self) -> bool:
        """Nothing says that it is a piece of a longer row: no neighbour, or one that stands further off."""
        inner = {gap.strip() or gap for gap in self.gaps}
        return all(gap is None or _parts(gap, inner) for gap in (self.before, self.after))

    @property
    def glued(self) -> bool:
        """It stands at a Latin letter, as the digits of a code do."""
        return self.lead[-1:].isascii() and self.lead[-1:].isalpha()


def _parts(gap: str, inner: set[str]) -> bool:
    """Whether a gap parts two numbers: another one than those inside, and a mark for it, a bracket or a space."""
    mark = gap.strip()
    return (mark or gap) not in inner and (mark in ("", *"()[]:") or _RUN["strong_gap"].search(gap) is not None)


def runs(reading: Reading, taken: list[tuple[int, int]]) -> Iterator[list[Group]]:
    """The runs of a reading with five digits or more, outside of what is taken (ordered stretches)."""
    text = reading.text
    token, source = (_RUN["token"], reading.digits) if text.isascii() else (_RUN["token_han"], _zeroed(reading))
    groups: list[Group] = []
    at = 0
    for match in token.finditer(source):
        start, end = match.span()
        while at < len(taken) and taken[at][1] <= start:
            at += 1
        covered = at < len(taken) and taken[at][0] < end
        if covered or (groups and not _joins(text, groups[-1], start, match.group())):
            yield from _run(groups, text)
            groups = []
        if not covered:
            groups.append(Group(start, end, reading.digits[start:end]))
    yield from _run(groups, text)


def _zeroed(reading: Reading) -> str:
    """The text with every `o` that reads as a zero as one, Han digits left."""
    pairs = zip(reading.text, reading.digits, strict=True)
    return "".join(["0" if a == "o" and b == "0" else a for a, b in pairs]) if "o" in reading.text else reading.text


def _joins(text: str, last: Group, start: int, token: str) -> bool:
    """Whether a token goes on with the row. A lone Han digit behind a mark begins a clause (二十年)."""
    if start - last.end > _LONGEST_GAP or _RUN["gap"].fullmatch(text, last.end, start) is None:
        return False
    other = (token in HAN) != (text[last.start] in HAN)
    return start == last.end or not other or min(len(token), last.end - last.start) > 1


def _run(groups: list[Group], text: str) -> Iterator[list[Group]]:
    """The groups as runs, where they are enough; days and times part them."""
    if not groups:
        return
    dates = [match.span() for match in _RUN["date"].finditer(text, groups[0].start, groups[-1].end)]
    pieces: list[list[Group]] = [[]]
    for group in groups:
        if len(groups) > 1 and any(a <= group.start < b for a, b in dates):
            pieces.append([])
        else:
            pieces[-1].append(group)
    yield from (piece for piece in pieces if sum(len(group.digits) for group in piece) >= _FEWEST_DIGITS)


def windows(run: list[Group], text: str, near: Near) -> Iterator[Window]:
    """Every stretch of whole groups with 5 to 20 digits; of a long row, of few groups."""
    gaps = [text[a.end : b.start] for a, b in pairwise(run)]
    most = _FEW if len(run) > _LONG_ROW else len(run)
    for first in range(len(run)):
        for last in range(first, min(first + most, len(run))):
            groups = run[first : last + 1]
            digits = "".join(group.digits for group in groups)
            if len(digits) > _MOST_DIGITS:
                break
            if len(digits) < _FEWEST_DIGITS:
                continue
            start, end = groups[0].start, groups[-1].end
            yield Window(
                start,
                end,
                digits,
                shape=tuple(len(group.digits) for group in groups),
                gaps=tuple(gaps[first:last]),
                before=gaps[first - 1] if first else None,
                after=gaps[last] if last < len(gaps) else None,
                lead=text[max(0, start - 3) : start],
                tail=text[end : end + 3],
                near=near,
            )
