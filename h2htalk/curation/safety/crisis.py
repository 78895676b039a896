"""Find people in crisis, children, grooming and threats in a dialogue, so that they are tagged and not filtered away.

The seeker's messages are read in runs of whole clauses, so that a long message does not hide a short sentence. To each
run stand the cues and the classes of words in it (who is meant, when, whether it is denied, told of a film, ...), of
which a linear classifier makes, for each kind of danger, a score. How plainly the companion's answer speaks of the
kind, and what the dialogue says elsewhere, add to it; thresholds are set on ordinary chat (tools/train_dangers.py).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from h2htalk.curation.safety.evidence import Evidence
from h2htalk.curation.safety.ngram_classifier import SMOOTH, Features, load_classifier, read_rows
from h2htalk.curation.safety.text_folding import fold_spelling, spelling_place
from h2htalk.data.languages import LANGUAGES, Language, find_language
from h2htalk.data.scenario import Turn
from h2htalk.text.language_data import language_data
from h2htalk.text.phrases import PhraseIndex

DATA = "crisis_data"
# Codes that are no kind of crisis.
MINOR = "minor"
OTHER_CODES = (MINOR, "grooming", "threat_to_others")
FAINT, SURE = 1, 2  # what a classifier of the gates sees
# What is looked for, and its code; a crisis has one of SORTS.
DANGERS = {"crisis": "", "means": "crisis.means", "minor": MINOR, "grooming": "grooming", "threat": "threat_to_others"}
SORTS = ("ideation", "plan", "self_harm", "past", "third_party")
# The rows of the classifier: of the seeker's words, what sort of crisis they tell of, and of the companion's answer.
ROWS = (*DANGERS, *SORTS, *(f"answer {kind}" for kind in DANGERS))
# The codes of strong cues that stand for a danger.
CUES = {
    "crisis": {*SORTS, "attempt"},
    "means": {"means"},
    "minor": {MINOR},
    "grooming": {"grooming"},
    "threat": {"threat_to_others"},
}
# How the codes begin by which a dialogue is about a crisis: a child who says so is in none for that.
TAGS = ("crisis.", "grooming", "threat_to_others")
POSSIBLE, HINT = "crisis.possible", "crisis.hint"
CUE, SIGNS = 0.9, 0.89  # the score where a strong cue stands too, and the most without one
UNHEARD = -4.0  # the least score of an answer, and that of none
ANSWER = 400  # characters of an answer that are read


@lru_cache(maxsize=16_384)  # the gates of a release ask again
def read_kinds(text: str, language: Language, kinds: tuple[str, ...]) -> Mapping[str, tuple[int, int, int]]:
    """Read a text by the classifiers of some kinds: SURE, FAINT or 0, and the place in the folded text."""
    folded, found = fold_spelling(text, language), {}
    for kind in kinds:
        model = load_classifier(f"{DATA}/{kind}", language)
        score, start, end = model.score(folded)
        found[kind] = ((score >= model.low()) + (score >= model.high()), start, end)
    return found


class Run(NamedTuple):
    """A run of clauses of a seeker's turn, or an answer: its place in the folded text, its cues, and scores of ROWS."""

    turn: int
    start: int
    end: int
    hits: Sequence[Hit] | None  # None of an answer
    scores: NDArray[np.float64]


def find_crisis(turns: Sequence[Turn], language: Language) -> list[Evidence]:
    """The evidence in the seeker's turns of a dialogue: at most one for each turn and code.

    Codes: `crisis.ideation`, ..., `minor`, `grooming`, `threat_to_others`; `crisis.possible` of a turn without any, in
    which the classifier sees a faint sign; `crisis.hint` of one with a fainter sign or a plain word for death.
    """
    found: list[Evidence] = []
    for at, turn in enumerate(turns):
        if turn.role != "user":
            continue
        others = [other for other in LANGUAGES if other != language and crisis_cues(other).words.search(turn.content)]
        for one in (language, *others):
            found += _in_turn(turns, at, one)
    return found


