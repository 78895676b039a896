"""Score answers with every metric of the table and with the contract; store and read the scores."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from h2htalk.benchmark.metrics.composite import (
    METRICS,
    PRIVATE_REFERENCE,
    ItemScore,
    Metrics,
    Pair,
    SampleScore,
    Values,
    columns,
    composite_score,
    item_score,
    lexical_mean,
)
from h2htalk.benchmark.metrics.lexical import lexical_scores
from h2htalk.benchmark.prompts.prompt_set import PromptOf, repeatable
from h2htalk.data.files import json_line
from h2htalk.data.parquet import read_parquet, write_parquet
from h2htalk.data.responses import Answers, FailedResponse, Response
from h2htalk.data.run_folder import SCORE_AGAIN
from h2htalk.data.scenario import Scenario
from h2htalk.data.splits import Split
from h2htalk.errors import DataError, H2HTalkError, quoted
from h2htalk.text.contracts.contract import check_scenario
from h2htalk.text.embeddings.vectors import Embedder


def similarities(embedder: Embedder, responses: Sequence[str], references: Sequence[str]) -> list[float | str]:
    """SS of n responses, each against its reference: a cosine in [-1, 1], or the reason why the embedder failed.

    Every text is embedded once, however often it occurs. An empty response has nothing to embed: its SS is 0.
    """
    vectors, failed = _encode(embedder, sorted({text for text in (*responses, *references) if text}))

    def similarity(response: str, reference: str) -> float | str:
        if not response or not reference:
            return 0.0
        if reason := failed.get(response) or failed.get(reference):
            return reason
        cosine = float(np.dot(vectors[response], vectors[reference]))
        # A vector of NaN must not become a score: S would take it for 0.
        return max(-1.0, min(1.0, cosine)) if math.isfinite(cosine) else "embedder: not a finite vector"

    return [similarity(*pair) for pair in zip(responses, references, strict=True)]


def _encode(embedder: Embedder, texts: Sequence[str]) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Vectors by text, and the texts that the embedder failed on with the reason."""
    if not texts:
        return {}, {}
    try:
        return dict(zip(texts, embedder.encode(texts), strict=True)), {}
    except H2HTalkError:  # the embedder cannot work at all: the user must mend it; no item failed
        raise
    except Exception as error:  # noqa: BLE001 - seen as `unscored` on the items whose text fails on its own
        if len(texts) == 1:
            return {}, {texts[0]: f"embedder: {type(error).__name__}: {error}"}
    half = len(texts) // 2
    (vectors, failed), (more, lost) = (_encode(embedder, part) for part in (texts[:half], texts[half:]))
    return vectors | more, failed | lost


def score_answers(
    split: Split, answers: Answers, samples: int, metrics: Metrics, prompt_of: PromptOf | None = None
) -> dict[str, ItemScore]:
    """Score every item of a split, by id. Of several references the one that an answer agrees with best counts.

    A sample without an answer is unscored with its failure's reason (`missing` when nothing came); so is one
    that the embedder failed on, and an answer whose references are private. An empty answer is an answer and scores 0.
    `prompt_of`: what each item was asked with, for the contract's leak rule; None checks phrases only.
    """
    answered: list[tuple[Scenario, Response]] = []
    by_item: dict[str, list[SampleScore]] = {scenario.id: [] for scenario in split.scenarios}
    for scenario in split.scenarios:
        for sample in range(samples):
            answer = answers.get((scenario.id, sample))
            if isinstance(answer, Response):
                answered.append((scenario, answer))
            else:
                reason = answer.failure.reason if isinstance(answer, FailedResponse) else "missing"
                by_item[scenario.id].append(SampleScore(scenario.id, sample, unscored=reason))
    pairs = [Pair(one.answer, reference, s.language) for s, one in answered for reference in s.references]
    scored = _score_pairs(pairs, metrics)
    for scenario, response in answered:
        own = list(islice(scored, len(scenario.references)))
        values, unscored = best_reference(own) if own else ({}, PRIVATE_REFERENCE)
        violations = _contract_violations(response.answer, scenario, split, prompt_of) if metrics.contracts else None
        hashed = answer_hash(response)
        by_item[scenario.id].append(SampleScore(response.id, response.sample, values, violations, unscored, hashed))
    return {item_id: item_score(item_id, scores) for item_id, scores in by_item.items()}


