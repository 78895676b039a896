"""Batch jobs that meet a limit of costs, a broken network, a server in trouble, or a provider that says no."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import httpx2
import pytest
from batch_double import (
    CALL_USD,
    KEY,
    PROVIDERS,
    BatchDouble,
    both,
    fates,
    interrupt_once_there_is,
    jobs_in,
    requests,
    texts,
    totals,
)
from provider_batches import Job

from h2htalk.chat.protocol import Reply
from h2htalk.data.responses import Failure
from h2htalk.errors import ConfigError, ModelCallError

# --- Money ------------------------------------------------------------------------------------------------------


@both
def test_a_batch_that_might_pass_the_limit_is_refused_whole_before_anything_is_sent(
    provider: str, tmp_path: Path
) -> None:
    double = BatchDouble(provider)
    calls = double.calls_at(tmp_path, Decimal("0.01"))
    with pytest.raises(ConfigError, match=r"max_cost 0\.01: 0\.00 .* may cost 0\.\d+ more: .*; nothing .* sent"):
        double.run(requests(*"abcdefgh"), calls)
    assert double.calls == []
    assert totals(calls).usd_committed == 0
    assert jobs_in(tmp_path) == []


@both
def test_a_later_batch_that_might_pass_the_limit_fails_its_items_and_keeps_the_others(
    provider: str, tmp_path: Path
) -> None:
    double = BatchDouble(provider, fates(b="expired"))
    double.before = interrupt_once_there_is(double)
    with pytest.raises(KeyboardInterrupt):
        double.run(requests("a", "b"), tmp_path)
    double.before = lambda call: None
    a, b = double.run(requests("a", "b"), double.calls_at(tmp_path, Decimal("0.001")))
    assert isinstance(a, Reply)
    assert isinstance(b, Failure)
    assert b.reason == "max_cost"
    assert len(double.jobs) == 1


# --- FailedCall on the way -----------------------------------------------------------------------------------------


@both
def test_network_trouble_ends_a_run_after_hours_and_the_job_is_not_lost(provider: str, tmp_path: Path) -> None:
    double = BatchDouble(provider)

    def trouble(call: str) -> None:
        if double.jobs:
            raise httpx2.ConnectError("unplugged")

    double.before = trouble
    with pytest.raises(ModelCallError, match=r"24 hours.*batch_0 is not lost, the same command attaches"):
        double.run(requests("a"), tmp_path)
    double.before = lambda call: None
    assert texts(double.run(requests("a"), tmp_path)) == ["re: a"]
    assert len(double.jobs) == 1


@both
def test_a_job_that_the_key_does_not_know_is_an_error_that_says_what_to_do(provider: str, tmp_path: Path) -> None:
    double = BatchDouble(provider)
    double.after = lambda call: double.jobs.clear()
    with pytest.raises(ModelCallError, match=r"use the key of the workspace.*remove"):
        double.run(requests("a"), tmp_path)
    assert [record.job for record in jobs_in(tmp_path)] == [{"openai": "batch_0", "anthropic": "msgbatch_0"}[provider]]


@both
@pytest.mark.parametrize("status", [400, 401, 403, 404, 413])
def test_a_refused_job_is_free_and_an_error(provider: str, status: int, tmp_path: Path) -> None:
    double = BatchDouble(provider)
    double.before = lambda call: (
        double.answers.append(double.error(status, "invalid_request_error", f"no {KEY}"))
        if call.startswith("POST") and "batches" in call
        else None
    )
    calls = double.calls_at(tmp_path)
    with pytest.raises(ConfigError, match="the batch was refused, nothing was charged") as caught:
        double.run(requests("a", "b"), calls)
    assert KEY not in str(caught.value)
    assert KEY not in (tmp_path / "calls.jsonl").read_text()
    assert (totals(calls).free, totals(calls).open) == (2, 0)
    assert jobs_in(tmp_path) == []


@both
@pytest.mark.parametrize("status", [429, 529])
def test_a_job_that_is_refused_for_now_is_sent_again_and_then_given_up(
    provider: str, status: int, tmp_path: Path
) -> None:
    double = BatchDouble(provider)
    busy = double.error(status, "rate_limit_error", "busy")

    def refuse(call: str) -> None:
        if call.startswith("POST") and "batches" in call and len(double.pauses) < patience:
            double.answers.append(busy)

    double.before = refuse
    patience = 2
    assert texts(double.run(requests("a"), tmp_path)) == ["re: a"]
    double.pauses.clear()
    patience, calls = 100, double.calls_at(tmp_path)
    with pytest.raises(ModelCallError, match="could not be submitted"):
        double.run(requests("b"), calls)
    assert (totals(calls).free, totals(calls).open) == (1, 0)
    assert len(double.jobs) == 1


def test_an_openai_job_whose_validation_failed_is_an_error_with_its_first_lines(tmp_path: Path) -> None:
    double = BatchDouble("openai")
    double.problems = [
        {"code": "invalid_json_line", "line": n, "message": f"This line is broken ({n})."} for n in range(1, 9)
    ]
    calls = double.calls_at(tmp_path)
    with pytest.raises(ConfigError, match=r"batch_0 was refused, nothing was charged: line 1: .*line 3.*5 more"):
        double.run(requests("a"), calls)
    assert (totals(calls).free, totals(calls).open) == (1, 0)
    assert jobs_in(tmp_path) == []


@both
@pytest.mark.parametrize("junk", [[], "text", 5, None, {}, {"data": [5]}, {"data": [{"id": "batch_9"}]}])
def test_an_answer_that_describes_no_job_is_asked_for_again(junk: object, provider: str, tmp_path: Path) -> None:
    double = BatchDouble(provider)
    for number in range(1, 5):  # the first, then the second call about the job, ...
        folder = tmp_path / str(number)
        calls = len(double.calls) + number

        def before(call: str, at: int = calls) -> None:
            if len(double.calls) == at:
                double.answers = [httpx2.Response(200, json=junk)]

        double.before = before
        double.run(requests("a"), folder)
    assert double.charged["a"] == 4


def test_an_openai_job_that_found_the_queue_full_waits_for_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    double = BatchDouble("openai")
    monkeypatch.setattr(type(double.jobs_api()), "most_calls", 2)
    full = {"code": "token_limit_exceeded", "message": "Enqueued token limit reached."}
    double.after = lambda call: setattr(double, "problems", [full] if len(double.jobs) == 1 else [])
    calls = double.calls_at(tmp_path)
    assert texts(double.run(requests(*"abcd"), calls, attempts=1)) == [f"re: {t}" for t in "abcd"]
    assert [bool(job.problems) for job in double.jobs] == [False, True, False]
    assert totals(calls).usd_paid == double.bill


@both
def test_results_that_are_no_longer_kept_are_possibly_paid_and_asked_for_anew(provider: str, tmp_path: Path) -> None:
    double = BatchDouble(provider)

    def archive(call: str) -> None:
        double.jobs[:1] = [archived(job) for job in double.jobs[:1]]

    def archived(job: Job) -> Job:
        job.archived = True
        return job

    double.before = archive
    calls = double.calls_at(tmp_path)
    assert texts(double.run(requests("a"), calls)) == ["re: a"]
    found = totals(calls)
    assert (found.paid, found.possibly_paid) == (1, 1)
    assert (found.usd_paid or 0) + (found.usd_possible or 0) >= double.bill == 2 * CALL_USD


@both
def test_a_folder_with_an_open_job_of_another_model_is_refused(provider: str, tmp_path: Path) -> None:
    double = BatchDouble(provider)
    place = {"openai": "/v1/batches", "anthropic": "/v1/messages/batches"}[provider]
    double.answers = []
    double.before = lambda call: double.answers.extend(
        [double.error(401, "authentication_error", "no")] if call.startswith(f"GET {place}/") else []
    )
    with pytest.raises(ModelCallError):
        double.run(requests("a"), tmp_path)
    other = BatchDouble(next(name for name in PROVIDERS if name != provider))
    with pytest.raises(ConfigError, match=f"of {double.api.model}"):
        other.run(requests("a"), tmp_path)
