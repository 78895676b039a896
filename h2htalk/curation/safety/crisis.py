"""Find people in crisis in a message, by cues and a classifier, so that nothing of theirs is removed.

A cue is a phrase by which people say that they, or somebody they know, may not want to live. A message is a crisis
where it contains a strong cue, where the classifier is sure, or where weaker signs coincide: weak cues of three kinds,
or one weak cue and a classifier that is not far from sure. Recall comes before precision: a wrong tag costs a look, a
miss may cost a person.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from h2htalk.curation.language_data import language_data
from h2htalk.curation.safety.evidence import Evidence
from h2htalk.curation.safety.ngram_classifier import NgramClassifier, load_classifier
from h2htalk.curation.safety.text_folding import fold_spelling, spelling_place
from h2htalk.data.languages import LANGUAGES, Language

DATA = "crisis_data"
# The gravest first: the gravest cue in a message gives the tag.
CATEGORIES = ("attempt", "plan", "ideation", "self_harm", "third_party", "past")
_KINDS = 3  # weak cues of this many kinds are enough without the classifier
# For the rest of an offensive message the classifier must be as sure as for one of this many messages.
BESIDE = 4
# A message with insults is not removed where more than this share of it is harmless, and the score of that part reaches
# this share of `high`.
MOST, DOUBT = 0.55, 0.5


class CrisisSignal(NamedTuple):
    """A crisis in one message: its category, the score, and the place in the folded text."""

    category: str
    score: float
    language: Language
    start: int
    end: int


def find_crisis(text: str, language: Language, messages: int = 1) -> Evidence | None:
    """The evidence of a crisis in one message: `crisis.ideation`, `crisis.plan`, ...; None for none.

    Args:
        text: one message, of any length.
        language: of the dialogue; words of other languages are read as well.
        messages: of its speaker in the dialogue: the more there are, the surer the classifier must be.
    """
    others = [o for o in LANGUAGES if o != language and crisis_cues(o).words.search(text)]
    signals = [
        signal
        for one in (language, *others)
        if (signal := find_signal(fold_spelling(text, one), load_classifier(DATA, one), messages)) is not None
    ]
    if not signals:
        return None
    best = max(signals, key=lambda signal: (signal.score, signal.language == language))
    place = spelling_place(text, best.language, best.start, best.end)
    return Evidence("crisis", f"crisis.{best.category}", best.score, *place)


def find_crisis_beside(rest: str, length: int, language: Language, messages: int = 1) -> Evidence | None:
    """The evidence of a crisis in what a message of `length` characters says besides insults (`without_insults`).

    `crisis.possible` prevents removal and tags nothing: most of the message is not offensive, and the classifier is in
    some doubt about that part.
    """
    found = find_crisis(rest, language, max(messages, BESIDE))
    if found is not None:
        return Evidence("crisis", found.category, found.score)
    model = load_classifier(DATA, language)
    score = model.score(fold_spelling(rest, language)).score
    if len(rest) > MOST * length and score >= DOUBT * model.high():
        return Evidence("doubt", "crisis.possible", score)
    return None


def find_signal(folded: str, model: NgramClassifier, messages: int = 1) -> CrisisSignal | None:
    """The signal that the cues and the classifier of a language give for a folded message."""
    hits = crisis_cues(model.language).hits(folded)
    score, start, end = model.score(folded)
    strong = [hit for hit in hits if not hit.weak]
    if strong:
        first = min(strong, key=_gravity)
        return CrisisSignal(first.category, max(0.9, score), model.language, first.start, first.end)
    enough = model.low(messages) if hits else model.high(messages)
    if score >= enough or len({hit.weak for hit in hits}) >= _KINDS:
        category = min(hits, key=_gravity).category if hits else "ideation"
        return CrisisSignal(category, min(score, 0.89), model.language, start, end)
    return None


# --- Cues -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CrisisCue:
    """A phrase: `category` one of CATEGORIES; `weak`: the kind of a weak cue, empty for a strong one.

    The pattern is tried only where the text contains one of `needles`, which few messages do.
    """

    category: str
    pattern: re.Pattern[str]
    needles: tuple[str, ...]
    weak: str = ""


class Hit(NamedTuple):
    """A cue at characters `start` to `end` (exclusive) of a folded text."""

    start: int
    end: int
    category: str
    weak: str


@dataclass(frozen=True, slots=True)
class CrisisCues:
    """The cues of a language.

    `harmless`: phrases that contain the words of a cue; `words`: tells words of the language in other texts.
    """

    cues: tuple[CrisisCue, ...]
    harmless: re.Pattern[str]
    words: re.Pattern[str]

    def hits(self, folded: str) -> list[Hit]:
        """Every cue in a folded text, in order, outside harmless phrases."""
        hits = [
            Hit(match.start(), match.end(), cue.category, cue.weak)
            for cue in self.cues
            if any(needle in folded for needle in cue.needles)
            for match in cue.pattern.finditer(folded)
        ]
        harmless = [match.span() for match in self.harmless.finditer(folded)] if hits else []
        return sorted(hit for hit in hits if not any(start < hit.end and hit.start < end for start, end in harmless))


def _gravity(hit: Hit) -> tuple[int, int]:
    return CATEGORIES.index(hit.category), hit.start


@cache
def crisis_cues(language: Language) -> CrisisCues:
    """Read the cues of a language, once a process; no part of a pattern repeats without a bound."""
    raw: Any = language_data(f"safety/{DATA}/cues", language)
    cues = tuple(
        CrisisCue(row["category"], re.compile(row["pattern"]), tuple(row["needles"]), row.get("weak", ""))
        for row in raw["cues"]
    )
    return CrisisCues(cues, re.compile(raw["harmless"]), re.compile(raw["words"]))
