"""What a message says beside its insults: people in a crisis swear, and an insult must not hide what they tell."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from h2htalk.curation.safety.evidence import Evidence
from h2htalk.curation.safety.ngram_classifier import load
from h2htalk.curation.safety.text_folding import fold
from h2htalk.data.languages import Language, find_language

OFFENSIVE = "safety_data"  # the classifier of offensive language, and whom insults are for

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


def beside_insults(text: str, language: Language, listed: Sequence[Evidence], offensive: bool) -> str:
    """The clauses of a message without those that offend: empty where nothing offends, or nothing is left.

    Args:
        text: the message.
        language: of the dialogue.
        listed: what the lexicons saw in it.
        offensive: whether the message as a whole offends.
    """
    spans = [(one.start, one.end) for one in listed if one.category.startswith(_INSULTS)]
    if not spans and not offensive:
        return ""
    low = load(OFFENSIVE, language).low()
    clauses = [_without(match, spans) for match in _CLAUSES[language].finditer(text)]
    mild = [one for one in clauses if len(one.strip()) >= _SHORT and offence(one, language) < low]
    return ("。" if language == "zh" else ". ").join(mild)


def offence(text: str, language: Language) -> float:
    """How likely a text is offensive: P in [0, 1], calibrated on public sets and our own texts (Platt scaling)."""
    joint = find_language(language).joint
    return load(OFFENSIVE, language).score(joint.join(fold(text).split())).score


class Targets(NamedTuple):
    """Whom an insult is for: words that name a group, words that only look it, and reports of what others said."""

    named: re.Pattern[str]
    besides: re.Pattern[str]
    reports: re.Pattern[str]


def names_group(text: str, language: Language) -> Evidence | None:
    """`group.named` where a sentence that offends names a group of people (origin, sex, faith, ...).

    An insult beside no such name is for the listener, the speaker, somebody near, or nobody: 98 % of what the
    classifier is sure of in COLD dev's offensive messages names one.
    """
    targets, low = _targets(language), load(OFFENSIVE, language).low()
    sentences = [match[0] for match in _SENTENCES.finditer(text)]
    naming = [one for one in sentences if targets.named.search(targets.besides.sub(" ", fold(one)))]
    # Of one sentence it is known that it offends: the message does.
    offends = len(sentences) == 1 or any(offence(one, language) >= NAMING * low for one in naming)
    return Evidence("group", "group.named", 1.0) if naming and offends else None


def report(text: str, language: Language) -> Evidence | None:
    """`reported.insult` where somebody tells what others called them or did to them; None elsewhere."""
    spoken = fold(text).replace("'", "").replace("’", "")
    return Evidence("report", "reported.insult", 1.0) if _targets(language).reports.search(spoken) else None


@cache
def _targets(language: Language) -> Targets:
    path = Path(__file__).parent / OFFENSIVE / "targets.toml"
    raw = tomllib.loads(path.read_text(encoding="utf-8"))[language]
    return Targets(*(re.compile(raw[name]) for name in Targets._fields))


def _without(clause: re.Match[str], spans: Sequence[tuple[int, int]]) -> str:
    """A clause before or after the insults in it, whichever is longer."""
    inside = [(start, end) for start, end in spans if start < clause.end() and clause.start() < end]
    if not inside:
        return clause[0]
    before = clause[0][: max(0, min(start for start, _ in inside) - clause.start())]
    after = clause[0][max(end for _, end in inside) - clause.start() :]
    return max(before, after, key=len)
