"""Attempts at shards: which items are whose, what a new attempt takes over, money that is claimed and spent."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from decimal import Decimal
from itertools import chain
from pathlib import Path
from unittest.mock import patch
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

import h2htalk
from h2htalk.chat.store.call_store import read_costs
from h2htalk.chat.store.stage_calls import CostLimitError
from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.data.splits import Split, load_split
from h2htalk.errors import ConfigError, DataError, H2HTalkError, IncompleteError
from h2htalk.scale.attempts import Shard
from h2htalk.scale.claims import Claims
from h2htalk.scale.merge import find_attempts, merge
from h2htalk.scale.shards import evaluate_shard
from h2htalk.scale.storage_folder import StorageFolder
from support.doubles.loopback import LoopbackServer
from support.doubles.providers import ProviderServer
from support.hosted_runs import HostedRun
from support.kills import kill_when
from support.shards import ITEMS, OF, attempt_all, attempts_at, own_words, same_bytes, spec_of
from support.splits import write_split


@pytest.mark.parametrize(
    "text", ["", "3", "0/8", "9/8", "3/8/2", "-1/8", "3/ 8", "1.5/8", "a/b", "³/8", "1/1000000"]
)
def test_a_shard_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="write NUMBER/SHARDS"):
        Shard.parse(text)


def ids_of(split: Split) -> set[str]:
    return {scenario.id for scenario in split.scenarios}


def test_every_item_is_of_one_shard_whatever_the_order_of_rows(tmp_path: Path) -> None:
    split = load_split(str(write_split(tmp_path / "a", 50)))
    records = [record for _, record in read_jsonl(tmp_path / "a/scenarios.jsonl")]
    write_jsonl(tmp_path / "b" / "s.jsonl", records[::-1])
    turned = load_split(str(tmp_path / "b"))
    id_sets = [ids_of(Shard(n, 8).items(split)) for n in range(1, 9)]
    assert [ids_of(Shard(n, 8).items(turned)) for n in range(1, 9)] == id_sets
    assert sorted(chain.from_iterable(id_sets)) == sorted(ids_of(split))
    assert {len(part) for part in id_sets} == {6, 7}
    with pytest.raises(ConfigError, match="50 items make at most 50 shards"):
        Shard(51, 51).items(split)


@pytest.mark.parametrize("total", [1, 4])
def test_merged_shards_are_the_run_that_one_machine_would_have_made(
    tmp_path: Path, total: int
) -> None:
    with LoopbackServer(reply=own_words) as server:
        settings = {"samples": 2, "temperature": 0.7, "sap": "none", "limit": 20}
        single = h2htalk.evaluate(spec_of(server, tmp_path, "single", **settings))
        attempt_all(spec_of(server, tmp_path, **settings), total)
        merged = merge([str(tmp_path / "shards")], tmp_path / "merged")
    assert same_bytes(tmp_path / "single", tmp_path / "merged") == {}
    assert merged.to_dict() == single.to_dict()
    assert h2htalk.load_run(tmp_path / "merged").summary == merged
    run = json.loads((tmp_path / "merged/run.json").read_text())
    assert [shard["shard"] for shard in run["shards"]] == [*range(1, total + 1)]
    assert (
        merge([str(tmp_path / "shards")], tmp_path / "merged").to_dict() == merged.to_dict()
    )  # and once more


def test_an_attempt_after_a_dead_one_asks_only_for_the_rest(tmp_path: Path) -> None:
    attempts_of_shard = [
        scenario.id
        for scenario in Shard(1, 2)
        .items(load_split(str(write_split(tmp_path / "split", ITEMS))))
        .scenarios
    ]
    with LoopbackServer(
        reply=own_words, faults_at={f"item{int(attempts_of_shard[5][-5:])}": "http_500"}
    ) as server:
        spec = spec_of(server, tmp_path)
        with pytest.raises(IncompleteError, match="1 sample of it failed"):
            evaluate_shard(spec, Shard(1, 2))
        first = attempts_at(spec, 1, 2)[0]
        requests = server.requests
        assert first.failed == 1
        # As a kill leaves it: no mark, and half a line at the end.
        (Path(first.storage.address) / "shard.json").unlink()
        with (Path(first.storage.address) / "calls.jsonl").open("a") as file:
            file.write('{"id":"made-00000","sample":0,"te')
        server.mend()
        evaluate_shard(spec, Shard(1, 2))
        assert server.requests == requests + 1
        evaluate_shard(spec, Shard(2, 2))
        merge([spec.out], tmp_path / "merged")
        h2htalk.evaluate(spec_of(server, tmp_path, "single"))
    assert same_bytes(tmp_path / "single", tmp_path / "merged") == {}


def test_a_finished_shard_is_not_attempted_again_and_one_with_failures_is(tmp_path: Path) -> None:
    with LoopbackServer(reply=own_words, faults={"context_length": 0.2}) as server:
        spec = spec_of(server, tmp_path)
        for number in range(1, OF + 1):
            with suppress(IncompleteError):  # where a sample of it failed
                evaluate_shard(spec, Shard(number, OF))
        incomplete = merge([spec.out], tmp_path / "incomplete")
        assert incomplete.incomplete
        assert (
            incomplete.counts.unscored
            == sum(attempts_at(spec, n)[0].failed for n in range(1, OF + 1))
            > 0
        )
        h2htalk.evaluate(spec_of(server, tmp_path, "single"))
        assert same_bytes(tmp_path / "single", tmp_path / "incomplete") == {}
        server.mend()
        attempt_all(spec)
        before = server.requests
        attempt_all(spec)
        assert server.requests == before
        assert not merge([spec.out], tmp_path / "merged").incomplete
        with pytest.raises(DataError, match="holds another run, or one of other attempts"):
            merge([spec.out], tmp_path / "incomplete")


def test_shards_of_another_signature_are_refused_before_anything_is_asked(tmp_path: Path) -> None:
    with LoopbackServer(reply=own_words) as server:
        spec = spec_of(server, tmp_path)
        evaluate_shard(spec, Shard(1, OF))
        before = server.requests
        for number in (1, 2):
            with pytest.raises(ConfigError, match=r"they differ in temperature \(0, 0.5\)"):
                evaluate_shard(spec_of(server, tmp_path, temperature=0.5), Shard(number, OF))
        with pytest.raises(ConfigError, match="differ in model"):
            evaluate_shard(
                spec_of(server, tmp_path, model=f"server:other@{server.url}"), Shard(1, OF)
            )
        with pytest.raises(ConfigError, match=r"holds shards of another number \(1-of-4\)"):
            evaluate_shard(spec, Shard(1, 5))
        h2htalk.evaluate(spec_of(server, tmp_path, "whole"))
        with pytest.raises(ConfigError, match="holds a run; name another --out"):
            evaluate_shard(spec_of(server, tmp_path, "whole"), Shard(1, 5))
        assert server.requests == before + ITEMS
    assert len(attempts_at(spec, 1)) == 1
    with pytest.raises(ConfigError, match="a run lies in a folder here"):
        h2htalk.evaluate(spec_of(server, tmp_path, "s3://bucket/run"))


def test_a_shard_goes_on_at_another_address_of_the_same_server_where_that_is_accepted(
    tmp_path: Path,
) -> None:
    with (
        LoopbackServer(reply=own_words, faults={"context_length": 0.3}) as first,
        suppress(IncompleteError),
    ):
        evaluate_shard(spec_of(first, tmp_path), Shard(1, 2))
    with LoopbackServer(reply=own_words) as second:
        with pytest.raises(ConfigError, match="--accept-endpoint"):
            evaluate_shard(spec_of(second, tmp_path), Shard(1, 2))
        evaluate_shard(spec_of(second, tmp_path, accept_endpoint=True), Shard(1, 2))
        assert 0 < second.requests < 12


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "baseline:constant"}, "answers at once"),
        ({"model": "openai:gpt-4o", "batch": True}, "batch job"),
    ],
)
def test_what_shards_bring_nothing_to_is_refused(
    tmp_path: Path, settings: dict[str, object], message: str
) -> None:
    with LoopbackServer() as server, pytest.raises(ConfigError, match=message):
        evaluate_shard(spec_of(server, tmp_path, **settings), Shard(1, 2))
    assert not (tmp_path / "shards").exists()
    with LoopbackServer(faults={"unauthorized": 1.0}) as server, pytest.raises(H2HTalkError):
        evaluate_shard(spec_of(server, tmp_path), Shard(1, 2))
    assert attempts_at(spec_of(server, tmp_path), 1, 2) == []  # it could not begin


# --- Money ------------------------------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(0, 3), st.decimals(0, 2, places=4), st.booleans()), max_size=30)
)
def test_what_attempts_claim_never_exceeds_the_share(
    steps: list[tuple[int, Decimal, bool]],
) -> None:
    """Attempts claim and give back in any order; an attempt never holds less than it may have spent."""
    storage = StorageFolder(f"memory://claims-{uuid4()}")
    attempts = [Claims(storage, f"attempt-{n}", Decimal("1.5")) for n in range(4)]
    for who, amount, finishes in steps:
        claims_a = attempts[who]
        before = attempts[who].claimed
        if finishes:
            claims_a.give_back(min(amount, claims_a.claimed))
            assert claims_a.claimed <= amount
        else:
            with suppress(CostLimitError):
                assert claims_a.claim(amount) == claims_a.claimed >= amount
            assert claims_a.claimed >= before
        assert (
            sum((attempt.claimed for attempt in attempts), Decimal(0))
            == claims_a._committed()[0]
            <= Decimal("1.5")
        )


def test_claims_of_two_writers_are_counted_once(tmp_path: Path) -> None:
    storage = StorageFolder(str(tmp_path / "money"))
    claims_a = Claims(storage, "a", Decimal(1))
    claims_b = Claims(storage, "b", Decimal(1))
    assert claims_a.claim(Decimal("0.6")) == Decimal("0.6")
    with pytest.raises(CostLimitError, match=r"0\.6000 of this shard's share of 1\.00 US dollars"):
        claims_b.claim(Decimal("0.6"))
    assert claims_b.claim(Decimal("0.4")) == Decimal("0.4")
    claims_a.give_back(Decimal("0.1"))
    assert claims_b.claim(Decimal("0.8")) == Decimal("0.8")
    (tmp_path / "money/0001").unlink()  # a claim that is lost does not stop the others
    assert claims_b.claim(Decimal("0.9")) == Decimal("0.9")
    # What earlier attempts spent without a claim counts.
    claims = Claims(
        StorageFolder(str(tmp_path / "earlier")),
        "b",
        Decimal(1),
        spent_before={"a": Decimal("0.7")},
    )
    with pytest.raises(CostLimitError):
        claims.claim(Decimal("0.4"))
    assert claims.claim(Decimal("0.3")) == Decimal("0.3")


def test_a_storage_that_lets_two_writers_make_a_file_takes_no_paid_shards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    storage = StorageFolder("memory://overwrites")
    monkeypatch.setattr(StorageFolder, "create", lambda *_: True)
    with pytest.raises(ConfigError, match="does not keep two writers apart"):
        Claims(storage, "a", Decimal(1)).claim(Decimal("0.1"))


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
        requests = len(server.charged())
        bill = server.bill()
        with patch.dict(os.environ, server.environment()):
            merge([str(hosted.out)], hosted.folder / "merged")
    assert ITEMS <= requests <= ITEMS + 2 * 2  # none twice but those in flight at a kill
    totals = read_costs(hosted.folder / "merged")["generate"]
    paid, possible, open_ = (
        claims_a or 0 for claims_a in (totals.usd_paid, totals.usd_possible, totals.usd_open)
    )
    assert paid <= bill <= paid + possible + open_
    claims = [
        json.loads(path.read_bytes()) for path in sorted((hosted.out / "1-of-2/money").glob("0*"))
    ]
    assert sum(Decimal(claim["usd"]) for claim in claims) <= Decimal(1)
    assert len({claim["attempt"] for claim in claims}) == 3


def test_a_share_that_is_spent_ends_the_attempt_before_the_call(hosted: HostedRun) -> None:
    with hosted.server as server:
        for _ in range(3):
            done = hosted.run("--shard", "1/2", code=3, max_cost=0.07)
            assert "max_cost" in done.stderr
            assert server.bill() <= Decimal("0.035")
        assert server.bill() > 0
        hosted.run("--shard", "1/2", max_cost=4.0)
    assert len(list(find_attempts(StorageFolder(str(hosted.out))))) >= 1


def test_two_attempts_at_once_spoil_nothing(hosted: HostedRun) -> None:
    """A ghost beside a requeued task: both finish, one wins, and every call of both is in the books."""
    with hosted.server as server:
        server.latency = 0.02
        processes = [hosted.start("--shard", "1/1", max_cost=8.0) for _ in range(2)]
        for process in processes:
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
        price_text = prices.read_text()
        served = server.latency
        prices.write_text(price_text.replace("gpt-test", "gpt-other"))
        server.latency = 0.1
        kill_when(hosted.start("--shard", "1/1"), lambda: len(server.charged()), 5)
        server.settle()
        server.latency = served
        requests = len(server.charged())
        prices.write_text(price_text)
        done = hosted.run("--shard", "1/1", code=3, max_cost=float(server.bill()))
        assert "of this shard's share" in done.stderr
        assert len(server.charged()) == requests


@pytest.mark.parametrize(
    "dollars",
    ['"NaN"', '"sNaN"', '"Infinity"', '"-Infinity"', "1e999", "[" * 100_000, "null", "{}"],
)
def test_a_claim_that_is_no_amount_is_named(dollars: str) -> None:
    """A claim of NaN was compared with the share, or ended in a traceback."""
    storage = StorageFolder(f"memory://claims-{uuid4()}")
    storage.write("0001", f'{{"attempt": "other", "usd": {dollars}}}'.encode())
    with pytest.raises(DataError, match="0001: not a claim that can be read"):
        Claims(storage, "own", Decimal(10)).claim(Decimal(1))
