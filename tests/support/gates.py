"""Runs as a gate reads them, made of observations alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from h2htalk.benchmark.observations import Observation
from h2htalk.benchmark.observed_run import ObservedRun
from h2htalk.data.signature import Signature


def gated_run(figure: str, rows: Sequence[Observation], **judge: Any) -> ObservedRun:
    """A run of the study `sap` with the values of one figure; `judge`: its name, and its planted replies."""
    return ObservedRun(
        path=Path("run"),
        label="x",
        signature=Signature({"study": "sap"}, {"engine": "scripted", "model": "x"}),
        values={figure: list(rows)},
        show=lambda row: (row.item, ""),
        study="sap",
        arm="sap",
        **judge,
    )
