"""The call store: every call is reserved before it is sent, its reply settles it, and the limit always holds."""

from __future__ import annotations

import contextlib
import json
import os
import random
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from h2htalk.benchmark.report.cost_tables import costs_text
from h2htalk.chat.prices import Price, PriceList, Totals, sum_totals
from h2htalk.chat.protocol import Answer, Bound, Call, FailedCall, Message, Reply, Request, Sampling
from h2htalk.chat.store.call_store import CallStore, read_costs, read_stores
from h2htalk.chat.store.model_calls import CallSettings, ModelCalls, check_model
from h2htalk.chat.store.stage_calls import CostLimitError, StageCalls
from h2htalk.curation.stage_folder import RecordCounts
from h2htalk.curation.stages import ComposeSettings
from h2htalk.curation.workspace import Workspace
from h2htalk.data.erasure.folder_kinds import FOLDER_KINDS, filter_file
from h2htalk.data.responses import Usage, read_answers
from h2htalk.errors import ConfigError, DataError, IncompleteError
from support.command_line import scripted
from support.compositions import talk
from support.curations import finished, run_one
from support.doubles.providers import ProviderServer, price_file
from support.hosted_apis import call_of
from support.hosted_runs import hurried

MODEL = "openai:m"
PRICE = Price(
    Decimal(2), Decimal(10), batch=Decimal("0.5"), max_input_tokens=10_000, date="2026-11-20"
)
BOUND = Bound(1000, 100)
WORST = Decimal("0.003")
USED = Usage(400, 50)
SPENT = Decimal("0.0013")
LOST = FailedCall("timeout", "no answer", "possibly_paid", retry=True)
REFUSED = FailedCall("rate_limited", "later", "free", retry=True)


def answer(text: str = "Hi.", usage: Usage = USED, samples: int = 1) -> Answer:
    one = usage if samples == 1 else Usage()
    return Answer(
        (Reply(text, usage=one, request_id="req_1", seconds=0.5),) * samples, usage, "req_1"
    )


def at(folder: Path, price: Price | None = PRICE, **more: Any) -> StageCalls:
    prices = PriceList("", {MODEL: price} if price else {})
    settings = {"stage": "generate", "model": MODEL, "prices": prices, **more}
    return StageCalls(CallStore(folder / "calls.jsonl"), **settings)


def lines(folder: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for line in (folder / "calls.jsonl").read_text(encoding="utf-8").splitlines()
    ]


def totals(calls: StageCalls) -> Totals:
    return sum_totals(calls.store.totals().values())


def test_a_call_is_on_disk_before_it_is_sent_and_its_reply_is_its_settlement(
    tmp_path: Path,
) -> None:
    calls = at(tmp_path)
    made = calls.reserve(call_of("a", 2), BOUND)
    [reserved] = lines(tmp_path)
    prompts = reserved.pop("prompts")
    assert reserved == {
        "reserved": 1, "stage": "generate", "asked": MODEL, "id": "a", "samples": [0, 1], "worst": "0.003",
        "bound": [1000, 100], "prices": "2026-11-20",
    }  # fmt: skip
    assert totals(calls) == Totals(calls=1, open=1, usd_open=WORST, prices="2026-11-20")
    calls.settle(made, answer(samples=2))
    end = lines(tmp_path)[1]
    assert (end["call"], end["usd"], end["usage"]) == (
        1,
        "0.0013",
        {"input_tokens": 400, "output_tokens": 50},
    )
    assert (end["id"], end["text"], end["prompt"], end["seconds"]) == ("a", "Hi.", prompts[0], 0.5)
    assert [(one["sample"], one["text"], one["prompt"]) for one in end["more"]] == [
        (1, "Hi.", prompts[1])
    ]
    with pytest.raises(ValueError, match="call 1 is settled already"):
        calls.settle(made, LOST)
    calls.store.close()
    with at(tmp_path).store as again:  # all that was written is read
        assert {key[1:3]: reply.text for key, reply in again.replies.items()} == {
            ("a", 0): "Hi.",
            ("a", 1): "Hi.",
        }
        assert again.totals() == calls.store.totals()


