"""The composite of an answer (Eq. 1 and 2), and the scores of items in `scores.jsonl`."""

from __future__ import annotations

import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib.metadata import entry_points
from itertools import chain, islice
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NamedTuple

import numpy as np

from h2htalk.benchmark.metrics.lexical import LexicalScores, Rouge, folded_means, lexical_scores
from h2htalk.chat.protocol import Message
from h2htalk.data.files import json_line
from h2htalk.data.parquet import read_parquet, write_parquet
from h2htalk.data.responses import (
    FILTERED_REPLY,
    Answers,
    FailedResponse,
    FilterRule,
    Response,
    is_filtered,
)
from h2htalk.data.run_folder import SCORE_AGAIN
from h2htalk.data.scenario import Scenario
from h2htalk.data.splits import Split
from h2htalk.data.subtasks import DIMENSIONS, FIGURES
from h2htalk.errors import ConfigError, DataError, H2HTalkError, quoted
from h2htalk.progress import QUICK, Progress, counted_items
from h2htalk.text.embeddings.vectors import Embedder
from h2htalk.text.help_lines import country_of, repeatable

ALPHA = 0.6  # the weight of S in J (section 4.1)
THRESHOLD = 3.5  # tau of Eq. 4: what is below goes to people
_MEND = "; mend it or uninstall its distribution, and start the same command again"
PRIVATE_REFERENCE = (
    "private_reference"  # why an answer is unscored that nobody here has a reference for
)


class Pair(NamedTuple):
    """A response, and the reference and language that it is scored with."""

    response: str
    reference: str
    language: str


@dataclass(frozen=True, slots=True)
class Metrics:
    """How to score: the embedder (None: no SS and S), the kind of ROUGE, contracts or not, further metrics, and what a
    filtered reply counts as."""

    embedder: Embedder | None = None
    rouge: Rouge = "f1"
    contracts: bool = True
    installed: tuple[Metric, ...] = ()  # of other distributions
    filtered: FilterRule = "refusal"  # what a reply counts as that a provider's filter declined

    def asks_s(self, language: str) -> bool:
        """Whether items of a language get SS and S."""
        return self.embedder is not None and language in self.embedder.languages


