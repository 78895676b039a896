"""Scorers and metrics: `companion` scores replies as `h2htalk evaluate` does, `points` cases as `h2htalk study` does.

A study's conversation is a generator that yields requests and receives outcomes. The solver sends the requests to
Inspect's model and stores its replies in the sample; the scorer runs the same generator on what is stored.
"""

from __future__ import annotations

import math
import secrets
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from statistics import fmean
from typing import Any

from inspect_ai import model
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, mean, metric, scorer, stderr
from inspect_ai.solver import TaskState

from h2htalk.benchmark.metrics.composite import Metrics
from h2htalk.benchmark.observations import Observation, figure_of, is_answered, select
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.benchmark.statistics import aggregate
from h2htalk.benchmark.studies.conversations import LIVE, Asker, run_together
from h2htalk.benchmark.studies.point_answers import AnsweredReply, answer_points, judge_requests, observe, open_replies
from h2htalk.benchmark.studies.run_study import plan_study, select_cases
from h2htalk.benchmark.studies.settings import CASES, StudySpec
from h2htalk.chat.protocol import Message, Outcome, Reply
from h2htalk.data.imports.harness_log import ItemInput
from h2htalk.data.responses import Failure
from h2htalk.data.splits import load_split
from h2htalk.integrations.door import Door
from h2htalk.integrations.import_log import FINISH

REPLIES = "h2htalk_replies"  # in the store of a sample of a case: text and end of each reply
# In place of a judge's name: prompts do not depend on it, and the model is that of the role `grader`.
_ANY_JUDGE = "server:grader@http://127.0.0.1"
_KIND: Any = {"system": model.ChatMessageSystem, "user": model.ChatMessageUser, "assistant": model.ChatMessageAssistant}
open_door = lru_cache(maxsize=8)(Door)  # once for all samples


def chat_messages(messages: Iterable[Message]) -> list[model.ChatMessage]:
    """The messages of a prompt as Inspect's."""
    return [_KIND[one.role](content=one.content) for one in messages]


def reply_of(output: model.ModelOutput) -> Outcome:
    """What a model answered, or that its call failed; without usage a text can be the provider's message."""
    end, counted = output.stop_reason if output.choices else "", output.usage is not None
    if not end or (end == "model_length" and not counted):
        return Failure("failed_call")
    return Reply(output.completion if counted or end != "content_filter" else "", FINISH.get(end, end))


@metric
def overall() -> Metric:
    """Means with Table 1's weights, where each subtask has a scored item, and means over items."""

    def compute(scores: list[SampleScore]) -> Value:
        found: dict[str, float] = {}
        for name in ("s", "lexical", "compliance"):
            values: dict[tuple[str, str], list[float]] = {}
            for one in scores:  # several samples can be one item
                about, parts = one.score.metadata or {}, one.score.value
                part = parts.get(name, math.nan) if isinstance(parts, Mapping) else math.nan
                values.setdefault((about["item"], about["subtask"]), []).extend([] if math.isnan(part) else [part])
            row = aggregate((subtask, fmean(own) if own else None) for (_, subtask), own in values.items())
            cells = {f"{figure}_{name}": row.get(figure) for figure in ("overall", "items_mean")}
            found |= {key: cell.value / 100 for key, cell in cells.items() if cell and cell.value is not None}
        return found or math.nan

    return compute


@scorer(metrics=[overall(), {"*": [mean(), stderr()]}])
def companion(split: str = "mini", sap: str = "full", embedder: str = "none") -> Scorer:
    """Score the replies to items of a split, also in logs of others.

    A sample is an item by its id or, where it has another id, by its messages. The value has a key for each column of
    `Door`. Unscored: replies that were cut at the budget, failed calls, items with private references, samples that are
    no item, and samples that ask something else under the id of one.
    """
    door = open_door(split, sap=sap, embedder=embedder)
    ids = {one.id: one for one in door.items}
    inputs = {one.id: ItemInput.of([(m["role"], m["content"]) for m in one.messages], None) for one in door.items}
    keys = Counter(key for one in inputs.values() for key in {one.messages, one.turns})
    by_input = {key: ids[name] for name, one in inputs.items() for key in (one.messages, one.turns) if keys[key] == 1}

    async def score(state: TaskState, target: Target) -> Score:
        sent = [(one.role, one.text) for one in state.messages]
        sent = sent[: -1 if sent and sent[-1][0] == "assistant" else None]  # without the reply
        asked, outcome = ItemInput.of(sent, None), reply_of(state.output)
        item = ids.get(str(state.sample_id)) or by_input.get(asked.messages) or by_input.get(asked.turns)
        about = {"item": item.id if item else str(state.sample_id), "subtask": item.subtask if item else ""}
        if item is None or asked.turns != inputs[item.id].turns:
            values: dict[str, float] | str = "changed_item" if item else "unknown_item"
        elif isinstance(outcome, Failure) or outcome.finish_reason == "length":
            values = outcome.reason if isinstance(outcome, Failure) else "cut_at_max_tokens"
        else:
            values = door.score(item.id, outcome.text)
        if isinstance(values, str):
            return Score.unscored(reason=values, answer=state.output.completion, metadata=about)
        # Metrics want the same keys in each sample: NaN is unscored.
        value = {key: values.get(key, math.nan) for key in door.columns}
        return Score(value=value, answer=state.output.completion, metadata=about)

    return score


