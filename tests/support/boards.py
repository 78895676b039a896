"""Runs with made-up scores, as the site shows them, without a model behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from h2htalk.benchmark.metrics.composite import (
    METRIC_COLUMNS,
    ItemScore,
    Metrics,
    SampleScore,
    item_score,
)
from h2htalk.benchmark.report.leaderboard import labels_of
from h2htalk.benchmark.run import Run, RunInputs
from h2htalk.benchmark.run_facts import RunFacts
from h2htalk.benchmark.statistics.sign_flips import Values
from h2htalk.benchmark.summarize import Scored, summarize
from h2htalk.benchmark.summary import RunCounts, Summary
from h2htalk.chat.prices import Totals
from h2htalk.data.languages import Language
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.scenario import Scenario
from h2htalk.data.signature import Signature
from h2htalk.data.splits import Split, load_split
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.site.context import Context, read_words
from h2htalk.site.pages import write_boards
from h2htalk.site.sources import RunSource, Sources
from support.splits import scenario_records
from support.summaries import SIGNATURE, FirstLetters


class Embedder(FirstLetters):
    languages, comparable = ("en", "zh"), True


@cache
def made_split(items: int) -> Split:
    """Mini's scenarios in turn, each a cluster of its own."""
    records = [{**record, "provenance": {}} for record in scenario_records(items)]
    scenarios = tuple(Scenario.from_dict(record) for record in records)
    personas = load_split("mini@1").personas
    return Split(
        name="made", version="1", scenarios=scenarios, personas=personas, canary="canary-0001"
    )


def scores_of(
    split: Split, values: Sequence[float | None], broken: Sequence[bool] = ()
) -> dict[str, ItemScore]:
    """Every part of S at an item's value; None: the call failed."""
    scores = {}
    for number, (scenario, value) in enumerate(zip(split.scenarios, values, strict=True)):
        rules = ("too_long",) if broken and broken[number] else ()
        parts = {} if value is None else dict.fromkeys((*METRIC_COLUMNS, "ss"), float(value))
        sample = SampleScore(
            scenario.id, 0, parts, rules, unscored="timeout" if value is None else None
        )
        scores[scenario.id] = item_score(scenario.id, [sample])
    return scores


def made_summary(
    model: str, split: Split, scores: Mapping[str, ItemScore], **changes: Any
) -> Summary:
    bad = sum(one.unscored is not None for one in scores.values())
    counts = RunCounts(
        len(scores), len(scores) - bad, len(scores) - bad, failures={"timeout": bad} if bad else {}
    )
    levels = {"constant": 0.18, "copy": 0.24}
    low = {name: Scored(scores_of(split, [level] * len(scores))) for name, level in levels.items()}
    subject = {**SIGNATURE.subject, "model": model}
    signature = Signature({**SIGNATURE.protocol, "items": split.fingerprint}, subject)
    summary = summarize(
        model=model,
        split=split,
        signature=signature,
        metrics=Metrics(Embedder()),
        scored=Scored(scores),
        baselines=low,
        counts=counts,
    )
    return replace(summary, **changes)


def made_source(
    model: str, split: Split, values: Sequence[float | None], **changes: Any
) -> RunSource:
    """A run of one answer an item; `changes` are those of the summary, `broken` the items that break a rule."""
    scores = scores_of(split, values, changes.pop("broken", ()))
    summary = made_summary(model, split, scores, **changes)
    data = RunInputs(RunFolder(Path("made")), None, split, None)
    key = sha256(f"{model} {summary.signature}".encode("utf-8", "replace")).hexdigest()[:8]
    return RunSource(key, model, Run(data, summary, {}, scores))


def sources_of(runs: Sequence[RunSource]) -> Sources:
    labels = labels_of([one.run.summary for one in runs])
    labelled = [replace(one, label=label) for one, label in zip(runs, labels, strict=True)]
    return Sources(tuple(sorted(labelled, key=lambda one: (one.label, one.key))))


def site_of(runs: Sequence[RunSource], language: Language = "en") -> dict[str, str]:
    return write_boards(Context(sources_of(runs), read_words(language), language, "H2HTalk"))


def made_values(split: Split, skills: Sequence[float], seed: int = 1) -> Values:
    """Values of items x runs around skills; an item that is hard for one is hard for all."""
    rng = np.random.default_rng(seed)
    items = len(split.scenarios)
    by_subtask = {name: rng.normal(0, 0.06, len(skills) + 1) for name in SUBTASKS}
    shift = np.array([by_subtask[one.subtask] for one in split.scenarios])
    shared = rng.normal(0, 0.13, (items, 1))
    own = rng.normal(0, 0.08, (items, len(skills)))
    return np.clip(
        np.array(skills) + shift[:, [-1]] + 0.4 * shift[:, :-1] + shared + own, 0.02, 0.98
    )


NAMES = (
    "openai:Qwen2.5-72B-Instruct", "vllm:Llama-3.1-8B-Instruct", "vllm:Qwen2.5-7B-Instruct", "openai:gpt-5-mini",
    "vllm:SmolLM2-1.7B-Instruct", "ollama:qwen2.5:0.5b", "vllm:GLM-4-9B-Chat", "anthropic:claude-haiku-4-5",
)  # fmt: skip


def made_runs(items: int = 660) -> list[RunSource]:
    """Eight runs, two of which differ by nothing but chance, and one of which is incomplete."""
    split = made_split(items)
    skills = (0.52, 0.47, 0.475, 0.53, 0.40, 0.31, 0.46, 0.50)
    values = made_values(split, skills)
    rng = np.random.default_rng(2)
    runs = []
    for k, name in enumerate(NAMES):
        own = values[:, k].tolist()
        if k == 7:
            own[5] = own[17] = None
        costs = {
            "answers": Totals(
                items, items, usd_paid=Decimal("1.2345") * (k + 1), usd_possible=Decimal(k == 3)
            )
        }
        hosted = name.startswith(("openai", "anthropic"))
        run_facts = RunFacts(
            "2026-12-01T10:00:00+00:00", "2026-12-01T10:20:00+00:00", 1200.0, 1, latency=(1.2, 3.4)
        )
        broken = [bool(one) for one in rng.random(items) < 0.05 + 0.02 * k]
        changes = {"costs": costs if hosted else {}, "run_facts": run_facts, "broken": broken}
        runs.append(made_source(name, split, own, **changes))
    return runs
