"""The cases of a study in Inspect: the conversation of each, what is stored of it, and the task's arguments.

A conversation is that of `h2htalk study`: a generator that yields requests and receives outcomes. The solver sends the
requests to Inspect's model and stores its replies in the sample; the scorer runs the same generator on what is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageSystem, ChatMessageUser, ModelOutput

from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.benchmark.studies.conversations import Asker, StudyReply, run_together
from h2htalk.benchmark.studies.run_study import plan_study, select_cases
from h2htalk.benchmark.studies.settings import CASES, StudySpec
from h2htalk.chat.protocol import Message, Outcome, Reply
from h2htalk.data.case import Case
from h2htalk.data.responses import Failure, SampleKey
from h2htalk.data.splits import load_split
from h2htalk.integrations.inspect.log import ERRORS, FINISH

# In place of a judge's name: prompts do not depend on it, and the model is that of the role `grader`.
_ANY_JUDGE = "server:grader@http://127.0.0.1"
_KINDS: dict[str, Any] = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}


def chat_messages(messages: Iterable[Message]) -> list[ChatMessage]:
    """The messages of a prompt as Inspect's."""
    return [_KINDS[one.role](content=one.content) for one in messages]


def reply_of(output: ModelOutput) -> Outcome:
    """What a model answered, or that its call failed."""
    if not output.choices or (output.stop_reason in ERRORS and output.usage is None):
        return Failure("failed_call")
    return Reply(output.completion, FINISH.get(output.stop_reason, output.stop_reason))


def study_replies(asker: Asker, case: Case, stored: Iterable[Sequence[str]]) -> list[StudyReply]:
    """The conversation of a case, with the text and the end of each reply that is stored."""
    left = iter(stored)

    def outcomes(requests: Sequence[Any]) -> dict[SampleKey, Outcome]:
        found = [(one, next(left, None)) for one in requests]
        return {(one.id, one.sample): Reply(two[0], two[1]) if two else Failure("failed_call") for one, two in found}

    return run_together([asker.live(case)], outcomes)


@lru_cache(maxsize=8)
def open_cases(kind: str, split: str, arm: str, language: str | None = None, limit: int | None = None) -> Asker:
    """Choose the cases of a kind as `h2htalk study` does. Raises ConfigError for a name that does not exist."""
    study: Any = next(name for name, kinds in CASES.items() if kind in kinds)
    sap, arms = (arm, ()) if study == "instructions" else ("full", (arm,))  # its only arm is the SAP
    ask = EvaluateSpec(model="inspect:model", split=split, out=".", language=language, sap=sap, embedder="none")
    spec, whole = StudySpec(study=study, ask=ask, arms=arms, judge=_ANY_JUDGE), load_split(split)
    own = replace(whole, cases=tuple(case for case in whole.cases if case.study == kind))
    chosen = select_cases(own, replace(spec, ask=replace(ask, limit=limit)))
    return Asker(replace(plan_study(spec), split=chosen), spec.arms[0])
