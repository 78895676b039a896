"""The figures of the shipped classifiers and lexicons, from the package's own code, beside their limits."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from safety import corpora

from h2htalk.curation.safety.lexicons import OFFENSIVE, find_listed, offences
from h2htalk.curation.safety.ngram_classifier import NgramClassifier, load_classifier

TOLERANCE = 0.002
MOST_BYTES = 2_000_000


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured value, of how many things, and what is asked of it: at least `minimum`, at most `maximum`."""

    what: str
    value: float
    n: int
    minimum: float | None = None
    maximum: float | None = None

    @property
    def reached(self) -> bool:
        enough = self.minimum is None or self.value >= self.minimum
        return enough and (self.maximum is None or self.value <= self.maximum)

    def line(self) -> str:
        asked = f">= {self.minimum}" if self.minimum is not None else f"<= {self.maximum}" if self.maximum else ""
        return f"{self.what:<62} {self.value:>10.4f}  n {self.n:<7} {asked:<10} {'' if self.reached else 'MISSED'}"


def chinese(data: Path) -> list[Figure]:
    """COLD dev at one half and at `high`, and the domain's dialogues that no model has seen."""
    model = load_classifier(OFFENSIVE, "zh")
    rows = corpora.cold(data, "dev")
    labels = [offensive for _, offensive in rows]
    started = time.process_time()
    scores = scores_of(model, [text for text, _ in rows])
    speed = len(rows) / (time.process_time() - started)
    half, high = ([score >= border for score in scores] for border in (0.5, model.high()))
    smilechat, emollm = corpora.smilechat(data, held_out=True), corpora.emollm(data, held_out=True)
    everyone = [*smilechat, *corpora.smilechat(data, held_out=False)]
    return [
        learned_and_measured(data, "zh"),
        Figure("zh COLD dev: accuracy of calling all offensive", share(labels), len(rows)),
        Figure(
            "zh COLD dev: accuracy at 0.5", share(a == b for a, b in zip(half, labels, strict=True)), len(rows), 0.90
        ),
        Figure("zh COLD dev: macro-F1 at 0.5", macro_f1(half, labels), len(rows)),
        Figure(
            "zh COLD dev: accuracy at high", share(a == b for a, b in zip(high, labels, strict=True)), len(rows), 0.87
        ),
        Figure("zh COLD dev: precision at high", precision(high, labels), sum(high)),
        Figure("zh COLD dev: calibration error (ten bins)", calibration_error(scores, labels), len(rows), maximum=0.05),
        *_innocent("zh SmileChat held out", model, smilechat, 0.02),
        *_innocent("zh EmoLLM held out", model, emollm, 0.02),
        *_innocent("zh SmileChat all, most of them learned from", model, everyone, 0.02),
        Figure("zh COLD dev: texts a CPU second", speed, len(rows), 2000),
    ]


def english(data: Path) -> list[Figure]:
    """DiaSafety val, whose labels are a reply's in context: what single texts can show; and what must survive."""
    model = load_classifier(OFFENSIVE, "en")
    rows = corpora.diasafety(data, "val")
    found = []
    for name, side, category in (
        ("replies that offend", "response", "Offending User"),
        ("contexts of toxic agreement", "context", "Toxicity Agreement"),
        ("contexts of biased replies", "context", "Biased Opinion"),
    ):
        texts = [row[side] for row in rows if row["category"] == category and row["label"] == "Unsafe"]
        scores = scores_of(model, texts)
        found.append(Figure(f"en DiaSafety val, {name}: recall at 0.5", share(s >= 0.5 for s in scores), len(texts)))
        found.append(
            Figure(f"en DiaSafety val, {name}: recall at high", share(s >= model.high() for s in scores), len(texts))
        )
    safe = [row["response"] for row in rows if row["label"] == "Safe"]
    risk = [row["context"] for row in rows if row["category"] in ("Risk Ignorance", "Unauthorized Expertise")]
    for name, texts in (("safe replies", safe), ("contexts of risk and of questions", risk)):
        flagged = share(score >= model.high() for score in scores_of(model, texts))
        found.append(Figure(f"en DiaSafety val, {name}: above high", flagged, len(texts), maximum=0.015))
    questions = [[text] for text in corpora.counselchat(data, held_out=True)]
    found += _innocent("en CounselChat held out", model, questions, 0.01)
    found += _innocent("en ESConv dev rows", model, corpora.esconv(data), 0.01)
    found.append(learned_and_measured(data, "en"))
    started = time.process_time()
    scores_of(model, safe * 4)
    found.append(
        Figure(
            "en DiaSafety val: texts a CPU second", 4 * len(safe) / (time.process_time() - started), 4 * len(safe), 2000
        )
    )
    return found


