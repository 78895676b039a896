"""Evaluating hosted models through the real command line, live and by batches: faults, limits, Ctrl-C and `kill -9`.

The server charges and keeps books of its own; the run's `calls.jsonl` must agree with them.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import time
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from h2htalk.benchmark.evaluate import estimate, evaluate
from h2htalk.benchmark.report.cost_tables import costs_text
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.chat.batch import batch_runner
from h2htalk.chat.store.call_store import read_costs
from h2htalk.errors import ConfigError
from h2htalk.interrupts import LONGEST_STOP
from support.doubles.providers import REFUSAL, Charge, ProviderServer, Refused, price_file
from support.hosted_runs import (
    ANTHROPIC_FIRST,
    BOTH,
    MODELS,
    OPENAI_FIRST,
    HostedRun,
    error_lines,
    name,
)
from support.kills import kill_when, wait_for
from support.splits import write_split

# What the items from 4 on meet. `:1` is mended by asking again; what needs no mending is in the reply itself.
FAULTS = (
    "refusal truncated no_usage garbage rate_limited:1 overloaded:1 http_500:1 gateway_timeout:1 drop_before:1 "
    "drop_after:1 cut:1 hang:1 context_length http_500"
)
ORDERED = dict(enumerate(FAULTS.split(), start=4))
COMPUTED_TWICE = (11, 13, 14, 15)
FAILED = {7: "malformed_reply", 16: "context_length", 17: "http_500"}
MIXED = {
    "gateway_timeout:2": 0.15,
    "cut:2": 0.15,
    "drop_after:2": 0.1,
    "overloaded:2": 0.1,
    "no_usage:2": 0.1,
}


@pytest.mark.slow
@BOTH
def test_every_fault_ends_in_a_reply_or_reason_and_true_books(
    tmp_path: Path, provider: str, monkeypatch: Any
) -> None:
    monkeypatch.setenv(f"{provider.upper()}_LOG", "debug")  # neither the key nor prompts are logged
    with ProviderServer(
        faults_at={f"item{number}": fault for number, fault in ORDERED.items()}
    ) as server:
        run = HostedRun(server, tmp_path, MODELS[provider], 18, {"timeout": 1.0, "attempts": 3})
        assert error_lines(run.finish(run.start(), code=3).stderr) == []
        stored = run.stored()
        assert {item for item, _ in stored} == {name(n) for n in range(18)} - {
            name(n) for n in FAILED
        }
        assert run.failures() == {name(number): reason for number, reason in FAILED.items()}
        # Computed, yet never arrived: asked again and charged again. A reply that arrived is never asked for again.
        expected = Counter(
            {name(n): 1 + (n in COMPUTED_TWICE) for n in range(18) if n not in (16, 17)}
        )
        assert run.charges_by_item() == expected
        counts = json.loads((run.out / "summary.json").read_text())["counts"]
        # The classifiers of Anthropic stop a reply; the models of OpenAI decline in a field of their own.
        kinds = {"openai": (1, 0), "anthropic": (0, 1)}
        assert (counts["refused"], counts["filtered"]) == kinds[provider]
        assert counts["truncated"] == 1
        assert counts["failures"] == dict.fromkeys(sorted(FAILED.values()), 1)
        assert stored[name(4), 0] == REFUSAL
        books = run.require_true_books()
        assert books.usd_paid == sum(
            charge.dollars for charge in server.charged() if charge.arrived
        )
        shown = list(csv.DictReader(io.StringIO(costs_text(run.out, calls=True, format="csv"))))
        assert sum(Decimal(row["usd"] or 0) for row in shown) == books.usd_paid
        # The same command again asks for what failed, and for nothing else.
        before = run.charges_by_item()
        seen = server.seen.copy()
        server.mend()
        run.run(code=0)
        assert {n for n, c in (run.charges_by_item() - before).items() if c} == {
            name(n) for n in FAILED
        }
        assert sum((server.seen - seen).values()) == len(FAILED)
        assert {**run.stored(), **stored} == run.stored()
        run.require_true_books()


@ANTHROPIC_FIRST
def test_a_run_whose_credit_ends_goes_on_in_batches_and_live_again(
    tmp_path: Path, provider: str
) -> None:
    with ProviderServer(after={"no_credit": 3}) as server:
        run = HostedRun(server, tmp_path, MODELS[provider], 12, {"concurrency": 1})
        assert "credit" in run.run(code=2).stderr
        assert len(run.stored()) == 3
        assert run.require_true_books().usd_paid == server.bill()
        server.mend()
        server.faults_at = {"item7": "context_length"}
        run.run(code=3, batch=True)
        assert len(run.stored()) == 11
        server.mend()
        run.run()
        assert [charge.batch for charge in server.charged()] == [False] * 3 + [True] * 8 + [False]
        assert run.require_true_books().usd_paid == server.bill()


@ANTHROPIC_FIRST
def test_a_batch_run_whose_results_do_not_come_is_incomplete_and_goes_on_with_the_same_job(
    tmp_path: Path, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run bought its batch four times, scored nothing and ended with an error."""
    monkeypatch.setattr(batch_runner, "RESULTS_WAIT", 0.5)
    with ProviderServer() as server:
        run = HostedRun(server, tmp_path, MODELS[provider], 4, {"batch": True})
        server.not_yet["results"] = 10**6
        ended = run.run(code=3)
        text = " ".join(ended.stdout.split())  # without its line breaks
        assert "results_late" in text
        assert "for 4 calls still open" in text
        assert (len(server.jobs), len(run.stored())) == (1, 0)
        server.not_yet.clear()
        run.run()
        assert (len(server.jobs), len(run.stored()), len(server.charged())) == (1, 4, 4)
        assert run.require_true_books().usd_paid == server.bill()


