"""`--max-cost` through the real command line: whatever breaks, the provider's bill never passes the limit."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from hosted_runs import BOTH, MODELS, HostedRun
from providers import ProviderServer

MIXED = {"gateway_timeout": 0.15, "cut": 0.15, "drop_after": 0.1, "overloaded": 0.1, "no_usage": 0.1}


@BOTH
def test_the_bill_never_passes_the_limit_even_when_every_call_costs_all_that_it_can(
    tmp_path: Path, provider: str
) -> None:
    with ProviderServer(dearest=True, faults=MIXED, fault_times=2) as server:
        run = HostedRun(server, tmp_path, MODELS[provider], 30, {"attempts": 3, "concurrency": 8})
        limit = Decimal("0.12")
        ended = run.run("--max-cost", limit, code=3)
        books = run.require_true_books()
        assert books.paid + books.possible <= limit
        assert 0 < server.bill() <= limit
        failures = run.failures()
        unpaid = [item for item, failure in failures.items() if failure["reason"] == "max_cost"]
        assert unpaid
        assert "max-cost" in ended.stdout + ended.stderr

        # A higher limit asks for those that are left; what is paid stays paid.
        stored, charged = run.stored(), run.charges_by_item()
        server.mend()
        run.run("--max-cost", 20)
        assert run.stored().items() >= stored.items()
        assert len(run.stored()) == 30
        again = run.charges_by_item()
        assert all(again[item] == charged[item] for item, _ in stored)
        run.require_true_books()


@BOTH
def test_a_batch_that_might_pass_the_limit_is_refused_whole(tmp_path: Path, provider: str) -> None:
    with ProviderServer() as server:
        run = HostedRun(server, tmp_path, MODELS[provider], 12, {"batch": True})
        ended = run.run("--max-cost", "0.02", code=2)
        assert "max-cost" in ended.stderr
        assert len(ended.errors) == 1, ended.stderr
        assert server.jobs == []
        assert server.files == {}
        run.run("--max-cost", "20")
        assert len(run.stored()) == 12
        assert run.require_true_books().paid == server.bill()


@BOTH
def test_the_limit_holds_for_batches_that_expire_and_are_asked_again(tmp_path: Path, provider: str) -> None:
    limit = Decimal("1.5")
    with ProviderServer(dearest=True, faults={"expired": 0.5}, fault_times=1) as server:
        run = HostedRun(server, tmp_path, MODELS[provider], 12, {"batch": True})
        run.run("--max-cost", limit)
        assert len(run.stored()) == 12
        assert len(server.jobs) == 2
        books = run.require_true_books()
        assert books.paid == server.bill() <= limit


def test_a_limit_needs_a_price(tmp_path: Path) -> None:
    with ProviderServer() as server:
        run = HostedRun(server, tmp_path, MODELS["openai"], 4)
        (tmp_path / "other.toml").write_text(
            'date = "2026-11-20"\ncurrency = "USD"\n[models."openai:other"]\ninput = "1"\noutput = "1"\n'
        )
        ended = run.run("--max-cost", 1, code=2, prices=str(tmp_path / "other.toml"))
        assert "--prices" in ended.stderr
        assert server.charged() == []
        # Without a limit it runs, and what it cost is unknown, not nothing.
        run.run(prices=str(tmp_path / "other.toml"))
        costs = json.loads((run.out / "summary.json").read_text())["costs"]
        assert "null" in json.dumps(costs)


@BOTH
def test_the_costs_command_agrees_with_the_servers_bill(tmp_path: Path, provider: str) -> None:
    with ProviderServer(faults_at={"item2": "cut:1", "item3": "http_500:1"}) as server:
        run = HostedRun(server, tmp_path, MODELS[provider], 8)
        run.run()
        books = run.require_true_books()
        shown = json.loads(costs(run, "--format", "json"))
        assert str(books.paid) in json.dumps(shown)
        calls = list(csv.DictReader(io.StringIO(costs(run, "--calls", "--format", "csv"))))
        assert len(calls) == len(books.calls) == 10
        by_id = {charge.request_id: charge.dollars for charge in server.charged()}
        listed = {
            row["request_id"]: Decimal(next(v for k, v in row.items() if "usd" in k or "dollars" in k))
            for row in calls
            if row["billing"] == "paid"
        }
        assert {key: by_id[key] for key in listed} == listed
        assert sum(listed.values()) == books.paid


def costs(run: HostedRun, *options: str) -> str:
    """What `h2htalk costs` prints."""
    command = [sys.executable, "-m", "h2htalk", "costs", str(run.out), *options]
    ended = subprocess.run(command, capture_output=True, text=True, env={**os.environ}, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@BOTH
@pytest.mark.parametrize("batch", [False, True], ids=["calls", "jobs"])
def test_a_dry_run_asks_nothing_and_its_most_is_never_less_than_the_bill(
    tmp_path: Path, provider: str, batch: bool
) -> None:
    with ProviderServer(dearest=True) as server:
        run = HostedRun(server, tmp_path, MODELS[provider], 8, {"batch": batch})
        said = run.run("--dry-run").stdout
        assert not server.seen
        assert not run.out.exists()
        most = re.search(r"at most ([\d.,]+) \(?prices|at most ([\d.,]+)", said)
        assert most is not None, said
        run.run()
        assert server.bill() <= Decimal((most[1] or most[2]).rstrip(".,")), said