def _in_turn(turns: Sequence[Turn], at: int, language: Language) -> list[Evidence]:
    runs = read_runs(tuple((turn.role == "user", turn.content) for turn in turns), language)
    own = [run for run in runs if run.turn == at]
    if not own:
        return []
    dangers = load_dangers(language).manifest["dangers"]
    totals = {
        kind: round(sum(w * x for w, x in zip(dangers[kind]["combine"], (*said, 1.0), strict=True)), 6)
        for kind, said in weighed(runs, at).items()
    }
    codes = dict(DANGERS) | {"crisis": f"crisis.{_sort(max(own, key=lambda run: run.scores[0]))}"}
    found: list[Evidence] = []

    def add(layer: str, code: str, score: float, run: Run) -> None:
        place = spelling_place(turns[at].content, language, run.start, run.end)
        found.append(Evidence(layer, code, score, *place, at))

    for number, kind in enumerate(DANGERS):
        best, cued = max(own, key=lambda run: run.scores[number]), is_cued(kind, own)
        if totals[kind] >= dangers[kind]["cued" if cued else "high"]:
            add("crisis", codes[kind], CUE if cued else min(SIGNS, logistic(totals[kind])), best)
    if not any(one.category.startswith(TAGS) for one in found):
        best = max(own, key=lambda run: run.scores[0])
        if totals["crisis"] >= dangers["crisis"]["possible"]:
            add("doubt", POSSIBLE, logistic(totals["crisis"]), best)
        elif totals["crisis"] >= dangers["crisis"]["hint"] or is_cued("crisis", own):
            add("doubt", HINT, logistic(totals["crisis"]), best)
    return found


def is_cued(kind: str, runs: Iterable[Run]) -> bool:
    """Whether a strong cue of a danger stands in some runs."""
    return any(hit.category in CUES[kind] and not hit.weak for run in runs for hit in run.hits or ())


def logistic(total: float) -> float:
    return round(1 / (1 + math.exp(-max(-50.0, min(50.0, total)))), 9)


def _sort(run: Run) -> str:
    """What sort of crisis a run tells of."""
    return SORTS[int(np.argmax(run.scores[len(DANGERS) : len(DANGERS) + len(SORTS)]))]


def weighed(runs: Sequence[Run], at: int) -> dict[str, tuple[float, float, float]]:
    """For each danger what is weighed in a turn: its highest run, its answer, and what all runs of the dialogue say."""
    said = np.array([run.scores for run in runs if run.hits is not None])
    own = np.array([run.scores for run in runs if run.turn == at])
    heard = [run.scores for run in runs if run.turn == at + 1 and run.hits is None]
    found = {}
    for number, kind in enumerate(DANGERS):
        answer = max([UNHEARD, *(float(scores[ROWS.index(f"answer {kind}")]) for scores in heard)])
        every = float(np.logaddexp.reduce(np.append(said[:, number], UNHEARD)))
        found[kind] = (float(own[:, number].max()), answer, every)
    return found


@lru_cache(maxsize=8)
def read_runs(turns: tuple[tuple[bool, str], ...], language: Language) -> list[Run]:
    """The runs of a dialogue's turns (whether it is the seeker's, and its text), in order; of an answer one."""
    model = load_dangers(language)
    texts: list[str] = []
    found: list[tuple[int, int, int, Sequence[Hit] | None]] = []
    for at, (seeker, text) in enumerate(turns):
        folded = fold_spelling(text, language)
        if seeker:
            for start, end in model.features.readings(folded):
                marked, hits = mark(folded[start:end], language)
                texts.append(marked)
                found.append((at, start, end, hits))
        elif folded and at and turns[at - 1][0]:
            texts.append(folded[:ANSWER])
            found.append((at, 0, len(folded[:ANSWER]), None))
    return [Run(*one, scores) for one, scores in zip(found, model.read(texts), strict=True)]


