"""Evaluating hosted models through the real command line: every fault of a live call, for both providers.

The server charges and keeps books of its own; the run's journal of costs must agree with them.
"""

from __future__ import annotations

import json
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hosted_runs import ANTHROPIC_FIRST, BOTH, MODELS, OPENAI_FIRST, HostedRun, name
from provider_model import REFUSAL
from providers import ProviderServer

# What the items from 4 on meet. `:1` is mended by asking again; what needs no mending is in the reply itself.
ORDERED = {
    4: "refusal",
    5: "truncated",
    7: "no_usage",
    8: "garbage",
    9: "rate_limited:1",
    10: "overloaded:1",
    11: "http_500:1",
    13: "gateway_timeout:1",
    14: "drop_before:1",
    15: "drop_after:1",
    16: "cut:1",
    18: "hang:1",
    19: "context_length",
    20: "http_500",
}
COMPUTED_TWICE = (13, 15, 16, 18)
FAILED = {8: "malformed_reply", 19: "context_length", 20: "http_500"}


@pytest.mark.slow
@BOTH
def test_every_fault_of_a_live_call_ends_in_an_answer_or_a_reason_and_true_books(tmp_path: Path, provider: str) -> None:
    at = {f"item{number}": fault for number, fault in ORDERED.items()}
    with ProviderServer(faults_at=at) as server:
        run = HostedRun(server, tmp_path, MODELS[provider], 22, {"timeout": 1.0, "attempts": 3})
        run.finish(run.start(), code=3)
        stored = run.stored()
        assert {item for item, _ in stored} == {name(n) for n in range(22)} - {name(n) for n in FAILED}
        assert {item: failure["reason"] for item, failure in run.failures().items()} == {
            name(number): reason for number, reason in FAILED.items()
        }
        # Computed, yet never arrived: asked again and charged again. A reply that arrived is never asked for again.
        expected = Counter({name(n): 1 + (n in COMPUTED_TWICE) for n in range(22) if n not in (19, 20)})
        assert run.charges_by_item() == expected

        counts = json.loads((run.out / "summary.json").read_text())["counts"]
        assert (counts["refused"], counts["truncated"]) == (1, 1)
        assert counts["failures"] == dict.fromkeys(sorted(FAILED.values()), 1)
        assert stored[name(4), 0] == REFUSAL

        books = run.require_true_books()
        whole = [charge for charge in server.charged() if charge.arrived]
        assert books.paid == sum(charge.dollars for charge in whole)
        assert len(books.metered) == len(whole) == 22 - len(FAILED) - 1  # item7 does not tell its usage
        assert books.ends["possibly_paid"] >= len(COMPUTED_TWICE)

        # The same command again asks for what failed, and for nothing else.
        before, seen = run.charges_by_item(), server.seen.copy()
        server.mend()
        run.run(code=0)
        assert {n for n, c in (run.charges_by_item() - before).items() if c} == {name(n) for n in FAILED}
        assert sum((server.seen - seen).values()) == len(FAILED)
        assert {**run.stored(), **stored} == run.stored()
        run.require_true_books()


@pytest.mark.parametrize(
    ("provider", "fault", "said"),
    [("openai", "unauthorized", "OPENAI_API_KEY"), ("anthropic", "unknown_model", "claude-test")],
)
def test_a_wrong_key_or_model_is_one_line_and_costs_nothing(
    tmp_path: Path, provider: str, fault: str, said: str
) -> None:
    with ProviderServer(faults={fault: 1}) as server:
        run = HostedRun(server, tmp_path, MODELS[provider], 4)
        ended = run.run(code=2)
        assert said in ended.stderr
        assert len(ended.errors) == 1, ended.stderr
        assert server.charged() == []
        assert run.stored() == {}


@OPENAI_FIRST
def test_credit_that_ends_in_the_middle_keeps_what_was_paid_and_goes_on_later(tmp_path: Path, provider: str) -> None:
    with ProviderServer(after={"no_credit": 5}) as server:
        run = HostedRun(server, tmp_path, MODELS[provider], 12, {"concurrency": 2})
        ended = run.run(code=2)
        assert "credit" in ended.stderr or "quota" in ended.stderr
        assert len(ended.errors) == 1, ended.stderr
        stored = run.stored()
        assert len(stored) == len(server.charged()) == 5
        assert run.require_true_books().paid == server.bill()
        server.mend()
        run.run(code=0)
        assert run.stored().items() >= stored.items()
        assert len(server.charged()) == 12
        assert run.require_true_books().paid == server.bill()


@pytest.mark.parametrize(
    ("provider", "settings", "charged"),
    [
        ("openai", {"temperature": 0.7}, [3] * 4),
        ("openai", {"temperature": 0.7, "batch": True}, [3] * 4),
        ("anthropic", {}, [1] * 12),
    ],
)
def test_openai_gives_the_samples_of_an_item_in_one_call_and_anthropic_is_asked_again(
    tmp_path: Path, provider: str, settings: dict[str, Any], charged: list[int]
) -> None:
    with ProviderServer() as server:
        run = HostedRun(server, tmp_path, MODELS[provider], 4, {"samples": 3, **settings})
        run.run()
        assert [charge.samples for charge in server.charged()] == charged
        assert len(set(run.stored().values())) == 12
        assert run.require_true_books().paid == server.bill()


