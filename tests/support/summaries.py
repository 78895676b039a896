"""Summaries and items made by hand for tests of reports and of the leaderboard."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from h2htalk.benchmark import summarize as summaries
from h2htalk.benchmark.baselines import BASELINES
from h2htalk.benchmark.metrics.composite import (
    METRIC_COLUMNS,
    Metrics,
    SampleScore,
    item_score,
    score_answers,
)
from h2htalk.benchmark.metrics.lexical import LexicalScores
from h2htalk.benchmark.replies.reply_endings import count_endings, ending_warnings
from h2htalk.benchmark.report.page_items import ItemView
from h2htalk.benchmark.run import Run, RunInputs
from h2htalk.benchmark.run_facts import RunFacts, answer_warnings
from h2htalk.benchmark.statistics import averages
from h2htalk.benchmark.statistics.averages import NullClass
from h2htalk.benchmark.statistics.estimates import Estimate
from h2htalk.benchmark.statistics.paired_tests import Difference, paired_figures
from h2htalk.benchmark.summarize import Scored
from h2htalk.benchmark.summary import Measure, RunCounts, ScoreRows, Summary
from h2htalk.data.responses import Answers, FailedResponse, Failure, Response, Usage
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.scenario import Scenario
from h2htalk.data.signature import Signature
from h2htalk.data.splits import Split, load_split
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.text.embeddings.vectors import Vectors

Values = Mapping[str, Sequence[float | None]]
PROTOCOL = {"items": "0123456789abcdef", "embedder": "bge-m3@1", "judge": "none"}
SUBJECT = {"engine": "server", "model": "m", "sap": "full"}
METRICS = {"bleu_1": 50.0, "rouge_l": 25.0}  # times 100, each with an interval of one either way
SIGNATURE = Signature(PROTOCOL, SUBJECT)
LEXICAL = LexicalScores(0.5, 0.4, 0.3, 0.2, 0.6, 0.55)


def same_values(
    value: float, subtasks: Sequence[str] = tuple(SUBTASKS)
) -> dict[str, list[float | None]]:
    """Two items a subtask around a value in [0, 1]."""
    return {name: [value - 0.01, value + 0.01] for name in subtasks}


def score_rows_of_values(
    values: Values, measure: Measure = "s", null: NullClass | None = None
) -> ScoreRows:
    row = averages.aggregate((name, v) for name, vs in values.items() for v in vs)
    return ScoreRows(row if measure == "s" else None, row, row, null)


def reached_in(values: Values, baseline: Values) -> tuple[str, ...]:
    """The figures in which a baseline's values, item by item, are not shown to be below."""
    pairs = [
        (name, v, b)
        for name, vs in values.items()
        for v, b in zip(vs, baseline.get(name, ()), strict=False)
    ]
    found = [
        Difference(n, str(i), v - b)
        for i, (n, v, b) in enumerate(pairs)
        if v is not None and b is not None
    ]
    return tuple(key for key, result in paired_figures(found).items() if not result.is_above_zero)


def made_summary(
    values: Values | None = None,
    model: str = "server:m",
    measure: Measure = "s",
    comparable: bool = True,
    baselines: Mapping[str, Values] | None = None,
    protocol: Mapping[str, str] | None = None,
    subject: Mapping[str, str] | None = None,
    null: NullClass | None = None,
    **changes: Any,
) -> Summary:
    """A summary whose main row comes from `values`, each in [0, 1]; the first item is the only one with a high risk."""
    values = same_values(0.4) if values is None else values
    baselines = baselines or {}
    flat = [v for vs in values.values() for v in vs]
    risks = averages.aggregate_slices(("none" if i else "high", v) for i, v in enumerate(flat))
    both = {name: len(vs) for name, vs in values.items()}
    metrics = {
        name: {m: Estimate(x, x - 1, x + 1, n, n) for m, x in METRICS.items()}
        for name, n in both.items()
    }
    fields: dict[str, Any] = {
        "model": model,
        "split": "mini 1",
        "signature": Signature({**PROTOCOL, **(protocol or {})}, {**SUBJECT, **(subject or {})}),
        "package_version": "0.1.0",
        "measure": measure,
        "s_comparable": comparable,
        "counts": RunCounts(len(flat), sum(v is not None for v in flat), len(flat)),
        "languages": ("en", "zh"),
        "s_languages": ("en", "zh") if measure == "s" else (),
        "rows": score_rows_of_values(values, measure, null),
        "metrics": metrics,
        "slices": {"risk": risks},
        "baselines": {
            name: score_rows_of_values(baseline, measure) for name, baseline in baselines.items()
        },
        "reached": {name: reached_in(values, baseline) for name, baseline in baselines.items()},
        "violations": {},
        "warnings": (),
    }
    return Summary(**{**fields, **changes})


