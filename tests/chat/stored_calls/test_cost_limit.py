"""One limit for all models of a stage, never exceeded; cost logs that a kill leaves open are settled."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from compose_made import talk
from curation_made import finished, run_one
from hypothesis import given, settings
from hypothesis import strategies as st
from provider_books import PRICES
from providers import JobPlan, ProviderServer, price_file
from quick_batches import hurried

from h2htalk.chat.batch.job_journal import BatchFolder, BatchJournal
from h2htalk.chat.protocol import Message, Request, Sampling
from h2htalk.chat.stored_calls.stored_calls import CallSettings, StoredCalls
from h2htalk.curation.compose.settings import ComposeSettings
from h2htalk.curation.gather.settings import GatherSettings, SimulateSettings
from h2htalk.curation.stage_folder import RecordCounts
from h2htalk.curation.workspace import Workspace
from h2htalk.data.files import read_jsonl
from h2htalk.errors import ConfigError, IncompleteError

USER, COMPANION = "openai:gpt-test", "anthropic:claude-test"


@contextmanager
def serving(monkeypatch: pytest.MonkeyPatch, **plan: Any) -> Iterator[ProviderServer]:
    with ProviderServer(**plan) as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        yield server


def simulate(folder: Path, max_cost: float | None = None, **more: Any) -> RecordCounts:
    """Simulate six short dialogues in two parts."""
    (folder / "prices.toml").write_text(price_file())
    made = {"user": USER, "companion": COMPANION, "dialogues": 6, "turns": 4, "languages": ("en",), **more}
    asked = GatherSettings(simulate=SimulateSettings(**made, max_cost=max_cost))  # type: ignore[arg-type]
    place = Workspace(folder / "work")
    return run_one("gather", place, asked, part=4, prices=str(folder / "prices.toml"))


def bills(server: ProviderServer) -> dict[str, Decimal]:
    found: Counter[str] = Counter()
    for charge in server.charged():
        found[charge.model] += charge.dollars  # type: ignore[assignment]
    return dict(found)  # type: ignore[arg-type]


# --- Two models of one stage ------------------------------------------------------------------------------------


@settings(max_examples=6, deadline=None, derandomize=True)
@given(
    limits=st.lists(st.floats(0.0002, 0.04), min_size=1, max_size=2),
    dearest=st.booleans(),
    faults=st.sampled_from([{}, {"gateway_timeout": 0.2}, {"no_usage": 0.3}]),
    models=st.sampled_from([(USER, COMPANION), (COMPANION, USER), (USER, USER)]),
)
def test_two_models_together_never_exceed_the_limit(
    limits: list[float], dearest: bool, faults: dict[str, float], models: tuple[str, str]
) -> None:
    """Whichever model needs more, in several starts with higher limits, and whatever calls are lost."""
    with (
        pytest.MonkeyPatch.context() as patched,
        serving(patched, dearest=dearest, faults=faults, fault_times=1) as server,
        tempfile.TemporaryDirectory() as folder,
    ):
        for limit in sorted(limits):
            with suppress(IncompleteError):
                simulate(Path(folder), limit, user=models[0], companion=models[1])
            assert server.bill() <= Decimal(str(limit))


# --- One model after another ------------------------------------------------------------------------------------


def request(name: str, text: str = "Hello") -> Request:
    return Request(name, (Message("user", text),), Sampling(max_tokens=16))


def open_calls(folder: Path, model: str, max_cost: float | None = None, **more: Any) -> StoredCalls:
    (folder / "prices.toml").write_text(price_file())
    made = CallSettings(model, max_cost, prices=str(folder / "prices.toml"), **more)
    return StoredCalls(made, folder / "stage", "review")


def test_the_cost_of_an_earlier_model_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After each change of the model the whole limit was available again."""
    with serving(monkeypatch, dearest=True) as server:
        for model in (USER, COMPANION, USER):
            requests = [request(f"item{n}", f"{model} {n}") for n in range(60)]
            with open_calls(tmp_path, model, 0.01) as open_one, pytest.raises(IncompleteError, match="max_cost"):
                open_one.ask(requests, "part-00000")
        assert Decimal("0.009") < server.bill() <= Decimal("0.01")


def test_an_unknown_price_of_an_earlier_model_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(monkeypatch) as server:
        with StoredCalls(CallSettings(USER), tmp_path / "stage", "review") as unpriced:
            unpriced.ask([request("a")], "part-00000")
        prices = tmp_path / "prices.toml"
        prices.write_text(price_file({COMPANION: PRICES[COMPANION]}))
        with (
            StoredCalls(CallSettings(COMPANION, 1.0, prices=str(prices)), tmp_path / "stage", "review") as priced,
            pytest.raises(ConfigError, match=r"review\.jsonl holds calls whose price is unknown"),
        ):
            priced.ask([request("a")], "part-00000")
        assert set(bills(server)) == {USER}
        # With a known price their cost counts.
        with open_calls(tmp_path, COMPANION, 1.0) as priced:
            priced.ask([request("a")], "part-00000")


