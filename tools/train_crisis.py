"""Train the models of crises and of politics that the package ships, from our own texts and free harmless talk.

    H2HTALK_DATA=... python tools/train_crisis.py [crisis] [political]   # weights, manifests
    H2HTALK_DATA=... python tools/train_crisis.py --check                # the figures, against the floors

The texts are in tools/crisis and tools/political; scikit-learn is used here alone.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from crisis.texts import CRISIS, OFFENSIVE, POLITICAL, Text, by_writer, harmless, insulted, own
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold

from h2htalk.curation import political
from h2htalk.curation.crisis import sign_in
from h2htalk.curation.crisis_cues import cues
from h2htalk.curation.folding import fold
from h2htalk.curation.ngram_model import BITS, SMOOTH, Model, features
from h2htalk.data.dialogue import LANGUAGES, Language

ROOT = Path(__file__).parents[1]
TASKS = ("crisis", "political")
C = 30.0
# Of harmless messages that no fold of training saw, so many may lie above `high`: where a dialogue has one message of
# the seeker's, and where it has n of them, which are n chances to be wrong: an n-th of the second, down to an eighth.
SHARE = {
    "crisis": {"en": (0.017, 0.0078), "zh": (0.005, 0.003)},
    "political": {"en": (0.006, 0.006), "zh": (0.003, 0.003)},
}
LOOKS = 8
# What one text counts: writers who are at home in harmless look-alikes must not outweigh the talk of the domain.
CRISIS_WEIGHT, HARMLESS_WEIGHT, OTHERS_HARMLESS_WEIGHT = 1.5, 2.5, 0.5
# `low` (enough with a second sign) is this part of `high`.
SECOND = {"crisis": 0.35, "political": 0.5}
# What the shipped models and their rules must reach on tests/curation/dev_*.jsonl: recall, and harmless ones marked.
FLOORS = {"crisis": {"recall": 0.85, "harmless": 0.6}, "political": {"recall": 0.7, "harmless": 0.2}}


def gather(task: str, language: Language, data: Path) -> list[Text]:
    """All texts of a task: our own count more than what the domain gives."""
    domain = [text for text in harmless(language, data) if task == "crisis" or "cold" not in text.source]
    if task == "crisis":
        texts = [
            Text(t, True, CRISIS_WEIGHT, f"own {writer}".strip())
            for writer, written in by_writer(CRISIS, language, "crisis").items()
            for t in written
        ]
        texts += insulted(texts, language)
        texts += [
            Text(
                t,
                False,
                OTHERS_HARMLESS_WEIGHT if writer else HARMLESS_WEIGHT,
                f"own harmless {writer}".strip(),
            )
            for writer, written in by_writer(CRISIS, language, "harmless").items()
            for t in written
        ]
        texts += [Text(t, False, 0.25, "own political") for t in own(POLITICAL, language, "sensitive")]
        texts += [Text(t, False, 0.25, "own political") for t in own(POLITICAL, language, "harmless")]
        return texts + domain
    texts = [Text(t, True, 1.5, "own") for t in own(POLITICAL, language, "sensitive")]
    texts += [Text(t, False, 1.0, "own harmless") for t in own(POLITICAL, language, "harmless")]
    # The first writer's are enough to tell politics from a crisis.
    texts += [Text(t, False, 0.5, "own crisis") for t in by_writer(CRISIS, language, "crisis")[""]]
    return texts + domain


def matrix(folded: list[str], language: Language) -> csr_matrix:
    """Binary features, each row of length 1."""
    rows = [features(text, language) for text in folded]
    values = np.concatenate([np.full(len(row), 1 / np.sqrt(len(row) + SMOOTH)) for row in rows])
    ends = np.cumsum([0, *map(len, rows)])
    return csr_matrix((values, np.concatenate(rows), ends), shape=(len(rows), 1 << BITS))


def fit(x: csr_matrix, texts: list[Text]) -> LogisticRegression:
    model = LogisticRegression(C=C, solver="liblinear", random_state=0)
    return model.fit(x, [t.crisis for t in texts], sample_weight=[t.weight for t in texts])


def held_out(x: csr_matrix, texts: list[Text]) -> np.ndarray:
    """The score of every text by a model that did not see it (five folds); nor it with an insult."""
    scores = np.zeros(len(texts))
    own = sum(t.crisis for t in texts) // 2
    # `gather` puts the texts of a crisis first, then the same with insults.
    twins = any(t.source.startswith("insulted") for t in texts)
    groups = [n - own if twins and own <= n < 2 * own else n for n in range(len(texts))]
    for train, test in GroupKFold(5, shuffle=True, random_state=0).split(texts, groups=groups):
        model = fit(x[train], [texts[n] for n in train])
        scores[test] = model.predict_proba(x[test])[:, 1]
    return scores


def by_writers(
    x: csr_matrix, texts: list[Text], folded: list[str], model: Model
) -> dict[str, dict[str, float]]:
    """Of each writer's texts, the share that a model without this writer marks with the cues, at our thresholds."""
    found: dict[str, dict[str, float]] = {}
    for writer in sorted({t.source.split()[-1] for t in texts if t.crisis} - {"own"}):
        theirs = np.array([t.source.split()[-1] == writer for t in texts])
        fitted = fit(x[~theirs], [t for t, one in zip(texts, theirs, strict=True) if not one])
        weights = fitted.coef_[0].astype(np.float32)
        without = Model(model.language, weights, float(fitted.intercept_[0]), model.manifest)
        marked = {
            label: [
                sign_in(folded[n], cues(model.language), without) is not None
                for n in np.flatnonzero(theirs)
                if texts[n].crisis is label and "insulted" not in texts[n].source
            ]
            for label in (True, False)
        }
        found[writer] = {
            name: round(sum(marked[label]) / len(marked[label]), 3)
            for name, label in (("found", True), ("harmless", False))
            if marked[label]
        }
    return found


