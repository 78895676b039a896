"""Hosted runs for longer: many kills under a mix of faults, and limits of costs under many mixes."""

from __future__ import annotations

import random
import time
from decimal import Decimal
from pathlib import Path

import pytest
from hosted_runs import BOTH, MODELS, HostedRun
from providers import JobPlan, ProviderServer

pytestmark = pytest.mark.live

KILLS = 10
# Shares of items; together below 1. What is charged and never arrives is asked again.
MIX = {
    "gateway_timeout": 0.08,
    "drop_before": 0.05,
    "drop_after": 0.08,
    "cut": 0.08,
    "overloaded": 0.05,
    "http_500": 0.05,
    "refusal": 0.05,
    "truncated": 0.05,
    "no_usage": 0.05,
}


@BOTH
def test_ten_kills_of_a_run_under_faults(tmp_path: Path, provider: str) -> None:
    items, concurrency, draw = 200, 6, random.Random(provider)
    with ProviderServer(faults=MIX, fault_times=1, latency=0.05) as server:
        run = HostedRun(server, tmp_path, MODELS[provider], items, {"concurrency": concurrency})
        for _ in range(KILLS):
            stored, charged = run.stored(), run.charges_by_item()
            process = run.start()
            run.wait_until_stored(len(stored) + 1, process)
            time.sleep(draw.uniform(0, 0.15))
            run.kill(process)
            assert run.stored().items() >= stored.items(), "an answer that was stored is gone"
            now = run.charges_by_item()
            assert all(now[item] == charged[item] for item, _ in stored), "a stored answer was paid again"
            run.require_true_books(closed=False)
        run.run()
        assert len(run.stored()) == items
        books = run.require_true_books()
        # Paid for nothing are the calls in flight at a kill, and those whose reply the faults took away.
        taken = sum(not charge.delivered for charge in server.charged())
        assert sum(run.charges_by_item().values()) <= items + KILLS * concurrency + taken
        assert books.possible > 0


@BOTH
def test_ten_kills_of_a_run_in_batches(tmp_path: Path, provider: str) -> None:
    items, draw = 120, random.Random(f"{provider} in batches")
    faults = {"expired": 0.2, "http_500": 0.1, "refusal": 0.1}
    plan = JobPlan(polls=8, strangers=2, create_dropped=1, results_cut=2, polls_failed=2)
    with ProviderServer(faults=faults, fault_times=1, jobs=plan) as server:
        run = HostedRun(server, tmp_path, MODELS[provider], items, {"batch": True, "attempts": 8})
        for _ in range(KILLS):
            stored = run.stored()
            process = run.start()
            limit = time.monotonic() + 30
            while not [line for line in run.lines("calls.jsonl") if "job" in line] and process.poll() is None:
                assert time.monotonic() < limit
                time.sleep(0.01)
            time.sleep(draw.uniform(0.9, 2.6))  # the start of the program, and a moment anywhere in its work
            if not run.kill_or_end(process):
                break  # it came to its end before
            assert run.stored().items() >= stored.items(), "an answer that was stored is gone"
            run.require_true_books(closed=False)
        run.run()
        assert len(run.stored()) == items
        # A job goes on while nobody waits: nothing that was computed is computed again.
        assert set(run.charges_by_item().values()) == {1}
        assert run.require_true_books().paid == server.bill()


@BOTH
@pytest.mark.parametrize("seed", range(4))
def test_no_mix_of_faults_takes_the_bill_past_the_limit(tmp_path: Path, provider: str, seed: int) -> None:
    draw = random.Random(f"{provider} {seed}")
    kinds = draw.sample(sorted(MIX), 5)
    faults = dict.fromkeys(kinds, 0.18)
    limit = Decimal(draw.randrange(5, 60)) / 100
    settings = {"concurrency": draw.choice([1, 3, 16]), "attempts": 3, "timeout": 1.0}
    with ProviderServer(dearest=True, faults=faults, fault_times=draw.choice([1, 2, None])) as server:
        run = HostedRun(server, tmp_path, MODELS[provider], 24, settings)
        for _ in range(2):  # what was spent stays spent
            run.run("--max-cost", limit, code=None)
            books = run.require_true_books()
            assert books.paid <= server.bill() <= books.paid + books.possible <= limit
