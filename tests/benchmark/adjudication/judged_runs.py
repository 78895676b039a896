"""Runs whose answers a scripted judge has read, and annotators who rate some of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from command_line import h2htalk_here
from rounds_made import NAMES, answer, people

from h2htalk.benchmark.judge.judgements import answer_id, item_of
from h2htalk.benchmark.judge.rubric import rubric_of
from h2htalk.data.files import write_jsonl
from h2htalk.data.responses import Response
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.subtasks import SUBTASKS

# Whether a judge gives an item so many points; None: no reply that can be read.
Score = Callable[[str], int | None]


def command(*words: object, code: int = 0) -> str:
    """What a command prints that ends with this exit code."""
    done = h2htalk_here(*words)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def evaluated(out: Path, model: str = "baseline:random-reference", *more: object) -> Path:
    """A run of 44 items of `mini`, four a subtask."""
    options = ("--split", "mini@1", "--language", "en", "--limit", 44, "--embedder", "minilm", "--out", out)
    command("evaluate", model, *options, *more)
    return out


def judge_file(run: Path, score: Score, name: str = "judge") -> str:
    """A scripted judge that gives every quality of an answer the same score."""
    lines = []
    subtasks = {scenario.id: scenario.subtask for scenario in RunFolder(run).split().scenarios}
    for one in RunFolder(run).answers().values():
        if isinstance(one, Response) and SUBTASKS[subtasks[one.id]].level:
            given = score(one.id)
            text = "no JSON" if given is None else judgement(subtasks[one.id], given)
            lines.append({"id": answer_id(one), "text": text})
    path = run.parent / f"{name}.jsonl"
    write_jsonl(path, lines)
    return f"scripted:{path}"


def judgement(subtask: str, score: int) -> str:
    parts = json.loads(rubric_of(subtask).example())
    return json.dumps({name: part | ({"score": score} if "score" in part else {}) for name, part in parts.items()})


def annotators(folder: Path, count: int = 2) -> Path:
    return people(folder / "people.csv", *NAMES[:count])


def rate(path: Path, rating: Callable[[str, str], int]) -> None:
    """Fill in the CSV spreadsheets of a round: `rating` of the item's id and the annotator's name."""
    answer(path, lambda judged, annotator: {"rating": str(rating(item_of(judged), annotator))})
