"""Scorers and metrics: `companion` scores replies as `h2htalk evaluate` does, `points` cases as `h2htalk study` does.

A study's conversation is a generator that yields requests and receives outcomes. The solver sends the requests to
Inspect's model and stores its replies in the sample; the scorer runs the same generator on what is stored.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from statistics import fmean
from typing import Any

from inspect_ai import model
from inspect_ai.scorer import (
    Metric,
    SampleScore,
    Score,
    Scorer,
    Target,
    Value,
    mean,
    metric,
    scorer,
    stderr,
)
from inspect_ai.solver import TaskState

from h2htalk.benchmark.metrics.composite import Metrics
from h2htalk.benchmark.observations import Observation, figure_of, is_answered, select
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.benchmark.statistics.averages import aggregate
from h2htalk.benchmark.studies.conversations import LIVE, ArmConversations, run_together
from h2htalk.benchmark.studies.points.judge_requests import judge_requests, open_replies
from h2htalk.benchmark.studies.points.observe import observe
from h2htalk.benchmark.studies.points.point_answers import AnsweredReply, answer_points
from h2htalk.benchmark.studies.run_study import plan_study, select_cases
from h2htalk.benchmark.studies.settings import CASES, StudySpec
from h2htalk.chat.protocol import Message, Outcome, Reply
from h2htalk.data.imports.log_records import ItemInput
from h2htalk.data.replies.finish_reasons import LENGTH, read_finish_reason
from h2htalk.data.responses import Failure
from h2htalk.data.splits import load_split
from h2htalk.integrations.harness_split import HarnessItem, HarnessSplit
from h2htalk.integrations.import_log import input_of

REPLIES = "h2htalk_replies"  # in the store of a sample of a case: text and end of each reply
# In place of a judge's name: prompts do not depend on it, and the model is that of the role `grader`.
_ANY_JUDGE = "server:grader@http://127.0.0.1"
_MESSAGE_CLASSES: Any = {
    "system": model.ChatMessageSystem,
    "user": model.ChatMessageUser,
    "assistant": model.ChatMessageAssistant,
}
open_harness_split = lru_cache(maxsize=8)(HarnessSplit)  # once for all samples


def chat_messages(messages: Iterable[Message]) -> list[model.ChatMessage]:
    """The messages of a prompt as Inspect's."""
    return [_MESSAGE_CLASSES[message.role](content=message.content) for message in messages]


def reply_of(output: model.ModelOutput) -> Outcome:
    """What a model answered, or that its call failed; without usage a text can be the provider's message."""
    stop_reason = output.stop_reason if output.choices else ""
    counted = output.usage is not None
    if not stop_reason or (stop_reason == "model_length" and not counted):
        return Failure("failed_call")
    is_reply = counted or stop_reason != "content_filter"
    return Reply(output.completion if is_reply else "", read_finish_reason(stop_reason))


@metric
def overall() -> Metric:
    """Means with Table 1's weights, where each subtask has a scored item, and means over items."""

    def compute(scores: list[SampleScore]) -> Value:
        figures: dict[str, float] = {}
        for column in ("s", "lexical", "compliance"):
            row = aggregate(_item_means(scores, column))
            for name in ("overall", "items_mean"):
                cell = row.get(name)
                if cell and cell.value is not None:
                    figures[f"{name}_{column}"] = cell.value / 100
        return figures or math.nan

    return compute


def _item_means(scores: Iterable[SampleScore], column: str) -> Iterator[tuple[str, float | None]]:
    """Yield the subtask of each item, and the mean of a column over its samples that have a value."""
    values: dict[tuple[str, str], list[float]] = {}
    for sample in scores:  # several samples can be one item
        about = sample.score.metadata or {}
        item_values = values.setdefault((about["item"], about["subtask"]), [])
        value = math.nan
        if isinstance(sample.score.value, Mapping):
            value = sample.score.value.get(column, math.nan)
        if not math.isnan(value):
            item_values.append(value)
    for (_, subtask), item_values in values.items():
        yield subtask, fmean(item_values) if item_values else None


@scorer(metrics=[overall(), {"*": [mean(), stderr()]}])
def companion(split: str = "mini", sap: str = "full", embedder: str = "none") -> Scorer:
    """Score the replies to items of a split, also in logs of others.

    A sample is an item by its id or, where it has another id, by its messages. The value has a key for each column of
    `HarnessSplit`. Unscored: replies that were cut at the budget, failed calls, items with private references, samples
    that are no item, and samples that ask something else under the id of one.
    """
    harness_split = open_harness_split(split, sap=sap, embedder=embedder)
    items = {item.id: item for item in harness_split.items}
    inputs: dict[str, ItemInput] = {}
    # None: several items have these messages.
    by_messages: dict[Any, HarnessItem | None] = {}
    for item in harness_split.items:
        turns = [(message["role"], message["content"]) for message in item.messages]
        item_input = inputs[item.id] = ItemInput.of(turns, None)
        for messages in {item_input.messages, item_input.turns}:
            by_messages[messages] = None if messages in by_messages else item

    async def score(state: TaskState, target: Target) -> Score:
        sample_input = input_of([(message.role, message.text) for message in state.messages])
        item = (
            items.get(str(state.sample_id))
            or by_messages.get(sample_input.messages)
            or by_messages.get(sample_input.turns)
        )
        outcome = reply_of(state.output)
        values: dict[str, float] | str
        if item is None:
            about = {"item": str(state.sample_id), "subtask": ""}
            values = "unknown_item"
        else:
            about = {"item": item.id, "subtask": item.subtask}
            if sample_input.turns != inputs[item.id].turns:
                values = "changed_item"
            elif isinstance(outcome, Failure):
                values = outcome.reason
            elif outcome.finish_reason == LENGTH:
                values = "cut_at_max_tokens"
            else:
                values = harness_split.score(item.id, outcome.text)
        if isinstance(values, str):
            return Score.unscored(reason=values, answer=state.output.completion, metadata=about)
        # Metrics want the same keys in each sample: NaN is unscored.
        value = {key: values.get(key, math.nan) for key in harness_split.columns}
        return Score(value=value, answer=state.output.completion, metadata=about)

    return score