def answer_hash(answer: Response) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of a stored answer."""
    return hashlib.sha256(json_line(answer.to_dict()).encode()).hexdigest()[:16]


# The values of a pair by column, and why one of the metrics failed on it.
PairScore = tuple[dict[str, float], str | None]


def _score_pairs(pairs: Sequence[Pair], metrics: Metrics) -> Iterator[PairScore]:
    scored = [(metric, metric.score(pairs, metrics)) for metric in METRICS.values()]
    for index in range(len(pairs)):
        values: dict[str, float] = {}
        unscored = None
        for metric, all_values in scored:
            found = all_values[index]
            if isinstance(found, tuple):
                values |= zip(metric.columns, found, strict=True)
            else:
                unscored = unscored or found
        yield values, unscored


def best_reference(scores: Sequence[PairScore]) -> PairScore:
    """Return the scores of an answer with the reference of the highest S, or where there is no S of the highest lexical
    mean; of equal ones with the first. If a metric failed on one of the references, the best is not known."""
    failed = [score for score in scores if score[1]]

    def rank(score: PairScore) -> float:
        composite = None if failed else composite_score(score[0])
        return (lexical_mean(score[0]) if composite is None else composite) or 0.0

    return max(failed or scores, key=rank)


def score_lexical(pairs: Sequence[Pair], metrics: Metrics) -> Sequence[Values]:
    """BLEU and ROUGE of each pair."""
    if not pairs:
        return []
    responses, references, languages = zip(*pairs, strict=True)
    return lexical_scores(responses, references, languages, metrics.rouge)


def score_semantic(pairs: Sequence[Pair], metrics: Metrics) -> Sequence[Values]:
    """SS of each pair in a language of the embedder; a text where the embedder failed."""
    if metrics.embedder is None:
        return [None] * len(pairs)
    asked = [pair for pair in pairs if metrics.asks_s(pair.language)]
    found = iter(similarities(metrics.embedder, [p.response for p in asked], [p.reference for p in asked]))
    values = (next(found) if metrics.asks_s(pair.language) else None for pair in pairs)
    return [(value,) if isinstance(value, float) else value for value in values]


def _contract_violations(text: str, scenario: Scenario, split: Split, prompt_of: PromptOf | None) -> tuple[str, ...]:
    """The codes of the contract rules that an answer breaks, sorted, each once; it must not repeat the system text."""
    persona = split.personas[scenario.persona]
    messages = None if prompt_of is None else (one.content for one in prompt_of(scenario) if one.role == "system")
    prompt, names = None if messages is None else "\n".join(messages), tuple(persona.names.values())
    found = check_scenario(text, scenario, names, prompt, repeatable(persona, scenario.language))
    return tuple(sorted({violation.rule for violation in found}))


def write_scores(path: Path, scores: Mapping[str, ItemScore]) -> None:
    """One Parquet row a sample: `SampleScore.to_dict`."""
    import pyarrow as pa

    numbers = [(name, pa.float64()) for name in (*columns(), "lexical", "s", "rating", "j")]
    violations: Any = ("violations", pa.list_(pa.string()))
    texts = [(name, pa.string()) for name in ("unscored", "answer", "unjudged")]
    begin = [("id", pa.string()), ("sample", pa.int32())]
    schema = pa.schema([*begin, *numbers, violations, *texts, ("people", pa.bool_())])
    write_parquet(path, (s.to_dict() for item in scores.values() for s in item.samples), schema=schema)


def read_scores(path: Path, ids: Collection[str] | None = None) -> dict[str, ItemScore]:
    """What `write_scores` wrote, by id; each of `ids`, the run's scenarios, must be there and no other."""
    if not os.path.exists(path):
        raise DataError(f"{path}: not there; {SCORE_AGAIN}")
    by_item: dict[str, dict[int, SampleScore]] = {}
    for where, row in read_parquet(path):
        score = _read_sample(row, where)
        if ids is not None and score.id not in ids:
            raise DataError(f"{where}: {quoted(score.id)} is none of the scenarios of this run; {SCORE_AGAIN}")
        samples = by_item.setdefault(score.id, {})
        if score.sample in samples:
            raise DataError(f"{where}: a second score of {score.id}, sample {score.sample}; {SCORE_AGAIN}")
        samples[score.sample] = score
    lacking = [item_id for item_id in ids or () if item_id not in by_item]
    if lacking:
        raise DataError(f"{path}: holds no score of {quoted(lacking[0])}; {SCORE_AGAIN}")
    return {item_id: item_score(item_id, list(samples.values())) for item_id, samples in by_item.items()}


def _read_sample(row: Mapping[str, Any], where: str) -> SampleScore:
    try:
        values = {name: row[name] for name in columns() if row[name] is not None}
        violations = row["violations"] if row["violations"] is None else tuple(row["violations"])
        rest = (row[name] for name in ("unscored", "answer", "rating", "people", "unjudged"))
        return SampleScore(row["id"], row["sample"], values, violations, *rest)
    except (KeyError, TypeError) as error:
        raise DataError(f"{where}: scores of another version ({error}); {SCORE_AGAIN}") from error
