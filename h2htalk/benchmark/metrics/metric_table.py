"""The one table of metrics. Adding a metric is a record here and the module that it names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import NamedTuple

from h2htalk.benchmark.metrics.lexical import LexicalScores, Rouge
from h2htalk.text.embeddings.vectors import Embedder


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
    """A metric, and what the rest of the benchmark must know about it.

    Attributes:
        name, version: as the signature names them; raise the version when values change.
        path: `module:function`, called as `function(pairs, metrics)`; returns one `Values` for each pair.
        columns: names of its values in scores, tables and the page.
        in_composite: whether its columns are parts of S (Eq. 2).
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


METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            name="lexical",
            path="h2htalk.benchmark.metrics.scoring:score_lexical",
            columns=LexicalScores._fields,
            in_composite=True,
        ),
        Metric(
            name="semantic",
            path="h2htalk.benchmark.metrics.scoring:score_semantic",
            columns=("ss",),
            in_composite=True,
        ),
    )
}


def columns(*, in_composite: bool | None = None) -> tuple[str, ...]:
    """Return the columns of all metrics, or of those that are, or are not, parts of S."""
    chosen = (m for m in METRICS.values() if in_composite is None or m.in_composite == in_composite)
    return tuple(column for metric in chosen for column in metric.columns)


def metrics_version() -> str:
    """Return names and versions of all metrics, for signatures."""
    return ",".join(f"{metric.name}-{metric.version}" for metric in METRICS.values())
