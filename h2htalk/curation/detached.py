"""What a message says beside its insults: people in a crisis swear, and an insult must not hide what they tell."""

from __future__ import annotations

import re
from collections.abc import Sequence

from h2htalk.curation.evidence import Evidence
from h2htalk.curation.safety_classifier import Classifier
from h2htalk.data.dialogue import Language

_CLAUSES = {
    "en": re.compile(r"[^.!?\n;,]+[.!?\n;,]*"),
    "zh": re.compile(r"[^.!?。！？\n;；,，~… ]+[.!?。！？\n;；,，~… ]*"),
}
_INSULTS = ("profanity.only", "offensive.")
# A clause with fewer characters says nothing.
_SHORT = 4


def beside_insults(
    text: str, language: Language, listed: Sequence[Evidence], classifier: Classifier, offensive: bool
) -> str:
    """The clauses of a message without those that offend: empty where nothing offends, or nothing is left.

    Args:
        text: the message.
        language: of the dialogue.
        listed: what the lexicons saw in it.
        classifier: of the language; clauses from its `low` on offend.
        offensive: whether the message as a whole does.
    """
    spans = [(one.start, one.end) for one in listed if one.category.startswith(_INSULTS)]
    if not spans and not offensive:
        return ""
    clauses = [_without(match, spans) for match in _CLAUSES[language].finditer(text)]
    told = [clause for clause in clauses if len(clause.strip()) >= _SHORT]
    scores = classifier.scores(told) if told else []
    mild = [clause for clause, score in zip(told, scores, strict=True) if score < classifier.low]
    return ("。" if language == "zh" else ". ").join(mild)


def _without(clause: re.Match[str], spans: Sequence[tuple[int, int]]) -> str:
    """A clause before or after the insults in it, whichever is longer."""
    inside = [(start, end) for start, end in spans if start < clause.end() and clause.start() < end]
    if not inside:
        return clause[0]
    before = clause[0][: max(0, min(start for start, _ in inside) - clause.start())]
    after = clause[0][max(end for _, end in inside) - clause.start() :]
    return max(before, after, key=len)