# The values of a pair by column, None where the metric does not apply, or the reason why it failed.
Values = tuple[float, ...] | str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric: its name and version (raised when values change) in signatures, and the columns of its values.

    `path` is `module:function`, called as `function(pairs, metrics)`; it returns one `Values` for each pair.
    `who`: of another distribution's metric, its name for messages; its function returns a number from 0 to 1 for each
    pair, or None where it does not apply.
    """

    name: str
    version: str = "1"
    path: str
    columns: tuple[str, ...]
    who: str = ""

    def score(self, pairs: Sequence[Pair], metrics: Metrics) -> Sequence[Values]:
        """Score all pairs. Raises ConfigError, which names it, where a metric of another distribution fails."""
        function: Callable[[Sequence[Pair], Metrics], Sequence[Any]] = resolve_name(self.path)
        if not self.who:
            return function(pairs, metrics)
        try:
            returned = function(list(pairs), metrics)
            values = [value[0] if isinstance(value, tuple) else value for value in returned]
            if len(values) != len(pairs) or not all(
                value is None or 0 <= value <= 1 for value in values
            ):
                raise ValueError(
                    f"it gave not a number from 0 to 1, or None, for each of {len(pairs):,} pairs"
                )
        except (Exception, SystemExit) as error:  # its text may hold a reply
            raise ConfigError(
                f"{self.who} failed: {type(error).__name__}: {quoted(str(error))}{_MEND}"
            ) from error
        return [None if value is None else (float(value),) for value in values]


_SCORING = "h2htalk.benchmark.metrics.composite"
LEXICAL_COLUMNS = LexicalScores._fields
LEXICAL_FOLDED = (
    "lexical_folded"  # the lexical mean without typography: a figure beside S, and no part of it
)
METRICS: Mapping[str, Metric] = {
    "lexical": Metric(
        name="lexical",
        version="2",  # 1 distinguished line ends, kinds of space, invisible characters and decomposed letters
        path=f"{_SCORING}:score_lexical",
        columns=(*LEXICAL_COLUMNS, LEXICAL_FOLDED),
    ),
    "semantic": Metric(name="semantic", path=f"{_SCORING}:score_semantic", columns=("ss",)),
}


METRIC_COLUMNS = (*LEXICAL_COLUMNS, "ss")  # the parts of S (Eq. 2)
# The columns of a file of scores; every other one is `LEXICAL_FOLDED`, or that of a metric of another distribution.
SCORE_COLUMNS = (
    "id",
    "sample",
    "violations",
    "unscored",
    "answer",
    "rating",
    "people",
    "unjudged",
    "lexical",
    "s",
    "j",
)
_TABLE_WORDS = """answers compliance complexity contract emotion interaction items_mean judged language metric model of
overall_s plain_mean r reference references risk share source subtask text value weighted_lexical weighted_s"""
RESERVED_COLUMNS = {
    *METRICS,
    *METRIC_COLUMNS,
    LEXICAL_FOLDED,
    *SCORE_COLUMNS,
    *FIGURES,
    *(f"{dimension}_avg" for dimension in DIMENSIONS),
    *_TABLE_WORDS.split(),
}


def installed_metrics() -> tuple[Metric, ...]:
    """Load the metrics of other distributions, entry points `h2htalk.metrics`, by name. Raises ConfigError."""
    metrics: dict[str, Metric] = {}
    for point in sorted(entry_points(group="h2htalk.metrics"), key=lambda point: point.name):
        name = point.name
        distribution = "an unknown distribution"
        version = "0"
        if point.dist:
            distribution = point.dist.name
            version = point.dist.version
        who = f"metric {quoted(name)} of {distribution} {version}"
        is_free = name not in RESERVED_COLUMNS and name not in metrics
        if not is_free or not re.fullmatch("[a-z][a-z0-9_]*", name):
            raise ConfigError(
                f"{who}: a column must have a name of its own, in lower case; rename its entry point"
            )
        try:
            if not callable(point.load()):
                raise TypeError("is no function")
        except (Exception, SystemExit) as error:
            raise ConfigError(
                f"{who} cannot be loaded: {type(error).__name__}: {quoted(str(error))}{_MEND}"
            ) from error
        path = f"{point.module}:{point.attr}"
        metrics[name] = Metric(name=name, version=version, path=path, columns=(name,), who=who)
    return tuple(metrics.values())


def all_columns(named: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """The parts of S, and then by name the other columns that scores or cells hold."""
    return (*METRIC_COLUMNS, *sorted(set(chain(*named)).difference(METRIC_COLUMNS)))


def judged_score(s: float, rating: float) -> float:
    """J (Eq. 3), 0 to 5, of S in [0, 1] and a rating R of 0 to 5: S is put on R's scale, which gives tau a meaning."""
    return ALPHA * 5 * s + (1 - ALPHA) * rating


def composite_score(values: Mapping[str, float]) -> float | None:
    """S: the plain mean of BLEU-1..4, ROUGE-1, ROUGE-L and SS (Eq. 2), in [0, 1]; None where a part is missing.

    A cosine can be just below zero; S is not.
    """
    mean = whole_mean([values.get(name) for name in METRIC_COLUMNS])
    return None if mean is None else max(0.0, mean)


def lexical_mean(values: Mapping[str, float]) -> float | None:
    """The mean of the six lexical values, in [0, 1], which replaces S where there is no embedder."""
    return whole_mean([values.get(name) for name in LEXICAL_COLUMNS])


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
        plain = {
            item.name: getattr(self, item.name) for item in fields(self) if item.name != "values"
        }
        means = {name: getattr(self, name) for name in ("lexical", "s", "j")}
        plain["violations"] = None if self.violations is None else list(self.violations)
        return plain | means | {**dict.fromkeys(METRIC_COLUMNS), **self.values}


