"""Finding people in crisis in a message: cues and a small model, so that nothing of theirs is ever thrown away.

A message is a crisis where a strong cue stands in it, where the model is sure, or where two weaker signs meet: two
kinds of weak cues in one message, or one and a model that is not far from sure. It is meant to find too much rather
than too little: a tag costs a look, a miss may cost a person.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from h2htalk.curation.crisis_cues import CATEGORIES, Cues, Hit, cues
from h2htalk.curation.evidence import Evidence
from h2htalk.curation.folding import fold, origin
from h2htalk.curation.ngram_model import Model, load
from h2htalk.data.dialogue import Language

DATA = "crisis_data"
_CHINESE = re.compile(r"[\u4e00-\u9fff]{2}")
# Three words in a row; bounded, so that a megabyte without a space is read in linear time.
_ENGLISH = re.compile(r"(?<![A-Za-z'])[A-Za-z']{2,20}[ \t]{1,3}[A-Za-z']{1,20}[ \t]{1,3}[A-Za-z']")
# Weak cues of so many kinds in one message are enough without the model.
_KINDS = 3
# What is left of an offending message must be surer, as if it were one of so many messages.
BESIDE = 4
# In doubt a message with insults is not removed: so much of it must be harmless, and so near to `high` its score.
MOST, DOUBT = 0.55, 0.5


@dataclass(frozen=True, slots=True)
class Sign:
    """What was found in one message: its category, how sure, whether plain words said it, and where (folded)."""

    category: str
    score: float
    explicit: bool
    language: Language
    start: int
    end: int


def find(text: str, language: Language, messages: int = 1) -> Evidence | None:
    """What one message shows of a crisis: `crisis.ideation`, `crisis.plan`, ... in the text itself; None for nothing.

    Args:
        text: one message, of any length.
        language: of the dialogue; words of the other language are read as well.
        messages: how many its speaker has in the dialogue: the more there are, the surer the model must be.
    """
    found = [
        sign for tongue in tongues(text, language) if (sign := sign_of(text, tongue, messages)) is not None
    ]
    if not found:
        return None
    best = max(found, key=lambda sign: (sign.score, sign.language == language))
    start, end = origin(text, best.language, best.start, best.end)
    return Evidence("crisis", f"crisis.{best.category}", best.score, start, end)


def find_beside(rest: str, length: int, language: Language, messages: int = 1) -> Evidence | None:
    """What a message tells beside its insults (`detached.beside_insults`): of a crisis, or `crisis.possible`.

    The latter saves from removal and tags nothing: most of a message of so many characters (`length`) does not
    offend, and the model is in some doubt about it.
    """
    found = find(rest, language, max(messages, BESIDE))
    if found is not None:
        return Evidence("crisis", found.category, found.score)
    model = load(DATA, language)
    score, _, _ = model.score(fold(rest, language))
    if len(rest) > MOST * length and score >= DOUBT * model.high():
        return Evidence("doubt", "crisis.possible", score)
    return None


def tongues(text: str, language: Language) -> list[Language]:
    """The languages that a message is written in: the dialogue's, and the other where words of it stand there."""
    other: Language = "en" if language == "zh" else "zh"
    pattern = _ENGLISH if other == "en" else _CHINESE
    there = (other == "en" or not text.isascii()) and pattern.search(text) is not None
    return [language, other] if there else [language]


def sign_of(text: str, language: Language, messages: int = 1) -> Sign | None:
    """The sign that one language's cues and model find in a message."""
    return sign_in(fold(text, language), cues(language), load(DATA, language), messages)


def sign_in(folded: str, known: Cues, model: Model, messages: int = 1) -> Sign | None:
    """As `sign_of`, of a folded text."""
    hits = known.hits(folded)
    score, start, end = model.score(folded)
    strong = [hit for hit in hits if not hit.weak]
    if strong:
        first = min(strong, key=_gravest)
        return Sign(first.category, max(0.9, score), True, model.language, first.start, first.end)
    kinds = {hit.weak for hit in hits}
    if score >= model.high(messages) or (kinds and score >= model.low(messages)) or len(kinds) >= _KINDS:
        category = min(hits, key=_gravest).category if hits else "ideation"
        return Sign(category, min(score, 0.89), False, model.language, start, end)
    return None


def _gravest(hit: Hit) -> tuple[int, int]:
    return CATEGORIES.index(hit.category), hit.start