def test_a_model_that_takes_no_temperature_is_asked_without(tmp_path: Path) -> None:
    with ProviderServer() as server:
        run = HostedRun(server, tmp_path, "openai:reasoner-test", 3)
        assert "--model-sampling" in run.run(code=2).stderr
        assert server.charged() == []
        run.run(model_sampling=True)
        assert all(charge.tokens.reasoning for charge in server.charged())
        assert run.require_true_books().paid == server.bill()


def test_a_prefix_is_written_to_anthropics_cache_once_and_read_by_all_others(tmp_path: Path) -> None:
    """The first call of each language goes ahead alone, as a cache can be read only once its reply was finished."""
    with ProviderServer(latency=0.05) as server:
        run = HostedRun(server, tmp_path, MODELS["anthropic"], 40)
        run.run()
        charges = server.charged()
        assert sum(charge.tokens.cache_write > 0 for charge in charges) == 2
        assert sum(charge.tokens.cache_read > 0 for charge in charges) == 38
        assert server.in_flight_max > 8, "the others waited for one another"
        assert run.require_true_books().paid == server.bill()


def test_what_openai_read_from_its_cache_is_paid_at_that_price(tmp_path: Path) -> None:
    with ProviderServer() as server:
        run = HostedRun(server, tmp_path, MODELS["openai"], 12, {"concurrency": 1})
        run.run()
        assert sum(charge.tokens.cache_read > 0 for charge in server.charged()) >= 10
        assert run.require_true_books().paid == server.bill()


@OPENAI_FIRST
def test_ctrl_c_books_what_was_in_flight_and_the_same_command_goes_on(tmp_path: Path, provider: str) -> None:
    with ProviderServer(latency=0.3) as server:
        run = HostedRun(server, tmp_path, MODELS[provider], 24, {"concurrency": 3})
        process = run.start()
        run.wait_until_stored(3, process)
        process.send_signal(signal.SIGINT)
        assert "the same command continues" in run.finish(process, code=130).stderr
        stored = run.stored()
        books = run.require_true_books()
        assert len(stored) == len(books.metered)
        assert books.ends["possibly_paid"] <= 3
        server.latency = 0
        run.run()
        assert run.stored().items() >= stored.items()
        assert len(run.stored()) == 24
        counts = run.charges_by_item()
        assert all(counts[item] == 1 for item, _ in stored)
        run.require_true_books()


@pytest.mark.slow
@ANTHROPIC_FIRST
def test_a_live_run_killed_at_any_moment_pays_no_stored_answer_twice(tmp_path: Path, provider: str) -> None:
    kills, concurrency = 3, 4
    with ProviderServer(latency=0.05) as server:
        run = HostedRun(server, tmp_path, MODELS[provider], 60, {"concurrency": concurrency})
        for kill in range(kills):
            stored, charged = run.stored(), run.charges_by_item()
            process = run.start()
            run.wait_until_stored(len(stored) + 1 + 5 * kill, process)
            run.kill(process)
            assert run.stored().items() >= stored.items(), "an answer that was stored is gone"
            now = run.charges_by_item()
            assert all(now[item] == charged[item] for item, _ in stored), "a stored answer was paid again"
            run.require_true_books(closed=False)
        run.run()
        assert len(run.stored()) == 60
        books = run.require_true_books()
        assert books.ends["possibly_paid"] <= kills * concurrency
        assert sum(run.charges_by_item().values()) <= 60 + kills * concurrency


@OPENAI_FIRST
def test_the_costs_that_are_shown_are_the_servers_bill(tmp_path: Path, provider: str) -> None:
    with ProviderServer(faults_at={"item3": "cut:1"}) as server:
        run = HostedRun(server, tmp_path, MODELS[provider], 8)
        ended = run.run()
        books = run.require_true_books()
        assert books.possible > 0
        costs = json.loads((run.out / "summary.json").read_text())["costs"]
        assert costs["generate"]["usd_paid"] == str(books.paid)
        assert costs["generate"]["usd_possible"] == str(books.possible)
        shown = " ".join(ended.stdout.split())
        assert f"Cost: {books.paid:.4f} US dollars for 8 calls" in shown
        assert "for 1 call whose reply never arrived" in shown


@OPENAI_FIRST
def test_a_provider_that_goes_away_leaves_reasons_and_no_bill_beyond_the_books(tmp_path: Path, provider: str) -> None:
    with ProviderServer(latency=0.05) as server:
        run = HostedRun(server, tmp_path, MODELS[provider], 24, {"concurrency": 4, "attempts": 2})
        process = run.start()
        run.wait_until_stored(3, process)
    ended = run.finish(process, code=3)
    assert "INCOMPLETE" in ended.stdout
    assert {failure["reason"] for failure in run.failures().values()} == {"connection"}
    run.require_true_books()