def mark(folded: str, language: Language) -> tuple[str, list[Hit]]:
    """A run with a sign behind each cue, and signs for the classes of words in their order; and the cues."""
    cues = crisis_cues(language)
    hits, parts, at = cues.hits(folded), list[str](), 0
    for hit in sorted(hits, key=lambda hit: hit.end):
        parts += [folded[at : hit.end], cues.signs[hit.category, hit.weak]]
        at = hit.end
    classes = [sign for *_, sign in cues.classes.find(folded)]
    joint = find_language(language).joint
    kept = [sign for sign, before in zip(classes, ["", *classes], strict=False) if sign != before]
    return f"{''.join(parts)}{folded[at:]}{joint}\n{joint}{joint.join(kept)}", hits


@dataclass(frozen=True, slots=True, eq=False)
class DangerModel:
    """The classifier of a language: `weights` are buckets times ROWS, the manifest has thresholds of each danger."""

    features: Features
    weights: NDArray[np.float32]
    biases: NDArray[np.float64]
    manifest: Mapping[str, Any]

    def read(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """The scores of marked runs, runs times ROWS."""
        if not texts:
            return np.zeros((0, len(self.biases)))
        keys = self.features.keys(texts)
        owners, buckets = keys >> self.features.bits, keys & ((1 << self.features.bits) - 1)
        sums = np.add.reduceat(self.weights[buckets], np.searchsorted(owners, np.arange(len(texts)))).astype(float)
        norms = np.sqrt(np.bincount(owners, minlength=len(texts)) + SMOOTH)
        return (sums / norms[:, None] + self.biases).round(6)


@cache
def load_dangers(language: Language) -> DangerModel:
    """Read the classifier of a language, once a process. Raises DataError."""
    manifest, features, rows = read_rows(DATA, language)
    weights = (rows.T * np.array(manifest["scales"])).astype(np.float32)
    return DangerModel(features, np.ascontiguousarray(weights), np.array(manifest["biases"]), manifest)


@dataclass(frozen=True, slots=True)
class CrisisCue:
    """A phrase, which is a sign of a kind of crisis."""

    category: str  # one of SORTS, `attempt`, `means`, or one of OTHER_CODES
    pattern: re.Pattern[str]
    needles: Sequence[str] = ()  # the pattern is tried only where the text contains one of them; none: always
    weak: bool = False  # whether it says little by itself


class Hit(NamedTuple):
    """A cue at characters `start` to `end` (exclusive) of a folded text."""

    start: int
    end: int
    category: str
    weak: bool = False


@dataclass(frozen=True, slots=True)
class CrisisCues:
    """The cues of a language, and its classes of words."""

    cues: tuple[CrisisCue, ...]
    harmless: re.Pattern[str]  # phrases that contain the words of a cue
    words: re.Pattern[str]  # tells words of the language in other texts
    classes: PhraseIndex[str]  # words with the sign of their class
    signs: Mapping[tuple[str, bool], str]  # of a cue's category

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
    # Signs are of the private use area, which no folded text of a dialogue needs.
    kinds = dict.fromkeys(sorted((cue.category, cue.weak) for cue in cues))
    signs = {kind: chr(0xE000 + number) for number, kind in enumerate(kinds)}
    phrases = (
        (phrase, chr(0xE100 + number))
        for number, words in enumerate(raw["classes"].values())
        for phrase in words.split("|" if "|" in words else None)
    )
    spaced = find_language(language).spaced
    index = PhraseIndex(((phrase.strip(), sign) for phrase, sign in phrases), _is_word if spaced else None)
    return CrisisCues(cues, re.compile(raw["harmless"]), re.compile(raw["words"]), index, signs)


def _is_word(text: str, start: int, end: int) -> bool:
    return not (text[start - 1 : start].isalnum() or text[end : end + 1].isalnum())
