"""Answers in, item scores out: lexical values, semantic similarity, S, and the contract's verdict."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from h2htalk.benchmark.generate import PromptOf
from h2htalk.benchmark.metrics.composite import (
    METRIC_NAMES,
    ItemScore,
    SampleScore,
    composite_score,
    item_score,
)
from h2htalk.benchmark.metrics.lexical import LexicalScores, Rouge, lexical_scores
from h2htalk.benchmark.metrics.semantic import similarities
from h2htalk.benchmark.prompts.prompt_set import repeatable
from h2htalk.chat.protocol import Message
from h2htalk.data.parquet import read_parquet, write_parquet
from h2htalk.data.responses import FailedResponse, Response
from h2htalk.data.run_folder import SCORE_AGAIN, Answers
from h2htalk.data.scenario import Scenario
from h2htalk.data.splits import Split
from h2htalk.errors import DataError, quoted
from h2htalk.text.contracts.contract import check_scenario
from h2htalk.text.embeddings.vectors import Embedder

_NUMBERS = (*METRIC_NAMES, "lexical", "ss", "s")


@dataclass(frozen=True, slots=True)
class Metrics:
    """How to score: the embedder (None: SS and S are not asked for) and ROUGE's kind."""

    embedder: Embedder | None = None
    rouge: Rouge = "f1"

    def asks_s(self, language: str) -> bool:
        """Whether items of a language get SS and S."""
        return self.embedder is not None and language in self.embedder.languages