def test_every_end_of_a_call_is_counted_apart(tmp_path: Path) -> None:
    calls = at(tmp_path)
    made = [calls.reserve(call_of(name), BOUND) for name in "abcde"]
    calls.settle(made[0], answer(usage=Usage(400, 50, cache_read_tokens=300, reasoning_tokens=20)))
    calls.settle(made[1], answer(usage=Usage()))  # a reply that says nothing of its tokens
    calls.settle(made[2], REFUSED)
    calls.settle(made[3], LOST)
    expected = Totals(
        calls=5, paid=2, free=1, possibly_paid=1, unmetered=1, open=1, input_tokens=400, cache_read_tokens=300,
        output_tokens=50, usd_paid=SPENT, usd_possible=2 * WORST, usd_open=WORST, prices="2026-11-20",
    )  # fmt: skip
    assert totals(calls) == expected
    found = [call for store in read_stores(tmp_path) for call in store.calls]  # while it is written
    used = Usage(400, 50, 300, reasoning_tokens=20)
    assert found[0] == replace(made[0], billing="paid", usage=used, usd=SPENT, request_id="req_1")
    assert found[-1] == made[4]
    calls.store.close()
    calls = at(tmp_path).open(batch=False)  # what a kill left open is possibly paid
    assert (totals(calls).open, totals(calls).usd_possible) == (0, 3 * WORST)
    assert lines(tmp_path)[-1]["reason"] == "interrupted"
    calls.store.close()


def test_the_limit_holds_over_all_stages_models_and_starts(tmp_path: Path) -> None:
    """After each change of the model the whole limit was available again."""
    calls = at(tmp_path, limit=3 * WORST)
    calls.settle(calls.reserve(call_of("a"), BOUND), LOST)
    calls.store.close()
    prices = PriceList("", {"anthropic:m": PRICE})
    other = at(tmp_path, stage="review", model="anthropic:m", prices=prices, limit=3 * WORST)
    first = other.reserve(call_of("b"), BOUND)
    other.reserve(call_of("c"), BOUND)  # exactly the limit
    with pytest.raises(
        CostLimitError,
        match=r"0\.0090 US dollars are spent or reserved, and this call may cost 0\.00",
    ):
        other.reserve(call_of("d"), Bound(1, 0))
    other.settle(first, answer())
    with pytest.raises(CostLimitError, match="these 3 calls may cost"):  # all or none
        other.plan([[(call_of(name), BOUND) for name in "def"]], 0.0)
    assert [call.billing for call in other.store.calls].count("open") == 1
    (job,) = other.plan([[(call_of("d"), BOUND)]], 0.0)
    assert [call.worst for call in other.store.calls_of(job)] == [WORST / 2]  # the price of a batch
    other.store.close()
    assert set(read_costs(tmp_path)) == {"generate", "review"}


def test_without_a_price_calls_are_counted_and_a_limit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the price of openai:m is unknown"):
        at(tmp_path, price=None, limit=Decimal(1))
    calls = at(tmp_path, price=None)
    calls.settle(calls.reserve(call_of("a"), BOUND), REFUSED)
    assert totals(calls).usd_committed == 0  # what is free is free at any price
    calls.settle(calls.reserve(call_of("b"), BOUND), answer())
    calls.settle(calls.reserve(call_of("c"), BOUND), LOST)
    assert (totals(calls).usd_paid, totals(calls).usd_possible, totals(calls).usd_open) == (
        None,
        None,
        0,
    )
    assert calls.spent() == "price unknown"
    calls.store.close()
    priced = at(tmp_path, limit=Decimal(1)).open(batch=False)  # a price that is named later
    assert (totals(priced).usd_paid, totals(priced).usd_possible) == (SPENT, WORST)
    assert priced.spent() == "0.0013 (+ 0.0030 possibly) US dollars"
    with pytest.raises(
        CostLimitError, match="what this call can cost is unknown"
    ):  # longer than the price reaches
        priced.reserve(call_of("d"), Bound(10_001, 1))
    priced.settle(
        priced.reserve(call_of("e"), BOUND), answer(usage=Usage(1000, 0, cache_write_tokens=10))
    )
    with pytest.raises(CostLimitError, match="what was paid so far is unknown"):
        priced.reserve(call_of("f"), BOUND)
    priced.store.close()
    limited = at(tmp_path, limit=Decimal(1))
    with (
        limited.store,
        pytest.raises(ConfigError, match=r"calls\.jsonl holds calls whose price is unknown"),
    ):
        limited.open(batch=False)


