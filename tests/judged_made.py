"""Runs with answers of one's own, and the replies of judges."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from splits_made import write_split

from h2htalk.benchmark.evaluate import evaluate
from h2htalk.benchmark.judge.rubric import rubric_of
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.data.files import write_jsonl
from h2htalk.data.subtasks import SUBTASKS

LEVELS = tuple(name for name, subtask in SUBTASKS.items() if subtask.level)


def item_name(number: int) -> str:
    return f"made-{number:05}"


def answered_run(folder: Path, answers: Sequence[str], subtasks: tuple[str, ...] = LEVELS, **settings: Any) -> Path:
    """A scored run whose items have these answers, one an item."""
    write_split(folder / "split", len(answers), subtasks)
    write_jsonl(folder / "answers.jsonl", ({"id": item_name(n), "text": text} for n, text in enumerate(answers)))
    common = {"embedder": "none", "baselines": False}
    evaluate(
        EvaluateSpec(
            model=f"scripted:{folder / 'answers.jsonl'}",
            split=str(folder / "split"),
            out=str(folder / "run"),
            **{**common, **settings},
        )
    )
    return folder / "run"


def verdict(score: int = 3, subtask: str = "itinerary_basic", points: bool = False, **scores: int) -> str:
    """A judge's reply with one score everywhere but for those named; `points`: the answer to every point."""
    reply = json.loads(rubric_of(subtask).example())
    for name, part in reply.items():
        if "score" in part:
            part["score"] = scores.get(name, score)
        else:
            part["answer"] = points
    return json.dumps(reply)


def scripted_judge(path: Path, replies: Mapping[str, str], other: str | None = None) -> str:
    """`scripted:FILE` of a judge: item or `*` -> its reply to every answer of it."""
    lines = [{"id": item, "text": text} for item, text in replies.items()]
    write_jsonl(path, [*lines, *([] if other is None else [{"id": "*", "text": other}])])
    return f"scripted:{path}"
