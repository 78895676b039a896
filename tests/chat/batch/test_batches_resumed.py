"""What a killed run left behind: every batch job is found again, no call is lost, and none is paid twice."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import httpx2
import pytest
from batch_double import CALL_USD, PLACE, both, kill_at, story, stranger
from provider_wires import Refused

from h2htalk.errors import ModelCallError

# --- On disk, then sent -----------------------------------------------------------------------------------------


@both
def test_the_lines_of_a_job_are_on_disk_before_it_is_sent(
    provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, synced, found, path = story(provider, tmp_path), [0], [], tmp_path / "calls.jsonl"
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(os.fstat(file).st_size))

    def before(call: str) -> None:
        if call.startswith("POST"):
            found.append(synced[-1] == path.stat().st_size > 0)

    run.double.before = before
    run.run()
    assert found
    assert all(found)


# --- Killed at a named moment -----------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("list_lag", [0.0, 40.0])
def test_killed_before_the_id_arrived_the_job_is_found(provider: str, list_lag: float, tmp_path: Path) -> None:
    run = story(provider, tmp_path)
    run.double.list_lag = list_lag
    run.double.after = kill_at(f"POST {PLACE[provider]}")
    run.killed()
    run.run()
    run.require_paid_once()
    assert len(run.double.jobs) == 1


@both
@pytest.mark.parametrize("moment", ["POST", "GET"])
def test_a_job_that_was_never_made_is_no_try(provider: str, moment: str, tmp_path: Path) -> None:
    run = story(provider, tmp_path)
    run.attempts = 2
    run.double.fate = lambda text, times: "expired" if times == 1 else "ok"
    # A call before anything is sent, and the creation itself.
    early = "POST /v1/files" if provider == "openai" else "GET /v1/messages/batches"
    run.double.before = kill_at(early if moment == "GET" else f"POST {PLACE[provider]}")
    run.killed()
    run.run()
    run.require_paid_once()


@both
@pytest.mark.parametrize("status", [408, 500, 502, 504])
def test_a_job_whose_creation_is_answered_by_a_broken_server_is_found(
    provider: str, status: int, tmp_path: Path
) -> None:
    run = story(provider, tmp_path)
    answer, left = run.double.answer, [status]

    def broken(method: str, path: str, *more: Any) -> Any:
        found = answer(method, path, *more)
        if method == "POST" and path == PLACE[provider] and left:
            raise Refused(left.pop(), "api_error", "broken")
        return found

    run.double.answer = broken  # type: ignore[method-assign]
    run.run()
    run.require_paid_once()
    assert len(run.double.jobs) == 1


@both
def test_a_job_that_can_never_be_made_is_an_error_after_so_many_tries(provider: str, tmp_path: Path) -> None:
    run = story(provider, tmp_path)

    def broken(call: str) -> None:
        if call == f"POST {PLACE[provider]}":
            raise httpx2.ReadError("cut")

    run.double.before = broken
    with pytest.raises(ModelCallError, match="4 batch jobs in a row gave no results"):
        run.run()
    assert run.double.jobs == []


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


@pytest.mark.parametrize("error", [httpx2.ReadError("cut"), Refused(500, "api_error", "x"), Refused(429, "slow", "x")])
def test_a_job_that_cannot_be_read_for_now_is_asked_again_and_not_given_up(error: Exception, tmp_path: Path) -> None:
    run = story("anthropic", tmp_path)
    run.double.after = kill_at("POST /v1/messages/batches")
    run.killed()
    run.double.now += 24 * 3600.0  # the list of jobs is surely up to date
    (job,) = run.double.jobs
    run.double.end(job)
    answer, left = run.double.answer, [error]

    def broken(method: str, path: str, *more: Any) -> Any:
        if path.endswith("/results") and left:
            raise left.pop()
        return answer(method, path, *more)

    run.double.answer = broken  # type: ignore[method-assign]
    run.run()
    assert not left
    run.require_paid_once()
    assert run.double.jobs == [job]


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
