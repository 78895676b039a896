"""Learning a classifier of offensive language: log-count ratios, a linear support vector machine, whole-number weights.

Every step is a function of the texts alone: the same texts and versions give the same weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from safety.corpora import DOMAIN, Example
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from h2htalk.detect.hashed import Features
from h2htalk.detect.safety.text_folding import fold as fold_text

# Windows of 80 (150) characters for long texts find no more hidden insults and double what is wrongly above `high`.
FEATURES = {
    "zh": Features(
        "fibonacci", 20, characters=(1, 2, 3), words=(), gaps=False, window=200, sentences=False
    ),
    "en": Features(
        "fibonacci",
        19,
        characters=(2, 3, 4, 5),
        words=(1, 2),
        gaps=False,
        window=300,
        sentences=False,
    ),
}
# The classifier that reads no names of groups is of another kind: pairs with gaps beside short n-grams.
MASKED_FEATURES = {
    "zh": Features(
        "fibonacci", 18, characters=(1, 2), words=(), gaps=True, window=200, sentences=False
    ),
    "en": Features(
        "fibonacci", 18, characters=(3, 4), words=(1, 2), gaps=True, window=300, sentences=False
    ),
}
# A support vector machine's cost of an error, and how many windows a bucket must be seen in.
COST = 0.5
LEAST_WINDOWS = 2
FOLDS = 4
# `high` is where this share of blind inoffensive windows still lies above; `low` where this share of blind offensive
# ones already lies below. English has no large set of labelled single messages: it asks for more before it is sure.
INNOCENT_ABOVE_HIGH = {"zh": 0.0005, "en": 0.0015}
OFFENSIVE_BELOW_LOW = 0.05
# A scale is stored in whole steps of this many parts of the largest; beyond it, log-count ratios are cut.
LARGEST_RATIO = 5.0

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Windows:
    """Examples cut into windows: `matrix` is windows x buckets of 0 and 1; the others have a value a window."""

    matrix: sparse.csr_matrix
    offensive: NDArray[np.bool_]
    weight: Array
    owner: NDArray[np.int64]
    weak: NDArray[np.bool_]
    domain: NDArray[np.bool_]
    fold: NDArray[np.int64]

    def rows(self, chosen: NDArray[np.bool_]) -> Windows:
        columns = (self.offensive, self.weight, self.owner, self.weak, self.domain, self.fold)
        return Windows(self.matrix[chosen], *(column[chosen] for column in columns))


@dataclass(frozen=True, slots=True)
class Linear:
    """A learned border: whole-number scales (0-255) and weights (-127 to 127, times `step`), and the bias."""

    scales: NDArray[np.uint8]
    weights: NDArray[np.int8]
    step: float
    bias: float

    def margins(self, matrix: sparse.csr_matrix) -> Array:
        sums = matrix @ (self.weights.astype(np.float64) * self.step)
        norms = np.sqrt(matrix @ (self.scales.astype(np.float64) ** 2))
        return np.asarray(sums / np.maximum(norms, 1.0) + self.bias)


def cut(examples: Sequence[Example], features: Features) -> Windows:
    """Examples as windows; those of one text share its weight, and an offensive text's are all offensive."""
    texts, owner, weight = [], [], []
    for place, example in enumerate(examples):
        folded = (" " if features.words else "").join(fold_text(example.text).split())
        windows = [folded[start:end] for start, end in features.readings(folded)] or [""]
        texts += windows
        owner += [place] * len(windows)
        weight += [example.weight / len(windows) ** 0.5] * len(windows)
    rows, buckets = [], []
    for start in range(0, len(texts), 4096):
        keys = features.keys(texts[start : start + 4096])
        rows.append((keys >> features.bits) + start)
        buckets.append(keys & ((1 << features.bits) - 1))
    row = np.concatenate(rows)
    bucket = np.concatenate(buckets)
    ones = np.ones(len(row), np.float32)
    matrix = sparse.csr_matrix((ones, (row, bucket)), shape=(len(texts), 1 << features.bits))
    owners = np.array(owner)
    offensive = np.array([example.offensive for example in examples])[owners]
    weak = np.array([example.weak for example in examples])[owners]
    fold = np.array(
        [crc32((example.pattern or example.text).encode()) % FOLDS for example in examples]
    )[owners]
    domain = np.array([example.source in DOMAIN for example in examples])[owners]
    return Windows(matrix, offensive, np.array(weight), owners, weak, domain, fold)


