"""One response's values: lexical mean, semantic similarity and the composite S (paper, Eq. 1 and 2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from h2htalk.benchmark.metrics.lexical import LexicalScores

METRICS_VERSION = "1"
METRIC_NAMES = ("bleu_1", "bleu_2", "bleu_3", "bleu_4", "rouge_1", "rouge_l")


def composite_score(lexical: LexicalScores, ss: float) -> float:
    """S: the plain mean of BLEU-1..4, ROUGE-1, ROUGE-L and SS (Eq. 2), in [0, 1].

    A cosine can fall just below zero; S does not.
    """
    return max(0.0, (math.fsum(lexical) + ss) / 7)


def lexical_mean(lexical: LexicalScores) -> float:
    """The mean of the six lexical values, in [0, 1]: what stands where no embedder was asked for."""
    return math.fsum(lexical) / 6


@dataclass(frozen=True, slots=True)
class SampleScore:
    """The scores of one sample of one item.

    `unscored` is why it has none (a failed call, an embedder that failed); then the values are None.
    `ss` and `s` are also None, without a reason, where no embedder was asked for.
    `violations` are the codes of the contract rules that the answer breaks.
    """

    id: str
    sample: int
    lexical: LexicalScores | None = None
    ss: float | None = None
    s: float | None = None
    violations: tuple[str, ...] = ()
    unscored: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Flat, for a Parquet row."""
        lexical = self.lexical or (None,) * 6
        return {
            "id": self.id,
            "sample": self.sample,
            **dict(zip(METRIC_NAMES, lexical, strict=True)),
            "lexical": None if self.lexical is None else lexical_mean(self.lexical),
            "ss": self.ss,
            "s": self.s,
            "violations": list(self.violations),
            "unscored": self.unscored,
        }


@dataclass(frozen=True, slots=True)
class ItemScore:
    """An item's score: the mean of its samples. Unscored when any sample is, with that sample's reason."""

    id: str
    lexical: float | None = None
    ss: float | None = None
    s: float | None = None
    compliance: float | None = None
    unscored: str | None = None
    samples: tuple[SampleScore, ...] = field(default=())

    def metric(self, name: str) -> float | None:
        """The mean of one metric (METRIC_NAMES, or `ss`) over the samples; None when a sample lacks it."""
        if name == "ss":
            return self.ss
        values = [getattr(s.lexical, name) for s in self.samples if s.lexical is not None]
        return _mean(values) if values and len(values) == len(self.samples) else None


def item_score(item_id: str, samples: Sequence[SampleScore]) -> ItemScore:
    """Fold an item's samples (one or more) into its score."""
    ordered = tuple(sorted(samples, key=lambda s: s.sample))
    reasons = [s.unscored for s in ordered if s.unscored]
    lexical = (
        None
        if any(s.lexical is None for s in ordered)
        else _mean([lexical_mean(s.lexical) for s in ordered if s.lexical])
    )
    compliance = None if lexical is None else _mean([float(not s.violations) for s in ordered])
    if reasons:
        return ItemScore(item_id, lexical, None, None, compliance, reasons[0], ordered)
    ss = [s.ss for s in ordered if s.ss is not None]
    composite = [s.s for s in ordered if s.s is not None]
    return ItemScore(
        item_id,
        lexical,
        _mean(ss) if ss else None,
        _mean(composite) if composite else None,
        compliance,
        None,
        ordered,
    )


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
