"""H2HTalk's parts in OpenCompass, whose environment cannot hold h2htalk: the Python of H2HTALK_PYTHON scores."""

from __future__ import annotations

import json
import os
from pathlib import Path
from subprocess import CalledProcessError, check_output
from typing import Any

from datasets import Dataset
from opencompass import __version__
from opencompass.datasets.base import BaseDataset
from opencompass.models import OpenAISDK
from opencompass.openicl.icl_evaluator import BaseEvaluator
from opencompass.partitioners import NaivePartitioner

FOLDER = Path(__file__).parent
ROLES = {"system": "SYSTEM", "user": "HUMAN", "assistant": "BOT"}
ADVICE = (
    "export H2HTALK_PYTHON=ENVIRONMENT/bin/python, of an environment where h2htalk is installed"
)


def ask_h2htalk(*replies: dict[str, str]) -> list[dict[str, Any]]:
    """Return what h2htalk says of the split, and of each `{"id", "reply"}`. Raises RuntimeError where none answers."""
    try:
        command = [
            os.environ["H2HTALK_PYTHON"],
            "-m",
            "h2htalk.integrations.opencompass",
            str(FOLDER),
        ]
        lines = check_output(
            command, input="\n".join(map(json.dumps, replies)), text=True
        ).splitlines()
    except (KeyError, OSError, CalledProcessError) as error:
        raise RuntimeError(
            f"no h2htalk answers ({error!r}; its own message may stand above): {ADVICE}"
        ) from error
    return [json.loads(line) for line in lines]


class Partitioner(NaivePartitioner):
    """One task for all data sets; it fails before a model is asked where no h2htalk answers."""

    def __init__(self, out_dir: str, keep_keys: list[str] | None = None) -> None:
        super().__init__(out_dir, n=1000, keep_keys=keep_keys)
        ask_h2htalk()


class Items(BaseDataset):
    """The items of a subtask; their messages have the keys that OpenCompass's API models and its chat models read."""

    @staticmethod
    def load(path: str, subtask: str) -> Dataset:
        with (FOLDER / path).open(encoding="utf-8") as lines:
            rows = [row for row in map(json.loads, lines) if row["subtask"] == subtask]
        for row in rows:
            for message in row["messages"]:
                message["role"] = ROLES[message["role"]]
                message["prompt"] = message["content"]
        return Dataset.from_list(rows)


class Evaluator(BaseEvaluator):
    """Means of 0 to 100 over the items that have a value, the number of those without one, and details of 0 to 1."""

    def score(self, predictions: list[str], test_set: Dataset) -> dict[str, Any]:
        pairs = zip(test_set["id"], predictions, strict=True)
        replies = [{"id": item, "reply": reply} for item, reply in pairs]
        about, *details = ask_h2htalk(*replies)
        figures: dict[str, Any] = {"unscored": sum(row["unscored"] != "" for row in details)}
        for name in details[0]:
            if name not in ("id", "unscored"):
                values = [row[name] for row in details if row[name] is not None]
                if values:
                    figures[name] = 100 * sum(values) / len(values)
        about["opencompass"] = __version__
        return {**figures, "about": about, "details": details}


class Chat(OpenAISDK):
    """A model of an OpenAI-compatible server without the tokenizer that OpenCompass downloads to cut long prompts."""

    def _init_tokenizer(self, prompt: str = "") -> int:
        return 0

    get_token_len = (
        _init_tokenizer  # no prompt is too long for OpenCompass; the server says so itself
    )
