"""Train the models of politics that the package ships, from our own texts and free harmless talk.

    H2HTALK_DATA=... python tools/train_political.py [--language en]   # weights, manifests
    H2HTALK_DATA=... python tools/train_political.py --check           # the figures, against the limits

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
from crisis.gathering import gather
from crisis.left_out import FEATURES, Learned, held_out, learned
from crisis.texts import EVERYDAY
from numpy.typing import NDArray
from safety.shipping import read_manifest, write_classifier

from h2htalk.data.languages import LANGUAGES
from h2htalk.detect.hashed import NgramClassifier
from h2htalk.detect.safety.lexicons import find_signal
from h2htalk.detect.safety.text_folding import fold_spelling

ROOT = Path(__file__).parents[1]
HOME = ROOT / "h2htalk" / "detect" / "safety" / "political_data"
# So many ordinary messages lie above `high`, by models that saw neither them nor their writer.
SHARE = {"en": 0.008, "zh": 0.004}
# `low` (enough with a word of public life) is this part of `high`.
SECOND = {"en": 0.5, "zh": 0.8}
# Least recall of the model and its rules on tests/curation/safety/dev_political_*.jsonl, and most harmless ones marked.
LIMITS = {"recall": 0.8, "harmless": 0.2}


def train(of: Learned) -> tuple[NgramClassifier, NDArray[np.int8]]:
    """The model of a language, with its manifest, and its weights as they are shipped (int8)."""
    scores = held_out(of)
    fitted = of.fit(np.ones(len(of.texts), dtype=bool))
    weights = fitted.coef_[0]
    scale = float(np.quantile(np.abs(weights), 0.99999)) / 127
    small = np.clip(np.round(weights / scale), -127, 127).astype(np.int8)
    high = round(float(np.quantile(scores[ordinary(of)], 1 - SHARE[of.language])), 4)
    wanted = np.array([text.crisis for text in of.texts])
    sources = sorted({t.source for t in of.texts})
    manifest: dict[str, Any] = {
        "language": of.language,
        "features": asdict(FEATURES[of.language]),
        "scale": scale,
        "bias": float(fitted.intercept_[0]),
        "high": high,
        "low": round(SECOND[of.language] * high, 4),
        "learned_from": {source: sum(t.source == source for t in of.texts) for source in sources},
        "texts_sha256": hashlib.sha256(
            "\n".join(sorted(of.folded)).encode("utf-8", "surrogatepass")
        ).hexdigest(),
        "cross_validated": {
            "found_above_high": round(float((scores[wanted] >= high).mean()), 3),
            "ordinary_above_high": SHARE[of.language],
        },
    }
    model = NgramClassifier(
        language=of.language,
        features=FEATURES[of.language],
        rows=small.reshape(1, -1),
        manifest=manifest,
    )
    return model, small


def ordinary(of: Learned) -> NDArray[np.bool_]:
    """Which texts are ordinary messages of an everyday writer."""
    sources = {f"own harmless {writer}" for writer in EVERYDAY[of.language]}
    return np.array([t.source in sources for t in of.texts])


def figures(model: NgramClassifier) -> dict[str, float]:
    """Recall, and the share of harmless messages marked, on our development set (written by the first writer)."""
    path = ROOT / "tests" / "curation" / "safety" / f"dev_political_{model.language}.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    found: dict[str, list[bool]] = {}
    for row in rows:
        signal = find_signal(fold_spelling(row["text"], model.language), model)
        found.setdefault(row["kind"], []).append(signal is not None)
    wanted = [one for kind in sorted(found) if kind != "harmless" for one in found[kind]]
    shares = {kind: round(sum(ones) / len(ones), 3) for kind, ones in sorted(found.items())}
    return shares | {"recall": round(sum(wanted) / len(wanted), 3)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="compare with the limits and what is shipped"
    )
    parser.add_argument(
        "--language", choices=LANGUAGES, help="only this one; both where none is named"
    )
    options = parser.parse_args()
    missed = False
    for language in [options.language] if options.language else LANGUAGES:
        model, small = train(learned(language, gather(language, Path(os.environ["H2HTALK_DATA"]))))
        found = figures(model)
        manifest = {**model.manifest, "development": found}
        print(json.dumps(manifest, indent=1))
        missed |= found["recall"] < LIMITS["recall"] or found["harmless"] > LIMITS["harmless"]
        weights = zlib.decompress((HOME / f"{language}.weights").read_bytes())
        if not options.check:
            write_classifier(HOME, language, manifest, small)
        elif (
            read_manifest(HOME, language) != json.loads(json.dumps(manifest))
            or weights != small.tobytes()
        ):
            print(f"{language}: not what {HOME.name} holds")
            missed = True
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