@dataclass(frozen=True, slots=True)
class ItemScore:
    """An item's score: the mean of its samples. Unscored when any sample is, with that sample's reason.

    Every value is None where one of the samples has none. `compliance` needs an answer to each sample and no reference;
    None where contracts are not checked. `metrics` holds the mean of each column; `rating` is R, and J as in Eq. 3.
    """

    id: str
    lexical: float | None = None
    ss: float | None = None
    s: float | None = None
    compliance: float | None = None
    unscored: str | None = None
    samples: tuple[SampleScore, ...] = ()
    metrics: Mapping[str, float | None] = field(
        default_factory=lambda: dict.fromkeys(METRIC_COLUMNS)
    )
    rating: float | None = None
    j: float | None = None


def item_score(item_id: str, samples: Sequence[SampleScore]) -> ItemScore:
    """Average an item's samples (one or more) into its score."""
    ordered = tuple(sorted(samples, key=lambda s: s.sample))
    # A failed call can be made again: it is named before references that are private, and replies that are left out.
    settled = {PRIVATE_REFERENCE: 1, FILTERED_REPLY: 2}
    reasons = [s.unscored for s in ordered if s.unscored]
    reason = min(reasons, key=lambda reason: settled.get(reason, 0), default=None)
    answered = all(s.values or s.unscored == PRIVATE_REFERENCE for s in ordered)
    contracts_kept = [
        None if s.violations is None or not answered else float(not s.violations) for s in ordered
    ]
    columns = all_columns(s.values for s in ordered)
    metrics = {name: whole_mean([s.values.get(name) for s in ordered]) for name in columns}
    return ItemScore(
        id=item_id,
        lexical=whole_mean([s.lexical for s in ordered]),
        ss=None if reason else metrics["ss"],
        s=None if reason else whole_mean([s.s for s in ordered]),
        compliance=whole_mean(contracts_kept),
        unscored=reason,
        samples=ordered,
        metrics=metrics,
        rating=whole_mean([s.rating for s in ordered]),
        j=whole_mean([s.j for s in ordered]),
    )


def whole_mean(values: Sequence[float | None]) -> float | None:
    """The mean of values; None where one is missing, or there are none."""
    if not values or None in values:
        return None
    return math.fsum(values) / len(values)  # type: ignore[arg-type]


def similarities(
    embedder: Embedder, responses: Sequence[str], references: Sequence[str]
) -> list[float | str]:
    """SS of n responses, each against its reference: a cosine in [-1, 1], or the reason why the embedder failed.

    Every text is embedded once, however often it occurs. An empty response has nothing to embed: its SS is 0.
    """
    texts = sorted({text for text in (*responses, *references) if text})
    vectors, failed = _encode(embedder, texts) if texts else ({}, {})

    def similarity(response: str, reference: str) -> float | str:
        if not response or not reference:
            return 0.0
        if reason := failed.get(response) or failed.get(reference):
            return reason
        cosine = float(np.dot(vectors[response], vectors[reference]))
        # A vector of NaN must not become a score: S would take it for 0.
        return (
            max(-1.0, min(1.0, cosine))
            if math.isfinite(cosine)
            else "embedder: not a finite vector"
        )

    return [similarity(*pair) for pair in zip(responses, references, strict=True)]


