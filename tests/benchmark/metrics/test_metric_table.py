"""The table of metrics: a record and its function are all that a metric needs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest

from h2htalk.benchmark.evaluate import evaluate
from h2htalk.benchmark.load_run import load_run
from h2htalk.benchmark.metrics.metric_table import METRICS, Metric, Metrics, Pair, columns, metrics_version
from h2htalk.benchmark.settings import EvaluateSpec


def test_s_has_the_seven_parts_of_eq_2() -> None:
    assert columns(in_composite=True) == ("bleu_1", "bleu_2", "bleu_3", "bleu_4", "rouge_1", "rouge_l", "ss")
    assert columns() == columns(in_composite=True)


def test_a_metric_of_one_record_is_in_scores_summary_tables_page_and_signature(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def same_length(pairs: Sequence[Pair], metrics: Metrics) -> list[tuple[float, ...]]:
        return [(min(len(p.response), len(p.reference)) / max(len(p.response), len(p.reference)),) for p in pairs]

    module = ModuleType("same_length")
    module.same_length = same_length  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "same_length", module)
    record = Metric(name="length", path="same_length:same_length", columns=("same_length",))
    monkeypatch.setitem(METRICS, "length", record)  # type: ignore[arg-type]
    out = tmp_path / "run"
    summary = evaluate(EvaluateSpec(model="baseline:constant", split="mini", out=str(out), limit=5, embedder="none"))
    assert summary.signature.protocol["metrics"] == metrics_version() == "lexical-1,semantic-1,length-1"
    assert all("same_length" in cells for cells in summary.metrics.values())
    run = load_run(out)
    assert run.summary == summary
    assert all(0 < value <= 1 for value in run.scores().column("same_length").to_pylist())
    assert ",same_length," in (out / "tables" / "metrics.csv").read_text()
    assert "SAME-LENGTH" in (out / "report.html").read_text()
