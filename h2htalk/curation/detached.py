"""What a message says beside its insults: people in a crisis swear, and an insult must not hide what they tell."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from h2htalk.curation.evidence import Evidence
from h2htalk.curation.safety_classifier import Classifier
from h2htalk.curation.safety_folding import fold
from h2htalk.data.dialogue import Language
from h2htalk.errors import DataError

TARGETS = Path(__file__).parent / "safety_data" / "targets.toml"

_CLAUSES = {
    "en": re.compile(r"[^.!?\n;,]+[.!?\n;,]*"),
    "zh": re.compile(r"[^.!?。！？\n;；,，~… ]+[.!?。！？\n;；,，~… ]*"),
}
# A sentence that names a group offends from this part of `low` on, where its message does.
NAMING = 0.25
_SENTENCES = re.compile(r"[^.!?\n。！？]+[.!?\n。！？]*")
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


@dataclass(frozen=True, slots=True)
class Targets:
    """Whom an insult is for: words that name a group, words that only look it, and reports of what others said."""

    named: re.Pattern[str]
    besides: re.Pattern[str]
    reports: re.Pattern[str]


def names_group(text: str, language: Language, classifier: Classifier) -> Evidence | None:
    """`group.named` where a sentence that offends names a group of people (origin, sex, faith, ...).

    An insult beside no such name is for the listener, the speaker, somebody near, or nobody: 98 % of what the
    classifier is sure of in COLD dev's offensive messages names one.

    Raises:
        DataError: the bundled list is damaged.
    """
    targets = _targets(language)
    sentences = [match[0] for match in _SENTENCES.finditer(text)]
    naming = [one for one in sentences if targets.named.search(targets.besides.sub(" ", fold(one)))]
    # Of one sentence it is known that it offends: the message does.
    offends = len(sentences) == 1 or any(
        score >= NAMING * classifier.low for score in classifier.scores(naming)
    )
    return Evidence("group", "group.named", 1.0) if naming and offends else None


def report(text: str, language: Language) -> Evidence | None:
    """`reported.insult` where somebody tells what others called them or did to them; None elsewhere.

    Raises:
        DataError: the bundled list is damaged.
    """
    spoken = fold(text).replace("'", "").replace("’", "")
    return Evidence("report", "reported.insult", 1.0) if _targets(language).reports.search(spoken) else None


@cache
def _targets(language: Language) -> Targets:
    try:
        raw = tomllib.loads(TARGETS.read_text(encoding="utf-8"))[language]
        return Targets(*(re.compile(raw[name]) for name in ("named", "besides", "reports")))
    except (OSError, KeyError, TypeError, ValueError, re.error) as error:
        raise DataError(f"{TARGETS}: cannot be read ({error}); install h2htalk again") from error


def _without(clause: re.Match[str], spans: Sequence[tuple[int, int]]) -> str:
    """A clause before or after the insults in it, whichever is longer."""
    inside = [(start, end) for start, end in spans if start < clause.end() and clause.start() < end]
    if not inside:
        return clause[0]
    before = clause[0][: max(0, min(start for start, _ in inside) - clause.start())]
    after = clause[0][max(end for _, end in inside) - clause.start() :]
    return max(before, after, key=len)
