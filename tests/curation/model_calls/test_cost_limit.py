"""One limit for all models of a stage, never passed; and books that a kill leaves open are closed rightly."""

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
from compose_made import distinct, talk
from hypothesis import given, settings
from hypothesis import strategies as st
from provider_books import PRICES
from providers import JobPlan, ProviderServer, price_file
from quick_batches import hurried

from h2htalk.chat.batch.job_journal import BatchFolder, BatchJournal
from h2htalk.chat.protocol import Message, Request, Sampling
from h2htalk.curation.compose.stage import make_stage
from h2htalk.curation.gather.stage import run_gather
from h2htalk.curation.model_calls.stored_calls import Asking, AskSettings
from h2htalk.curation.pipeline import Incomplete, run_stage
from h2htalk.curation.settings import ComposeSettings, CurateSpec, GatherSettings, SimulateSettings
from h2htalk.curation.stage_folder import Counts
from h2htalk.curation.workspace import Workspace
from h2htalk.data.files import read_jsonl
from h2htalk.errors import ConfigError

USER, COMPANION = "openai:gpt-test", "anthropic:claude-test"


@contextmanager
def serving(monkeypatch: pytest.MonkeyPatch, **plan: Any) -> Iterator[ProviderServer]:
    with ProviderServer(**plan) as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        yield server


def simulate(folder: Path, max_cost: float | None = None, **more: Any) -> Counts:
    """Two models talk, six short dialogues in two parts."""
    (folder / "prices.toml").write_text(price_file())
    made = {"user": USER, "companion": COMPANION, "dialogues": 6, "turns": 4, "languages": ("en",), **more}
    asked = GatherSettings(simulate=SimulateSettings(**made, max_cost=max_cost))  # type: ignore[arg-type]
    place = Workspace(folder / "work")
    spec = CurateSpec(str(place.path), asked, part=4, prices=str(folder / "prices.toml"))
    return run_gather(spec, folder, place, place.open_key())


def bills(server: ProviderServer) -> dict[str, Decimal]:
    found: Counter[str] = Counter()
    for charge in server.charged():
        found[charge.model] += charge.dollars  # type: ignore[assignment]
    return dict(found)  # type: ignore[arg-type]


# --- Two models of one stage ------------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    limits=st.lists(st.floats(0.0002, 0.08), min_size=1, max_size=3),
    dearest=st.booleans(),
    trouble=st.sampled_from([{}, {"gateway_timeout": 0.2}, {"no_usage": 0.3}]),
    models=st.sampled_from([(USER, COMPANION), (COMPANION, USER), (USER, USER)]),
)
def test_both_together_never_pass_the_limit(
    limits: list[float], dearest: bool, trouble: dict[str, float], models: tuple[str, str]
) -> None:
    """Whoever needs more of it, however often it is started anew with more, and whatever gets lost on the way."""
    with (
        pytest.MonkeyPatch.context() as patched,
        serving(patched, dearest=dearest, faults=trouble, fault_times=1) as server,
        tempfile.TemporaryDirectory() as folder,
    ):
        for limit in sorted(limits):
            with suppress(Incomplete):
                simulate(Path(folder), limit, user=models[0], companion=models[1])
            assert server.bill() <= Decimal(str(limit))


# --- One model after another ------------------------------------------------------------------------------------


def request(name: str, said: str = "Hello") -> Request:
    return Request(name, (Message("user", said),), Sampling(max_tokens=16))


def asking(folder: Path, model: str, max_cost: float | None = None, **more: Any) -> Asking:
    (folder / "prices.toml").write_text(price_file())
    made = AskSettings(model, max_cost, prices=str(folder / "prices.toml"), **more)
    return Asking(made, folder / "stage", "review")


