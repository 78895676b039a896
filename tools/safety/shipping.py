"""The classifiers as they ship: whole-number weights without pickle, and a manifest that says what made them."""

from __future__ import annotations

import hashlib
import json
import zlib
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safety.corpora import training_examples, training_files
from safety.training import FEATURES, MASKED_FEATURES, train

from h2htalk.data.files import sha256_of
from h2htalk.data.languages import Language
from h2htalk.detect.safety.lexicons import mask_groups


def write_classifier(
    folder: Path,
    language: str,
    manifest: dict[str, Any],
    weights: NDArray[np.int8],
    scales: NDArray[np.uint8] | None = None,
) -> None:
    """What `hashed.load_classifier` reads: a manifest with `features`, `scale`, `bias`, `high` and `low`; weights and,
    behind them, the scales where there are some."""
    raw = weights.tobytes() + (b"" if scales is None else scales.tobytes())
    (folder / f"{language}.weights").write_bytes(zlib.compress(raw, 9))
    write_manifest(folder, language, manifest)


def make(language: Language, data: Path, folder: Path, masked: bool = False) -> None:
    """Train a classifier of offensive language and write it into `folder`.

    `masked`: the one that reads texts without names of groups, which has features of another kind.
    """
    features = (MASKED_FEATURES if masked else FEATURES)[language]
    examples = training_examples(data, language)
    if masked:
        examples = [
            replace(one, text=mask_groups(one.text, language), pattern=one.pattern or one.text)
            for one in examples
        ]
    model, numbers = train(examples, language, features)
    hashes = {file.name: sha256_of(file) for file in training_files(data, language)}
    # The calibrated probability is the logistic function of slope * margin + offset.
    manifest = {
        "language": language,
        "features": asdict(features),
        "scale": model.step * numbers["slope"],
        "bias": model.bias * numbers["slope"] + numbers["offset"],
        "high": round(numbers["high"], 4),
        "low": round(numbers["low"], 4),
        "texts_sha256": hashlib.sha256("".join(hashes.values()).encode()).hexdigest(),
        "training": {
            "windows": numbers["windows"],
            "left_out_as_doubtful": numbers["doubtful"],
            "buckets_used": int(np.count_nonzero(model.weights)),
            "sha256": hashes,
        },
    }
    write_classifier(folder, language, manifest, model.weights, model.scales)
    size = (folder / f"{language}.weights").stat().st_size
    print(f"{language}: {size:,} bytes, low {manifest['low']}, high {manifest['high']}", flush=True)


def read_manifest(folder: Path, language: str) -> dict[str, Any]:
    return dict(json.loads((folder / f"{language}.json").read_text(encoding="utf-8")))


def write_manifest(folder: Path, language: str, manifest: dict[str, Any]) -> None:
    text = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
    (folder / f"{language}.json").write_text(text, encoding="utf-8")
