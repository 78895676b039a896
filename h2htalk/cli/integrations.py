"""Commands for other harnesses: integrations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from h2htalk import integrations as package
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.cli import options
from h2htalk.cli.output import say

with options.lazy_imports():
    from h2htalk.integrations import opencompass


def integrations_lm_eval() -> None:
    """Print the folder of the tasks of lm-evaluation-harness, for its --include_path."""
    say(str(Path(package.__file__).parent / "lm_eval"))


@options.with_options(EvaluateSpec, "language", "subtasks", "limit", "sap")
def integrations_opencompass(
    out: options.Out,
    split: options.SplitOption = "mini",
    embedder: options.Embedder = "none",
    **settings: Any,
) -> None:
    """Write a folder for OpenCompass: data sets, their config, and the module with the evaluator."""
    say(*map(str, opencompass.write_folder(out, split, embedder=embedder, **settings)))
