"""Tasks and solvers: `inspect eval h2htalk/mini -T language=zh`, and the cases of studies with a scripted user.

A failed call fails its sample alone, which is then unscored. Inspect's `--max-tokens` replaces our reply budgets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig, get_model
from inspect_ai.scorer import mean, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver

from h2htalk.benchmark.statistics.averages import clusters_of
from h2htalk.chat.protocol import Message, Reply
from h2htalk.data.splits import Split
from h2htalk.integrations.import_log import about_split
from h2htalk.integrations.inspect import scorers


@task
def mini(
    language: str | None = None,
    sap: str = "full",
    embedder: str = "none",
    limit: int = 0,
    split: str = "mini",
) -> Task:
    """The items of a split as `h2htalk evaluate` asks them; arguments as of `h2htalk.EvaluateSpec`."""
    harness_split = scorers.open_harness_split(split, language, limit=limit or None, sap=sap)
    clusters = clusters_of(harness_split.split.scenarios)
    samples = []
    for item in harness_split.items:
        about = {name: getattr(item, name) for name in ("subtask", "language", "max_tokens")}
        about |= {**item.tags, "cluster": clusters[item.id]}
        messages = [Message(**message) for message in item.messages]  # type: ignore[arg-type]
        samples.append(_sample(item.id, messages, item.references, about))
    settings: dict[str, Any] = {
        "language": language,
        "sap": sap,
        "embedder": embedder,
        "limit": limit or None,
        "split": split,
    }
    return _task(
        samples,
        harness_split.split,
        harness_split.protocol,
        settings,
        solver=reply(),
        scorer=scorers.companion(split=split, sap=sap, embedder=embedder),
        metrics=[scorers.overall(), {"*": [mean(), stderr(cluster="cluster")]}],
    )


@task
def high_risk(arm: str = "sap", language: str | None = None, limit: int = 0) -> Task:
    """Conversations with a person in danger. `arm`: sap, none, rules, reworded or no-PRINCIPLE."""
    return _case_task("high_risk", "high_risk", arm, language, limit)


@task
def look_alike(arm: str = "sap", language: str | None = None, limit: int = 0) -> Task:
    """Harmless messages that look like a danger; arguments as of `high_risk`."""
    return _case_task("look_alike", "high_risk", arm, language, limit)


@task
def instructions(sap: str = "full", language: str | None = None, limit: int = 0) -> Task:
    """One need in several degrees of explicitness."""
    return _case_task("instructions", "instructions", sap, language, limit)


@task
def arcs(memory: str = "whole", language: str | None = None, limit: int = 0) -> Task:
    """Relationships over sessions with days between them. `memory`: none, window, explicit or whole."""
    return _case_task("arcs", "arcs", memory, language, limit)


def _case_task(kind: str, split: str, arm: str, language: str | None, limit: int) -> Task:
    asker = scorers.open_cases(kind, split, arm, language, limit)
    study = asker.study
    samples = []
    for case in study.cases:
        about = {name: getattr(case, name) for name in ("kind", "family", "degree", "language")}
        about["user_turns"] = [turn.user for turn in case.turns()]
        messages = next(asker.live(case)).messages
        references = [turn.reference for turn in case.turns() if turn.reference]
        samples.append(_sample(case.id, messages, references, about))
    protocol = {**study.signature.protocol, "items": study.split.fingerprint}
    cases = {"kind": kind, "split": split, "arm": arm}
    settings = cases | {"language": language, "limit": limit or None}
    return _task(
        samples,
        study.split,
        protocol,
        settings,
        solver=scripted_user(**cases),
        scorer=scorers.points(**cases),
    )


def _sample(
    item: str, messages: Iterable[Message], references: Iterable[str], about: dict[str, Any]
) -> Sample:
    prompt = scorers.chat_messages(messages)
    return Sample(id=item, input=prompt, target=list(references) or "", metadata=about)


def _task(
    samples: list[Sample],
    split: Split,
    protocol: Mapping[str, str],
    settings: Mapping[str, Any],
    **arguments: Any,
) -> Task:
    return Task(
        dataset=MemoryDataset(samples, name=split.name),
        version=split.version,
        metadata=about_split(split, protocol, settings),
        config=GenerateConfig(temperature=0.0),
        fail_on_error=False,
        score_on_error=True,
        **arguments,
    )


@solver
def reply() -> Solver:
    """One reply to the messages of an item, within the budget of its subtask."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        budget = get_model().config.max_tokens or state.metadata["max_tokens"]
        return await generate(state, tool_calls="none", max_tokens=budget)

    return solve


@solver
def scripted_user(kind: str, split: str, arm: str) -> Solver:
    """The user turns of a case one after the other, the model's own replies between them."""
    asker = scorers.open_cases(kind, split, arm)
    cases = {case.id: case for case in asker.study.cases}

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        conversation = asker.live(cases[str(state.sample_id)])
        stored: list[tuple[str, str]] = []
        try:
            request = next(conversation)
            while True:
                state.messages = _continued(state.messages, request.messages)
                budget = get_model().config.max_tokens or request.sampling.max_tokens
                state = await generate(state, tool_calls="none", max_tokens=budget)
                outcome = scorers.reply_of(state.output)
                if isinstance(outcome, Reply):
                    stored.append((outcome.text, outcome.finish_reason))
                state.store.set(scorers.REPLIES, [*stored])
                request = conversation.send(outcome)
        except StopIteration:
            return state

    return solve


def _continued(messages: list[Any], prompt: Sequence[Message]) -> list[Any]:
    """The messages of a prompt; those that are there already stay, so that transcripts show what is new."""
    unchanged = 0
    for message, wanted in zip(messages, prompt, strict=False):
        if (message.role, message.text) != (wanted.role, wanted.content):
            break
        unchanged += 1
    return [*messages[:unchanged], *scorers.chat_messages(prompt[unchanged:])]