def test_an_answer_at_another_price_is_unknown_stops_a_limited_run_and_can_be_priced_later(
    tmp_path: Path,
) -> None:
    """It was counted at the list price as if that were exact, and the limit with it."""
    calls = at(tmp_path, limit=Decimal(1))
    geo = replace(USED, inference_geo="eu")
    calls.settle(calls.reserve(call_of("a"), BOUND), answer(usage=geo))
    assert lines(tmp_path)[-1]["usage"]["inference_geo"] == "eu"
    assert "usd" not in lines(tmp_path)[-1]
    assert (totals(calls).usd_paid, totals(calls).unpriced) == (None, "eu")
    with pytest.raises(CostLimitError, match=r"that to 'a' says 'eu'; write factors = { eu = FAC"):
        calls.reserve(call_of("b"), BOUND)
    calls.store.close()
    resumed = at(tmp_path, limit=Decimal(1))
    with (
        resumed.store,
        pytest.raises(ConfigError, match=r"price is unknown: that to 'a' says 'eu'; write factors"),
    ):
        resumed.open(batch=False)
    price = replace(PRICE, factors={"eu": Decimal("1.2")})
    with at(tmp_path, price, limit=Decimal(1)).open(batch=False).store as store:
        stage = store.totals()["generate"]
    assert (stage.usd_paid, stage.unpriced) == (SPENT * Decimal("1.2"), "")


def test_a_job_is_read_as_it_was_written_and_not_asked_live(tmp_path: Path) -> None:
    calls = at(tmp_path)
    first, second = calls.plan(
        [[(call_of("a", 2), BOUND), (call_of("b"), BOUND)], [(call_of("c"), BOUND)]], 5.0
    )
    calls.store.record_job_event(first, "sending", when=6.0, after="msgbatch_7")
    sent = calls.store.record_job_event(first, "submitted", provider_id="batch_1")
    assert (sent.state, sent.job, sent.after, sent.when) == (
        "submitted",
        "batch_1",
        "msgbatch_7",
        6.0,
    )
    calls.store.close()
    live = at(tmp_path)
    with live.store, pytest.raises(ConfigError, match=r"waits for batch job batch_1: add --batch"):
        live.open(batch=False)
    again = at(tmp_path).open(batch=True)
    assert again.open_jobs() == [sent, second]
    again.settle(again.store.calls_of(sent)[1], answer("b's"))
    again.abandon(sent, "expired")
    assert again.open_jobs() == [second]  # nothing of the first is open
    again.store.close()
    assert totals(at(tmp_path).open(batch=False)) == Totals(
        calls=3,
        paid=1,
        free=2,
        input_tokens=400,
        output_tokens=50,
        usd_paid=SPENT / 2,
        prices="2026-11-20",
    )  # and the second, which was never sent, is free