class Refusing(ProviderServer):
    """Refuses a parameter of OpenAI's, in batches too."""

    refused = "store"

    def compute_call(
        self, provider: str, body: Any, request_id: str, batch: bool
    ) -> tuple[str | None, dict[str, Any], Charge | None]:
        if self.refused in body:
            message = f"Unsupported parameter: '{self.refused}' is not supported with this model."
            raise Refused(400, "invalid_request_error", message, "unsupported_parameter")
        return super().compute_call(provider, body, request_id, batch)


@pytest.mark.parametrize("batch", [False, True])
def test_a_refused_parameter_is_left_out_and_no_item_is_lost(tmp_path: Path, batch: bool) -> None:
    """A batch failed for every item, and its folder refused the option that the error named."""
    with Refusing() as server:
        run = HostedRun(server, tmp_path, MODELS["openai"], 4, {"batch": batch})
        (notice,) = error_lines(run.run().stderr)
        assert notice.endswith("asking again with --engine-option store=none")
        assert (len(run.stored()), len(server.charged())) == (4, 4)
        assert run.require_true_books().usd_paid == server.bill()
        assert len(server.jobs) == 2 * batch


@pytest.mark.parametrize("batch", [False, True])
def test_a_refused_seed_stops_a_run_with_what_to_type(tmp_path: Path, batch: bool) -> None:
    with Refusing() as server:
        server.refused = "seed"
        run = HostedRun(server, tmp_path, MODELS["openai"], 4, {"batch": batch})
        (message,) = error_lines(run.run(code=2).stderr)
        assert "add --engine-option seed=none" in message
        run.run("--engine-option", "seed=none")
        assert (len(run.stored()), len(server.charged())) == (4, 4)


@pytest.mark.slow
@OPENAI_FIRST
def test_a_batch_run_killed_while_its_job_runs_finds_the_job_and_pays_it_once(
    tmp_path: Path, provider: str
) -> None:
    with ProviderServer(looks=10_000) as server:
        run = HostedRun(server, tmp_path, MODELS[provider], 12, {"batch": True})
        kill_when(run.start(), lambda: sum(job.looks > 1 for job in server.jobs))
        server.looks = 0
        run.run()
        assert (len(server.jobs), len(run.stored()), len(server.charged())) == (1, 12, 12)
        assert run.require_true_books().usd_paid == server.bill()


@BOTH
def test_the_bill_never_passes_the_limit_even_when_every_call_costs_the_most(
    tmp_path: Path, provider: str
) -> None:
    with ProviderServer(dearest=True, faults=MIXED) as server:
        run = HostedRun(server, tmp_path, MODELS[provider], 30, {"attempts": 3, "concurrency": 8})
        limit = Decimal("0.12")
        assert "--max-cost" in run.run("--max-cost", limit, code=3).stdout
        books = run.require_true_books()
        assert (books.usd_committed or limit) <= limit
        assert 0 < server.bill() <= limit
        assert "max_cost" in run.failures().values()
        server.mend()
        run.run("--max-cost", 20)  # a higher limit asks for those that are left
        assert len(run.stored()) == 30
        run.require_true_books()


@OPENAI_FIRST
def test_answers_at_another_price_have_no_price_and_end_a_run_with_a_limit(
    tmp_path: Path, provider: str
) -> None:
    """The list price was told as if it were exact, and the limit let all of the run go on at the other one."""
    with ProviderServer(price_words={"service_tier": "priority"}) as server:
        run = HostedRun(server, tmp_path, MODELS[provider], 6, {"concurrency": 1})
        ended = run.run("--max-cost", 5, code=3)
        assert (len(server.charged()), len(run.stored())) == (1, 1)
        assert "price unknown (answers say priority)" in " ".join(ended.stdout.split())
        assert "write factors = { priority = FACTOR }" in run.run("--max-cost", 5, code=2).stderr
        prices = tmp_path / "prices.toml"
        prices.write_text(price_file().replace("batch =", 'factors = { priority = "2" }\nbatch ='))
        run.run("--max-cost", 5)
        assert len(run.stored()) == 6
        assert read_costs(run.out)["generate"].usd_paid == 2 * server.bill()