def scores_of(model: NgramClassifier, texts: Sequence[str]) -> list[float]:
    return offences(texts, model.language)


def learned_and_measured(data: Path, language: str) -> Figure:
    """How many texts a classifier learns from that, punctuation and case aside, it is measured on too: none."""
    measured = corpora.measured_keys(data, language)
    learned = corpora.training_examples(data, language)
    both = sum(corpora.key(example.text) in measured for example in learned)
    return Figure(f"{language} texts learned from and measured on", both, len(learned), maximum=0.5)


def _innocent(name: str, model: NgramClassifier, dialogues: Sequence[Sequence[str]], maximum: float) -> list[Figure]:
    """Dialogues with any text above high, with two, and texts that are undecided."""
    texts = sorted({text for dialogue in dialogues for text in dialogue})
    scores = dict(zip(texts, scores_of(model, texts), strict=True))
    above = [sum(scores[text] >= model.high() for text in dialogue) for dialogue in dialogues]
    undecided = share(model.low() <= score < model.high() for score in scores.values())
    return [
        Figure(f"{name}: dialogues with a text above high", share(n >= 1 for n in above), len(above), maximum=maximum),
        Figure(f"{name}: dialogues with two texts above high", share(n >= 2 for n in above), len(above)),
        Figure(f"{name}: texts undecided", undecided, len(texts)),
    ]


def lexicons(data: Path) -> list[Figure]:
    """Evidence that may stand alone (0.8 and more) on conversations that hold none of what it speaks of."""
    found = []
    for language, dialogues in (
        ("zh", [*corpora.smilechat(data, held_out=True), *corpora.emollm(data, held_out=True)]),
        ("en", [*corpora.esconv(data), *([text] for text in corpora.counselchat(data, held_out=True))]),
    ):
        texts = sorted({text for dialogue in dialogues for text in dialogue})
        started = time.process_time()
        seen = {text: find_listed(text, language) for text in texts}
        speed = len(texts) / (time.process_time() - started)
        alone = share(any(piece.score >= 0.8 for text in line for piece in seen[text]) for line in dialogues)
        name = f"{language} lists, dialogues with evidence that may stand alone"
        found.append(Figure(name, alone, len(dialogues), maximum=0.002))
        found.append(Figure(f"{language} lists: texts a CPU second", speed, len(texts), 2000))
    return found


def share(values: Iterable[bool]) -> float:
    listed = list(values)
    return sum(listed) / len(listed) if listed else 0.0


def precision(said: Sequence[bool], true: Sequence[bool]) -> float:
    return share(label for flag, label in zip(said, true, strict=True) if flag)


def macro_f1(said: Sequence[bool], true: Sequence[bool]) -> float:
    """The plain mean of both classes' F1."""
    both = []
    for side in (True, False):
        hits = sum(a == b == side for a, b in zip(said, true, strict=True))
        both.append(2 * hits / max(1, sum(a == side for a in said) + sum(b == side for b in true)))
    return sum(both) / 2


def calibration_error(scores: Sequence[float], true: Sequence[bool]) -> float:
    """How far a probability lies from the share that is true, over ten equal bins, weighted by their size."""
    total = 0.0
    for number in range(10):
        chosen = [(s, t) for s, t in zip(scores, true, strict=True) if min(9, int(s * 10)) == number]
        if chosen:
            total += abs(sum(s for s, _ in chosen) - sum(t for _, t in chosen))
    return total / len(scores)