def score_answers(
    split: Split, answers: Answers, samples: int, metrics: Metrics, prompt_of: PromptOf | None = None
) -> dict[str, ItemScore]:
    """Score every item of a split, by id.

    A sample without an answer is unscored with its failure's reason (`missing` when nothing came); so is one
    that the embedder failed on. An empty answer is an answer and scores 0.

    Args:
        samples: how many samples an item has.
        prompt_of: what each item was asked with, for the contract's leak rule; None checks phrases only.
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
    texts = [response.answer for _, response in answered]
    references = [scenario.reference for scenario, _ in answered]
    lexical = lexical_scores(
        texts, references, [scenario.language for scenario, _ in answered], metrics.rouge
    )
    semantic = _semantic(answered, texts, metrics)
    for (scenario, response), text, values, ss in zip(answered, texts, lexical, semantic, strict=True):
        violations = contract_violations(text, scenario, split, prompt_of)
        by_item[scenario.id].append(_sample_score(response, values, ss, violations))
    return {item_id: item_score(item_id, scores) for item_id, scores in by_item.items()}


def _semantic(
    answered: Sequence[tuple[Scenario, Response]], texts: Sequence[str], metrics: Metrics
) -> list[float | str | None]:
    """SS a sample; None where it is not asked for, a text where the embedder failed."""
    values: list[float | str | None] = [None] * len(answered)
    if metrics.embedder is not None:
        chosen = [i for i, (scenario, _) in enumerate(answered) if metrics.asks_s(scenario.language)]
        found = similarities(
            metrics.embedder, [texts[i] for i in chosen], [answered[i][0].reference for i in chosen]
        )
        for i, value in zip(chosen, found, strict=True):
            values[i] = value
    return values


def _sample_score(
    response: Response, lexical: LexicalScores, ss: float | str | None, violations: tuple[str, ...]
) -> SampleScore:
    if isinstance(ss, str):
        return SampleScore(response.id, response.sample, lexical, None, None, violations, ss)
    s = None if ss is None else composite_score(lexical, ss)
    return SampleScore(response.id, response.sample, lexical, ss, s, violations)


def contract_violations(
    text: str, scenario: Scenario, split: Split, prompt_of: PromptOf | None
) -> tuple[str, ...]:
    """The codes of the contract rules that an answer breaks, sorted, each once."""
    persona = split.personas[scenario.persona]
    prompt = None if prompt_of is None else instructions(prompt_of(scenario))
    names = tuple(persona.names.values())
    found = check_scenario(text, scenario, names, prompt, repeatable(persona, scenario.language))
    return tuple(sorted({violation.rule for violation in found}))


def instructions(messages: Iterable[Message]) -> str:
    """The system text of a prompt: what an answer must not repeat."""
    return "\n".join(message.content for message in messages if message.role == "system")


def write_scores(path: Path, scores: Mapping[str, ItemScore]) -> None:
    """One Parquet row a sample: `SampleScore.to_dict`."""
    import pyarrow as pa

    numbers = [(name, pa.float64()) for name in _NUMBERS]
    violations: Any = ("violations", pa.list_(pa.string()))
    ends = [violations, ("unscored", pa.string())]
    schema = pa.schema([("id", pa.string()), ("sample", pa.int32()), *numbers, *ends])
    write_parquet(path, (s.to_dict() for item in scores.values() for s in item.samples), schema=schema)


def read_scores(path: Path, ids: Collection[str] | None = None) -> dict[str, ItemScore]:
    """What `write_scores` wrote, by id.

    Args:
        path: the file.
        ids: the run's scenarios, each of which must be there and no other; None takes what there is.

    Raises:
        DataError: the file is missing, broken, or not of this run; names the row.
    """
    if not os.path.exists(path):
        raise DataError(f"{path}: not there; {SCORE_AGAIN}")
    by_item: dict[str, dict[int, SampleScore]] = {}
    for where, row in read_parquet(path):
        score = _read_sample(row, where)
        if ids is not None and score.id not in ids:
            raise DataError(
                f"{where}: {quoted(score.id)} is none of the scenarios of this run; {SCORE_AGAIN}"
            )
        samples = by_item.setdefault(score.id, {})
        if score.sample in samples:
            raise DataError(f"{where}: a second score of {score.id}, sample {score.sample}; {SCORE_AGAIN}")
        samples[score.sample] = score
    lacking = [item_id for item_id in ids or () if item_id not in by_item]
    if lacking:
        raise DataError(f"{path}: holds no score of {quoted(lacking[0])}; {SCORE_AGAIN}")
    return {item_id: item_score(item_id, list(samples.values())) for item_id, samples in by_item.items()}


def _read_sample(row: Mapping[str, Any], where: str) -> SampleScore:
    missing = [name for name in ("id", "sample", *_NUMBERS, "violations", "unscored") if name not in row]
    if missing:
        raise DataError(f"{where}: column {missing[0]} is missing; {SCORE_AGAIN}")
    item_id, sample, violations, unscored = (row[key] for key in ("id", "sample", "violations", "unscored"))
    wrong = [
        name
        for name, right in {
            "id": isinstance(item_id, str),
            "sample": type(sample) is int and sample >= 0,
            "violations": isinstance(violations, list) and all(isinstance(v, str) for v in violations),
            "unscored": unscored is None or (isinstance(unscored, str) and unscored != ""),
            **{name: _is_number(row[name]) for name in _NUMBERS},
        }.items()
        if not right
    ]
    if wrong:
        raise DataError(f"{where}: {wrong[0]} is {quoted(row[wrong[0]])}, which no score is; {SCORE_AGAIN}")
    values = [row[name] for name in METRIC_NAMES]
    # Values are there all or none; none, or S without its parts, only where a reason says why.
    whole = None not in values or (values == [None] * len(values) and unscored is not None)
    if not whole or (row["s"] is None) != (row["ss"] is None):
        raise DataError(f"{where}: some of its values are missing; {SCORE_AGAIN}")
    lexical = None if None in values else LexicalScores(*values)
    return SampleScore(item_id, sample, lexical, row["ss"], row["s"], tuple(violations), unscored)


def _is_number(value: object) -> bool:
    """None, or a number from -1 to 1: a cosine may lie below 0, and rounding may lift a mean past 1."""
    return value is None or (type(value) is float and math.isfinite(value) and abs(value) <= 1 + 1e-9)
