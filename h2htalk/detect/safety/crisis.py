"""Find people in crisis, children, grooming and threats in a dialogue, so that they are tagged and not filtered away.

The seeker's messages are read in runs of whole clauses, so that a long message does not hide a short sentence. To each
run stand the cues and the classes of words in it (who is meant, when, whether it is denied, told of a film, ...), of
which a linear classifier makes, for each kind of danger, a score. How plainly the companion's answer speaks of the
kind, and what the dialogue says elsewhere, add to it; thresholds are set on ordinary chat (tools/train_dangers.py).
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import chain
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from h2htalk.data.languages import LANGUAGES, Language, find_language
from h2htalk.data.scenario import Turn
from h2htalk.detect.hashed import load_classifier, load_joint
from h2htalk.detect.safety.evidence import Evidence
from h2htalk.detect.safety.text_folding import fold, fold_spelling, spelling_place
from h2htalk.text.language_data import language_data
from h2htalk.text.phrases import PhraseIndex

DATA = "safety/crisis_data"
MINOR = "minor"
FAINT, SURE = 1, 2  # what a classifier of the gates sees
# What is looked for, and its code; a crisis has one of SORTS.
DANGERS = {
    "crisis": "",
    "means": "crisis.means",
    "minor": MINOR,
    "grooming": "grooming",
    "threat": "threat_to_others",
}
SORTS = ("ideation", "plan", "self_harm", "past", "third_party")
NOW = "now"  # an attempt that goes on, or just happened
# The rows of the classifier: of the seeker's words, what sort of crisis they tell of, and of the companion's answer.
ROWS = (*DANGERS, *SORTS, NOW, *(f"answer {kind}" for kind in DANGERS))
HAPPENS = ROWS.index(NOW)  # its score in a run
OWN = {
    "ideation",
    "plan",
    "self_harm",
}  # the sorts of the seeker's own, now; what is past is told with their words
URGENT = (
    "urgent"  # the category of cues of an attempt that goes on now, which are enough by themselves
)
# The categories of strong cues that stand for a danger.
CUES = {kind: {code.removeprefix("crisis.")} for kind, code in DANGERS.items()}
CUES["crisis"] = {*SORTS, "attempt", URGENT}
# How the codes begin by which a dialogue is about a crisis: a child who says so is in none for that.
TAGS = ("crisis.", "grooming", "threat_to_others")
POSSIBLE, HINT = "crisis.possible", "crisis.hint"
PLAIN, SAID = (
    2.5,
    -1.0,
)  # so far above the words' threshold, half as far, or a crisis SAID, beside a cue, a tag stays
BARE = (
    0.75  # a run that tells an age to this share has nothing in it that could mean something else
)
CUE, SIGNS = 0.9, 0.89  # the score where a strong cue stands too, and the most without one
# The least score of a danger that words alone tag without a strong cue, by language; below it is the note. Of the
# English ones below it that support chat had, 4 of 20 told of a danger (docs/measurements.md). That somebody is a minor
# needs no cue: 18 of 32 are right, and the tag decides what else may stand in the dialogue.
LEAST_UNCUED = {"en": 0.88, "zh": 0.0}
ANSWER = 400  # characters of an answer that are read
# Characters of a turn that the encoder surely reads; of a longer one, how many before the run that says most.
READ = {"en": 200, "zh": 70}
LEAD = {"en": 60, "zh": 20}


@lru_cache(maxsize=16_384)  # the gates of a release ask again
def read_kind(text: str, language: Language, kind: str) -> int:
    """How sure the classifier of a kind is of a text: SURE, FAINT or 0."""
    model = load_classifier(f"{DATA}/{kind}", language)
    score = model.score(fold_spelling(text, language)).score
    return (score >= model.low()) + (score >= model.high())


class Encoder(Protocol):
    """`encoder.DangerEncoder`, which takes a second to load."""

    dangers: Mapping[str, Any]  # of each language, weights and thresholds by danger

    def read(
        self, said: Sequence[tuple[str, str | None]], wanted: Sequence[bool]
    ) -> NDArray[np.float64]: ...


class Run(NamedTuple):
    """A run of clauses of a seeker's turn: its place in the folded text, its cues, and scores of ROWS."""

    start: int
    end: int
    hits: list[Hit]
    scores: NDArray[np.float64]


