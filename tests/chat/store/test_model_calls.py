"""Calls of a stage: every reply is stored when it comes, no paid call is repeated, the limit holds for all models."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from compose_made import talk
from curation_made import finished, run_one
from hosted_runs import hurried
from providers import ProviderServer, price_file

from h2htalk.benchmark.report.notes import costs_text
from h2htalk.chat.protocol import Message, Request, Sampling
from h2htalk.chat.store.call_store import read_costs
from h2htalk.chat.store.model_calls import CallSettings, ModelCalls, check_model
from h2htalk.curation.compose.settings import ComposeSettings
from h2htalk.curation.stage_folder import RecordCounts
from h2htalk.curation.workspace import Workspace
from h2htalk.errors import ConfigError, DataError, IncompleteError

USER, COMPANION = "openai:gpt-test", "anthropic:claude-test"


def request(name: str, text: str = "Hello", sample: int = 0) -> Request:
    return Request(name, (Message("user", text),), Sampling(max_tokens=16), sample)


def scripted(folder: Path, *lines: dict[str, object]) -> CallSettings:
    path = folder / "replies.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return CallSettings(f"scripted:{path}")


def ask(settings: CallSettings, folder: Path, *requests: Request, stage: str = "review", **more: Any) -> dict[str, str]:
    """One start of a stage; texts by id and sample."""
    with ModelCalls(settings, folder / "stage", stage, **more) as calls:
        return {f"{id}/{n}": reply.text for (id, n), reply in calls.ask(requests, "part-00000").items()}


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "stage/calls.jsonl").read_text().splitlines()]


def test_a_stored_reply_to_the_same_prompt_is_used(tmp_path: Path) -> None:
    first = scripted(tmp_path, {"id": "a", "text": "yes"}, {"id": "a", "sample": 1, "text": "no"})
    assert ask(first, tmp_path, request("a"), request("a", sample=1)) == {"a/0": "yes", "a/1": "no"}
    again = scripted(tmp_path, {"id": "*", "text": "second"})
    asked = request("a"), request("b"), request("a", "Good evening", 1)
    assert ask(again, tmp_path, *asked) == {"a/0": "yes", "b/0": "second", "a/1": "second"}
    assert ask(again, tmp_path, request("a"), stage="compose") == {"a/0": "second"}  # of another stage
    path = tmp_path / "stage/calls.jsonl"
    path.write_bytes(path.read_bytes()[:-9])  # a torn last line
    assert ask(again, tmp_path, request("a"), stage="compose") == {"a/0": "second"}


def test_a_failed_call_leaves_the_part_incomplete_and_is_repeated(tmp_path: Path) -> None:
    failed = {"id": "a", "failure": {"reason": "timeout", "message": "never answered"}}
    failing = scripted(tmp_path, failed, {"id": "b", "text": "x"})
    with pytest.raises(IncompleteError, match="1 calls of part-00000 failed, first a: never answered"):
        ask(failing, tmp_path, request("a"), request("b"))
    assert ask(scripted(tmp_path, {"id": "a", "text": "y"}), tmp_path, request("a"), request("b"))["a/0"] == "y"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (CallSettings("opnai:x"), "unknown engine 'opnai'"),
        (CallSettings("scripted:no-such-file.jsonl"), "no-such-file.jsonl"),
        (CallSettings("openai:gpt-test"), "OPENAI_API_KEY"),
        (CallSettings("openai:unheard-of", 1.0), "price of openai:unheard-of is unknown"),
        (CallSettings("embedded", batch=True), "embedded has no batches"),
        (CallSettings("embedded", schema=True), "cannot enforce a response schema; choose from vllm, openai, anth"),
    ],
)
def test_a_model_that_cannot_be_called_is_an_error(
    monkeypatch: pytest.MonkeyPatch, settings: CallSettings, message: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises((ConfigError, DataError), match=message):  # DataError: of the file of scripted
        check_model(settings)


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    """A provider that charges as much as it can, and whose jobs end at the second look."""
    with ProviderServer(dearest=True, looks=2) as running, patch.dict(os.environ, running.environment()):
        yield running


def paid(folder: Path, model: str, max_cost: float | None = None, **more: Any) -> CallSettings:
    (folder / "prices.toml").write_text(price_file())
    return CallSettings(model, max_cost, prices=str(folder / "prices.toml"), **more)


def test_a_paid_call_is_never_repeated_and_never_used_for_another_model(tmp_path: Path, server: ProviderServer) -> None:
    """Stored replies outlive --from-stage: a new model would have got those of the old one."""
    asked = [request(f"item{n}", f"item{n}") for n in range(5)]
    for model in (USER, COMPANION, USER):
        assert len(ask(paid(tmp_path, model), tmp_path, *asked)) == 5
    assert len(server.charged()) == 10
    costs = read_costs(tmp_path / "stage")["review"]
    assert (costs.paid, costs.open, costs.usd_paid) == (10, 0, server.bill())


def test_equal_greedy_requests_are_called_for_once(tmp_path: Path, server: ProviderServer) -> None:
    """Within a study 55 of 440 calls were paid twice: a case's first turn is asked in several parts and arms."""
    drawn = replace(request("f"), sampling=Sampling(1.0, max_tokens=16))
    settings = paid(tmp_path, USER)
    for _ in range(2):  # a restart calls for nothing
        first = ask(settings, tmp_path, request("a"), request("b"), request("c", "Bye"), once=True)
        other = ask(settings, tmp_path, request("d"), request("e", "Bye"), drawn, replace(drawn, id="g"), once=True)
        assert "".join(sorted(name[0] for name in {**first, **other})) == "abcdefg"
        assert len(server.charged()) == 4  # Hello, Bye, and two that are drawn
    assert sorted(line["id"] for line in lines(tmp_path) if line.get("copy")) == ["b", "d", "e"]
    ask(settings, tmp_path, request("a"), request("h"))
    assert len(server.charged()) == 5


def compose(folder: Path, **more: Any) -> RecordCounts:
    place = Workspace(folder / "work")
    if not place.key_path.exists():
        finished(place.path, "dedup", [talk(n).to_dict() for n in range(1, 4)], part=2)
    (folder / "prices.toml").write_text(price_file())
    return run_one("compose", place, ComposeSettings(model=USER, **more), prices=str(folder / "prices.toml"))


def test_compose_by_batches_makes_the_same_calls_at_half_the_price(tmp_path: Path, server: ProviderServer) -> None:
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
