"""Batches through the real command line: whatever happens to a job or to us, each request is paid once."""

from __future__ import annotations

import signal
import subprocess
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hosted_runs import ANTHROPIC_FIRST, BOTH, MODELS, OPENAI_FIRST, HostedRun, name
from providers import JobPlan, ProviderServer

ITEMS = 12


def batch_run(server: ProviderServer, folder: Path, provider: str, items: int = ITEMS) -> HostedRun:
    return HostedRun(server, folder, MODELS[provider], items, {"batch": True, "attempts": 3})


def our_jobs(server: ProviderServer) -> int:
    return sum(not job.strange for job in server.jobs)


@BOTH
def test_results_in_any_order_with_refused_expired_and_broken_ones_among_them(tmp_path: Path, provider: str) -> None:
    at = {
        "item1": "refusal",
        "item2": "truncated",
        "item3": "http_500:1",
        "item4": "expired:1",
        "item5": "context_length",
        "item6": "canceled",
    }
    with ProviderServer(faults_at=at, plan=JobPlan(looks=3, polls_failed=1, results_cut=1)) as server:
        run = batch_run(server, tmp_path, provider)
        run.run(code=3)
        assert {item: failure["reason"] for item, failure in run.failures().items()} == {
            name(5): "context_length",
            name(6): "canceled",
        }
        assert len(run.stored()) == ITEMS - 2
        assert our_jobs(server) == 2  # the second one asks for what was not the item's own fault
        assert set(run.charges_by_item().values()) == {1}
        assert all(charge.batch for charge in server.charged())
        assert run.require_true_books().paid == server.bill()


@BOTH
@pytest.mark.parametrize("plan", [JobPlan(create_dropped=1, strangers=1), JobPlan(unmade=1, strangers=1)])
def test_a_job_whose_creation_was_never_answered_is_found_or_made_once(
    tmp_path: Path, provider: str, plan: JobPlan
) -> None:
    with ProviderServer(plan=plan) as server:
        run = batch_run(server, tmp_path, provider)
        # What came of the creation may have to be found out by a second start.
        ended = run.run(code=None)
        if ended.code != 0:
            assert len(ended.errors) == 1, ended.stderr
            run.run()
        assert len(run.stored()) == ITEMS
        assert our_jobs(server) == 1
        assert set(run.charges_by_item().values()) == {1}
        assert run.require_true_books().paid == server.bill()


@OPENAI_FIRST
def test_ctrl_c_leaves_the_job_running_and_the_same_command_attaches_to_it(tmp_path: Path, provider: str) -> None:
    with ProviderServer(plan=JobPlan(looks=10_000)) as server:
        run = batch_run(server, tmp_path, provider)
        process = run.start()
        wait_for_job(server, process)
        process.send_signal(signal.SIGINT)
        ended = run.finish(process, code=130)
        (job,) = server.jobs
        assert job.id in ended.stderr
        assert not job.canceled
        # Without --batch the same items would be asked twice.
        refused = run.run(code=2, batch=False)
        assert "--batch" in refused.stderr
        with ProviderServer() as other:  # which has no such job
            assert "--accept-endpoint" in replace(run, server=other).run(code=2).stderr
        server.plan.looks = 0
        run.run()
        assert our_jobs(server) == 1
        assert len(run.stored()) == ITEMS
        assert run.require_true_books().paid == server.bill()


@pytest.mark.slow
@ANTHROPIC_FIRST
def test_killed_while_waiting_and_while_collecting(tmp_path: Path, provider: str) -> None:
    with ProviderServer(plan=JobPlan(looks=10_000)) as server:
        run = batch_run(server, tmp_path, provider, 60)
        process = run.start()
        wait_for_job(server, process)
        run.kill(process)
        server.plan.looks = 0
        process = run.start()
        run.wait_until_stored(1, process)
        run.kill(process)
        stored = run.stored()
        run.require_true_books(closed=False)
        run.run()
        assert run.stored().items() >= stored.items()
        assert len(run.stored()) == 60
        assert our_jobs(server) == 1
        assert run.charges_by_item() == Counter({name(n): 1 for n in range(60)})
        assert run.require_true_books().paid == server.bill()


@ANTHROPIC_FIRST
def test_a_run_goes_on_in_batches_and_live_again(tmp_path: Path, provider: str) -> None:
    with ProviderServer(after={"no_credit": 3}) as server:
        run = HostedRun(server, tmp_path, MODELS[provider], 12, {"concurrency": 1})
        run.run(code=2)
        assert len(run.stored()) == 3
        server.mend()
        server.faults_at = {"item7": "context_length"}
        run.run(code=3, batch=True)
        assert len(run.stored()) == 11
        server.mend()
        run.run()
        assert [charge.batch for charge in server.charged()] == [False] * 3 + [True] * 8 + [False]
        assert run.require_true_books().paid == server.bill()


@BOTH
def test_our_job_is_found_behind_pages_of_others(tmp_path: Path, provider: str) -> None:
    with ProviderServer(plan=JobPlan(strangers=45, create_dropped=1)) as server:
        run = HostedRun(server, tmp_path, MODELS[provider], 3, {"batch": True})
        run.run()
        assert sum(not job.strange for job in server.jobs) == 1
        assert run.require_true_books().paid == server.bill()


def wait_for_job(server: ProviderServer, process: subprocess.Popen[str]) -> None:
    """Until a job was made and looked at."""
    limit = time.monotonic() + 30
    while not any(job.looks for job in server.jobs):
        assert time.monotonic() < limit, "no job was made"
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)