def find_crisis(
    turns: Sequence[Turn], language: Language, encoder: Encoder | None = None
) -> list[Evidence]:
    """The evidence in the seeker's turns of a dialogue: at most one for each turn and code.

    Codes: `crisis.ideation`, ..., `minor`, `grooming`, `threat_to_others`; `crisis.possible` of a turn without any, in
    which the classifier sees a faint sign; `crisis.hint` of one with a fainter sign or a strong cue, and of what the
    words alone would tag. `encoder`: what reads the dialogue too where the words do not rule every danger out.
    """
    said = tuple((turn.role == "user", turn.content) for turn in turns)
    spoken = {
        at: [
            language,
            *(one for one in LANGUAGES if one != language and crisis_cues(one).words.search(text)),
        ]
        for at, (seeker, text) in enumerate(said)
        if seeker
    }
    further = np.zeros((len(spoken), len(DANGERS), 0))
    if encoder is not None:
        doubts = [
            _doubtful(said, one, encoder.dangers[one])
            for one in {*chain.from_iterable(spoken.values())}
        ]
        if any(doubtful := [any(of_turn) for of_turn in zip(*doubts, strict=True)]):
            further = encoder.read(shown(said, language), doubtful)
    found: list[Evidence] = []
    for (at, languages), more in zip(spoken.items(), further, strict=True):
        for one in languages:
            runs, heard = read_dialogue(said, one)[at]
            dangers = (
                encoder.dangers[one]
                if encoder and more.size
                else load_joint(DATA, one).manifest["dangers"]
            )
            signs = np.column_stack([heard, more])
            found += [
                replace(e, turn=at)
                for e in (_in_turn(said[at][1], runs, signs, one, dangers) if runs else ())
            ]
    return found


def shown(said: tuple[tuple[bool, str], ...], language: Language) -> list[tuple[str, str | None]]:
    """What the encoder reads of each of the seeker's turns, and the answer if there is one: without spellings that hide
    something, and of a turn that is too long what begins before the run that says most."""
    found = []
    answers = {at - 1: text for at, (seeker, text) in enumerate(said) if not seeker}
    for at, (runs, _) in read_dialogue(said, language).items():
        text = said[at][1]
        run = max(runs, key=lambda run: run.scores[: len(DANGERS)].max(), default=None)
        if run and run.end > READ[language]:
            text = text[
                max(0, spelling_place(text, language, run.start, run.end)[0] - LEAD[language]) :
            ]
        plain = text.replace("\n", " ").isprintable() and not text.isupper()
        found.append((text if plain else fold(text), answers.get(at)))
    return found


def _doubtful(
    said: tuple[tuple[bool, str], ...], language: Language, limits: Mapping[str, Any]
) -> list[bool]:
    """Whether each of the seeker's turns says enough of a danger that the encoder shall read it."""
    dangers = load_joint(DATA, language).manifest["dangers"]
    return [
        any(
            weigh(dangers[kind], [run.scores[number], heard[number]]) >= limits[kind]["read"]
            for run in runs
            for number, kind in enumerate(DANGERS)
        )
        for runs, heard in read_dialogue(said, language).values()
    ]


