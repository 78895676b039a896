"""Finding people in crisis in a message: cues and a classifier, so that nothing of theirs is ever thrown away.

A cue is a phrase by which people say that they, or somebody they know, may not want to live. A message is a crisis
where a strong cue stands in it, where the classifier is sure, or where weaker signs meet: weak cues of three kinds, or
one and a classifier that is not far from sure. It is meant to find too much rather than too little: a tag costs a look,
a miss may cost a person.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from h2htalk.curation.safety.evidence import Evidence
from h2htalk.curation.safety.ngram_classifier import NgramClassifier, load
from h2htalk.curation.safety.text_folding import fold_spelling, spelling_place
from h2htalk.data.languages import LANGUAGES, Language

DATA = "crisis_data"
# What a message may tell of, the gravest first: the first of these that is found names the tag.
CATEGORIES = ("attempt", "plan", "ideation", "self_harm", "third_party", "past")
# Words of a language in a dialogue of another one.
_WORDS = {
    # Three in a row; bounded, so that a megabyte without a space is read in linear time.
    "en": re.compile(r"(?<![A-Za-z'])[A-Za-z']{2,20}[ \t]{1,3}[A-Za-z']{1,20}[ \t]{1,3}[A-Za-z']"),
    "zh": re.compile(r"[\u4e00-\u9fff]{2}"),
}
# Weak cues of so many kinds in one message are enough without the classifier.
_KINDS = 3
# What is left of an offending message must be surer, as if it were one of so many messages.
BESIDE = 4
# In doubt a message with insults is not removed: so much of it must be harmless, and so near to `high` its score.
MOST, DOUBT = 0.55, 0.5


class Sign(NamedTuple):
    """What was found in one message: its category, how sure, and where (folded)."""

    category: str
    score: float
    language: Language
    start: int
    end: int


def find(text: str, language: Language, messages: int = 1) -> Evidence | None:
    """What one message shows of a crisis: `crisis.ideation`, `crisis.plan`, ... in the text itself; None for nothing.

    Args:
        text: one message, of any length.
        language: of the dialogue; words of another language are read as well.
        messages: how many its speaker has in the dialogue: the more there are, the surer the classifier must be.
    """
    spoken = [language, *(o for o in LANGUAGES if o != language and _WORDS[o].search(text))]
    found = [
        sign
        for one in spoken
        if (sign := sign_in(fold_spelling(text, one), load(DATA, one), messages)) is not None
    ]
    if not found:
        return None
    best = max(found, key=lambda sign: (sign.score, sign.language == language))
    place = spelling_place(text, best.language, best.start, best.end)
    return Evidence("crisis", f"crisis.{best.category}", best.score, *place)


def find_beside(rest: str, length: int, language: Language, messages: int = 1) -> Evidence | None:
    """What a message tells beside its insults (`detached.beside_insults`): of a crisis, or `crisis.possible`.

    The latter saves from removal and tags nothing: most of a message of so many characters (`length`) does not
    offend, and the classifier is in some doubt about it.
    """
    found = find(rest, language, max(messages, BESIDE))
    if found is not None:
        return Evidence("crisis", found.category, found.score)
    model = load(DATA, language)
    score = model.score(fold_spelling(rest, language)).score
    if len(rest) > MOST * length and score >= DOUBT * model.high():
        return Evidence("doubt", "crisis.possible", score)
    return None


def sign_in(folded: str, model: NgramClassifier, messages: int = 1) -> Sign | None:
    """The sign that a language's cues and classifier find in a folded message."""
    hits = cues(model.language).hits(folded)
    score, start, end = model.score(folded)
    first = min(hits, key=_gravest, default=None)
    strong = [hit for hit in hits if not hit.weak]
    if strong:
        first = min(strong, key=_gravest)
        return Sign(first.category, max(0.9, score), model.language, first.start, first.end)
    enough = model.low(messages) if hits else model.high(messages)
    if score >= enough or len({hit.weak for hit in hits}) >= _KINDS:
        category = first.category if first else "ideation"
        return Sign(category, min(score, 0.89), model.language, start, end)
    return None


# --- Cues -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cue:
    """A phrase: `category` one of CATEGORIES; `weak`: the kind of a weak cue, empty for a strong one.

    Looking up its needles, one of which must be in the text, is cheap, and most messages hold none.
    """

    category: str
    pattern: re.Pattern[str]
    needles: tuple[str, ...]
    weak: str = ""


class Hit(NamedTuple):
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
        harmless = [match.span() for match in self.harmless.finditer(folded)] if hits else []
        return sorted(
            hit for hit in hits if not any(start < hit.end and hit.start < end for start, end in harmless)
        )


def _gravest(hit: Hit) -> tuple[int, int]:
    return CATEGORIES.index(hit.category), hit.start


@cache
def cues(language: Language) -> Cues:
    """The cues of a language, read and compiled once a process; no part of a pattern repeats without a bound."""
    raw = tomllib.loads((Path(__file__).parent / DATA / f"cues_{language}.toml").read_text(encoding="utf-8"))
    found = tuple(
        Cue(row["category"], re.compile(row["pattern"]), tuple(row["needles"]), row.get("weak", ""))
        for row in raw["cues"]
    )
    return Cues(found, re.compile(raw["harmless"]))
