"""Rates of failure signatures: equal to a hand count, and shown wherever figures of a run are."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest
from rich.console import Console
from summaries_made import summary_of

from h2htalk.benchmark.failures.failure_rates import SIGNATURES, failure_rates
from h2htalk.benchmark.metrics.composite import SampleScore, item_score
from h2htalk.benchmark.report.html_view import page_view
from h2htalk.benchmark.report.tables import metrics_csv
from h2htalk.benchmark.report.terminal import print_summary
from h2htalk.benchmark.summary import Summary
from h2htalk.data.responses import FailedResponse, Failure, Response
from h2htalk.data.run_folder import Answers
from h2htalk.data.splits import load_split
from h2htalk.data.subtasks import SUBTASKS

MINI = load_split("mini")
DIALOGUES = [s for s in MINI.scenarios if s.subtask == "dialogue_base" and s.language == "en"][:4]
LOOP = "I love you so very much. I love you so very much. I love you so very much."


def test_a_rate_is_the_mean_over_items_of_the_share_of_their_answers() -> None:
    """Of four items with two answers each, one loops twice, one once, one never; of the fourth one call failed."""
    first, second, third, fourth = DIALOGUES
    texts = {first.id: (LOOP, LOOP), second.id: (LOOP, second.reference), third.id: (third.reference,) * 2}
    answers: Answers = {
        (item, n): Response(item, n, text) for item, both in texts.items() for n, text in enumerate(both)
    }
    answers |= {
        (fourth.id, 0): Response(fourth.id, 0, LOOP),
        (fourth.id, 1): FailedResponse(fourth.id, 1, Failure("timeout", "too slow")),
    }
    scores = {s.id: item_score(s.id, [SampleScore(s.id, n) for n in range(2)]) for s in DIALOGUES}
    cell = failure_rates(DIALOGUES, answers, scores)["memory_collapse"]
    assert cell.value == pytest.approx(100 * (1 + 0.5 + 0) / 3)
    assert (cell.n, cell.total) == (3, 4)
    assert cell.low is not None
    assert cell.high is not None
    assert 0 < cell.low < cell.value < cell.high < 100


def test_each_signature_counts_the_items_of_its_subtasks() -> None:
    answers: Answers = {(s.id, 0): Response(s.id, 0, s.reference) for s in MINI.scenarios}
    scores = {s.id: item_score(s.id, [SampleScore(s.id, 0)]) for s in MINI.scenarios}
    rates = failure_rates(MINI.scenarios, answers, scores)
    for name, (_, subtasks) in SIGNATURES.items():
        assert set(subtasks) <= SUBTASKS.keys()
        assert rates[name].total == sum(s.subtask in subtasks for s in MINI.scenarios)
        # The references are good answers.
        assert rates[name].value is not None
        assert rates[name].value < 10


def test_without_an_item_of_its_subtasks_a_signature_has_no_rate() -> None:
    refinements = [s for s in MINI.scenarios if s.subtask == "recollection_refinement"]
    scores = {s.id: item_score(s.id, [SampleScore(s.id, 0)]) for s in refinements}
    assert failure_rates(refinements, {}, scores) == {}


def test_rates_stand_in_summary_terminal_page_and_csv() -> None:
    split = replace(MINI, scenarios=tuple(DIALOGUES))
    summary = summary_of(split, {(s.id, 0): Response(s.id, 0, LOOP) for s in DIALOGUES})
    rate = summary.failures["memory_collapse"]
    assert (rate.value, rate.n) == (100, 4)
    assert Summary.from_dict(summary.to_dict(), "here").failures == summary.failures
    rows = [row for row in csv.DictReader(io.StringIO(metrics_csv(summary))) if row["metric"] == "failure"]
    assert {row["of"]: float(row["value"]) for row in rows} == {n: c.value for n, c in summary.failures.items()}
    assert dict(page_view(summary)["signatures"])["memory_collapse"].value == "100.00"
    shown = io.StringIO()
    print_summary(summary, Console(file=shown, width=200), verbose=True)
    assert "failure signatures, by rules: memory_collapse 100.00" in shown.getvalue()
