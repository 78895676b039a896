"""The classifiers as they ship: whole-number arrays without pickle, and a manifest that says what made them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from safety.corpora import training_examples, training_files
from safety.training import FEATURES, Linear, train

from h2htalk.curation.safety_classifier import MANIFEST
from h2htalk.data.files import write_json


def make(language: str, data: Path, folder: Path) -> None:
    """Train a language's classifier and write it into `folder`, beside the others' entries of the manifest."""
    model, numbers = train(training_examples(data, language), language)
    path = folder / f"offensive_{language}.npz"
    np.savez_compressed(path, scales=model.scales, weights=model.weights)
    entry = {
        "version": _sha256(path)[:12],
        "low": round(numbers["low"], 4),
        "high": round(numbers["high"], 4),
        "features": asdict(FEATURES[language]),
        "model": {
            "step": model.step,
            "bias": model.bias,
            "slope": numbers["slope"],
            "offset": numbers["offset"],
        },
        "training": {
            "windows": numbers["windows"],
            "left_out_as_doubtful": numbers["doubtful"],
            "buckets_used": _used(model),
            "sha256": {file.name: _sha256(file) for file in training_files(data, language)},
        },
    }
    write_manifest(folder, language, entry)
    print(f"{path}: {path.stat().st_size:,} bytes, low {entry['low']}, high {entry['high']}", flush=True)


def read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write_manifest(folder: Path, language: str, entry: dict[str, Any]) -> None:
    manifest = read_manifest(folder)
    manifest[language] = entry
    write_json(folder / MANIFEST, dict(sorted(manifest.items())))


def _used(model: Linear) -> int:
    return int(np.count_nonzero(model.weights))


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
