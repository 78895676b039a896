"""Cues: phrases by which people say that they, or somebody they know, may not want to live.

A strong cue is enough by itself; a weak one needs a second sign (another kind of weak cue, or the model). Each stands
behind needles, one of which must be in the text: looking them up is cheap, and most messages hold none.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from h2htalk.data.dialogue import Language
from h2htalk.errors import DataError

DATA = Path(__file__).parent / "crisis_data"

# What a message may tell of, the gravest first: the first of these that is found names the tag.
CATEGORIES = ("attempt", "plan", "ideation", "self_harm", "third_party", "past")


@dataclass(frozen=True, slots=True)
class Cue:
    """A phrase: `category` one of CATEGORIES; `weak`: the kind of a weak cue, empty for a strong one."""

    category: str
    pattern: re.Pattern[str]
    needles: tuple[str, ...]
    weak: str = ""


@dataclass(frozen=True, slots=True, order=True)
class Hit:
    """A cue found at characters `start` to `end` (exclusive) of a folded text."""

    start: int
    end: int
    category: str
    weak: str


@dataclass(frozen=True, slots=True)
class Cues:
    """All cues of a language, and the phrases that are no crisis although they hold the words of one."""

    found: tuple[Cue, ...]
    harmless: re.Pattern[str]

    def hits(self, folded: str) -> list[Hit]:
        """Every cue of a folded text, in its order; what stands within a harmless phrase does not count."""
        hits = [
            Hit(match.start(), match.end(), cue.category, cue.weak)
            for cue in self.found
            if any(needle in folded for needle in cue.needles)
            for match in cue.pattern.finditer(folded)
        ]
        if not hits:
            return []
        harmless = [match.span() for match in self.harmless.finditer(folded)]
        return sorted(hit for hit in hits if not _within(hit, harmless))


def _within(hit: Hit, spans: Sequence[tuple[int, int]]) -> bool:
    return any(start < hit.end and hit.start < end for start, end in spans)


@cache
def cues(language: Language) -> Cues:
    """The cues of a language, read and compiled once a process; no part of a pattern repeats without a bound.

    Raises:
        DataError: the file is missing or damaged.
    """
    path = DATA / f"cues_{language}.toml"
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
        found = tuple(
            Cue(row["category"], re.compile(row["pattern"]), tuple(row["needles"]), row.get("weak", ""))
            for row in raw["cues"]
        )
        return Cues(found, re.compile(raw["harmless"]))
    except (OSError, KeyError, TypeError, ValueError, re.error) as error:
        raise DataError(f"{path}: cannot be read ({error}); install h2htalk again") from error