@OPENAI_FIRST
def test_ctrl_c_leaves_the_job_running_and_the_same_command_attaches_to_it(
    tmp_path: Path, provider: str
) -> None:
    with ProviderServer(looks=10_000) as server:
        run = HostedRun(server, tmp_path, MODELS[provider], 12, {"batch": True, "attempts": 3})
        process = run.start()
        wait_for(process, lambda: sum(job.looks > 1 for job in server.jobs))
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        ended = run.finish(process, code=130)
        assert time.monotonic() - sent < LONGEST_STOP + 2
        (job,) = server.jobs
        assert job.id in ended.stderr
        # Without --batch the same items would be asked twice.
        assert "--batch" in run.run(code=2, batch=False).stderr
        with ProviderServer() as other:  # which has no such job
            assert "--accept-endpoint" in replace(run, server=other).run(code=2).stderr
        server.looks = 0
        run.run()
        assert (len(server.jobs), len(run.stored())) == (1, 12)
        assert run.require_true_books().usd_paid == server.bill()


PRICED = re.compile(r"Price: about ([\d.,]+) US dollars .*, at most ([\d.,]+) if no reply is lost")
ITEMS = 6


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(key, raising=False)


def spec_of(folder: Path, **settings: Any) -> EvaluateSpec:
    if not (folder / "split").exists():
        write_split(folder / "split", ITEMS)
        (folder / "prices.toml").write_text(price_file())
    common = {
        "split": str(folder / "split"),
        "out": str(folder / "run"),
        "embedder": "none",
        "baselines": False,
    }
    hosted = {"model": MODELS["openai"], "prices": str(folder / "prices.toml")}
    return EvaluateSpec(**{**common, **(hosted if "model" not in settings else {}), **settings})


def priced(text: str) -> tuple[Decimal, Decimal]:
    found = PRICED.search(text)
    return Decimal(found[1]), Decimal(found[2])


@pytest.mark.parametrize("provider", MODELS)
def test_the_greatest_cost_is_reserved_and_the_expected_one_is_near_the_bill(
    tmp_path: Path, provider: str
) -> None:
    spec = spec_of(
        tmp_path, model=MODELS[provider], prices=str(tmp_path / "prices.toml"), max_tokens=64
    )
    message = estimate(spec)
    expected, greatest = priced(message)
    assert (f"{ITEMS} calls, about " in message, "(prices of 2026-11-20)" in message) == (
        True,
        True,
    )
    assert not (tmp_path / "run").exists()
    with ProviderServer() as server, patch.dict(os.environ, server.environment()):
        evaluate(spec)
        bill = server.bill()
    lines = [json.loads(line) for line in (tmp_path / "run/calls.jsonl").read_text().splitlines()]
    reserved = sum(Decimal(line["worst"]) for line in lines if "reserved" in line)
    assert reserved <= greatest < reserved + Decimal("0.0001")  # rounded up
    assert bill / 3 < expected < bill * 3
    again = estimate(spec)
    assert f"0 calls ({ITEMS} answered already)" in again
    assert f"Price: nothing more. Paid already: {bill:.4f} US dollars for " in again


def test_an_unknown_price_is_unknown_and_says_how_to_name_it(tmp_path: Path) -> None:
    message = estimate(spec_of(tmp_path, model="openai:house-model"))
    assert message.endswith("Price: unknown: name it in a file with --prices.")
    with pytest.raises(ConfigError, match="max_cost: the price of openai:house-model is unknown"):
        estimate(spec_of(tmp_path, model="openai:house-model", max_cost=1.0))


def test_a_limit_that_is_too_low_is_said_before_the_run(tmp_path: Path) -> None:
    greatest = priced(estimate(spec_of(tmp_path)))[1]
    assert "--max-cost" not in estimate(spec_of(tmp_path, max_cost=float(greatest)))
    assert "may stop the run before its end." in estimate(
        spec_of(tmp_path, max_cost=float(greatest / 2))
    )
    assert "a batch is sent whole or not at all." in estimate(
        spec_of(tmp_path, max_cost=0.001, batch=True)
    )


def test_what_a_running_batch_brings_is_not_counted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = spec_of(tmp_path, batch=True)
    with ProviderServer() as server, patch.dict(os.environ, server.environment()):
        evaluate(spec)
    path = (
        tmp_path / "run" / "calls.jsonl"
    )  # as a kill in the middle of reading the results leaves it
    lines = path.read_text().splitlines(keepends=True)
    ends = [number for number, line in enumerate(lines) if '"call"' in line]
    path.write_text("".join(lines[: ends[2]]))
    message = estimate(spec)
    assert "0 calls (2 answered already)" in message
    assert " more for 4 calls still open" in message
    with pytest.raises(ConfigError, match=r"waits for batch job .*: add --batch"):
        estimate(spec_of(tmp_path))