RESERVED = '{"reserved": %d, "stage": "g", "asked": "m", "id": "b", "samples": [0], "bound": %s, "worst": null}'


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (RESERVED % (3, "[1, 1]"), "call 3 cannot follow call 1"),
        ('{"call": 2, "cost": "free"}', "call 2 is not open"),
        ('{"call": 1, "usd": "-1"}', "usd: must be"),
        ('{"job": "ab", "event": "submitted", "provider_id": "x"}', "was never planned"),
        ('{"job": "cd", "event": "submitted"}', "provider_id is missing"),
        ('{"job": "cd", "event": "sending", "when": "x"}', "'x'"),
        ("{", "JSON"),
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, line: str, said: str) -> None:
    calls = at(tmp_path)
    calls.reserve(call_of("a"), BOUND)
    calls.store.close()
    with (tmp_path / "calls.jsonl").open("a") as file:
        file.write(
            f'{{"job": "cd", "event": "planned", "stage": "g", "asked": "m", "when": 1}}\n{line}\n'
        )
    with pytest.raises(DataError, match=r"calls\.jsonl:3: ") as caught:
        at(tmp_path).open(batch=False)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "place", "name", "about"),
    [
        ("run", ".", "{}", None),
        ("run", "judgements", "{}/0/ab12", "{}"),
        ("study", ".", "sap/live/{}/1.1", "{}"),
        ("study", "judgements", "{}/sap.live.1/ab12", "{}"),
    ],
)
def test_an_erased_call_keeps_its_money(
    tmp_path: Path, kind: str, place: str, name: str, about: str | None
) -> None:
    def call(item: str) -> Call:
        asked = Request(
            name.format(item),
            (Message("user", "Hello"),),
            Sampling(),
            item=about and about.format(item),
        )
        return Call((0,), (asked,))

    folder = tmp_path / place
    calls = at(folder)
    for item in ("gone", "stays"):
        calls.settle(calls.reserve(call(item), BOUND), answer(f"Dear {item}"))
    calls.plan([[(call("gone"), BOUND)]], 0.0)
    calls.store.close()
    before = read_costs(tmp_path)
    for rows in FOLDER_KINDS[kind].rows:
        for path in (
            one
            for pattern in rows.files.split()
            for one in tmp_path.glob(pattern)
            if one.suffix == ".jsonl"
        ):
            filter_file(path, lambda row, rows=rows: {"gone"}.isdisjoint(rows.items(row)))  # type: ignore[misc]
    content = (folder / "calls.jsonl").read_text()
    assert "gone" not in content
    assert [line["prompts"] for line in lines(folder) if "prompts" in line] == [
        lines(folder)[2]["prompts"]
    ]
    assert read_costs(tmp_path) == before
    assert set(read_answers(folder / "calls.jsonl")) == {(name.format("stays"), 0)}
    again = at(folder).open(batch=True)  # a result that comes later is paid, and not stored
    (job,) = again.open_jobs()
    again.settle(again.store.calls_of(job)[0], answer("Dear gone"))
    again.store.close()
    assert "Dear gone" not in (folder / "calls.jsonl").read_text()
    assert read_costs(tmp_path)["generate"].usd_paid == 2 * SPENT + SPENT / 2


Charges = list[tuple[int, Decimal]]  # size of the file at each call, dollars


def run_all(folder: Path, draw: random.Random, limit: Decimal, charges: Charges) -> None:
    """Ask for what is not stored, until all is stored or the limit is reached; the provider notes its charges."""
    calls = at(folder, limit=limit).open(batch=False)
    with calls.store, contextlib.suppress(CostLimitError):
        for _ in range(6):
            for call in [
                call for call in map(call_of, "abcd") if calls.find(call.requests[0]) is None
            ]:
                made = calls.reserve(call, BOUND)
                usage = Usage(draw.randint(0, 1000), draw.randint(0, 100))
                fate: Any = draw.choice([answer(f"to {made.id}", usage)] * 2 + [LOST, REFUSED])
                dollars = Decimal(0) if fate is REFUSED else PRICE.cost(usage) or Decimal(0)
                charges.append(((folder / "calls.jsonl").stat().st_size, dollars))
                calls.settle(made, fate)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6), cut=st.floats(0, 1), limit=st.decimals("0.002", "0.03", places=4)
)
def test_cut_at_any_byte_no_paid_call_is_lost_or_repeated_and_the_limit_holds(
    tmp_path_factory: pytest.TempPathFactory, seed: int, cut: float, limit: Decimal
) -> None:
    """The file as a kill leaves it after any byte: what was charged until then is in it, paid or possibly paid."""
    folder = tmp_path_factory.mktemp("store")
    draw = random.Random(seed)
    charges = Charges()
    run_all(folder, draw, limit, charges)
    path = folder / "calls.jsonl"
    whole = path.read_bytes()
    assert _most(folder) <= limit
    end = round(len(whole) * cut)
    path.write_bytes(whole[:end])
    charges = [(size, dollars) for size, dollars in charges if size <= end]
    stored = dict(_stored(whole[:end]))
    assert sum(dollars for _, dollars in charges) <= _most(folder)
    run_all(folder, draw, limit, charges)
    assert sum(dollars for _, dollars in charges) <= _most(folder) <= limit
    ids = [item for item, _ in _stored(path.read_bytes())]
    assert len(ids) == len(set(ids)), "a stored reply was asked for again"
    assert stored.items() <= dict(_stored(path.read_bytes())).items(), "a reply was lost"


def _most(folder: Path) -> Decimal:
    return sum_totals(read_costs(folder).values()).usd_committed or Decimal(0)


