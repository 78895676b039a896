"""Find people in crisis, children, grooming and threats in a dialogue, so that they are tagged and not filtered away.

In a message a strong cue is enough. A weak cue counts where the classifier sees a sign as well. The classifier alone
counts where it is sure; where it is not, it prevents removal. Means, children, grooming and threats have classifiers of
their own. In a dialogue the companion's answer shows what was asked, and confirms what a classifier sees faintly.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from h2htalk.curation.safety.evidence import Evidence
from h2htalk.curation.safety.ngram_classifier import NgramClassifier, load_classifier
from h2htalk.curation.safety.text_folding import fold_spelling, spelling_place
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.scenario import Turn
from h2htalk.text.language_data import language_data

DATA = "crisis_data"
# Categories of cues that are codes of their own, not kinds of a crisis.
MINOR = "minor"
OTHER_CODES = (MINOR, "grooming", "threat_to_others")
FAINT, SURE = 1, 2  # what a kind's classifier sees
# Kinds with a classifier of their own, trained on the lines of several authors (tools/train_kinds.py), and their codes.
CLASSIFIED = {"means": "crisis.means", "minor": MINOR, "grooming": "grooming", "threat": "threat_to_others"}
KIND_FOLDERS = tuple(f"{DATA}/{kind}" for kind in CLASSIFIED)
# How the codes begin by which a dialogue is about a crisis: a child who says so is in none for that.
TAGS = ("crisis.", "grooming", "threat_to_others")
POSSIBLE = "crisis.possible"
CUE, SIGNS = 0.9, 0.89  # the score of a strong cue, and the most that the classifier or the dialogue alone give
NEAR = 300  # characters: an answer is about the end of a message
# Which signs in the companion's answer confirm what a classifier sees faintly.
CONFIRMED = {
    "means": ("asks", "refuses", "urges"),
    "minor": ("underage",),
    "grooming": ("protects", "urges"),
    "threat": ("warns", "refuses", "urges"),
}


def find_crisis(text: str, language: Language) -> list[Evidence]:
    """The evidence in one message of the seeker's, one for each code: `crisis.ideation`, `minor`, ..."""
    found: dict[str, Evidence] = {}
    others = [other for other in LANGUAGES if other != language and crisis_cues(other).words.search(text)]
    for one in (language, *others):
        # A line break ends a sentence, or breaks it.
        for read in dict.fromkeys((text, text.replace("\n", " "))):
            for hit, score in signals(fold_spelling(read, one), load_classifier(DATA, one)):
                code = hit.category if hit.category in OTHER_CODES else f"crisis.{hit.category}"
                if code not in found:
                    found[code] = Evidence("crisis", code, score, *spelling_place(read, one, hit.start, hit.end))
    for kind, (strength, start, end) in read_kinds(text, language, tuple(CLASSIFIED)).items():
        if strength == SURE and (code := CLASSIFIED[kind]) not in found:
            found[code] = Evidence("crisis", code, SIGNS, *spelling_place(text, language, start, end))
    return list(found.values())


@lru_cache(maxsize=16_384)  # a dialogue asks again, and so do the gates of a release
def read_kinds(text: str, language: Language, kinds: tuple[str, ...]) -> Mapping[str, tuple[int, int, int]]:
    """Read a text by the classifiers of some kinds: SURE, FAINT or 0, and the place in the folded text."""
    folded, found = fold_spelling(text, language), {}
    for kind in kinds:
        model = load_classifier(f"{DATA}/{kind}", language)
        score, start, end = model.score(folded)
        found[kind] = ((score >= model.low()) + (score >= model.high()), start, end)
    return found


def find_possible_crisis(text: str, language: Language, offensive: bool) -> Evidence | None:
    """`crisis.possible`, which prevents removal and tags nothing: the classifier sees a faint sign."""
    model = load_classifier(DATA, language)
    # In an offensive message the sign must be stronger, halfway between both thresholds.
    least = (model.low() + model.high()) / 2 if offensive else model.manifest["possible"]
    score = model.score(fold_spelling(text, language)).score
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


def find_in_context(turns: Sequence[Turn], language: Language) -> list[Evidence]:
    """The evidence of a seeker's messages and of the companion's answers that confirm it, with the messages' turns."""
    found, signs = [], crisis_cues(language).signs
    for at, (turn, answer) in enumerate(pairwise(turns)):
        if (turn.role, answer.role) != ("user", "companion"):
            continue
        folded, codes = fold_spelling(answer.content, language), set[str]()
        seen = {name for name, pattern in signs.items() if name != "distress" and pattern.search(folded)}
        distress = signs["distress"]
        if {"asks", "refuses"} <= seen:
            codes.add("crisis.means")
        elif "asks" in seen and ("urges" in seen or distress.search(fold_spelling(turn.content, language)[-NEAR:])):
            codes.add("crisis.ideation")
        if "underage" in seen:
            codes.add(MINOR)
        if {"urges", "friend"} <= seen:
            codes.add("crisis.third_party")
        for kind, names in CONFIRMED.items():
            # Who is urged to help a friend is not warned.
            urged = kind == "threat" and "crisis.third_party" in codes
            if not (urged or seen.isdisjoint(names)) and read_kinds(turn.content, language, tuple(CLASSIFIED))[kind][0]:
                codes.add(CLASSIFIED[kind])
        found += [Evidence("crisis", code, SIGNS, turn=at) for code in sorted(codes)]
    return found


@dataclass(frozen=True, slots=True)
class CrisisCue:
    """A phrase, which is a sign of a kind of crisis."""

    category: str  # a kind of crisis or one of OTHER_CODES
    pattern: re.Pattern[str]
    needles: Sequence[str] = ()  # the pattern is tried only where the text contains one of them; none: always
    weak: bool = False  # whether the classifier must agree


class Hit(NamedTuple):
    """A cue at characters `start` to `end` (exclusive) of a folded text."""

    start: int
    end: int
    category: str
    weak: bool = False


@dataclass(frozen=True, slots=True)
class CrisisCues:
    """The cues of a language."""

    cues: tuple[CrisisCue, ...]  # of one message
    harmless: re.Pattern[str]  # phrases that contain the words of a cue
    words: re.Pattern[str]  # tells words of the language in other texts
    signs: Mapping[str, re.Pattern[str]]  # of `find_in_context`, of the seeker's messages and the companion's answers

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
    cues = tuple(CrisisCue(**{**row, "pattern": re.compile(row["pattern"])}) for row in raw["cues"])
    signs = {name: re.compile(pattern) for name, pattern in raw["signs"].items()}
    return CrisisCues(cues, re.compile(raw["harmless"]), re.compile(raw["words"]), signs)
