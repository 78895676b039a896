"""The table of metrics: a record and its function are all that a metric needs."""

from __future__ import annotations

from h2htalk.benchmark.metrics.metric_table import columns


def test_s_has_the_seven_parts_of_eq_2() -> None:
    assert columns(in_composite=True) == ("bleu_1", "bleu_2", "bleu_3", "bleu_4", "rouge_1", "rouge_l", "ss")
    assert columns() == columns(in_composite=True)
