"""Words beside a number that say what it is: "my number is", 身份证, 加我微信, "order no.".

A number alone is often ambiguous (an 11-digit mobile is a legal QQ number, one order number in ten passes Luhn), so the
nearest cue decides. Which words are cues of what stands in `cues_en.toml` and `cues_zh.toml`.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from dataclasses import dataclass
from functools import cache
from importlib import resources

# How far a cue may stand before its value, in characters: a clause or so.
_REACH = {"en": 45, "zh": 24}
_AFTER = {"en": 26, "zh": 14}
# What leads from a value back to a cue behind it: "12345 is my number", 12345这是我qq, "12345 (cell)".
_LEADS_BACK = re.compile(
    r"[\s\"'，,)\]。.!~-]{0,3}(?:[(\[/:<]|<?-+|(?:这|那|它)?(?:个|串|张)?(?:也|就|才|都)?(?:是|系)(?!不)|为|的|(?:这|那)(?:个|张)|[\s,，]?(?:我|他|她|你)的|"
    r"(?:is|was|are|that'?s|thats|this is|as|for|on|it'?s)\b|=|)"
)
_BREAK = re.compile(r"[。！？!?;；\n]|\.\s")


@dataclass(frozen=True, slots=True)
class Cue:
    """A cue word at `start` to `end` of a reading, for a `kind` of number (`phone`, `qq`, ..., `other`)."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True, slots=True)
class Near:
    """The cues of one value: kinds, nearest first, with the characters in between."""

    kinds: tuple[tuple[str, int], ...]

    @property
    def nearest(self) -> str:
        """The kind of the nearest cue, or ''."""
        return self.kinds[0][0] if self.kinds else ""

    def distance(self, *kinds: str) -> int | None:
        """Characters to the nearest cue of one of the kinds, if no cue of `other` stands nearer."""
        for kind, distance in self.kinds:
            if kind in kinds:
                return distance
            if kind == "other":
                return None
        return None


NOTHING = Near(())


@dataclass(frozen=True, slots=True)
class Cues:
    """All cues of a text, in its order."""

    found: tuple[Cue, ...]
    starts: tuple[int, ...]
    text: str
    language: str

    def near(self, start: int, end: int, barrier: int = 0) -> Near:
        """Cues of the value at `start` to `end`. None before `barrier` (the end of a value before) counts."""
        kinds: list[tuple[str, int]] = []
        for cue in reversed(
            self.found[max(0, bisect_right(self.starts, start) - 8) : bisect_right(self.starts, start)]
        ):
            gap = start - cue.end
            if gap > _REACH[self.language] or cue.start < barrier:
                break
            if gap >= 0:
                between = self.text[cue.end : start]
                kinds.append((cue.kind, gap + (12 if _BREAK.search(between) else 0)))
        kinds.extend(self._behind(end))
        return Near(tuple(sorted(kinds, key=lambda kind: kind[1])))

    def _behind(self, end: int) -> list[tuple[str, int]]:
        """Cues behind a value. They weigh less than those before it: the next value's cue stands there too."""
        found = []
        at = bisect_right(self.starts, end - 1)
        for cue in self.found[at : at + 3]:
            gap = cue.start - end
            if gap > _AFTER[self.language]:
                break
            between = self.text[end : cue.start]
            leads = _LEADS_BACK.match(between)
            direct = leads is not None and leads.group().strip(" ，,。.!~)]'\"-\n") != ""
            if (direct or gap <= 1) and not _BREAK.search(between) and not re.search(r"\d", between):
                found.append((cue.kind, gap + (4 if direct else 10)))
        return found


def find_cues(text: str, language: str) -> Cues:
    """The cues of a reading's `text` (lower case). A Chinese text is also searched for English ones."""
    pattern, kinds = _pattern("zh" if language == "zh" else "en")
    found = tuple(Cue(m.start(), m.end(), kinds[m.group()]) for m in pattern.finditer(text))
    return Cues(found, tuple(cue.start for cue in found), text, "zh" if language == "zh" else "en")


@cache
def _words(language: str) -> dict[str, str]:
    raw = resources.files(__package__).joinpath(f"cues_{language}.toml").read_text(encoding="utf-8")
    return {word.lower(): kind for kind, words in tomllib.loads(raw).items() for word in words}


@cache
def _pattern(language: str) -> tuple[re.Pattern[str], dict[str, str]]:
    """One alternation over all cues, the longest first, and what each stands for."""
    kinds = dict(_words("en")) if language == "en" else {**_words("en"), **_words("zh")}
    latin = [word for word in kinds if word[0].isascii() and word[0].isalpha() and word[-1].isascii()]
    rest = [word for word in kinds if word not in set(latin)]
    parts = [rf"(?<![a-z])(?:{_any(latin)})(?![a-z])", *([_any(rest)] if rest else [])]
    return re.compile("|".join(parts)), kinds


def _any(words: list[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=lambda word: (-len(word), word)))