def _stored(content: bytes) -> list[tuple[str, str]]:
    records = map(json.loads, content.split(b"\n")[:-1])
    return [(record["id"], record["text"]) for record in records if "text" in record]


USER, COMPANION = "openai:gpt-test", "anthropic:claude-test"


def request(name: str, text: str = "Hello", sample: int = 0) -> Request:
    return Request(name, (Message("user", text),), Sampling(max_tokens=16), sample)


def ask(
    model: str | CallSettings, folder: Path, *asked: Request, stage: str = "review", **more: Any
) -> dict[str, str]:
    """One start of a stage; texts by id and sample."""
    settings = CallSettings(model) if isinstance(model, str) else model
    with ModelCalls(settings, folder / "stage", stage, **more) as calls:
        return {
            f"{id}/{n}": reply.text for (id, n), reply in calls.ask(asked, "part-00000").items()
        }


def test_a_stored_reply_to_the_same_prompt_is_used(tmp_path: Path) -> None:
    first = scripted(tmp_path, {"id": "a", "text": "yes"}, {"id": "a", "sample": 1, "text": "no"})
    assert ask(first, tmp_path, request("a"), request("a", sample=1)) == {"a/0": "yes", "a/1": "no"}
    again = scripted(tmp_path, {"id": "*", "text": "second"})
    asked = request("a"), request("b"), request("a", "Good evening", 1)
    assert ask(again, tmp_path, *asked) == {"a/0": "yes", "b/0": "second", "a/1": "second"}
    assert ask(again, tmp_path, request("a"), stage="compose") == {
        "a/0": "second"
    }  # of another stage
    path = tmp_path / "stage/calls.jsonl"
    path.write_bytes(path.read_bytes()[:-9])  # a torn last line
    assert ask(again, tmp_path, request("a"), stage="compose") == {"a/0": "second"}