def _in_turn(
    text: str,
    runs: Sequence[Run],
    signs: NDArray[np.float64],
    language: Language,
    dangers: Mapping[str, Any],
) -> Iterator[Evidence]:
    """The evidence in a turn: by what its highest run says of each danger, and what else does (`signs`, a row each);
    `dangers`: how these are weighed, and the thresholds. Beside grooming an age that is told is a child's."""
    tagged = False
    doubted = None
    hits = [(hit, run) for run in runs for hit in run.hits if not hit.weak]
    uncued: tuple[float, Run] | None = None  # what would be a tag beside a cue
    words_alone = signs.shape[1] == 1
    strong = {hit.category for hit, _ in hits}
    manifest = load_joint(DATA, language).manifest
    now = max(runs, key=lambda run: run.scores[HAPPENS])
    happens = now if now.scores[HAPPENS] >= manifest[NOW]["high"] else None

    def evidence(layer: str, code: str, score: float, run: Run) -> Evidence:
        return Evidence(layer, code, score, *spelling_place(text, language, run.start, run.end))

    for number, kind in reversed(list(enumerate(DANGERS))):
        urgent = (
            next((one for hit, one in hits if hit.category == URGENT), happens)
            if kind == "crisis"
            else None
        )
        run = urgent or max(runs, key=lambda run: run.scores[number])
        cued = bool(strong & CUES[kind])
        total = weigh(dangers[kind], [run.scores[number], *signs[number]])
        bare = any(
            hit.category == kind == MINOR and hit[1] - hit[0] >= BARE * (at.end - at.start)
            for hit, at in hits
        )
        code = DANGERS[kind] or f"crisis.{'plan' if urgent else _sort_of(run, strong)}"
        words = manifest["dangers"][kind]
        limit = "cued" if cued else "high"
        alone = weigh(words, [run.scores[number], signs[number][0]])
        sure = round(1 / (1 + math.exp(-max(-50.0, min(50.0, total)))), 9)
        plain = words["high"] + (SAID if cued and kind == "crisis" else PLAIN / (1 + cued))
        enough = urgent or total >= dangers[kind][limit] or alone >= plain or bare
        enough = enough or (tagged and cued and kind == MINOR)
        without_cue = kind != MINOR and not (cued or urgent or bare)
        if enough and without_cue and words_alone and sure < LEAST_UNCUED[language]:
            enough = False
            if uncued is None or sure > uncued[0]:
                uncued = (sure, run)
        if enough:
            yield evidence("crisis", code, CUE if cued or urgent else min(SIGNS, sure), run)
            tagged |= code.startswith(TAGS)
        elif kind != "crisis":  # the last one
            doubted = run if alone >= words[limit] else doubted
        elif not tagged and uncued is not None:
            uncued_score, uncued_run = uncued
            yield evidence("doubt", POSSIBLE, uncued_score, uncued_run)
        elif not tagged:  # doubts are the words' alone, and what the encoder took away
            noted = alone >= words["possible"]
            if noted or now.scores[HAPPENS] >= manifest[NOW]["possible"]:
                yield evidence("doubt", POSSIBLE, sure, run if noted else now)
            elif cued or doubted or alone >= words["hint"]:
                yield evidence("doubt", HINT, sure, doubted or run)


def _sort_of(run: Run, strong: set[str]) -> str:
    """The sort of crisis that a run tells of: strong cues of its turn say whose it is, the classifier how far it is."""
    own = OWN if "attempt" in strong else OWN | {"past"}  # a wish beside an attempt is of now
    sorts = own if OWN & strong else {*SORTS} & strong or {*SORTS}
    return max(
        (name for name in SORTS if name in sorts), key=lambda name: run.scores[ROWS.index(name)]
    )


def weigh(danger: Mapping[str, Any], signs: Sequence[float]) -> float:
    """What speaks for a danger in a turn: the score of its highest run, that of the answer, and what else is read; how
    far one of them but the answer's lies below `least` says nothing."""
    *weights, bias = danger["combine"]
    read = (
        sign if place == 1 else max(sign, danger.get("least", sign))
        for place, sign in enumerate(signs)
    )
    return round(
        float(bias + sum(weight * sign for weight, sign in zip(weights, read, strict=True))), 6
    )


