"""Insults: how offensive a text is, whom it is for, and what a message says besides (people in a crisis swear)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from h2htalk.curation.language_data import language_data, language_patterns
from h2htalk.curation.safety.evidence import Evidence
from h2htalk.curation.safety.ngram_classifier import load_classifier
from h2htalk.curation.safety.text_folding import fold
from h2htalk.data.languages import Language, find_language

OFFENSIVE = "safety_data"  # folder of the classifier of offensive language
INSULTS = f"safety/{OFFENSIVE}/insults"
# A sentence that names a group is offensive from this part of `low` on, if its message is.
NAMING = 0.25
_SENTENCES = re.compile(r"[^.!?\n。！？]+[.!?\n。！？]*")
_OFFENSIVE = ("profanity.only", "offensive.")
_SHORT = 4  # characters; shorter clauses tell nothing


def without_insults(text: str, language: Language, listed: Sequence[Evidence], offensive: bool) -> str:
    """The clauses of a message that are not offensive; empty where nothing is offensive, or everything.

    Args:
        text: the message.
        language: of the dialogue.
        listed: evidence of the lexicons.
        offensive: whether the message as a whole is offensive.
    """
    spans = [(one.start, one.end) for one in listed if one.category.startswith(_OFFENSIVE)]
    if not spans and not offensive:
        return ""
    low, pattern = load_classifier(OFFENSIVE, language).low(), language_patterns(INSULTS, language)["clauses"]
    clauses = [_without_spans(match, spans) for match in pattern.finditer(text)]
    mild = [one for one in clauses if len(one.strip()) >= _SHORT and offence(one, language) < low]
    return str(language_data(INSULTS, language)["clause_end"]).join(mild)


def offence(text: str, language: Language) -> float:
    """The probability that a text is offensive, calibrated on public sets and our own texts (Platt scaling)."""
    joint = find_language(language).joint
    return load_classifier(OFFENSIVE, language).score(joint.join(fold(text).split())).score


def find_named_group(text: str, language: Language) -> Evidence | None:
    """`group.named` where an offensive sentence names a group of people (origin, sex, faith, ...).

    An insult without such a name is for the listener, the speaker, somebody near, or nobody: 98 % of COLD dev's
    offensive messages of which the classifier is sure name a group.
    """
    patterns, low = language_patterns(INSULTS, language), load_classifier(OFFENSIVE, language).low()
    sentences = [match[0] for match in _SENTENCES.finditer(text)]
    naming = [one for one in sentences if patterns["named"].search(patterns["besides"].sub(" ", fold(one)))]
    # A single sentence is known to be offensive, as its message is.
    offends = len(sentences) == 1 or any(offence(one, language) >= NAMING * low for one in naming)
    return Evidence("group", "group.named", 1.0) if naming and offends else None


def find_report(text: str, language: Language) -> Evidence | None:
    """`reported.insult` where somebody reports what others called them or did to them."""
    folded = fold(text).replace("'", "").replace("’", "")
    reported = language_patterns(INSULTS, language)["reports"].search(folded)
    return Evidence("report", "reported.insult", 1.0) if reported else None


def _without_spans(clause: re.Match[str], spans: Sequence[tuple[int, int]]) -> str:
    """The part of a clause before or after the insults in it, whichever is longer."""
    inside = [(start, end) for start, end in spans if start < clause.end() and clause.start() < end]
    if not inside:
        return clause[0]
    before = clause[0][: max(0, min(start for start, _ in inside) - clause.start())]
    after = clause[0][max(end for _, end in inside) - clause.start() :]
    return max(before, after, key=len)
