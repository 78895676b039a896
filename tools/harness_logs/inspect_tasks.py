"""Tasks of Inspect over `items.jsonl`: a scorer with a dictionary, one with a mark, and replies that are unscored."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from inspect_ai import Epochs, Task, task
from inspect_ai.dataset import Sample, json_dataset
from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageUser
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer
from inspect_ai.solver import TaskState, generate
from text_scores import score

_MESSAGES = {"user": ChatMessageUser, "companion": ChatMessageAssistant}


def _sample(record: dict[str, Any], own_id: bool = True) -> Sample:
    turns: list[ChatMessage] = [
        _MESSAGES[turn["role"]](content=turn["content"]) for turn in record["turns"]
    ]
    return Sample(input=turns, target=record["reference"], id=record["id"] if own_id else None)


@scorer(metrics={"*": [mean()]})
def text_scores() -> Scorer:
    async def values(state: TaskState, target: Target) -> Score:
        if not state.output.completion:
            return Score.unscored(reason="no_response")
        return Score(value=dict(score(state.output.completion, target.text)))

    return values


@scorer(metrics=[mean()])
def asks_back() -> Scorer:
    async def mark(state: TaskState, target: Target) -> Score:
        return Score(value="C" if "?" in state.output.completion else "I")

    return mark


@task
def companion(epochs: int = 1, own_id: bool = True, scorers: int = 2) -> Task:
    data = json_dataset("items.jsonl", lambda record: _sample(record, own_id))
    chosen = [text_scores(), asks_back()][-scorers:]
    return Task(
        dataset=data, solver=generate(), scorer=chosen, epochs=Epochs(epochs), name="companion"
    )
