"""Find politically sensitive content, by rules over two kinds of words and a small classifier.

A rule requires a public matter and a stance on it in one sentence. The classifier counts where the message names a
public matter, or where it is far surer than by chance. Both together are sure; one alone is for a person or a guard
model to decide. For a companion, whose long kind replies mislead the classifier, it counts only with a rule.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from h2htalk.curation.safety.evidence import Evidence
from h2htalk.curation.safety.ngram_classifier import NgramClassifier, Reading, load_classifier
from h2htalk.curation.safety.text_folding import fold_spelling, spelling_place
from h2htalk.data.languages import Language
from h2htalk.errors import ConfigError
from h2htalk.text.language_data import language_data, language_patterns

CATEGORY = "political.sensitive"
DATA = "political_data"
# Scores of a signal: the rules and the classifier agree, or one of them alone.
AGREED, ALONE = 0.95, 0.6
# The score of the classifier from which on a message is political although no word of it names a public matter.
NO_SUBJECT = 0.3
_SENTENCE = re.compile(r"[^.!?;]+")


def find_political(
    text: str, language: Language, terms: frozenset[str] = frozenset(), seeker: bool = True
) -> Evidence | None:
    """The evidence of politics in one message of the seeker's or the companion's; None for none.

    `terms`: folded terms of the user's own (`read_terms`); each counts as a rule.
    """
    folded = fold_spelling(text, language)
    signal = find_signal(folded, load_classifier(DATA, language), terms, seeker)
    if signal is None:
        return None
    place = spelling_place(text, language, signal.start, signal.end)
    return Evidence("political", CATEGORY, signal.score, *place)


def find_signal(
    folded: str, model: NgramClassifier, terms: frozenset[str] = frozenset(), seeker: bool = True
) -> Reading | None:
    """As `find_political`, for a folded text: AGREED or ALONE, and the place in that text."""
    rules = language_patterns(f"curation/safety/{DATA}/rules", model.language)
    ruled = _find_statement(folded, rules)
    if ruled is None and terms:
        ruled = next(((at, at + len(t)) for t in sorted(terms) if (at := folded.find(t)) >= 0), None)
    if ruled is None and not seeker:
        return None
    score, start, end = model.score(folded)
    if ruled is not None:
        return Reading(AGREED if score >= model.low() else ALONE, *ruled)
    public = rules["public"].search(folded, start, end) is not None
    subject = language_data(f"curation/safety/{DATA}/rules", model.language)["subject"]
    return Reading(ALONE, start, end) if score >= (subject if public else NO_SUBJECT) else None


def _find_statement(folded: str, rules: Mapping[str, re.Pattern[str]]) -> tuple[int, int] | None:
    """The first sentence that names a public matter and takes a stance on it."""
    if rules["matter"].search(folded) is None:
        return None
    for sentence in _SENTENCE.finditer(folded):
        text = sentence[0]
        if all(rules[name].search(text) for name in ("matter", "stance")) and not rules["everyday"].search(text):
            return sentence.span()
    return None


@lru_cache(maxsize=8)
def read_terms(path: str, language: Language) -> frozenset[str]:
    """Read the user's own terms, one a line (`#` opens a comment), folded; empty for no path. Raises ConfigError."""
    if not path:
        return frozenset()
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: the list of sensitive terms cannot be read as UTF-8 text: {error}") from error
    return frozenset(fold_spelling(line, language) for line in lines if line.strip() and not line.startswith("#"))
