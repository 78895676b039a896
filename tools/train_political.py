"""Train the models of crises and of politics that the package ships, from our own texts and free harmless talk.

    H2HTALK_DATA=... python tools/train_crisis.py [crisis] [political]   # weights, manifests
    H2HTALK_DATA=... python tools/train_crisis.py --check                # the figures, against the limits

The texts are in tools/crisis and tools/political; scikit-learn is used here alone.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import zlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from crisis.gathering import TASKS, gather
from crisis.left_out import FEATURES, Learned, held_out, learned, marked
from crisis.texts import EVERYDAY
from numpy.typing import NDArray
from safety.shipping import read_manifest, write_classifier

from h2htalk.curation.safety.ngram_classifier import NgramClassifier
from h2htalk.curation.safety.text_folding import fold_spelling
from h2htalk.data.languages import LANGUAGES, Language

ROOT = Path(__file__).parents[1]
# So many ordinary messages lie above `high`, and above `possible`, by models that saw neither them nor their writer.
# `high` is a tag: on real chat nearly all of it must be right. `possible` tags nothing, but prevents removal and asks
# for annotators who agreed to read about crises, so it may be wrong more often: a miss may cost a person.
SHARE = {"crisis": {"en": 0.012, "zh": 0.02}, "political": {"en": 0.008, "zh": 0.004}}
POSSIBLE = {"crisis": {"en": 0.23, "zh": 0.25}}
# `low` (enough with a second sign: a weak cue, a word of public life) is this part of `high`.
SECOND = {"crisis": {"en": 0.6, "zh": 0.35}, "political": {"en": 0.5, "zh": 0.8}}
# Least recall of the models and their rules on tests/curation/safety/dev_*.jsonl, and most harmless ones marked.
LIMITS = {"crisis": {"recall": 0.9, "harmless": 0.5}, "political": {"recall": 0.8, "harmless": 0.2}}


def train(of: Learned) -> tuple[NgramClassifier, NDArray[np.int8]]:
    """The model of a task and language, with its manifest, and its weights as they are shipped (int8)."""
    scores = held_out(of)
    fitted = of.fit(np.ones(len(of.texts), dtype=bool))
    weights = fitted.coef_[0]
    scale = float(np.quantile(np.abs(weights), 0.99999)) / 127
    small = np.clip(np.round(weights / scale), -127, 127).astype(np.int8)
    high = threshold(scores[ordinary(of)], SHARE[of.task][of.language])
    own = np.array([t.crisis and "insulted" not in t.source for t in of.texts])
    sources = sorted({t.source for t in of.texts})
    manifest: dict[str, Any] = {
        "language": of.language,
        "features": asdict(FEATURES[of.language]),
        "scale": scale,
        "bias": float(fitted.intercept_[0]),
        "high": high,
        "low": round(SECOND[of.task][of.language] * high, 4),
        "learned_from": {source: sum(t.source == source for t in of.texts) for source in sources},
        "texts_sha256": hashlib.sha256("\n".join(sorted(of.folded)).encode("utf-8", "surrogatepass")).hexdigest(),
        "cross_validated": {
            "found_above_high": round(float((scores[own] >= high).mean()), 3),
            "ordinary_above_high": SHARE[of.task][of.language],
        },
    }
    if of.task in POSSIBLE:
        manifest["possible"] = threshold(scores[ordinary(of)], POSSIBLE[of.task][of.language])
    shipped = small.astype(np.float64) * scale
    features = FEATURES[of.language]
    return NgramClassifier(of.language, features, shipped, manifest["bias"], manifest), small


def threshold(scores: NDArray[np.float64], share: float) -> float:
    return round(float(np.quantile(scores, 1 - share)), 4)


def ordinary(of: Learned) -> NDArray[np.bool_]:
    """Which texts are ordinary messages of an everyday writer."""
    sources = {f"own harmless {writer}" for writer in EVERYDAY[of.language]}
    return np.array([t.source in sources for t in of.texts])


def figures(task: str, model: NgramClassifier) -> dict[str, float]:
    """Recall, and the share of harmless messages marked, on our development set (written by the first writer)."""
    path = ROOT / "tests" / "curation" / "safety" / f"dev_{task}_{model.language}.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    kinds = sorted({row["kind"] for row in rows})
    found = {
        kind: [marked(task, fold_spelling(row["text"], model.language), model) for row in rows if row["kind"] == kind]
        for kind in kinds
    }
    wanted = [one for kind in kinds if kind != "harmless" for one in found[kind]]
    shares = {kind: round(sum(ones) / len(ones), 3) for kind, ones in found.items()}
    return shares | {"recall": round(sum(wanted) / len(wanted), 3)}


def home(task: str) -> Path:
    return ROOT / "h2htalk" / "curation" / "safety" / f"{task}_data"


def differs(task: str, language: Language, manifest: dict[str, Any], small: NDArray[np.int8]) -> bool:
    """Whether what is shipped is not what was trained now."""
    weights = zlib.decompress((home(task) / f"{language}.weights").read_bytes())
    return read_manifest(home(task), language) != json.loads(json.dumps(manifest)) or weights != small.tobytes()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", choices=[*TASKS, []], help="crisis, political; all where none is named")
    parser.add_argument("--check", action="store_true", help="compare with the limits and what is shipped")
    parser.add_argument("--language", choices=LANGUAGES, help="only this one; both where none is named")
    options = parser.parse_args()
    data = Path(os.environ["H2HTALK_DATA"])
    missed = False
    for task in options.tasks or TASKS:
        for language in [options.language] if options.language else LANGUAGES:
            of = learned(task, language, gather(task, language, data))
            model, small = train(of)
            found = figures(task, model)
            manifest = {**model.manifest, "development": found}
            print(task, json.dumps(manifest, indent=1))
            missed |= found["recall"] < LIMITS[task]["recall"] or found["harmless"] > LIMITS[task]["harmless"]
            if not options.check:
                write_classifier(home(task), language, manifest, small)
            elif differs(task, language, manifest, small):
                print(f"{task} {language}: not what h2htalk/curation/safety/{task}_data holds")
                missed = True
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
