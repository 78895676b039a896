"""What models find of texts that they did not see: where thresholds come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from crisis.texts import EVERYDAY, Text
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold

from h2htalk.data.languages import Language
from h2htalk.detect.hashed import SMOOTH, Features, NgramClassifier
from h2htalk.detect.safety.text_folding import fold_spelling

C = 30.0
FEATURES = {
    "en": Features(
        "splitmix", 17, characters=(4, 5), words=(1, 2, 3), gaps=True, window=400, sentences=True
    ),
    "zh": Features(
        "splitmix", 17, characters=(1, 2, 3, 4), words=(), gaps=True, window=400, sentences=True
    ),
}


@dataclass(frozen=True, eq=False)
class Learned:
    """The texts of a language, folded, with their features."""

    language: Language
    texts: Sequence[Text]
    folded: Sequence[str]
    x: csr_matrix

    def fit(self, chosen: NDArray[np.bool_] | NDArray[np.int64]) -> LogisticRegression:
        """A model of some of the texts; the same each time."""
        texts = [self.texts[n] for n in np.arange(len(self.texts))[chosen]]
        model = LogisticRegression(C=C, solver="liblinear", random_state=0)
        return model.fit(
            self.x[chosen], [t.crisis for t in texts], sample_weight=[t.weight for t in texts]
        )

    def model(self, fitted: LogisticRegression, manifest: dict[str, object]) -> NgramClassifier:
        """A classifier with the weights as they were fitted, before they are stored in units of a scale."""
        weights = fitted.coef_[0].astype(np.float32).astype(np.float64)
        fitted_manifest = {**manifest, "scale": 1.0, "bias": float(fitted.intercept_[0])}
        return NgramClassifier(
            language=self.language,
            features=FEATURES[self.language],
            rows=weights.reshape(1, -1),
            manifest=fitted_manifest,
        )


def learned(language: Language, texts: Sequence[Text]) -> Learned:
    folded = [fold_spelling(text.text, language) for text in texts]
    return Learned(language, texts, folded, matrix(folded, language))


def matrix(folded: Sequence[str], language: Language) -> csr_matrix:
    """Binary features, each row of length 1."""
    rows = [FEATURES[language].keys([text]) for text in folded]
    values = np.concatenate([np.full(len(row), 1 / np.sqrt(len(row) + SMOOTH)) for row in rows])
    ends = np.cumsum([0, *map(len, rows)])
    return csr_matrix(
        (values, np.concatenate(rows), ends), shape=(len(rows), 1 << FEATURES[language].bits)
    )


@dataclass(frozen=True, eq=False)
class Readings:
    """Folded texts as rows of features, of each the whole first and then its sentences; `whole`: where each begins."""

    rows: csr_matrix
    whole: NDArray[np.int64]

    @classmethod
    def of(cls, folded: Sequence[str], language: Language) -> Readings:
        spans = [FEATURES[language].readings(text) or [(0, 0)] for text in folded]
        parts = [
            text[start:end]
            for text, places in zip(folded, spans, strict=True)
            for start, end in places
        ]
        return cls(matrix(parts, language), np.cumsum([0, *map(len, spans[:-1])]))

    def scores(self, model: LogisticRegression) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Of each text the score of the whole, and the highest of a reading."""
        every = model.decision_function(self.rows)
        return every[self.whole], np.maximum.reduceat(every, self.whole)


def held_out(of: Learned) -> NDArray[np.float64]:
    """The score of every text by a model that saw neither it nor, where its writer told of ordinary days, anything of
    that writer (five folds)."""
    scores = np.zeros(len(of.texts))
    groups: dict[str, int] = {}
    numbers = [groups.setdefault(_group(of, n), len(groups)) for n in range(len(of.texts))]
    folds = GroupKFold(5, shuffle=True, random_state=0)
    for train, test in folds.split(np.zeros(len(numbers)), groups=numbers):
        model = of.model(of.fit(train), {})
        for n in test:
            scores[n] = model.score(of.folded[n])[0]
    return scores


def _group(of: Learned, n: int) -> str:
    writer = of.texts[n].source.removeprefix("own harmless ")
    return f"writer {writer}" if writer in EVERYDAY[of.language] else f"text {n}"