def test_a_failed_call_leaves_the_part_incomplete_and_is_repeated(tmp_path: Path) -> None:
    failed = {"id": "a", "failure": {"reason": "timeout", "message": "never answered"}}
    failing = scripted(tmp_path, failed, {"id": "b", "text": "x"})
    with pytest.raises(
        IncompleteError, match="1 calls of part-00000 failed, first a: never answered"
    ):
        ask(failing, tmp_path, request("a"), request("b"))
    assert (
        ask(scripted(tmp_path, {"id": "a", "text": "y"}), tmp_path, request("a"), request("b"))[
            "a/0"
        ]
        == "y"
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (CallSettings("opnai:x"), "unknown engine 'opnai'"),
        (CallSettings("openai:gpt-test"), "OPENAI_API_KEY"),
        (CallSettings("openai:unheard-of", 1.0), "price of openai:unheard-of is unknown"),
        (CallSettings("embedded", batch=True), "embedded has no batches"),
        (
            CallSettings("embedded", schema=True),
            "cannot enforce a response schema; choose from vllm, openai, anth",
        ),
    ],
)
def test_an_uncallable_model_is_an_error(
    monkeypatch: pytest.MonkeyPatch, settings: CallSettings, message: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    if settings.max_cost is not None:  # a key that is missing is told before prices are looked up
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    with pytest.raises(ConfigError, match=message):
        check_model(settings)


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    """A provider that charges as much as it can, and whose jobs end at the second look."""
    with (
        ProviderServer(dearest=True, looks=2) as running,
        patch.dict(os.environ, running.environment()),
    ):
        yield running


def paid(folder: Path, model: str, max_cost: float | None = None, **more: Any) -> CallSettings:
    (folder / "prices.toml").write_text(price_file())
    return CallSettings(model, max_cost, prices=str(folder / "prices.toml"), **more)


def test_a_paid_call_is_never_repeated_and_never_used_for_another_model(
    tmp_path: Path, server: ProviderServer
) -> None:
    """Stored replies outlive --from-stage: a new model would have got those of the old one."""
    asked = [request(f"item{n}", f"item{n}") for n in range(5)]
    for model in (USER, COMPANION, USER):
        assert len(ask(paid(tmp_path, model), tmp_path, *asked)) == 5
    assert len(server.charged()) == 10
    costs = read_costs(tmp_path / "stage")["review"]
    assert (costs.paid, costs.open, costs.usd_paid) == (10, 0, server.bill())


@pytest.mark.parametrize("costs", [True, False])
def test_a_reply_says_when_it_was_stored_now_and_after_a_restart(
    tmp_path: Path, server: ProviderServer, costs: bool
) -> None:
    settings = (
        paid(tmp_path, USER)
        if costs
        else CallSettings(scripted(tmp_path, {"id": "*", "text": "yes"}))
    )
    moments = []
    for _ in range(2):
        with ModelCalls(settings, tmp_path / "stage", "review") as calls:
            (reply,) = calls.ask([request("a")], "part-00000").values()
            moments.append(reply.at)
    (line,) = (line for line in lines(tmp_path / "stage") if "text" in line)
    assert moments == [line["at"]] * 2


def test_equal_greedy_requests_are_called_for_once(tmp_path: Path, server: ProviderServer) -> None:
    """Within a study 55 of 440 calls were paid twice: a case's first turn is asked in several parts and arms."""
    drawn = replace(request("f"), sampling=Sampling(1.0, max_tokens=16))
    settings = paid(tmp_path, USER)
    for _ in range(2):  # a restart calls for nothing
        first = ask(settings, tmp_path, request("a"), request("b"), request("c", "Bye"), once=True)
        other = ask(
            settings,
            tmp_path,
            request("d"),
            request("e", "Bye"),
            drawn,
            replace(drawn, id="g"),
            once=True,
        )
        assert "".join(sorted(name[0] for name in {**first, **other})) == "abcdefg"
        assert len(server.charged()) == 4  # Hello, Bye, and two that are drawn
    assert sorted(line["id"] for line in lines(tmp_path / "stage") if line.get("copy")) == [
        "b",
        "d",
        "e",
    ]
    ask(settings, tmp_path, request("a"), request("h"))
    assert len(server.charged()) == 5


def test_a_reply_says_when_it_was_stored(tmp_path: Path, server: ProviderServer) -> None:
    """A reading of a dialogue has the day of its stored reply, whenever the stage is made again."""
    drawn = replace(request("c"), sampling=Sampling(None, max_tokens=16))
    requests = [request("a"), request("b"), drawn, replace(drawn, id="d")]
    times: list[set[float | None]] = []
    for now in (1_700_000_000.0, 1_800_000_000.0):
        with (
            patch("h2htalk.chat.store.stage_calls.time.time", lambda now=now: now),
            ModelCalls(
                paid(tmp_path, USER), tmp_path, "review", once=True, sampled_too=True
            ) as calls,
        ):
            times.append({reply.at for reply in calls.ask(requests, "part").values()})
            times.append({reply.at for reply in calls.ask([request("e")], "part").values()})
    assert times == [{1_700_000_000.0}] * 4
    assert len(server.charged()) == 2
    assert {line["at"] for line in lines(tmp_path) if "text" in line} == {1_700_000_000.0}


def compose(folder: Path, **more: Any) -> RecordCounts:
    place = Workspace(folder / "work")
    if not place.key_path.exists():
        finished(place.path, "dedup", [talk(n).to_dict() for n in range(1, 4)], part=2)
    (folder / "prices.toml").write_text(price_file())
    return run_one(
        "compose", place, ComposeSettings(model=USER, **more), prices=str(folder / "prices.toml")
    )


def test_compose_by_batches_makes_the_same_calls_at_half_the_price(
    tmp_path: Path, server: ProviderServer
) -> None:
    counts, bills = [], []
    for name, batch in (("live", False), ("batch", True)):
        (tmp_path / name).mkdir()
        before = len(server.charged())
        with hurried():
            with pytest.raises((ConfigError, IncompleteError), match=r"max_cost 0\.0001"):
                compose(tmp_path / name, batch=batch, max_cost=0.0001)
            assert len(server.charged()) == before
            for _ in range(2):  # the same process continues, and repeats nothing
                found = compose(tmp_path / name, batch=batch, max_cost=5.0)
        counts.append(found)
        charges = server.charged()[before:]
        bills.append(sum(charge.dollars for charge in charges))
        assert {charge.batch for charge in charges} == {batch}
    assert counts[0] == counts[1]
    assert bills[1] == bills[0] / 2
    shown = costs_text(tmp_path / "live" / "work")  # a workspace's costs could not be shown
    assert shown.startswith(f"compose: {bills[0]:.4f} US dollars for ")
