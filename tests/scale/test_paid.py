"""Paid calls over several machines: no shard spends more than its share, and the run's books hold every call."""

from __future__ import annotations

import json
import os
from decimal import Decimal
from pathlib import Path
from unittest.mock import patch

import pytest
from hosted_runs import HostedRun
from kills import kill_when
from providers import ProviderServer
from shards_made import same_bytes

from h2htalk.chat.store.call_store import read_costs
from h2htalk.scale.merge import find_attempts, merge
from h2htalk.scale.places import Place

ITEMS = 24


@pytest.fixture
def hosted(tmp_path: Path) -> HostedRun:
    server = ProviderServer()
    server.model.numbered = False
    return HostedRun(server, tmp_path, "openai:gpt-test", ITEMS)


def test_shards_cost_what_the_provider_charged_and_are_the_single_run(hosted: HostedRun) -> None:
    with hosted.server as server:
        for number in (1, 2, 3):
            hosted.run("--shard", f"{number}/3", max_cost=3.0)
        bill = server.bill()
        with patch.dict(os.environ, server.environment()):
            merge([str(hosted.out)], hosted.folder / "merged")
        assert read_costs(hosted.folder / "merged")["generate"].usd_paid == bill
        assert len(server.charged()) == ITEMS
        hosted.run("--out", hosted.folder / "single")
    assert same_bytes(hosted.folder / "single", hosted.folder / "merged") == {}


def test_a_killed_attempt_is_paid_for_once_and_its_share_is_never_passed(hosted: HostedRun) -> None:
    """Two attempts are killed while calls are in flight; what all of them spend stays below the shard's share."""
    hosted.settings["concurrency"] = 2
    with hosted.server as server:
        server.latency = 0.15
        for before in (3, 7):
            process = hosted.start("--shard", "1/2", max_cost=2.0)
            kill_when(process, lambda: len(server.charged()), before)
        server.latency = 0.0
        hosted.run("--shard", "1/2", max_cost=2.0)
        hosted.run("--shard", "2/2", max_cost=2.0)
        asked, bill = len(server.charged()), server.bill()
        with patch.dict(os.environ, server.environment()):
            merge([str(hosted.out)], hosted.folder / "merged")
    assert ITEMS <= asked <= ITEMS + 2 * 2  # none twice but those in flight at a kill
    totals = read_costs(hosted.folder / "merged")["generate"]
    assert (
        (totals.usd_paid or 0) <= bill <= (totals.usd_paid or 0) + (totals.usd_possible or 0) + (totals.usd_open or 0)
    )
    claims = [json.loads(path.read_bytes()) for path in sorted((hosted.out / "1-of-2/money").glob("0*"))]
    assert sum(Decimal(one["usd"]) for one in claims) <= Decimal(1)
    assert len({one["attempt"] for one in claims}) == 3


def test_a_share_that_is_spent_ends_the_attempt_before_the_call(hosted: HostedRun) -> None:
    with hosted.server as server:
        for _ in range(3):
            done = hosted.run("--shard", "1/2", code=3, max_cost=0.07)
            assert "max_cost" in done.stderr
            assert server.bill() <= Decimal("0.035")
        assert server.bill() > 0
        hosted.run("--shard", "1/2", max_cost=4.0)
    assert len(list(find_attempts(Place(str(hosted.out))))) >= 1


def test_two_attempts_at_once_spoil_nothing(hosted: HostedRun) -> None:
    """A ghost beside a requeued task: both finish, one wins, and every call of both is in the books."""
    with hosted.server as server:
        server.latency = 0.02
        both = [hosted.start("--shard", "1/1", max_cost=8.0) for _ in range(2)]
        for process in both:
            hosted.finish(process)
        with patch.dict(os.environ, server.environment()):
            merge([str(hosted.out)], hosted.folder / "merged")
        assert read_costs(hosted.folder / "merged")["generate"].usd_paid == server.bill()
        hosted.run("--out", hosted.folder / "single")
    different = same_bytes(hosted.folder / "single", hosted.folder / "merged")
    assert set(different) <= {"summary.json", "tables/costs.csv"}  # which tell what both have cost


def test_an_attempt_of_unknown_cost_is_not_taken_for_a_free_one(hosted: HostedRun) -> None:
    """Without a limit a model of unknown price may be asked; what that cost is not nothing for a limit that follows."""
    with hosted.server as server:
        prices = hosted.folder / "prices.toml"
        known, served = prices.read_text(), server.latency
        prices.write_text(known.replace("gpt-test", "gpt-other"))
        server.latency = 0.1
        kill_when(hosted.start("--shard", "1/1"), lambda: len(server.charged()), 5)
        server.latency, asked = served, len(server.charged())
        prices.write_text(known)
        done = hosted.run("--shard", "1/1", code=3, max_cost=float(server.bill()))
        assert "of this shard's share" in done.stderr
        assert len(server.charged()) == asked
