"""Tasks and solvers: `inspect eval h2htalk/mini -T language=zh`, and the cases of studies with a scripted user.

A failed call fails its sample alone, which is then unscored. Inspect's `--max-tokens` replaces our reply budgets.
"""

from __future__ import annotations

from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig, get_model
from inspect_ai.scorer import mean, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver

from h2htalk.benchmark.statistics import clusters_of
from h2htalk.chat.protocol import Message, Reply
from h2htalk.data.splits import Split
from h2htalk.integrations.import_log import about_split
from h2htalk.integrations.inspect import scorers


@task
def mini(
    language: str | None = None, sap: str = "full", embedder: str = "none", limit: int = 0, split: str = "mini"
) -> Task:
    """The items of a split as `h2htalk evaluate` asks them; arguments as of `h2htalk.EvaluateSpec`."""
    door, samples = scorers.open_door(split, language, limit=limit or None, sap=sap), []
    clusters = clusters_of(door.split.scenarios)
    for item in door.items:
        about = {name: getattr(item, name) for name in ("subtask", "language", "max_tokens")}
        about |= {**item.tags, "cluster": clusters[item.id]}
        messages = scorers.chat_messages(Message(**one) for one in item.messages)  # type: ignore[arg-type]
        samples.append(Sample(id=item.id, input=messages, target=list(item.references) or "", metadata=about))
    asked = {"language": language, "sap": sap, "embedder": embedder, "limit": limit or None, "split": split}
    return Task(
        solver=reply(),
        scorer=scorers.companion(split=split, sap=sap, embedder=embedder),
        metrics=[scorers.overall(), {"*": [mean(), stderr(cluster="cluster")]}],
        **_shared(samples, door.split, door.protocol, asked),
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
    asker, asked = scorers.open_cases(kind, split, arm, language, limit), {"kind": kind, "split": split, "arm": arm}
    study, samples = asker.study, []
    for case in study.cases:
        about = {name: getattr(case, name) for name in ("kind", "family", "degree", "language")}
        about["user_turns"] = [turn.user for turn in case.turns()]
        first = scorers.chat_messages(next(asker.live(case)).messages)
        good = [turn.reference for turn in case.turns() if turn.reference]
        samples.append(Sample(id=case.id, input=first, target=good or "", metadata=about))
    protocol = {**study.signature.protocol, "items": study.split.fingerprint}
    own = _shared(samples, study.split, protocol, asked | {"language": language, "limit": limit or None})
    return Task(solver=scripted_user(**asked), scorer=scorers.points(**asked), **own)


def _shared(samples: list[Sample], split: Split, protocol: Any, asked: dict[str, Any]) -> dict[str, Any]:
    failures = {"fail_on_error": False, "score_on_error": True}
    own = {"version": split.version, "metadata": about_split(split, protocol, asked), **failures}
    return {"dataset": MemoryDataset(samples, name=split.name), "config": GenerateConfig(temperature=0.0), **own}


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
        conversation, stored = asker.live(cases[str(state.sample_id)]), list[tuple[str, str]]()
        try:
            request = next(conversation)
            while True:
                there, asked = state.messages, request.messages
                same = [(a.role, a.text) == (b.role, b.content) for a, b in zip(there, asked, strict=False)]
                new = [*same, False].index(False)  # the messages before it stay, so that transcripts show what is new
                state.messages = [*there[:new], *scorers.chat_messages(asked[new:])]
                budget = get_model().config.max_tokens or request.sampling.max_tokens
                state = await generate(state, tool_calls="none", max_tokens=budget)
                outcome = scorers.reply_of(state.output)
                stored += [(outcome.text, outcome.finish_reason)] if isinstance(outcome, Reply) else []
                state.store.set(scorers.REPLIES, [*stored])
                request = conversation.send(outcome)
        except StopIteration:
            return state

    return solve
