"""Attempts at shards: which items are whose, what a new attempt takes over, and money that is claimed."""

from __future__ import annotations

import json
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loopback import LoopbackServer
from shards_made import ITEMS, OF, attempt_all, attempts_at, own_words, same_bytes, spec_of
from splits_made import write_split

import h2htalk
from h2htalk.chat.store.call_store import CostLimitError
from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.data.splits import load_split
from h2htalk.errors import ConfigError, DataError, H2HTalkError, IncompleteError
from h2htalk.scale.merge import merge
from h2htalk.scale.places import Place
from h2htalk.scale.shards import Claims, Shard, evaluate_shard


@pytest.mark.parametrize("text", ["", "3", "0/8", "9/8", "3/8/2", "-1/8", "3/ 8", "1.5/8", "a/b", "³/8", "1/1000000"])
def test_a_shard_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="write NUMBER/SHARDS"):
        Shard.parse(text)


def test_every_item_is_of_one_shard_whatever_the_order_of_rows(tmp_path: Path) -> None:
    split = load_split(str(write_split(tmp_path / "a", 50)))
    write_jsonl(
        tmp_path / "b" / "s.jsonl", reversed([record for _, record in read_jsonl(tmp_path / "a/scenarios.jsonl")])
    )
    turned = load_split(str(tmp_path / "b"))
    parts = [{one.id for one in Shard(n, 8).items(split).scenarios} for n in range(1, 9)]
    assert [{one.id for one in Shard(n, 8).items(turned).scenarios} for n in range(1, 9)] == parts
    assert sorted(name for part in parts for name in part) == sorted(one.id for one in split.scenarios)
    assert {len(part) for part in parts} == {6, 7}
    with pytest.raises(ConfigError, match="50 items make at most 50 shards"):
        Shard(51, 51).items(split)


@pytest.mark.parametrize("of", [1, 4])
def test_merged_shards_are_the_run_that_one_machine_would_have_made(tmp_path: Path, of: int) -> None:
    with LoopbackServer(reply=own_words) as server:
        settings = {"samples": 2, "temperature": 0.7, "sap": "none", "limit": 20}
        single = h2htalk.evaluate(spec_of(server, tmp_path, "single", **settings))
        attempt_all(spec_of(server, tmp_path, **settings), of)
        merged = merge([str(tmp_path / "shards")], tmp_path / "merged")
    assert same_bytes(tmp_path / "single", tmp_path / "merged") == {}
    assert merged.to_dict() == single.to_dict()
    assert h2htalk.load_run(tmp_path / "merged").summary == merged
    run = json.loads((tmp_path / "merged/run.json").read_text())
    assert [one["shard"] for one in run["shards"]] == [*range(1, of + 1)]
    assert merge([str(tmp_path / "shards")], tmp_path / "merged").to_dict() == merged.to_dict()  # and once more


def test_an_attempt_after_a_dead_one_asks_only_for_the_rest(tmp_path: Path) -> None:
    own = [one.id for one in Shard(1, 2).items(load_split(str(write_split(tmp_path / "split", ITEMS)))).scenarios]
    with LoopbackServer(reply=own_words, faults_at={f"item{int(own[5][-5:])}": "http_500"}) as server:
        spec = spec_of(server, tmp_path)
        with pytest.raises(IncompleteError, match="1 sample of it failed"):
            evaluate_shard(spec, Shard(1, 2))
        first, asked = attempts_at(spec, 1, 2)[0], server.requests
        assert first.failed == 1
        # As a kill leaves it: no mark, and half a line at the end.
        (Path(first.place.text) / "shard.json").unlink()
        with (Path(first.place.text) / "calls.jsonl").open("a") as file:
            file.write('{"id":"made-00000","sample":0,"te')
        server.mend()
        evaluate_shard(spec, Shard(1, 2))
        assert server.requests == asked + 1
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
        assert incomplete.counts.unscored == sum(attempts_at(spec, n)[0].failed for n in range(1, OF + 1)) > 0
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
            evaluate_shard(spec_of(server, tmp_path, model=f"server:other@{server.url}"), Shard(1, OF))
        with pytest.raises(ConfigError, match=r"holds shards of another number \(1-of-4\)"):
            evaluate_shard(spec, Shard(1, 5))
        h2htalk.evaluate(spec_of(server, tmp_path, "whole"))
        with pytest.raises(ConfigError, match="holds a run; name another --out"):
            evaluate_shard(spec_of(server, tmp_path, "whole"), Shard(1, 5))
        assert server.requests == before + ITEMS
    assert len(attempts_at(spec, 1)) == 1
    with pytest.raises(ConfigError, match="a run lies in a folder here"):
        h2htalk.evaluate(spec_of(server, tmp_path, "s3://bucket/run"))


