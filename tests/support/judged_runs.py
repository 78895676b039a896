"""Runs with answers of one's own, replies of judges, and annotators who rate some answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from h2htalk.benchmark.calibration.corrected_mean import JudgedItem
from h2htalk.benchmark.evaluate import evaluate
from h2htalk.benchmark.judge.judgements import answer_id, item_of
from h2htalk.benchmark.judge.rubric import rubric_of
from h2htalk.benchmark.run import load_run
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.benchmark.summary import JudgeFigures
from h2htalk.data.files import write_jsonl
from h2htalk.data.responses import Response
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.subtasks import SUBTASKS
from support.command_line import h2htalk_here
from support.splits import write_split

LEVELS = tuple(name for name, subtask in SUBTASKS.items() if subtask.level)


def command(*words: object, code: int = 0) -> str:
    """What a command prints that ends with this exit code."""
    done = h2htalk_here(*words)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def item_name(number: int) -> str:
    return f"made-{number:05}"


def answered_run(
    folder: Path, answers: Sequence[str], subtasks: tuple[str, ...] = LEVELS, **settings: Any
) -> Path:
    write_split(folder / "split", len(answers), subtasks)
    write_jsonl(
        folder / "answers.jsonl",
        ({"id": item_name(n), "text": text} for n, text in enumerate(answers)),
    )
    model = f"scripted:{folder / 'answers.jsonl'}"
    where = {"split": folder / "split", "out": folder / "run"}
    evaluate(
        EvaluateSpec(model=model, **{**where, "embedder": "none", "baselines": False, **settings})
    )
    return folder / "run"


def evaluated(out: Path, model: str = "baseline:random-reference", *more: object) -> Path:
    """A run of 44 items of `mini`, four a subtask."""
    options = (
        "--split",
        "mini@1",
        "--language",
        "en",
        "--limit",
        44,
        "--embedder",
        "minilm",
        "--out",
        out,
    )
    command("evaluate", model, *options, *more)
    return out


def verdict(
    score: int = 3, subtask: str = "itinerary_basic", points: bool = False, **scores: int
) -> str:
    """A judge's reply with one score everywhere but for those named; `points`: the answer to every point."""
    reply = json.loads(rubric_of(subtask).example())
    for name, part in reply.items():
        part.update({"score": scores.get(name, score)} if "score" in part else {"answer": points})
    return json.dumps(reply)


def scripted_judge(path: Path, replies: Mapping[str, str], other: str | None = None) -> str:
    """`scripted:FILE` of a judge: item or `*` -> its reply to every answer of it."""
    every = dict(replies) if other is None else {**replies, "*": other}
    write_jsonl(path, ({"id": item, "text": text} for item, text in every.items()))
    return f"scripted:{path}"


def given(item: str) -> int:
    """What a judge gives to an item, by the last digit of its id."""
    return {"1": 1, "2": 2, "3": 4, "4": 5, "6": 3, "7": 0}[item[-1]]


def judge_file(run: Path, score: Callable[[str], int | None] = given, name: str = "judge") -> str:
    """A scripted judge that gives every quality of an answer the score of its item; None: no JSON."""
    subtasks = {scenario.id: scenario.subtask for scenario in RunFolder(run).split().scenarios}
    replies = {}
    for one in RunFolder(run).answers().values():
        if isinstance(one, Response) and SUBTASKS[subtasks[one.id]].level:
            rating = score(one.id)
            replies[answer_id(one)] = (
                "no JSON" if rating is None else verdict(rating, subtasks[one.id])
            )
    return scripted_judge(run.parent / f"{name}.jsonl", replies)


def judging_of(run: Path) -> JudgeFigures:
    return load_run(run).summary.judging


def judged_item(at: int, score: float, people: float | None = None, **fields: Any) -> JudgedItem:
    """An item with one answer, without a run behind it."""
    own = {"subtask": "itinerary_basic", "s": 0.4, "length": 0.0, **fields}
    name = f"{own['subtask']}-{at:04}"
    return JudgedItem(
        **{"id": name, "cluster": name, "score": score, "people": people, "panel": (score,), **own}
    )


def annotators(folder: Path, count: int = 2) -> Path:
    from support.rounds import NAMES, people  # needs the extra `rounds`

    return people(folder / "people.csv", *NAMES[:count])


def rate(path: Path, rating: Callable[[str, str], int]) -> None:
    """Fill in the CSV spreadsheets of a round: `rating` of the item's id and the annotator's name."""
    from support.rounds import answer

    answer(path, lambda judged, annotator: {"rating": str(rating(item_of(judged), annotator))})