def train(task: str, language: Language, data: Path) -> tuple[Model, np.ndarray]:
    """The model of a language, with its manifest, and its weights as they are shipped (int8)."""
    texts = gather(task, language, data)
    folded = [fold(t.text, language) for t in texts]
    x = matrix(folded, language)
    scores = held_out(x, texts)
    domain = np.array(
        [
            s
            for s, t in zip(scores, texts, strict=True)
            if not t.crisis and "own harmless" not in t.source and t.source != OFFENSIVE
        ]
    )
    crisis = np.array(
        [s for s, t in zip(scores, texts, strict=True) if t.crisis and "insulted" not in t.source]
    )
    tricky = np.array([s for s, t in zip(scores, texts, strict=True) if "own harmless" in t.source])
    one, many = SHARE[task][language]
    shares = [one, *(many / n for n in range(2, LOOKS + 1))]
    high = [float(np.quantile(domain, 1 - share)) for share in shares]
    fitted = fit(x, texts)
    weights = fitted.coef_[0]
    scale = float(np.quantile(np.abs(weights), 0.99999)) / 127
    small = np.clip(np.round(weights / scale), -127, 127).astype(np.int8)
    manifest: dict[str, Any] = {
        "language": language,
        "bits": BITS,
        "scale": scale,
        "bias": float(fitted.intercept_[0]),
        "high": [round(value, 4) for value in high],
        "second": SECOND[task],
        "learned_from": {
            source: sum(t.source == source for t in texts) for source in sorted({t.source for t in texts})
        },
        "texts_sha256": hashlib.sha256("\n".join(sorted(folded)).encode("utf-8", "surrogatepass")).hexdigest(),
        "cross_validated": {
            "found_above_high": round(float((crisis >= high[0]).mean()), 3),
            "own_harmless_above_high": round(float((tricky >= high[0]).mean()), 3),
        },
    }  # fmt: skip
    model = Model(language, small.astype(np.float32) * np.float32(scale), manifest["bias"], manifest)
    if task == "crisis":
        manifest["cross_validated"]["without_the_writer"] = by_writers(x, texts, folded, model)
    return model, small


def figures(task: str, model: Model) -> dict[str, float]:
    """Recall, and the share of harmless messages marked, on our development set (written by the texts' author)."""
    path = ROOT / "tests" / "curation" / f"dev_{task}_{model.language}.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    def found(text: str) -> bool:
        folded = fold(text, model.language)
        if task == "crisis":
            return sign_in(folded, cues(model.language), model) is not None
        return political.sign_in(folded, model) is not None

    kinds = sorted({row["kind"] for row in rows})
    marked = {kind: [found(row["text"]) for row in rows if row["kind"] == kind] for kind in kinds}
    wanted = [one for kind in kinds if kind != "harmless" for one in marked[kind]]
    shares = {kind: round(sum(ones) / len(ones), 3) for kind, ones in marked.items()}
    return shares | {"recall": round(sum(wanted) / len(wanted), 3)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "tasks", nargs="*", choices=[*TASKS, []], help="crisis, political; all where none is named"
    )
    parser.add_argument(
        "--check", action="store_true", help="train and compare with the floors; write nothing"
    )
    parser.add_argument("--language", choices=LANGUAGES, help="only this one; both where none is named")
    options = parser.parse_args()
    data = Path(os.environ["H2HTALK_DATA"])
    missed = False
    for task in options.tasks or TASKS:
        home = ROOT / "h2htalk" / "curation" / f"{task}_data"
        for language in [options.language] if options.language else LANGUAGES:
            model, small = train(task, language, data)
            found = figures(task, model)
            manifest = {**model.manifest, "development": found}
            print(task, json.dumps(manifest, indent=1))
            missed |= found["recall"] < FLOORS[task]["recall"] or found["harmless"] > FLOORS[task]["harmless"]
            if not options.check:
                home.mkdir(exist_ok=True)
                (home / f"{language}.weights").write_bytes(zlib.compress(small.tobytes(), 9))
                text = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
                (home / f"{language}.json").write_text(text, encoding="utf-8")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