def made_run(values: Values | None = None, model: str = "server:m", **changes: Any) -> Run:
    """A run of `made_summary`, in which each item is a cluster of its own and has its value in `values`."""
    values = same_values(0.4) if values is None else values
    by_subtask = defaultdict[str, list[Scenario]](list)
    for scenario in load_split("mini@1").scenarios:
        by_subtask[scenario.subtask].append(replace(scenario, provenance={}))
    scenarios: list[Scenario] = []
    scores = {}
    for name, numbers in values.items():
        for scenario, number in zip(by_subtask[name], numbers, strict=False):
            metrics = {} if number is None else dict.fromkeys((*METRIC_COLUMNS, "ss"), number)
            unscored = "timeout" if number is None else None
            sample = SampleScore(scenario.id, 0, metrics, unscored=unscored)
            scores[scenario.id] = item_score(scenario.id, [sample])
            scenarios.append(scenario)
    split = Split(name="made", version="1", scenarios=tuple(scenarios), personas={})
    data = RunInputs(RunFolder(Path("made")), None, split, None)
    return Run(data, made_summary(values, model, **changes), {}, scores)


class FirstLetters:
    """An English embedder of one's own: the direction of a text is that of its length and first letter."""

    name, revision, languages, comparable = "first", "1", ("en",), False

    def encode(self, texts: Sequence[str]) -> Vectors:
        rows = np.array([[len(text), ord(text[0])] for text in texts], dtype=np.float32)
        unit: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit


def scored(split: Split, answers: Answers, metrics: Metrics, samples: int = 1) -> Scored:
    scores = score_answers(split, answers, samples, metrics)
    return Scored(scores, summaries.null_shares(split.scenarios, answers, scores))


def summary_of(
    split: Split, answers: Answers, metrics: Metrics | None = None, samples: int = 1
) -> Summary:
    metrics = metrics or Metrics()
    baselines = {}
    if samples == 1:
        for name, baseline in BASELINES.items():
            replies = baseline(split.scenarios, split.scenarios)
            by_key: Answers = {(reply.id, 0): reply for reply in replies}
            baselines[name] = scored(split, by_key, metrics)
    own = scored(split, answers, metrics, samples)
    counts = summaries.count_outcomes(split.scenarios, answers, own.scores)
    endings = ending_warnings(count_endings(answers.values()), metrics.filtered, counts.left_out)
    return summaries.summarize(
        model="m",
        split=split,
        signature=SIGNATURE,
        metrics=metrics,
        scored=own,
        baselines=baselines,
        counts=counts,
        warnings=[*endings, *answer_warnings(answers, RunFacts())],
    )


def mini_scenarios(count: int) -> list[Scenario]:
    return list(load_split("mini@1").scenarios[:count])


def made_item(
    scenario: Scenario,
    text: str = "I am here.",
    prompt: str = "You are Ren.\n\nBe kind.",
    violations: tuple[str, ...] = (),
    ss: float = 0.7,
    **reply: Any,
) -> ItemView:
    response = Response(
        scenario.id, 0, text, **{"finish_reason": "stop", "usage": Usage(11, 7), **reply}
    )
    score = SampleScore(scenario.id, 0, {**LEXICAL._asdict(), "ss": ss}, violations)
    messages = (("system", prompt), ("user", f"about {scenario.id}"))
    return ItemView(scenario, messages, (response,), item_score(scenario.id, [score]))


def failed_item(scenario: Scenario, failure: Failure) -> ItemView:
    score = item_score(scenario.id, [SampleScore(scenario.id, 0, unscored=failure.reason)])
    return ItemView(
        scenario, (("user", "hello"),), (FailedResponse(scenario.id, 0, failure),), score
    )
