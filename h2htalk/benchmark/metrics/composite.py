"""The one table of metrics, and what is made of their values: the lexical mean, S (paper, Eq. 2) and J (Eq. 3).

Adding a metric is a record here and the module that it names.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib import import_module
from typing import Any, NamedTuple

from h2htalk.benchmark.metrics.lexical import LexicalScores, Rouge
from h2htalk.text.embeddings.vectors import Embedder

ALPHA = 0.6  # the weight of S in J (section 4.1)
THRESHOLD = 3.5  # tau of Eq. 4: what is below goes to people
PRIVATE_REFERENCE = "private_reference"  # why an answer is unscored that nobody here has a reference for


class Pair(NamedTuple):
    """A response, and the reference and language that it is scored with."""

    response: str
    reference: str
    language: str


@dataclass(frozen=True, slots=True)
class Metrics:
    """How to score: the embedder (None: no SS and S), the kind of ROUGE, and whether contracts are checked."""

    embedder: Embedder | None = None
    rouge: Rouge = "f1"
    contracts: bool = True

    def asks_s(self, language: str) -> bool:
        """Whether items of a language get SS and S."""
        return self.embedder is not None and language in self.embedder.languages


# The values of a pair by column, None where the metric does not apply, or the reason why it failed.
Values = tuple[float, ...] | str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric: its name and version (raised when values change) in signatures, and the columns of its values.

    `path` is `module:function`, called as `function(pairs, metrics)`; it returns one `Values` for each pair.
    `in_composite`: whether the columns are parts of S (Eq. 2).
    """

    name: str
    version: str = "1"
    path: str
    columns: tuple[str, ...]
    in_composite: bool = False

    def score(self, pairs: Sequence[Pair], metrics: Metrics) -> Sequence[Values]:
        """Score all pairs."""
        module, _, function = self.path.partition(":")
        values: Sequence[Values] = getattr(import_module(module), function)(pairs, metrics)
        return values


_SCORING = "h2htalk.benchmark.metrics.scoring"
METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(name="lexical", path=f"{_SCORING}:score_lexical", columns=LexicalScores._fields, in_composite=True),
        Metric(name="semantic", path=f"{_SCORING}:score_semantic", columns=("ss",), in_composite=True),
    )
}


def columns(*, in_composite: bool | None = None) -> tuple[str, ...]:
    """Return the columns of all metrics, or of those that are, or are not, parts of S."""
    chosen = (m for m in METRICS.values() if in_composite is None or m.in_composite == in_composite)
    return tuple(column for metric in chosen for column in metric.columns)


def judged_score(s: float, rating: float) -> float:
    """J (Eq. 3), 0 to 5, of S in [0, 1] and a rating R of 0 to 5: S is put on R's scale, which gives tau a meaning."""
    return ALPHA * 5 * s + (1 - ALPHA) * rating


def composite_score(values: Mapping[str, float]) -> float | None:
    """S: the plain mean of BLEU-1..4, ROUGE-1, ROUGE-L and SS (Eq. 2), in [0, 1]; None where a part is missing.

    A cosine can be just below zero; S is not.
    """
    mean = _mean_of_all([values.get(name) for name in columns(in_composite=True)])
    return None if mean is None else max(0.0, mean)


def lexical_mean(values: Mapping[str, float]) -> float | None:
    """The mean of the six lexical values, in [0, 1], which replaces S where there is no embedder."""
    return _mean_of_all([values.get(name) for name in METRICS["lexical"].columns])


@dataclass(frozen=True, slots=True)
class SampleScore:
    """The scores of one sample of one item.

    Attributes:
        values: by column of a metric; empty for a failed call, without `ss` where no embedder was used.
        violations: the codes of the contract rules that the answer breaks; None where contracts are not checked.
        unscored: why it has no score (a failed call, an embedder that failed, private references), else None.
        answer: the hash of the answer that was scored (`answer_hash`); None for a failed call.
        rating: R of the judges or, where `people`, of people, 0 to 5; None where there is none.
        unjudged: why an answer that was to be judged has no rating, else None.
    """

    id: str
    sample: int
    values: Mapping[str, float] = field(default_factory=dict)
    violations: tuple[str, ...] | None = ()
    unscored: str | None = None
    answer: str | None = None
    rating: float | None = None
    people: bool = False
    unjudged: str | None = None

    @property
    def j(self) -> float | None:
        """J (Eq. 3), 0 to 5; None where S or the rating is missing."""
        s = self.s
        return None if s is None or self.rating is None else judged_score(s, self.rating)

    @property
    def lexical(self) -> float | None:
        return lexical_mean(self.values)

    @property
    def s(self) -> float | None:
        return composite_score(self.values)

    def to_dict(self) -> dict[str, Any]:
        """Flat, for a Parquet row."""
        plain = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "values"}
        means = {name: getattr(self, name) for name in ("lexical", "s", "j")}
        plain["violations"] = None if self.violations is None else list(self.violations)
        return plain | means | {name: self.values.get(name) for name in columns()}


@dataclass(frozen=True, slots=True)
class ItemScore:
    """An item's score: the mean of its samples. Unscored when any sample is, with that sample's reason.

    `compliance` needs an answer to each sample and no reference; None where contracts are not checked.
    """

    id: str
    lexical: float | None = None
    ss: float | None = None
    s: float | None = None
    compliance: float | None = None
    unscored: str | None = None
    samples: tuple[SampleScore, ...] = field(default=())

    @property
    def rating(self) -> float | None:
        """The mean rating of the samples, None where one has none."""
        return _mean_of_all([s.rating for s in self.samples])

    @property
    def j(self) -> float | None:
        """The mean J of the samples, None where one has none."""
        return _mean_of_all([s.j for s in self.samples])

    def metric(self, name: str) -> float | None:
        """Return the mean of one column over the samples, None where a sample lacks it."""
        return _mean_of_all([s.values.get(name) for s in self.samples])


def item_score(item_id: str, samples: Sequence[SampleScore]) -> ItemScore:
    """Average an item's samples (one or more) into its score."""
    ordered = tuple(sorted(samples, key=lambda s: s.sample))
    # A failed call can be made again: it is named before references that are private.
    reasons = [s.unscored for s in ordered if s.unscored]
    reason = min(reasons, key=lambda reason: reason == PRIVATE_REFERENCE, default=None)
    lexical = _mean_of_all([s.lexical for s in ordered])
    answered = all(s.values or s.unscored == PRIVATE_REFERENCE for s in ordered)
    kept = [None if s.violations is None or not answered else float(not s.violations) for s in ordered]
    compliance = _mean_of_all(kept)
    ss = None if reason else _mean_of_all([s.values.get("ss") for s in ordered])
    composite = None if reason else _mean_of_all([s.s for s in ordered])
    return ItemScore(item_id, lexical, ss, composite, compliance, reason, ordered)


def _mean_of_all(values: Sequence[float | None]) -> float | None:
    """The mean, None as soon as one value is missing."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known and len(known) == len(values) else None