@lru_cache(maxsize=8)
def read_dialogue(
    turns: tuple[tuple[bool, str], ...], language: Language
) -> dict[int, tuple[list[Run], NDArray[np.float64]]]:
    """For each of the seeker's turns its runs, and for each danger the score of the answer. `turns`: whether it is the
    seeker's, and its text."""
    model = load_joint(DATA, language)
    texts = list[str]()
    places = list[tuple[int, int, int, list[Hit]]]()
    for at, (seeker, text) in enumerate(turns):
        folded = fold_spelling(text, language)
        if seeker:
            for start, end in model.features.readings(folded):
                marked, hits = mark(folded[start:end], language)
                texts.append(marked)
                places.append((at, start, end, hits))
        elif folded and at and turns[at - 1][0]:
            texts.append(folded[:ANSWER])
            places.append((at, 0, 0, []))
    # No answer, or one about other things, is no sign that there is no danger.
    unheard = np.array([model.manifest["dangers"][kind]["unheard"] for kind in DANGERS])
    found = {at: (list[Run](), unheard) for at, (seeker, _) in enumerate(turns) if seeker}
    keys = model.features.keys(texts) if texts else np.zeros(0, np.int64)
    bits = model.features.bits
    read = model.scores(keys >> bits, keys & ((1 << bits) - 1), len(texts)).round(6)
    for (at, start, end, hits), scores in zip(places, read, strict=True):
        if turns[at][0]:
            found[at][0].append(Run(start, end, hits, scores))
        else:
            found[at - 1] = found[at - 1][0], np.maximum(scores[-len(DANGERS) :], unheard)
    return found


def mark(folded: str, language: Language) -> tuple[str, list[Hit]]:
    """A run with a sign behind each cue, and signs for the classes of words in their order; and the cues."""
    cues = crisis_cues(language)
    hits = cues.hits(folded)
    parts = list[str]()
    at = 0
    for hit in sorted(hits, key=lambda hit: hit.end):
        parts += [folded[at : hit.end], cues.signs[hit.category, hit.weak]]
        at = hit.end
    classes = [sign for *_, sign in cues.classes.find(folded)]
    joint = find_language(language).joint
    kept = [sign for sign, before in zip(classes, ["", *classes], strict=False) if sign != before]
    return f"{''.join(parts)}{folded[at:]}{joint}\n{joint}{joint.join(kept)}", hits


@dataclass(frozen=True, slots=True)
class CrisisCue:
    """A phrase, which is a sign of a kind of crisis."""

    category: str  # one of CUES
    pattern: re.Pattern[str]
    needles: Sequence[
        str
    ] = ()  # the pattern is tried only where the text contains one of them; none: always
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
    needles: PhraseIndex[tuple[int, ...]]  # with the places of the cues that need one of them
    classes: PhraseIndex[str]  # words with the sign of their class
    signs: Mapping[tuple[str, bool], str]  # of a cue's category

    def hits(self, folded: str) -> list[Hit]:
        """Every cue in a folded text, in order, outside harmless phrases."""
        tried = {place for places in self.needles.values(folded) for place in places}
        hits = [
            Hit(match.start(), match.end(), cue.category, cue.weak)
            for place, cue in enumerate(self.cues)
            if place in tried or not cue.needles
            for match in cue.pattern.finditer(folded)
        ]
        harmless = [match.span() for match in self.harmless.finditer(folded)] if hits else []
        return sorted(
            hit
            for hit in hits
            if not any(start < hit.end and hit.start < end for start, end in harmless)
        )


@cache
def crisis_cues(language: Language) -> CrisisCues:
    """Read the cues of a language, once a process; no part of a pattern repeats without a bound."""
    raw: Any = language_data(f"detect/{DATA}/cues", language)
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
    index = PhraseIndex(
        ((phrase.strip(), sign) for phrase, sign in phrases), _is_word if spaced else None
    )
    places = defaultdict[str, tuple[int, ...]](tuple)
    for place, cue in enumerate(cues):
        for needle in cue.needles:
            places[needle] += (place,)
    needles = PhraseIndex(places.items())
    return CrisisCues(
        cues, re.compile(raw["harmless"]), re.compile(raw["words"]), needles, index, signs
    )


def _is_word(text: str, start: int, end: int) -> bool:
    return not (text[start - 1 : start].isalnum() or text[end : end + 1].isalnum())
