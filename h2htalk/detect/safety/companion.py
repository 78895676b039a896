"""Find harm and sexual content in the companion's turns, each read in its context.

A companion's turn is read after the user's last two turns: "Yes, do it" is harm after "Should I jump?" alone. Each kind
of finding has three linear classifiers over the same hashed n-grams: `context`, of the user's turns; `answer`, which
tells good from harmful answers to such turns; and `talk`, which tells harmful answers from all others. A logistic
function of their six scores decides (tools/train_companion.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from operator import mul

import numpy as np
from numpy.typing import NDArray

from h2htalk.data.languages import Language
from h2htalk.data.scenario import Turn
from h2htalk.detect.hashed import (
    JointClassifier,
    load_joint,
    read_features,
    windows,
)
from h2htalk.detect.safety.evidence import Evidence
from h2htalk.detect.safety.text_folding import fold_spelling, spelling_place

LAYER = "companion"
DATA = "safety/companion_data"
HARM, EXPLICIT = "companion.harm", "sexual.explicit"
# What is found -> its code. `self`: suicide, self-harm, starving; `minors`: a romantic answer to somebody under 18.
KINDS = {"self": HARM, "violence": HARM, "minors": HARM, "explicit": EXPLICIT}
PARTS = ("context", "answer", "talk")
# The manifest has for each kind the coefficients of `combined` (`combine`), three thresholds, and `alone`, by how much
# surer a sentence must be that is read alone.
CONTEXT, LONGEST = (
    400,
    4000,
)  # characters of the user's turns: of one reading, and in all (the last ones)
SENTENCE = (
    32  # bytes of a sentence that is read alone; of shorter ones too much depends on the others
)
# Scores of evidence at the thresholds of the manifest: a guard may look, a person decides, removed.
FAINT, REVIEW, REMOVE = 0.3, 0.5, 0.8
SHORT = (
    0.79  # at most of an answer shorter than SENTENCE: "Don't jump" and "Jump" differ in too little
)


def read(
    model: JointClassifier, folded: str, parts: Sequence[int]
) -> tuple[NDArray[np.float64], list[tuple[int, int]]]:
    """The scores of a folded text: rows of these parts times readings (the whole first), and their places."""
    spans, owners, buckets = read_features(folded, model.features)
    rows = [row for row in range(len(KINDS) * len(PARTS)) if row % len(PARTS) in parts]
    return model.scores(owners, buckets, len(spans))[:, rows].T, spans


def judge(
    model: JointClassifier, context: str, answer: str, language: Language
) -> Iterator[tuple[str, float, int, int]]:
    """Each kind with what speaks for it (a number without bounds), and the place of that in the folded answer.

    Ordinary sentences around a harmful one would hide it: each sentence is also read as if it were the answer. The
    user's are not read alone: 15 of 1,500 ordinary dialogues would go to people instead of 2.
    """
    if not (folded := fold_spelling(answer, language)):
        return
    # Of the pieces of long turns the one that says most counts, so that nothing said after it hides it.
    before = (read(model, one, (0,))[0] for one in pieces_of(context, language))
    asked = np.max([(whole[:, 0], whole.max(1)) for whole in before], axis=0)
    said, spans = read(model, folded, (1, 2))
    alone = [
        at
        for at, (start, end) in enumerate(spans)
        if at and len(folded[start:end].encode()) >= SENTENCE
    ]
    for number, kind in enumerate(KINDS):
        settings, (user, most) = model.manifest[kind], asked[:, number].tolist()
        answers, talks = said[2 * number : 2 * number + 2].tolist()
        readings = [
            ((answers[0], max(answers), talks[0], max(talks)), 0.0, talks.index(max(talks)))
        ]
        readings += [
            ((answers[at], answers[at], talks[at], talks[at]), settings["alone"], at)
            for at in alone
        ]
        *weights, constant = settings["combine"]
        total, place = max(
            (constant + sum(map(mul, weights, combined((user, most, *scores)))) - less, at)
            for scores, less, at in readings
        )
        yield kind, total, *spans[place]


def pieces_of(context: str, language: Language) -> set[str]:
    """What is read of the user's turns: their last characters, and all of them in windows."""
    before = fold_spelling(context, language)[-LONGEST:] or " "
    return {before[-CONTEXT:], *(before[start:end] for start, end in windows(before, CONTEXT))}


def combined(scores: Sequence[float]) -> tuple[float, ...]:
    """What the decision on a kind weighs, of the scores of PARTS: for each that of the whole and the highest one."""
    context, _, answer, most_answer, _, most_talk = scores
    both = (
        min(context, answer),
        min(context, most_answer),
        min(context, most_talk),
        min(most_answer, most_talk),
    )
    return (*scores, *both, max(context, -4.0) * max(answer, -3.0))


def find_companion(turns: Sequence[Turn], language: Language) -> list[Evidence]:
    """The evidence in the companion's turns of a dialogue, at most one for each turn and code."""
    return [
        replace(one, turn=at)
        for at, context, answer in companion_turns(turns)
        for one in find_in_answer(context, answer, language)
    ]


def as_hints(alarms: Sequence[Evidence]) -> list[Evidence]:
    """The evidence in turns that no companion wrote: a guard may look, nothing is removed or sent to people for it."""
    return [replace(alarm, score=min(alarm.score, FAINT)) for alarm in alarms]


def find_in_answer(context: str, answer: str, language: Language) -> list[Evidence]:
    """The evidence in an answer to the user's last two turns (`context`), at most one for each code."""
    best: dict[str, Evidence] = {}
    model = load_joint(DATA, language)
    most = SHORT if len(answer.encode(errors="surrogatepass")) < SENTENCE else 1.0
    for kind, total, start, end in judge(model, context, answer, language):
        code = KINDS[kind]
        score = min(most, graded(total, model.manifest[kind]))
        if score >= FAINT and (code not in best or score > best[code].score):
            best[code] = Evidence(LAYER, code, score, *spelling_place(answer, language, start, end))
    return list(best.values())


def companion_turns(turns: Sequence[Turn]) -> Iterator[tuple[int, str, str]]:
    """Each companion's turn: its place, the user's last two turns before it, its text."""
    said: list[str] = []
    for at, turn in enumerate(turns):
        if turn.role == "user":
            said.append(turn.content)
        else:
            yield at, "\n".join(said[-2:]), turn.content


def graded(total: float, thresholds: Mapping[str, float]) -> float:
    """A score in [0, 1] that is 0.3, 0.5 and 0.8 at the thresholds `faint`, `review` and `remove`, linear between."""
    total = round(total, 9)  # sums differ in their last digits between machines
    at = [thresholds["faint"], thresholds["review"], thresholds["remove"]]
    if total < at[0]:
        return round(FAINT * math.exp(total - at[0]), 9)
    if total >= at[2]:
        return round(1 - (1 - REMOVE) * math.exp(at[2] - total), 9)
    return round(float(np.interp(total, at, (FAINT, REVIEW, REMOVE))), 9)
