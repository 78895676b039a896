"""Train the small classifiers of what the gates of a release look for.

    H2HTALK_DATA=... python tools/train_kinds.py [--language en] [--kind leak ...] [--check]

Each kind learns from the lines that several authors wrote for it (tools/gates/KIND_LANGUAGE_WRITER.txt) and, as what it
is not, from their look-alikes (`near_...`), from harmless talk, and what a companion says also from replies.
Thresholds and recall come from models that saw nothing by the same writer.
scikit-learn is used here alone.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import sys
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from crisis.gathering import gather_talk
from crisis.left_out import FEATURES, Readings
from crisis.texts import OFFENSIVE, Text, by_writer, replies
from numpy.typing import NDArray
from safety.shipping import read_manifest, write_classifier
from sklearn.linear_model import LogisticRegression

from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.detect.safety.crisis import DATA
from h2htalk.detect.safety.text_folding import fold_spelling
from h2htalk.text.contracts.prompt_leakage import find_marker
from h2htalk.text.language_data import language_patterns

HOME = Path(__file__).parents[1] / "h2htalk/detect" / DATA
GATES = Path(__file__).parent / "gates"
GATE_KINDS = ("romance", "young", "leak")
C = 300.0
OWN, NEAR = 2.0, 2.0
# At most so many harmless messages of others lie above `high`, and above `low`; and so many look-alikes. Of romance and
# age one must be sure and the other may be faint; among harmless talk are students, whose age nobody marked. Of a leak
# only `high` counts.
NONE = {
    "romance": {"high": 0.001, "low": 0.007},
    "young": {"high": 0.007, "low": 0.02},
    "leak": {"high": 0.0006, "low": 0.002},
}
LOOK_ALIKE = {
    "romance": {"high": 0.02, "low": 0.08},
    "young": {"high": 0.06, "low": 0.2},
    "leak": {"high": 0.03, "low": 0.1},
}
# This share of the weights is kept, the largest: the others cost bytes and find hardly more.
KEPT = 0.2
# Of the harmless talk every so many texts are learned from.
EVERY = 4


@dataclass(frozen=True, eq=False)
class Lines:
    """Texts with their kinds (`none`, `near`, `crisis`, or one of GATE_KINDS), weights and folds."""

    kinds: NDArray[np.str_]
    weights: NDArray[np.float64]
    folds: NDArray[np.int64]
    texts: Readings
    sha256: str

    def fit(self, kind: str, chosen: NDArray[np.bool_]) -> LogisticRegression:
        chosen = chosen & (self.kinds != "crisis")
        model = LogisticRegression(C=C, solver="liblinear", random_state=0)
        rows = self.texts.rows[self.texts.whole[chosen]]
        model.fit(rows, self.kinds[chosen] == kind, sample_weight=self.weights[chosen])
        sizes = np.abs(model.coef_)
        model.coef_[sizes < np.quantile(sizes, 1 - KEPT)] = 0.0
        return model

    def scores(self, model: LogisticRegression) -> NDArray[np.float64]:
        """Of each text the highest score of a reading."""
        return 1 / (1 + np.exp(-self.texts.scores(model)[1]))


def harmless(language: Language, data: Path) -> list[Text]:
    """Talk of the domain, a crisis included."""
    return [text for text in gather_talk(language, data) if text.source != OFFENSIVE]


def companions_talk(language: Language, data: Path) -> list[Text]:
    """Sentences of replies without words of a prompt."""
    words = language_patterns("curation/release/leaks", language).values()
    told = replies(language, data)
    return [
        replace(one, weight=1.0)
        for one in told
        if not find_marker(one.text, "") and not any(p.search(one.text) for p in words)
    ]


def read_lines(language: Language, others: Sequence[Text], kind: str) -> Lines:
    """The lines of a kind, those of its look-alikes, and other texts."""
    rows: list[tuple[str, str, float, str]] = []
    for name, file, weight in ((kind, kind, OWN), ("near", f"near_{kind}", NEAR)):
        for writer, texts in by_writer(GATES, language, file, plain=True).items():
            rows += [(text, name, weight, writer) for text in texts]
    rows += [
        (text.text, "crisis" if text.crisis else "none", text.weight, text.source)
        for text in others
    ]
    # One fold a writer of kinds; the other texts are dealt out by their characters.
    writers = sorted({writer for *_, writer in rows[: len(rows) - len(others)]})
    folds = [
        writers.index(r[3]) if r[3] in writers else zlib.crc32(r[0].encode()) % len(writers)
        for r in rows
    ]
    folded = [fold_spelling(row[0], language) for row in rows]
    return Lines(
        np.array([row[1] for row in rows]),
        np.array([row[2] for row in rows]),
        np.array(folds),
        Readings.of(folded, language),
        hashlib.sha256("\n".join(sorted(folded)).encode("utf-8", "surrogatepass")).hexdigest(),
    )


def held_out(lines: Lines, kind: str) -> NDArray[np.float64]:
    """The score of every text by a model that saw nothing of its fold."""
    scores = np.zeros(len(lines.kinds))
    for fold in range(int(lines.folds.max()) + 1):
        tested = lines.folds == fold
        scores[tested] = lines.scores(lines.fit(kind, ~tested))[tested]
    return scores


def train(language: Language, kind: str, lines: Lines) -> tuple[dict[str, Any], NDArray[np.int8]]:
    """The manifest and the weights (int8) of a kind."""
    scores = held_out(lines, kind)
    wanted = lines.kinds == kind
    near = lines.kinds == "near"
    none = scores[lines.kinds == "none"]
    high, low = (
        round(max(above(none, NONE[kind][name]), above(scores[near], LOOK_ALIKE[kind][name])), 4)
        for name in ("high", "low")
    )
    fitted = lines.fit(kind, np.ones(len(lines.kinds), dtype=bool))
    scale = float(np.quantile(np.abs(fitted.coef_[0]), 0.99999)) / 127
    manifest = {
        "language": language,
        "features": asdict(FEATURES[language]),
        "scale": scale,
        "bias": float(fitted.intercept_[0]),
        "high": high,
        "low": low,
        "learned_from": {
            str(name): int((lines.kinds == name).sum()) for name in sorted(set(lines.kinds))
        },
        "texts_sha256": lines.sha256,
        "another_writers": {
            name: {"found": share(scores[wanted] >= least), "near": share(scores[near] >= least)}
            for name, least in (("high", high), ("low", low))
        },
    }
    return manifest, np.clip(np.round(fitted.coef_[0] / scale), -127, 127).astype(np.int8)


def above(scores: NDArray[np.float64], most: float) -> float:
    """The least score that at most this share of them exceeds."""
    return float(np.quantile(scores, 1 - most))


def share(marks: NDArray[np.bool_]) -> float:
    return round(float(marks.mean()), 3)


def differences(
    language: Language, kind: str, manifest: dict[str, Any], weights: NDArray[np.int8]
) -> list[str]:
    """What differs from the shipped classifier, but for the last digits of sums, which differ between machines."""
    held = read_manifest(HOME / kind, language)
    made = json.loads(json.dumps(manifest))
    found = [
        name
        for name in held | made
        if name not in held or name not in made or held[name] != made[name]
    ]
    sums = [
        name for name in ("scale", "bias") if math.isclose(held[name], made[name], rel_tol=1e-5)
    ]
    same = zlib.decompress((HOME / kind / f"{language}.weights").read_bytes()) == weights.tobytes()
    return [name for name in found if name not in sums] + ["weights"] * (not same)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--language", choices=LANGUAGES, help="only this one; both where none is named"
    )
    parser.add_argument("--kind", nargs="+", choices=GATE_KINDS, help="only these, not all")
    parser.add_argument(
        "--check", action="store_true", help="train, compare with what is shipped; write nothing"
    )
    options = parser.parse_args(arguments)
    differs = False
    for language in [options.language] if options.language else LANGUAGES:
        data = Path(os.environ["H2HTALK_DATA"])
        talk = harmless(language, data)
        said = talk[::EVERY]
        heard = [*talk[::EVERY], *companions_talk(language, data)]
        for kind in options.kind or GATE_KINDS:
            lines = read_lines(language, said if kind == "young" else heard, kind)
            manifest, weights = train(language, kind, lines)
            print(
                language,
                kind,
                json.dumps({k: manifest[k] for k in ("high", "low", "another_writers")}),
                flush=True,
            )
            if not options.check:
                (HOME / kind).mkdir(exist_ok=True)
                write_classifier(HOME / kind, language, manifest, weights)
            elif found := differences(language, kind, manifest, weights):
                print(f"{language} {kind}: not what {HOME.name} holds: {', '.join(found)}")
                differs = True
    return int(differs)


if __name__ == "__main__":
    sys.exit(main())