@lru_cache(maxsize=8)
def open_cases(kind: str, split: str, arm: str, language: str | None = None, limit: int = 0) -> Asker:
    """Choose the cases of a kind as `h2htalk study` does. Raises ConfigError for a name that does not exist."""
    study: Any = next(name for name, kinds in CASES.items() if kind in kinds)
    sap, arms = (arm, ()) if study == "instructions" else ("full", (arm,))  # its only arm is the SAP
    ask: Any = EvaluateSpec(model="inspect:model", split=split, out=".", language=language, sap=sap, embedder="none")
    spec, whole = StudySpec(study=study, ask=ask, arms=arms, judge=_ANY_JUDGE), load_split(split)
    own = replace(whole, cases=tuple(case for case in whole.cases if case.study == kind))
    chosen = select_cases(own, replace(spec, ask=replace(ask, limit=limit or None)))
    return Asker(replace(plan_study(spec), split=chosen), spec.arms[0])


def case_score(rows: Sequence[Observation], replies: Sequence[AnsweredReply]) -> Score:
    """The figures of a case, and the points of its replies with who answered them and the evidence."""
    own = [row for row in rows if is_answered(row.figure)]
    lines = [f"{one.reply.place}: {line}" for one in replies for line in one.lines()]
    about = {"observations": [asdict(row) for row in own]}
    return Score(value=_figures(own), answer=replies[-1].reply.text, explanation="\n\n".join(lines), metadata=about)


def _figures(rows: Sequence[Observation]) -> dict[str, float]:
    """Each figure that has a value, and how many points nobody answered."""
    found = {name: figure_of(select(rows, name)).value for name in sorted({row.figure for row in rows})}
    unanswered = sum(row.figure.startswith("must") and row.value is None for row in rows)
    return {name: value for name, value in found.items() if value is not None} | {"points_unscored": float(unanswered)}


@metric(scores="unreduced")
def case_figures() -> Metric:
    """The figures of a study over all its replies, by arm where there are several."""

    def compute(scores: list[SampleScore]) -> Value:
        stored = [row for one in scores for row in (one.score.metadata or {}).get("observations", ())]
        rows = [Observation(**row) for row in stored]
        arms = {arm: _figures([row for row in rows if row.arm == arm]) for arm in sorted({row.arm for row in rows})}
        return {f"{arm}: {key}" if len(arms) > 1 else key: v for arm, found in arms.items() for key, v in found.items()}

    return compute


@scorer(metrics=[case_figures()])
def points(kind: str, split: str, arm: str) -> Scorer:
    """Answer the points of the turns of a case: by code, else by the model of the role `grader`.

    Without a grader, points that need one stay unscored and are counted.
    """
    asker, secret = open_cases(kind, split, arm), secrets.token_bytes(16)
    cases = {case.id: case for case in asker.study.cases}

    async def score(state: TaskState, target: Target) -> Score:
        case, stored = cases.get(str(state.sample_id)), iter(state.store.get(REPLIES) or ())
        if case is None or not state.store.get(REPLIES):
            return Score.unscored(reason="failed_call" if case else "unknown_item")

        def outcomes(requests: Sequence[Any]) -> dict[tuple[str, int], Outcome]:
            left = [(one, next(stored, None)) for one in requests]
            return {(one.id, one.sample): Reply(*two) if two else Failure("failed_call") for one, two in left}

        replies, judged = run_together([asker.live(case)], outcomes), {}
        asked = judge_requests(asker.study, replies, secret) if "grader" in model.model_roles() else ()
        for one, request in zip(open_replies(replies, [case]), asked, strict=False):
            how = model.GenerateConfig(temperature=0.0, max_tokens=request.sampling.max_tokens)
            output = await model.get_model(role="grader").generate(chat_messages(request.messages), config=how)
            judged[one.reply.id] = one.rubric.read(reply_of(output))
        answered = [answer_points(one, case, judged.get(one.id), {}) for one in replies if one.part == LIVE]
        return case_score(list(observe(asker.study, [], answered, Metrics())), answered)

    return score