def _encode(
    embedder: Embedder, texts: Sequence[str]
) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Vectors by text, and the texts that the embedder failed on with the reason."""
    try:
        return dict(zip(texts, embedder.encode(texts), strict=True)), {}
    except H2HTalkError:  # the embedder cannot work at all: the user must mend it; no item failed
        raise
    except Exception as error:  # noqa: BLE001 - seen as `unscored` on the items whose text fails on its own
        if len(texts) == 1:
            return {}, {texts[0]: f"embedder: {type(error).__name__}: {error}"}
    half = len(texts) // 2
    (vectors, failed), (other_vectors, other_failed) = (
        _encode(embedder, part) for part in (texts[:half], texts[half:])
    )
    return vectors | other_vectors, failed | other_failed


def score_answers(
    split: Split,
    answers: Answers,
    samples: int,
    metrics: Metrics,
    prompt_of: Callable[[Scenario], Sequence[Message]] | None = None,
) -> dict[str, ItemScore]:
    """Score every item of a split, by id. Of several references the one that an answer agrees with best counts.

    A sample without an answer is unscored with its failure's reason (`missing` when nothing came); so is one
    that the embedder failed on, and an answer whose references are private. An empty answer is an answer and scores 0;
    what a provider's filter declined is one too, unless `metrics.filtered` leaves it out (`filtered`).
    `prompt_of`: what each item was asked with, for the contract's leak rule; None checks phrases only.
    """
    answered: list[tuple[Scenario, Response]] = []
    by_item: dict[str, list[SampleScore]] = {scenario.id: [] for scenario in split.scenarios}
    for scenario in split.scenarios:
        for sample in range(samples):
            answer = answers.get((scenario.id, sample))
            if (
                isinstance(answer, Response)
                and metrics.filtered == "unscored"
                and is_filtered(answer)
            ):
                left_out = SampleScore(
                    scenario.id, sample, unscored=FILTERED_REPLY, answer=answer_hash(answer)
                )
                by_item[scenario.id].append(left_out)
            elif isinstance(answer, Response):
                answered.append((scenario, answer))
            else:
                reason = answer.failure.reason if isinstance(answer, FailedResponse) else "missing"
                by_item[scenario.id].append(SampleScore(scenario.id, sample, unscored=reason))
    pairs = [
        Pair(response.answer, reference, s.language)
        for s, response in answered
        for reference in s.references
    ]
    used_metrics = (*METRICS.values(), *metrics.installed)
    with Progress("scoring", len(pairs) * len(used_metrics), silent=QUICK) as progress:
        columns = []
        for metric in used_metrics:
            columns.append(metric.score(pairs, metrics))
            progress.advance(count=len(pairs))
    by_pair = zip(*columns, strict=True)
    scored = (_pair_score(used_metrics, values) for values in by_pair)
    for scenario, response in counted_items("checking contracts", answered):
        reference_scores = list(islice(scored, len(scenario.references)))
        values, unscored = (
            best_reference(reference_scores) if reference_scores else ({}, PRIVATE_REFERENCE)
        )
        violations = (
            _contract_violations(response.answer, scenario, split, prompt_of)
            if metrics.contracts
            else None
        )
        score = SampleScore(
            response.id, response.sample, values, violations, unscored, answer_hash(response)
        )
        by_item[scenario.id].append(score)
    return {item_id: item_score(item_id, scores) for item_id, scores in by_item.items()}


def answer_hash(answer: Response) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of a stored answer, but for when, where and how it was asked."""
    timeless = replace(answer, at=None, seconds=None, request_id=None, endpoint=None)
    return hashlib.sha256(json_line(timeless.to_dict()).encode()).hexdigest()[:16]


Scores = Mapping[str, ItemScore]  # by the item's id
PairScore = tuple[
    dict[str, float], str | None
]  # the values of a pair by column, and why one of the metrics failed


def _pair_score(used_metrics: Sequence[Metric], by_metric: tuple[Values, ...]) -> PairScore:
    values: dict[str, float] = {}
    for metric, value in zip(used_metrics, by_metric, strict=True):
        if isinstance(value, tuple):
            values |= zip(metric.columns, value, strict=True)
    return values, next((value for value in by_metric if isinstance(value, str)), None)


def best_reference(scores: Sequence[PairScore]) -> PairScore:
    """Return the scores of an answer with the reference of the highest S, or where there is no S of the highest lexical
    mean; of equal ones with the first. If a metric failed on one of the references, the best is not known."""
    failed = [score for score in scores if score[1]]

    def rank(score: PairScore) -> float:
        composite = None if failed else composite_score(score[0])
        return (lexical_mean(score[0]) if composite is None else composite) or 0.0

    return max(failed or scores, key=rank)