def fit(windows: Windows, cost: float) -> Linear:
    """Learn the border between the two classes of windows."""
    scales = _scales(windows)
    scaled = windows.matrix @ sparse.diags(scales.astype(np.float64))
    norms = np.sqrt(np.asarray(scaled.multiply(scaled).sum(axis=1)).ravel())
    scaled = (sparse.diags(1 / np.maximum(norms, 1.0)) @ scaled).tocsr()
    machine = LinearSVC(C=cost, max_iter=400, random_state=0, dual=True)
    machine.fit(scaled, windows.offensive, sample_weight=windows.weight)
    weights = machine.coef_[0] * scales
    # Cutting the few largest so that small ones keep finer steps costs 1.8 points of accuracy on COLD dev.
    step = float(np.abs(weights).max()) / 127
    return Linear(
        scales, np.round(weights / step).astype(np.int8), step, float(machine.intercept_[0])
    )


def _scales(windows: Windows) -> NDArray[np.uint8]:
    """The log-count ratio of each bucket, between 0 and `LARGEST_RATIO`, in 255 steps; 0 for rare buckets.

    Counted without the domain's texts, all of which are inoffensive: with them the ratio would tell the domains apart,
    not the classes, and that costs 1 point of accuracy on COLD dev.
    """
    windows = windows.rows(~windows.domain)
    seen = np.asarray(windows.matrix.sum(axis=0)).ravel()
    counts = [
        windows.matrix.T @ (windows.weight * (windows.offensive == side)) + 1.0
        for side in (True, False)
    ]
    ratio = np.abs(np.log(counts[0] / counts[0].sum()) - np.log(counts[1] / counts[1].sum()))
    ratio[seen < LEAST_WINDOWS] = 0
    return np.round(np.minimum(ratio, LARGEST_RATIO) / LARGEST_RATIO * 255).astype(np.uint8)


def blind_margins(windows: Windows, cost: float) -> Array:
    """The margin of each window from a model that has seen none of its text's windows."""
    margins = np.zeros(len(windows.owner))
    for number in range(FOLDS):
        left_out = windows.fold == number
        margins[left_out] = fit(windows.rows(~left_out), cost).margins(windows.matrix[left_out])
    return margins


def doubtful(windows: Windows, margins: Array) -> NDArray[np.bool_]:
    """Windows that are only likely offensive and that a model blind to them takes for the contrary."""
    return windows.weak & windows.offensive & (margins < 0)


def calibrate(windows: Windows, margins: Array) -> tuple[float, float]:
    """Slope and offset of P(offensive | margin), by Platt's logistic fit on blind margins.

    Of the sets with both classes: the domain's texts would only teach how rare insults are in it.
    """
    chosen = ~windows.domain
    fitted = LogisticRegression(C=1e6).fit(
        margins[chosen, None], windows.offensive[chosen], sample_weight=windows.weight[chosen]
    )
    return float(fitted.coef_[0, 0]), float(fitted.intercept_[0])


def thresholds(windows: Windows, margins: Array, language: str) -> tuple[float, float]:
    """The margins `low` and `high` (see the constants): innocent are Chinese domain texts, all English ones."""
    innocent = ~windows.offensive & (windows.domain | (language == "en"))
    high = float(np.quantile(margins[innocent], 1 - INNOCENT_ABOVE_HIGH[language]))
    low = float(np.quantile(margins[windows.offensive], OFFENSIVE_BELOW_LOW))
    return min(low, high), high


def train(
    examples: Sequence[Example], language: str, features: Features
) -> tuple[Linear, dict[str, float]]:
    """The model of a language, and what else its manifest needs: slope, offset, low and high as probabilities."""
    windows = cut(examples, features)
    margins = blind_margins(windows, COST)
    if (bad := doubtful(windows, margins)).any():
        windows = windows.rows(~bad)
        margins = blind_margins(windows, COST)
    slope, offset = calibrate(windows, margins)
    low, high = (
        1 / (1 + float(np.exp(-slope * margin - offset)))
        for margin in thresholds(windows, margins, language)
    )
    kept = {"windows": len(windows.owner), "doubtful": int(bad.sum())}
    return fit(windows, COST), {"slope": slope, "offset": offset, "low": low, "high": high, **kept}
