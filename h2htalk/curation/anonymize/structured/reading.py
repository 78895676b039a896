"""A text as the rules of structured data read it, with what was found so far and the words beside its numbers.

A number alone is often ambiguous (an 11-digit mobile is a legal QQ number, one order number in ten passes Luhn), so the
nearest cue decides ("my number is", 身份证, 加我微信, "order no."). Which words are cues of what stands in
`words/cues_en.toml` and `words/cues_zh.toml`.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product

from h2htalk.curation.anonymize.normalization import NormalizedText
from h2htalk.curation.anonymize.spans import TakenCharacters
from h2htalk.curation.anonymize.structured.patterns import patterns, read_table
from h2htalk.text.phrases import PhraseIndex

_NEW_SENTENCE = 12
_NOT_LED_BACK = 18
_RE = patterns("number_cues")
# Kinds that 编号 and "number" may be the number of.
_NUMBERED = frozenset(["account", "id", "card", "plate", "qq", "wechat", "other"])
# Kinds that name a situation, not a value: they count only as what a message is about.
_SITUATIONS = frozenset(["vehicle", "adding", "profile", "counter"])
# Kinds whose values are no bare digits.
_NO_DIGITS = frozenset(["email", "url", "ip"])


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

    def fitting(self, length: int) -> Near:
        """These cues without those that cannot be meant: no bare number of `length` digits is such a thing."""
        out = _NO_DIGITS | ({"plate"} if length > 6 else set()) | ({"id"} if length not in (15, 17, 18) else set())
        return Near(tuple(kind for kind in self.kinds if kind[0] not in out), self.around)

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