def score_lexical(pairs: Sequence[Pair], metrics: Metrics) -> Sequence[Values]:
    """BLEU and ROUGE of each pair, and their mean without typography."""
    responses = [pair.response for pair in pairs]
    references = [pair.reference for pair in pairs]
    languages = [pair.language for pair in pairs]
    scores = lexical_scores(responses, references, languages, metrics.rouge)
    folded = folded_means(responses, references, languages, metrics.rouge, scores)
    return [(*values, mean) for values, mean in zip(scores, folded, strict=True)]


def score_semantic(pairs: Sequence[Pair], metrics: Metrics) -> Sequence[Values]:
    """SS of each pair in a language of the embedder; a text where the embedder failed."""
    if metrics.embedder is None:
        return [None] * len(pairs)
    scored_pairs = [pair for pair in pairs if metrics.asks_s(pair.language)]
    cosines = iter(
        similarities(
            metrics.embedder,
            [p.response for p in scored_pairs],
            [p.reference for p in scored_pairs],
        )
    )
    values = (next(cosines) if metrics.asks_s(pair.language) else None for pair in pairs)
    return [(value,) if isinstance(value, float) else value for value in values]


def _contract_violations(
    text: str,
    scenario: Scenario,
    split: Split,
    prompt_of: Callable[[Scenario], Sequence[Message]] | None,
) -> tuple[str, ...]:
    """The codes of the contract rules that an answer breaks, sorted, each once; it must not repeat the system text."""
    from h2htalk.text.contracts.contract import check_scenario  # what reads scores checks no answer

    persona = split.personas[scenario.persona]
    prompt = None
    if prompt_of is not None:
        prompt = "\n".join(
            message.content for message in prompt_of(scenario) if message.role == "system"
        )
    language = scenario.language
    allowed = repeatable(persona.descriptions[language], language, country_of(scenario))
    violations = check_scenario(text, scenario, tuple(persona.names.values()), prompt, allowed)
    return tuple(sorted({violation.rule for violation in violations}))


def write_scores(path: Path, scores: Scores) -> None:
    """One Parquet row a sample: `SampleScore.to_dict`."""
    import pyarrow as pa

    text = pa.string()
    number = pa.float64()
    columns = all_columns(item.metrics for item in scores.values())
    numbers = dict.fromkeys((*columns, "lexical", "s", "rating", "j"), number)
    other_columns = {
        "violations": pa.list_(text),
        "unscored": text,
        "answer": text,
        "unjudged": text,
        "people": pa.bool_(),
    }
    schema = pa.schema({"id": text, "sample": pa.int32()} | numbers | other_columns)
    write_parquet(
        path, (s.to_dict() for item in scores.values() for s in item.samples), schema=schema
    )


def read_scores(path: Path) -> dict[str, ItemScore]:
    """What `write_scores` wrote, by id; the summary that was read before holds the file's hash."""
    by_item = defaultdict[str, list[SampleScore]](list)
    for where, row in read_parquet(path):
        try:
            columns = (*METRIC_COLUMNS, *row.keys() - {*METRIC_COLUMNS, *SCORE_COLUMNS})
            values = {name: row[name] for name in columns if row[name] is not None}
            violations = (
                row["violations"] if row["violations"] is None else tuple(row["violations"])
            )
            ratings = (row[name] for name in ("unscored", "answer", "rating", "people", "unjudged"))
            by_item[row["id"]].append(
                SampleScore(row["id"], row["sample"], values, violations, *ratings)
            )
        except (KeyError, TypeError) as error:
            raise DataError(
                f"{where}: scores of another version ({error}); {SCORE_AGAIN}"
            ) from error
    return {item_id: item_score(item_id, samples) for item_id, samples in by_item.items()}
