"""The synthetic prompts as a task of Inspect: the real turns, `peer_metrics` as its scorer."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from inspect_ai import Task, task
from inspect_ai.dataset import Sample, json_dataset
from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageSystem, ChatMessageUser
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer
from inspect_ai.solver import TaskState, generate
from peer_metrics import score as score_text

_MESSAGES = {
    "system": ChatMessageSystem,
    "user": ChatMessageUser,
    "assistant": ChatMessageAssistant,
}


def read_sample(record: dict[str, Any]) -> Sample:
    messages: list[ChatMessage] = [
        _MESSAGES[m["role"]](content=m["content"]) for m in record["messages"]
    ]
    return Sample(input=messages, target=record["reference"], id=record["id"])


@scorer(metrics={"*": [mean()]})
def text_scores() -> Scorer:
    """One Score an item, with the five values of `peer_metrics.score`."""

    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=dict(score_text(state.output.completion, target.text)))

    return score


@task
def h2htalk_prompts() -> Task:
    prompts = Path(os.environ["H2HTALK_PROMPTS"])
    return Task(
        dataset=json_dataset(str(prompts), read_sample), solver=generate(), scorer=text_scores()
    )
