"""Tasks and solvers: `inspect eval h2htalk/mini -T language=zh`, and the cases of studies with a scripted user.

A failed call fails its sample alone, which is then unscored.
"""

from __future__ import annotations

from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessage, GenerateConfig
from inspect_ai.scorer import mean, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver

from h2htalk.benchmark.statistics import clusters_of
from h2htalk.chat.protocol import Message, Reply
from h2htalk.data.splits import Split
from h2htalk.integrations.inspect.cases import chat_messages, open_cases, reply_of
from h2htalk.integrations.inspect.log import about_split
from h2htalk.integrations.inspect.scorers import REPLIES, companion, open_door, overall, points


@task
def mini(
    language: str | None = None,
    sap: str = "full",
    embedder: str = "none",
    limit: int | None = None,
    split: str = "mini",
    subtasks: str | list[str] = "",
    max_tokens: int | None = None,
) -> Task:
    """The items of a split as `h2htalk evaluate` asks them; arguments as of `h2htalk.EvaluateSpec`.

    `max_tokens` replaces the reply budget of each subtask, for models that reason within it.
    """
    names = tuple(filter(None, subtasks.split(",") if isinstance(subtasks, str) else subtasks))
    asked = {"split": split, "language": language, "subtasks": names, "limit": limit, "sap": sap}
    door = open_door(**asked)
    clusters = clusters_of(door.split.scenarios)
    samples, about = [], dict[str, Any]()
    for item in door.items:
        about = {"subtask": item.subtask, "language": item.language, **item.tags, "cluster": clusters[item.id]}
        messages = chat_messages(Message(**one) for one in item.messages)  # type: ignore[arg-type]
        about |= {"max_tokens": max_tokens or item.max_tokens}
        samples.append(Sample(id=item.id, input=messages, target=list(item.references) or "", metadata=about))
    return Task(
        solver=reply(),
        scorer=companion(split=split, sap=sap, embedder=embedder),
        metrics=[overall(), {"*": [mean(), stderr(cluster="cluster")]}],
        **_shared(samples, door.split, door.protocol, asked | {"embedder": embedder, "max_tokens": max_tokens}),
    )


@task
def high_risk(arm: str = "sap", language: str | None = None, limit: int | None = None) -> Task:
    """Conversations with a person in danger. `arm`: sap, none, rules, reworded or no-PRINCIPLE."""
    return _case_task("high_risk", "high_risk", arm, language, limit)


@task
def look_alike(arm: str = "sap", language: str | None = None, limit: int | None = None) -> Task:
    """Harmless messages that look like a danger; arguments as of `high_risk`."""
    return _case_task("look_alike", "high_risk", arm, language, limit)


@task
def instructions(sap: str = "full", language: str | None = None, limit: int | None = None) -> Task:
    """One need in several degrees of explicitness."""
    return _case_task("instructions", "instructions", sap, language, limit)


@task
def arcs(memory: str = "whole", language: str | None = None, limit: int | None = None) -> Task:
    """Relationships over sessions with days between them. `memory`: none, window, explicit or whole."""
    return _case_task("arcs", "arcs", memory, language, limit)


def _case_task(kind: str, split: str, arm: str, language: str | None, limit: int | None) -> Task:
    asker, asked = open_cases(kind, split, arm, language, limit), {"kind": kind, "split": split, "arm": arm}
    study, samples = asker.study, []
    for case in study.cases:
        about = {name: getattr(case, name) for name in ("kind", "family", "degree", "language")}
        about["user_turns"] = [turn.user for turn in case.turns()]
        good = [turn.reference for turn in case.turns() if turn.reference]
        first = chat_messages(next(asker.live(case)).messages)
        samples.append(Sample(id=case.id, input=first, target=good or "", metadata=about))
    protocol = {**study.signature.protocol, "items": study.split.fingerprint}
    own = asked | {"language": language, "limit": limit}
    return Task(solver=scripted_user(**asked), scorer=points(**asked), **_shared(samples, study.split, protocol, own))


def _shared(samples: list[Sample], split: Split, protocol: Any, asked: dict[str, Any]) -> dict[str, Any]:
    """What all tasks have: greedy replies, and failures that stay with their sample."""
    return {
        "dataset": MemoryDataset(samples, name=f"h2htalk/{split.name}"),
        "config": GenerateConfig(temperature=0.0),
        "fail_on_error": False,
        "score_on_error": True,
        "version": split.version,
        "metadata": about_split(split, protocol, asked),
    }


@solver
def reply() -> Solver:
    """One reply to the messages of an item, within the budget of its subtask."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        return await generate(state, tool_calls="none", max_tokens=state.metadata["max_tokens"])

    return solve


@solver
def scripted_user(kind: str, split: str, arm: str) -> Solver:
    """The user turns of a case one after the other, the model's own replies between them."""
    asker = open_cases(kind, split, arm)
    cases = {case.id: case for case in asker.study.cases}

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        conversation, stored = asker.live(cases[str(state.sample_id)]), list[tuple[str, str]]()
        try:
            request = next(conversation)
            while True:
                state.messages = _continued(state.messages, request.messages)
                state = await generate(state, tool_calls="none", max_tokens=request.sampling.max_tokens)
                outcome = reply_of(state.output)
                stored += [(outcome.text, outcome.finish_reason)] if isinstance(outcome, Reply) else []
                state.store.set(REPLIES, [*stored])
                request = conversation.send(outcome)
        except StopIteration:
            return state

    return solve


def _continued(there: list[ChatMessage], asked: tuple[Message, ...]) -> list[ChatMessage]:
    """The messages that are asked; those that are there already stay, so that a transcript shows what is new."""
    pairs = [(old.role, old.text) == (new.role, new.content) for old, new in zip(there, asked, strict=False)]
    same = [*pairs, False].index(False)
    return [*there[:same], *chat_messages(asked[same:])]