@lru_cache(maxsize=8)
def open_cases(
    kind: str, split: str, arm: str, language: str | None = None, limit: int = 0
) -> ArmConversations:
    """Choose the cases of a kind as `h2htalk study` does. Raises ConfigError for a name that does not exist."""
    study: Any = next(name for name, kinds in CASES.items() if kind in kinds)
    sap = "full"
    arms: tuple[str, ...] = (arm,)
    if study == "instructions":  # its only arm is the SAP
        sap = arm
        arms = ()
    ask: Any = EvaluateSpec(
        model="inspect:model", split=split, out=".", language=language, sap=sap, embedder="none"
    )
    spec = StudySpec(study=study, ask=ask, arms=arms, judge=_ANY_JUDGE)
    loaded = load_split(split)
    cases = tuple(case for case in loaded.cases if case.study == kind)
    limited = replace(spec, ask=replace(ask, limit=limit or None))
    chosen = select_cases(replace(loaded, cases=cases), limited)
    return ArmConversations(replace(plan_study(spec), split=chosen), spec.arms[0])


def case_score(rows: Iterable[Observation], replies: Sequence[AnsweredReply]) -> Score:
    """The figures of a case, and the points of its replies with who answered them and the evidence."""
    answered = [row for row in rows if is_answered(row.figure)]
    lines = []
    for answered_reply in replies:
        for line in answered_reply.lines():
            lines.append(f"{answered_reply.reply.place}: {line}")
    return Score(
        value=_figures(answered),
        answer=replies[-1].reply.text,
        explanation="\n\n".join(lines),
        metadata={"observations": [asdict(row) for row in answered]},
    )


def _figures(rows: Sequence[Observation]) -> dict[str, float]:
    """Each figure that has a value, and how many points nobody answered."""
    figures = {}
    for name in sorted({row.figure for row in rows}):
        value = figure_of(select(rows, name)).value
        if value is not None:
            figures[name] = value
    unanswered = sum(row.figure.startswith("must") and row.value is None for row in rows)
    return figures | {"points_unscored": float(unanswered)}


@metric(scores="unreduced")
def case_figures() -> Metric:
    """The figures of a study over all its replies, by arm where there are several."""

    def compute(scores: list[SampleScore]) -> Value:
        arms: dict[str, list[Observation]] = {}
        for sample in scores:
            for stored in (sample.score.metadata or {}).get("observations", ()):
                row = Observation(**stored)
                arms.setdefault(row.arm, []).append(row)
        figures = {}
        for arm in sorted(arms):
            prefix = f"{arm}: " if len(arms) > 1 else ""
            for name, value in _figures(arms[arm]).items():
                figures[f"{prefix}{name}"] = value
        return figures

    return compute


@scorer(metrics=[case_figures()])
def points(kind: str, split: str, arm: str) -> Scorer:
    """Answer the points of the turns of a case: by code, else by the model of the role `grader`.

    Without a grader, points that need one stay unscored and are counted.
    """
    asker = open_cases(kind, split, arm)
    secret = secrets.token_bytes(16)
    cases = {case.id: case for case in asker.study.cases}

    async def score(state: TaskState, target: Target) -> Score:
        case = cases.get(str(state.sample_id))
        replies = state.store.get(REPLIES)
        if case is None or not replies:
            return Score.unscored(reason="failed_call" if case else "unknown_item")
        stored = iter(replies)

        def outcomes(requests: Sequence[Any]) -> dict[tuple[str, int], Outcome]:
            replayed: dict[tuple[str, int], Outcome] = {}
            for request in requests:
                reply = next(stored, None)
                key = (request.id, request.sample)
                replayed[key] = Reply(*reply) if reply else Failure("failed_call")
            return replayed

        conversation = run_together([asker.live(case)], outcomes)
        judged = {}
        requests: Iterable[Any] = ()
        if "grader" in model.model_roles():
            requests = judge_requests(asker.study, conversation, secret)
        for reply, request in zip(open_replies(conversation, [case]), requests, strict=False):
            config = model.GenerateConfig(temperature=0.0, max_tokens=request.sampling.max_tokens)
            grader = model.get_model(role="grader")
            output = await grader.generate(chat_messages(request.messages), config=config)
            judged[reply.reply.id] = reply.rubric.read(reply_of(output))
        answered = [
            answer_points(reply, case, judged.get(reply.id), {})
            for reply in conversation
            if reply.part == LIVE
        ]
        return case_score(list(observe(asker.study, [], answered, Metrics())), answered)

    return score
