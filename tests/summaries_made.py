"""Summaries and items made by hand for tests of reports and of the leaderboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from h2htalk.benchmark.aggregate import NullClass, Row, Value, aggregate, aggregate_slices
from h2htalk.benchmark.composite import SampleScore, composite_score, item_score
from h2htalk.benchmark.lexical import LexicalScores
from h2htalk.benchmark.report.html import ItemView
from h2htalk.benchmark.summary import Counts, Standing, Summary
from h2htalk.chat.base import Message
from h2htalk.data.run import FailedResponse, Failure, Response, Usage
from h2htalk.data.scenario import Scenario
from h2htalk.data.signature import Signature
from h2htalk.data.splits import load_split
from h2htalk.data.subtasks import SUBTASKS

Values = Mapping[str, Sequence[float | None]]
PROTOCOL = {"items": "0123456789abcdef", "embedder": "bge-m3@1", "judge": "none"}
SUBJECT = {"backend": "server", "model": "m", "sap": "full"}
LEXICAL = LexicalScores(0.5, 0.4, 0.3, 0.2, 0.6, 0.55)


def same_values(value: float, subtasks: Sequence[str] = tuple(SUBTASKS)) -> dict[str, list[float | None]]:
    """Two items a subtask around a value in [0, 1]."""
    return {name: [value - 0.01, value + 0.01] for name in subtasks}


def row_of(values: Values) -> Row:
    return aggregate(Value(f"{name}-{i}", name, v) for name, vs in values.items() for i, v in enumerate(vs))


def standing_of_values(values: Values, measure: str = "s", null: NullClass | None = None) -> Standing:
    row = row_of(values)
    return Standing(row if measure == "s" else None, row, row, null)


def made_summary(
    values: Values | None = None,
    model: str = "server:m",
    measure: str = "s",
    comparable: bool = True,
    floors: Mapping[str, Values] | None = None,
    protocol: Mapping[str, str] | None = None,
    subject: Mapping[str, str] | None = None,
    **changes: Any,
) -> Summary:
    """A summary whose main row comes from `values`, each in [0, 1], None for an unscored item."""
    values = same_values(0.4) if values is None else values
    flat = [v for vs in values.values() for v in vs]
    fields: dict[str, Any] = {
        "model": model,
        "split": "mini 1",
        "signature": Signature({**PROTOCOL, **(protocol or {})}, {**SUBJECT, **(subject or {})}),
        "package_version": "0.1.0",
        "measure": measure,
        "s_languages": ("en", "zh") if measure == "s" else (),
        "s_comparable": comparable,
        "counts": Counts(len(flat), sum(v is not None for v in flat), len(flat)),
        "standing": standing_of_values(values, measure),
        "metrics": {name: {"bleu_1": 0.5, "rouge_l": 0.25} for name in values},
        "slices": {
            "risk": aggregate_slices(Value(str(i), "none" if i else "high", v) for i, v in enumerate(flat))
        },
        "floors": {name: standing_of_values(floor, measure) for name, floor in (floors or {}).items()},
        "violations": {},
        "warnings": (),
    }
    return Summary(**{**fields, **changes})


def mini_scenarios(count: int) -> list[Scenario]:
    return list(load_split("mini").scenarios[:count])


def made_item(
    scenario: Scenario,
    text: str = "I am here.",
    prompt: str = "You are Ren.\n\nBe kind.",
    violations: tuple[str, ...] = (),
    ss: float = 0.7,
    **reply: Any,
) -> ItemView:
    """An answered item."""
    response = Response(scenario.id, 0, text, **{"finish_reason": "stop", "usage": Usage(11, 7), **reply})
    score = SampleScore(scenario.id, 0, LEXICAL, ss, composite_score(LEXICAL, ss), violations)
    messages = (Message("system", prompt), Message("user", f"about {scenario.id}"))
    return ItemView(scenario, messages, (response,), item_score(scenario.id, [score]))


def failed_item(scenario: Scenario, failure: Failure) -> ItemView:
    """An item whose call failed."""
    score = item_score(scenario.id, [SampleScore(scenario.id, 0, unscored=failure.reason)])
    return ItemView(scenario, (Message("user", "hello"),), (FailedResponse(scenario.id, 0, failure),), score)