def test_what_an_earlier_model_cost_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every change of the model began with a whole limit again."""
    with serving(monkeypatch, dearest=True) as server:
        for model in (USER, COMPANION, USER):
            requests = [request(f"item{n}", f"{model} {n}") for n in range(60)]
            with asking(tmp_path, model, 0.01) as open_one, pytest.raises(Incomplete, match="max_cost"):
                open_one.ask(requests, "part-00000")
        assert Decimal("0.009") < server.bill() <= Decimal("0.01")


def test_an_earlier_models_calls_at_an_unknown_price_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(monkeypatch) as server:
        with Asking(AskSettings(USER), tmp_path / "stage", "review") as unpriced:
            unpriced.ask([request("a")], "part-00000")
        prices = tmp_path / "prices.toml"
        prices.write_text(price_file({COMPANION: PRICES[COMPANION]}))
        with (
            Asking(AskSettings(COMPANION, 1.0, prices=str(prices)), tmp_path / "stage", "review") as priced,
            pytest.raises(ConfigError, match=r"review\.jsonl holds calls whose price is unknown"),
        ):
            priced.ask([request("a")], "part-00000")
        assert set(bills(server)) == {USER}
        # Priced by now: what they cost counts.
        with asking(tmp_path, COMPANION, 1.0) as priced:
            priced.ask([request("a")], "part-00000")


# --- What a kill leaves open ------------------------------------------------------------------------------------


def events(folder: Path) -> list[str]:
    lines = (line for _, line in read_jsonl(folder / "stage/costs/review.jsonl"))
    return [str(line["event"]) for line in lines if line["event"] != "opened"]


def leave_open(folder: Path) -> None:
    """As a kill leaves a call: reserved, and not settled."""
    path = folder / "stage/costs/review.jsonl"
    lines = [line for _, line in read_jsonl(path)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines if line["event"] != "paid"))


def test_an_answer_that_was_stored_is_paid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(monkeypatch) as server:
        with asking(tmp_path, USER) as one:
            one.ask([request("a")], "part-00000")
        leave_open(tmp_path)
        with asking(tmp_path, USER) as one:
            one.ask([request("a"), request("b")], "part-00000")
        assert len(server.charged()) == 2
    assert events(tmp_path) == ["sent", "paid", "sent", "paid"]


@pytest.mark.parametrize("end", ["possibly_paid", "free"])
def test_a_call_that_brought_nothing_leaves_no_answer_to_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """The item had timed out before: its stored answer counted as that call, the paid one as possibly paid."""
    with serving(monkeypatch):
        with asking(tmp_path, USER) as one:
            one.ask([request("a")], "part-00000")
        journal = tmp_path / "stage/costs/review.jsonl"
        opened, sent, paid = (line for _, line in read_jsonl(journal))
        assert paid["event"] == "paid"
        lines = [opened, sent, {"event": end, "call": 1, "reason": "timeout"}, {**sent, "call": 2}]
        journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
        with asking(tmp_path, USER) as one:
            one.ask([request("b")], "part-00000")
    assert events(tmp_path) == ["sent", end, "sent", "paid", "sent", "paid"]


def test_an_answer_to_other_words_does_not_settle_an_open_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anything stored of an item counted as the open call's answer: a dear call was settled as the old cheap one."""
    with serving(monkeypatch):
        with asking(tmp_path, USER) as one:
            one.ask([request("a")], "part-00000")
        journal = tmp_path / "stage/costs/review.jsonl"
        sent = {"event": "sent", "call": 2, "items": [["a", 0]], "bound": [9000, 16], "usd": "0.0227"}
        with journal.open("a") as file:
            file.write(json.dumps(sent) + "\n")
        with asking(tmp_path, USER) as one:
            one.ask([request("b")], "part-00000")
    assert events(tmp_path) == ["sent", "paid", "sent", "possibly_paid", "sent", "paid"]


def test_an_open_batch_job_is_not_forgotten_when_batches_are_switched_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its answers would have been paid for a second time."""
    with serving(monkeypatch) as server:
        with BatchJournal(BatchFolder(tmp_path / "stage/batches")) as journal:
            (record,) = journal.plan(USER, [[(("a", 0),)]], 0.0)
            record = journal.note(record, "sending", 0.0, after=None, worst_usd="0.1")
            journal.note(record, "submitted", job="batch_1")
        with asking(tmp_path, USER) as one, pytest.raises(ConfigError, match="set batch = true again"):
            one.ask([request("a")], "part-00000")
        assert not server.charged()


# --- Compose by batches -----------------------------------------------------------------------------------------


def compose(folder: Path, **more: Any) -> Counts:
    place = Workspace(folder / "work")
    if not place.key_path.exists():
        distinct(place.path, [talk(n) for n in range(1, 4)])
    (folder / "prices.toml").write_text(price_file())
    asked = ComposeSettings(model=USER, **more)
    spec = CurateSpec(str(place.path), GatherSettings(), compose=asked, prices=str(folder / "prices.toml"))
    return run_stage(make_stage(spec, place, place.open_key()), place)


def test_compose_by_batches_asks_the_same_at_half_the_price(
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
    assert (tmp_path / "batch/work/05-composed/batches/jobs.jsonl").exists()


def test_a_batch_that_might_pass_the_limit_is_not_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(monkeypatch) as server, hurried():
        with pytest.raises(ConfigError, match=r"max_cost 0\.001"):
            compose(tmp_path, batch=True, max_cost=0.001)
        assert not server.charged()


def test_after_a_failure_the_same_process_can_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The books stayed locked for as long as somebody held the error: `another process is writing it`."""
    with serving(monkeypatch), pytest.raises(Incomplete) as caught:
        compose(tmp_path, max_cost=0.0001)
    with serving(monkeypatch):
        assert compose(tmp_path).read == 3
    assert "max_cost" in str(caught.value)
