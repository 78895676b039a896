"""Find people in crisis, children, grooming and threats in a dialogue, so that they are tagged and not filtered away.

One message: a strong cue is enough; a weak cue counts where the classifier sees a sign as well; the classifier alone
counts only where it is sure, and where it is not it prevents removal (`find_possible_crisis`). Questions about means,
children, grooming and threats have classifiers of their own beside their cues. Nothing of this depends
on the length of the dialogue, so a message that is tagged alone is tagged in a dialogue. Each kind that is found is
reported, none in place of another.

The dialogue adds what one message cannot show: many questions about means are oblique, and the companion's answer
("I won't answer that. Are you thinking of ending your life?") tells what was asked. Such an answer also confirms what
a kind's classifier sees faintly.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, NamedTuple

from h2htalk.curation.safety.evidence import Evidence
from h2htalk.curation.safety.ngram_classifier import NgramClassifier, Reading, load_classifier
from h2htalk.curation.safety.text_folding import fold_spelling, spelling_place
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.scenario import Turn
from h2htalk.text.language_data import language_data

DATA = "crisis_data"
# Categories of cues that are codes of their own, not kinds of a crisis.
MINOR = "minor"
OTHER_CODES = (MINOR, "grooming", "threat_to_others")
# Kinds with a classifier of their own, trained on the lines of several authors (tools/train_kinds.py), and their codes.
CLASSIFIED = {"means": "crisis.means", "minor": MINOR, "grooming": "grooming", "threat": "threat_to_others"}
KIND_FOLDERS = tuple(f"{DATA}/{kind}" for kind in CLASSIFIED)
# How the codes begin by which a dialogue is about a crisis: a child who says so is in none for that.
TAGS = ("crisis.", "grooming", "threat_to_others")
POSSIBLE = "crisis.possible"
# What a message says besides insults is most of it above this share.
MOST = 0.55
# The score of a strong cue, and the most that the classifier or the dialogue alone give.
CUE, SIGNS = 0.9, 0.89
# Characters: an answer is about the end of a message.
NEAR = 300
# Which signs in the companion's answer confirm what a classifier sees faintly.
CONFIRMED = {
    "means": ("asks", "refuses", "urges"),
    "minor": ("underage",),
    "grooming": ("protects", "urges"),
    "threat": ("warns", "refuses", "urges"),
}


def find_crisis(text: str, language: Language) -> list[Evidence]:
    """The evidence in one message, one for each code: `crisis.ideation`, `crisis.means`, `minor`, ...

    Args:
        text: one message of the seeker's, of any length.
        language: of the dialogue; words of other languages are read as well.
    """
    found: dict[str, Evidence] = {}
    others = [other for other in LANGUAGES if other != language and crisis_cues(other).words.search(text)]
    for one in (language, *others):
        # A line break ends a sentence, or breaks it.
        for read in dict.fromkeys((text, text.replace("\n", " "))):
            for hit, score in signals(fold_spelling(read, one), load_classifier(DATA, one)):
                code = _code(hit.category)
                if code not in found:
                    found[code] = Evidence("crisis", code, score, *spelling_place(read, one, hit.start, hit.end))
    for kind, code in CLASSIFIED.items():
        model = _kind_classifier(kind, language)
        reading = _score_kinds(text, language)[kind]
        if code not in found and reading.score >= model.high():
            place = spelling_place(text, language, reading.start, reading.end)
            found[code] = Evidence("crisis", code, SIGNS, *place)
    return list(found.values())


def _kind_classifier(kind: str, language: Language) -> NgramClassifier:
    return load_classifier(f"{DATA}/{kind}", language)


@lru_cache(maxsize=64)
def _score_kinds(text: str, language: Language) -> Mapping[str, Reading]:
    """What the classifier of each kind reads in a message; cached, as the dialogue asks again."""
    folded = fold_spelling(text, language)
    return {kind: _kind_classifier(kind, language).score(folded) for kind in CLASSIFIED}


def find_possible_crisis(text: str, language: Language, share: float = 1.0) -> Evidence | None:
    """`crisis.possible`, which prevents removal and tags nothing: the classifier sees a faint sign.

    Args:
        text: a message without other evidence of a crisis, or what it says besides insults.
        language: of the dialogue.
        share: of the message that `text` is; a small part needs a clearer sign.
    """
    model = load_classifier(DATA, language)
    score = model.score(fold_spelling(text, language)).score
    least = model.manifest["possible"] if share > MOST else model.low()
    return Evidence("doubt", POSSIBLE, score) if score >= least else None


def signals(folded: str, model: NgramClassifier) -> Iterator[tuple[Hit, float]]:
    """The strong cues of a folded message, else what the classifier finds, with scores."""
    cues = crisis_cues(model.language)
    hits = cues.hits(folded)
    strong = [hit for hit in hits if not hit.weak]
    for hit in strong:
        yield hit, CUE
    if any(hit.category not in OTHER_CODES for hit in strong):
        return
    weak = [hit for hit in hits if hit.weak]
    score, start, end = model.score(cues.harmless.sub(lambda phrase: " " * len(phrase.group()), folded))
    if score >= (model.low() if weak else model.high()):
        yield Hit(start, end, weak[0].category if weak else "ideation"), min(score, SIGNS)


def _code(category: str) -> str:
    return category if category in OTHER_CODES else f"crisis.{category}"


# --- The dialogue ---------------------------------------------------------------------------------------------------


def find_in_context(turns: Sequence[Turn], language: Language) -> list[Evidence]:
    """The evidence that only several messages of a dialogue give together, with their turns.

    Args:
        turns: of the whole dialogue.
        language: of the dialogue.
    """
    signs = crisis_cues(language).signs
    folded = [fold_spelling(turn.content, language) for turn in turns]
    found: list[Evidence] = []
    for at in range(1, len(turns)):
        if turns[at].role == "companion" and turns[at - 1].role == "user":
            codes = set(_answered(folded[at - 1], folded[at], signs))
            for kind, names in CONFIRMED.items():
                if kind == "threat" and "crisis.third_party" in codes:
                    continue  # somebody is urged to help a friend, not warned
                if any(signs[name].search(folded[at]) for name in names):
                    reading = _score_kinds(turns[at - 1].content, language)[kind]
                    if reading.score >= _kind_classifier(kind, language).low():
                        codes.add(CLASSIFIED[kind])
            found += [Evidence("crisis", code, SIGNS, turn=at - 1) for code in sorted(codes)]
    return found


def _answered(message: str, answer: str, signs: Mapping[str, re.Pattern[str]]) -> Iterator[str]:
    """The codes of a seeker's message that the companion's answer to it confirms."""
    asks, refuses, urges = (bool(signs[name].search(answer)) for name in ("asks", "refuses", "urges"))
    if refuses and asks:
        yield "crisis.means"
    elif asks and (urges or signs["distress"].search(message[-NEAR:])):
        yield "crisis.ideation"
    if signs["underage"].search(answer):
        yield "minor"
    if urges and signs["friend"].search(answer):
        yield "crisis.third_party"


# --- Cues -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CrisisCue:
    """A phrase: `category` a kind of crisis or one of OTHER_CODES; `weak`: whether the classifier must agree.

    The pattern is tried only where the text contains one of `needles`, which few messages do; none: always.
    """

    category: str
    pattern: re.Pattern[str]
    needles: tuple[str, ...]
    weak: bool = False


class Hit(NamedTuple):
    """A cue at characters `start` to `end` (exclusive) of a folded text."""

    start: int
    end: int
    category: str
    weak: bool = False


@dataclass(frozen=True, slots=True)
class CrisisCues:
    """The cues of a language.

    Attributes:
        cues: of one message.
        harmless: phrases that contain the words of a cue.
        words: tells words of the language in other texts.
        signs: patterns of `find_in_context` by name, of the seeker's messages and the companion's answers.
    """

    cues: tuple[CrisisCue, ...]
    harmless: re.Pattern[str]
    words: re.Pattern[str]
    signs: Mapping[str, re.Pattern[str]]

    def hits(self, folded: str) -> list[Hit]:
        """Every cue in a folded text, in order, outside harmless phrases."""
        hits = [
            Hit(match.start(), match.end(), cue.category, cue.weak)
            for cue in self.cues
            if not cue.needles or any(needle in folded for needle in cue.needles)
            for match in cue.pattern.finditer(folded)
        ]
        harmless = [match.span() for match in self.harmless.finditer(folded)] if hits else []
        return sorted(hit for hit in hits if not any(start < hit.end and hit.start < end for start, end in harmless))


@cache
def crisis_cues(language: Language) -> CrisisCues:
    """Read the cues of a language, once a process; no part of a pattern repeats without a bound."""
    raw: Any = language_data(f"curation/safety/{DATA}/cues", language)
    cues = tuple(
        CrisisCue(row["category"], re.compile(row["pattern"]), tuple(row.get("needles", ())), row.get("weak", False))
        for row in raw["cues"]
    )
    signs = {name: re.compile(pattern) for name, pattern in raw["signs"].items()}
    return CrisisCues(cues, re.compile(raw["harmless"]), re.compile(raw["words"]), signs)
