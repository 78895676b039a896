"""A job whose id never arrived is told from those of others; runs with and without batches; limits of costs."""

from __future__ import annotations

from pathlib import Path

import pytest
from batch_double import CALL_USD
from batch_stories import PLACE, both, kill_at, story, stranger

# --- Telling our job from others (Anthropic's carry nothing of ours) --------------------------------------------


@both
def test_jobs_of_others_are_not_ours(provider: str, tmp_path: Path) -> None:
    run = story(provider, tmp_path)
    for calls in (3, 2, 3, 5, 3):
        stranger(run.double, calls, -30.0)
    run.double.after = kill_at(f"POST {PLACE[provider]}")
    run.killed()
    for calls in (3, 4, 3):
        stranger(run.double, calls)
    run.run()
    assert run.is_whole()
    assert run.totals.usd_paid == 3 * CALL_USD
    assert len(run.double.jobs) == 9


def test_a_job_that_was_made_days_after_ours_is_not_waited_for(tmp_path: Path) -> None:
    run = story("anthropic", tmp_path)
    run.double.before = kill_at("POST /v1/messages/batches")
    run.killed()
    run.double.now += 72 * 3600.0
    run.double.runtime = 10 * 3600.0
    stranger(run.double, 3)
    asked_at = run.double.now
    run.run()
    assert run.is_whole()
    assert run.double.jobs[1].created - asked_at < 3600.0


def test_while_one_of_the_candidates_runs_it_is_waited_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = story("anthropic", tmp_path)
    run.double.before = kill_at("POST /v1/messages/batches")
    run.killed()
    run.double.runtime = 3 * 3600.0
    stranger(run.double, 3)
    asked_at = run.double.now
    run.run()
    assert run.is_whole()
    assert run.double.jobs[1].created - asked_at >= 3 * 3600.0
    assert "searching for its job: waiting for msgbatch_0" in capsys.readouterr().err


def test_a_job_that_can_no_longer_be_told_from_another_is_possibly_paid(tmp_path: Path) -> None:
    run = story("anthropic", tmp_path)
    run.double.after = kill_at("POST /v1/messages/batches")
    run.killed()
    run.double.now += 30 * 24 * 3600.0
    run.double.end(run.double.jobs[0])
    run.double.jobs[0].archived = True
    run.run()
    assert run.is_whole()
    assert (run.totals.paid, run.totals.possibly_paid) == (3, 3)
    assert run.double.bill == 6 * CALL_USD
    assert run.totals.usd_paid == 3 * CALL_USD
    assert (run.totals.usd_possible or 0) >= 3 * CALL_USD
