"""Small runs that need no model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from h2htalk.benchmark.evaluate import evaluate
from h2htalk.benchmark.settings import EvaluateSpec


def baseline_run(out: Path, name: str = "constant", **other: Any) -> Path:
    """A scored run of a baseline on 22 items of `mini`, two a subtask."""
    spec = {"model": f"baseline:{name}", "split": "mini@1", "limit": 22, "embedder": "none"} | other
    evaluate(EvaluateSpec(out=str(out), **spec))
    return out