# --- What a kill leaves open ------------------------------------------------------------------------------------


def events(folder: Path) -> list[str]:
    lines = (line for _, line in read_jsonl(folder / "stage/costs/review.jsonl"))
    return [str(line["event"]) for line in lines if line["event"] != "opened"]


def leave_open(folder: Path) -> None:
    """Leave a call as a kill does: reserved, and not settled."""
    path = folder / "stage/costs/review.jsonl"
    lines = [line for _, line in read_jsonl(path)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines if line["event"] != "paid"))


def test_a_call_with_a_stored_reply_is_paid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(monkeypatch) as server:
        with open_calls(tmp_path, USER) as one:
            one.ask([request("a")], "part-00000")
        leave_open(tmp_path)
        with open_calls(tmp_path, USER) as one:
            one.ask([request("a"), request("b")], "part-00000")
        assert len(server.charged()) == 2
    assert events(tmp_path) == ["sent", "paid", "sent", "paid"]


@pytest.mark.parametrize("end", ["possibly_paid", "free"])
def test_a_call_without_a_reply_has_no_stored_reply(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    """A reply stored for an item does not settle a call of it that timed out."""
    with serving(monkeypatch):
        with open_calls(tmp_path, USER) as one:
            one.ask([request("a")], "part-00000")
        journal = tmp_path / "stage/costs/review.jsonl"
        opened, sent, paid = (line for _, line in read_jsonl(journal))
        assert paid["event"] == "paid"
        lines = [opened, sent, {"event": end, "call": 1, "reason": "timeout"}, {**sent, "call": 2}]
        journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
        with open_calls(tmp_path, USER) as one:
            one.ask([request("b")], "part-00000")
    assert events(tmp_path) == ["sent", end, "sent", "paid", "sent", "paid"]


def test_a_reply_to_another_prompt_does_not_settle_an_open_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any stored reply of an item settled the open call: an expensive call had the cost of an old cheap one."""
    with serving(monkeypatch):
        with open_calls(tmp_path, USER) as one:
            one.ask([request("a")], "part-00000")
        journal = tmp_path / "stage/costs/review.jsonl"
        sent = {"event": "sent", "call": 2, "items": [["a", 0]], "bound": [9000, 16], "usd": "0.0227"}
        with journal.open("a") as file:
            file.write(json.dumps(sent) + "\n")
        with open_calls(tmp_path, USER) as one:
            one.ask([request("b")], "part-00000")
    assert events(tmp_path) == ["sent", "paid", "sent", "possibly_paid", "sent", "paid"]


def test_an_open_batch_job_without_batch_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its replies would have been paid for twice."""
    with serving(monkeypatch) as server:
        with BatchJournal(BatchFolder(tmp_path / "stage/batches")) as journal:
            (record,) = journal.plan(USER, [[(("a", 0),)]], 0.0)
            record = journal.note(record, "sending", 0.0, after=None, worst_usd="0.1")
            journal.note(record, "submitted", job="batch_1")
        with open_calls(tmp_path, USER) as one, pytest.raises(ConfigError, match="set batch = true again"):
            one.ask([request("a")], "part-00000")
        assert not server.charged()


# --- Compose by batches -----------------------------------------------------------------------------------------


def compose(folder: Path, **more: Any) -> RecordCounts:
    place = Workspace(folder / "work")
    if not place.key_path.exists():
        finished(place.path, "dedup", [talk(n).to_dict() for n in range(1, 4)], part=2)
    (folder / "prices.toml").write_text(price_file())
    prices = str(folder / "prices.toml")
    return run_one("compose", place, ComposeSettings(model=USER, **more), prices=prices)


def test_compose_by_batches_makes_the_same_calls_at_half_the_price(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {}
    for name, batch in (("live", False), ("batch", True)):
        (tmp_path / name).mkdir()
        with serving(monkeypatch, dearest=True, jobs=JobPlan(polls=2)) as server, hurried():
            counts = compose(tmp_path / name, batch=batch, max_cost=5.0)
            compose(tmp_path / name, batch=batch, max_cost=5.0)
            found[name] = counts, server.bill()
            assert {charge.batch for charge in server.charged()} == {batch}
    assert found["live"][0] == found["batch"][0]
    assert found["batch"][1] == found["live"][1] / 2
    assert (tmp_path / "batch/work/compose/batches/jobs.jsonl").exists()


def test_a_batch_that_may_exceed_the_limit_is_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(monkeypatch) as server, hurried():
        with pytest.raises(ConfigError, match=r"max_cost 0\.001"):
            compose(tmp_path, batch=True, max_cost=0.001)
        assert not server.charged()


def test_after_a_failure_the_same_process_can_continue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cost log stayed locked as long as somebody kept the error."""
    with serving(monkeypatch), pytest.raises(IncompleteError) as caught:
        compose(tmp_path, max_cost=0.0001)
    with serving(monkeypatch):
        assert compose(tmp_path).read == 3
    assert "max_cost" in str(caught.value)