def test_a_shard_goes_on_at_another_address_of_the_same_server_where_that_is_accepted(tmp_path: Path) -> None:
    with LoopbackServer(reply=own_words, faults={"context_length": 0.3}) as first, suppress(IncompleteError):
        evaluate_shard(spec_of(first, tmp_path), Shard(1, 2))
    with LoopbackServer(reply=own_words) as second:
        with pytest.raises(ConfigError, match="--accept-endpoint"):
            evaluate_shard(spec_of(second, tmp_path), Shard(1, 2))
        evaluate_shard(spec_of(second, tmp_path, accept_endpoint=True), Shard(1, 2))
        assert 0 < second.requests < 12


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"model": "baseline:constant"}, "answers at once"), ({"model": "openai:gpt-4o", "batch": True}, "batch job")],
)
def test_what_shards_bring_nothing_to_is_refused(tmp_path: Path, settings: dict[str, object], message: str) -> None:
    with LoopbackServer() as server, pytest.raises(ConfigError, match=message):
        evaluate_shard(spec_of(server, tmp_path, **settings), Shard(1, 2))
    assert not (tmp_path / "shards").exists()


def test_an_attempt_that_cannot_begin_leaves_nothing(tmp_path: Path) -> None:
    with LoopbackServer(faults={"unauthorized": 1.0}) as server, pytest.raises(H2HTalkError):
        evaluate_shard(spec_of(server, tmp_path), Shard(1, 2))
    assert attempts_at(spec_of(server, tmp_path), 1, 2) == []


# --- Money ------------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 3), st.decimals(0, 2, places=4), st.booleans()), max_size=30))
def test_what_attempts_claim_never_exceeds_the_share(steps: list[tuple[int, Decimal, bool]]) -> None:
    """Attempts claim and give back in any order; an attempt never holds less than it may have spent."""
    place = Place(f"memory://claims-{uuid4()}")
    attempts = [Claims(place, f"attempt-{n}", Decimal("1.5")) for n in range(4)]
    for who, amount, ends in steps:
        one, before = attempts[who], attempts[who].own
        if ends:
            one.give_back(min(amount, one.own))
            assert one.own <= amount
        else:
            with suppress(CostLimitError):
                assert one.claim(amount) == one.own >= amount
            assert one.own >= before
        assert sum((one.own for one in attempts), Decimal(0)) == one._taken()[0] <= Decimal("1.5")


def test_claims_of_two_writers_are_counted_once(tmp_path: Path) -> None:
    place = Place(str(tmp_path / "money"))
    one, other = Claims(place, "a", Decimal(1)), Claims(place, "b", Decimal(1))
    assert one.claim(Decimal("0.6")) == Decimal("0.6")
    with pytest.raises(CostLimitError, match=r"0\.6000 of this shard's share of 1\.00 US dollars"):
        other.claim(Decimal("0.6"))
    assert other.claim(Decimal("0.4")) == Decimal("0.4")
    one.give_back(Decimal("0.1"))
    assert other.claim(Decimal("0.8")) == Decimal("0.8")
    (tmp_path / "money/0001").unlink()  # a claim that is lost does not stop the others
    assert other.claim(Decimal("0.9")) == Decimal("0.9")


def test_what_earlier_attempts_spent_without_a_claim_counts(tmp_path: Path) -> None:
    claims = Claims(Place(str(tmp_path / "money")), "b", Decimal(1), books={"a": Decimal("0.7")})
    with pytest.raises(CostLimitError):
        claims.claim(Decimal("0.4"))
    assert claims.claim(Decimal("0.3")) == Decimal("0.3")


def test_a_storage_that_lets_two_writers_make_a_file_takes_no_paid_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place("memory://overwrites")
    monkeypatch.setattr(Place, "create", lambda *_: True)
    with pytest.raises(ConfigError, match="does not keep two writers apart"):
        Claims(place, "a", Decimal(1)).claim(Decimal("0.1"))
