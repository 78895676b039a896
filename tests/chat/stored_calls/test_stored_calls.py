"""Calls in a stage: every reply is stored when it comes, and no paid call is repeated."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from providers import ProviderServer, price_file

from h2htalk.chat.protocol import Message, Request, Sampling
from h2htalk.chat.stored_calls.stored_calls import CallSettings, StoredCalls, check_model
from h2htalk.errors import ConfigError, DataError, IncompleteError

SAMPLING = Sampling(max_tokens=16)


def request(name: str, text: str = "Hello", sample: int = 0) -> Request:
    return Request(name, (Message("user", text),), SAMPLING, sample)


def scripted(tmp_path: Path, *lines: dict[str, object]) -> CallSettings:
    path = tmp_path / "replies.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return CallSettings(f"scripted:{path}")


def test_replies_are_stored_by_id_and_sample(tmp_path: Path) -> None:
    settings = scripted(tmp_path, {"id": "a", "text": "yes"}, {"id": "a", "sample": 1, "text": "no"})
    with StoredCalls(settings, tmp_path / "stage", "review") as calls:
        answers = calls.ask([request("a"), request("a", sample=1)], "part-00000")
    assert {key: reply.text for key, reply in answers.items()} == {("a", 0): "yes", ("a", 1): "no"}
    assert len((tmp_path / "stage/calls/part-00000.jsonl").read_text().splitlines()) == 2


def test_a_stored_reply_is_used(tmp_path: Path) -> None:
    with StoredCalls(scripted(tmp_path, {"id": "a", "text": "first"}), tmp_path / "stage", "review") as calls:
        calls.ask([request("a")], "part-00000")
    again = scripted(tmp_path, {"id": "*", "text": "second"})
    with StoredCalls(again, tmp_path / "stage", "review") as calls:
        answers = calls.ask([request("a"), request("b")], "part-00000")
    assert (answers["a", 0].text, answers["b", 0].text) == ("first", "second")


def test_a_reply_to_another_prompt_is_not_used(tmp_path: Path) -> None:
    settings = scripted(tmp_path, {"id": "*", "text": "x"})
    with StoredCalls(settings, tmp_path / "stage", "review") as calls:
        calls.ask([request("a", "Hello")], "part-00000")
        calls.ask([request("a", "Good evening")], "part-00000")
    assert len((tmp_path / "stage/calls/part-00000.jsonl").read_text().splitlines()) == 2


def test_a_failed_call_leaves_the_part_incomplete_and_is_repeated(tmp_path: Path) -> None:
    failing = scripted(
        tmp_path,
        {"id": "a", "failure": {"reason": "timeout", "message": "never answered"}},
        {"id": "b", "text": "x"},
    )
    with (
        StoredCalls(failing, tmp_path / "stage", "review") as calls,
        pytest.raises(IncompleteError, match="1 calls of part-00000 failed, first a: never answered"),
    ):
        calls.ask([request("a"), request("b")], "part-00000")
    with StoredCalls(scripted(tmp_path, {"id": "a", "text": "y"}), tmp_path / "stage", "review") as calls:
        assert calls.ask([request("a"), request("b")], "part-00000")["a", 0].text == "y"


def test_a_reply_of_another_model_is_not_used(tmp_path: Path, server: ProviderServer) -> None:
    """Stored replies outlive --from-stage: a new model would have got those of the old one."""
    for model in ("openai:gpt-test", "anthropic:claude-test", "openai:gpt-test"):
        with StoredCalls(paid(tmp_path, model), tmp_path / "stage", "review") as calls:
            calls.ask([request("a", "a")], "part-00000")
    assert len(server.charged()) == 2
    assert len(list((tmp_path / "stage/costs").glob("review*.jsonl"))) == 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (CallSettings("opnai:x"), "unknown engine 'opnai'"),
        (CallSettings("scripted:no-such-file.jsonl"), "no-such-file.jsonl"),
        (CallSettings("openai:gpt-test"), "OPENAI_API_KEY"),
        (CallSettings("openai:unheard-of", 1.0), "price of openai:unheard-of is unknown"),
        (CallSettings("embedded", batch=True), "embedded has no batches"),
        (
            CallSettings("embedded", schema=True),
            "cannot enforce a response schema; choose from vllm, openai, anthropic",
        ),
    ],
)
def test_a_model_that_cannot_be_called_is_an_error(
    monkeypatch: pytest.MonkeyPatch, settings: CallSettings, message: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigError, match=message):
        check_model(settings)


def test_the_call_of_a_torn_last_line_is_repeated(tmp_path: Path) -> None:
    settings = scripted(tmp_path, {"id": "*", "text": "x"})
    with StoredCalls(settings, tmp_path / "stage", "review") as calls:
        calls.ask([request("a"), request("b")], "part-00000")
    path = tmp_path / "stage/calls/part-00000.jsonl"
    path.write_bytes(path.read_bytes()[:-9])
    with StoredCalls(settings, tmp_path / "stage", "review") as calls:
        assert set(calls.ask([request("a"), request("b")], "part-00000")) == {("a", 0), ("b", 0)}


def test_a_line_that_is_no_call_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "stage/calls/part-00000.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text('{"id": "a", "sample": 0, "text": "x"}\n')
    with (
        StoredCalls(scripted(tmp_path, {"id": "*", "text": "x"}), tmp_path / "stage", "review") as calls,
        pytest.raises(DataError, match=r"part-00000\.jsonl:1: not a stored call"),
    ):
        calls.ask([request("a")], "part-00000")


# --- Hosted models, through the real SDK ------------------------------------------------------------------------


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> ProviderServer:
    with ProviderServer() as running:
        for name, value in running.environment().items():
            monkeypatch.setenv(name, value)
        yield running


def paid(tmp_path: Path, model: str, max_cost: float | None = None) -> CallSettings:
    (tmp_path / "prices.toml").write_text(price_file())
    return CallSettings(model, max_cost, prices=str(tmp_path / "prices.toml"))


def test_equal_greedy_requests_are_called_for_once(tmp_path: Path, server: ProviderServer) -> None:
    """Within a study 55 of 440 calls were paid twice: a case's first turn is asked in several parts and arms."""
    drawn = replace(request("f"), sampling=Sampling(1.0, max_tokens=16))
    settings = paid(tmp_path, "openai:gpt-test")
    for _ in range(2):  # a restart calls for nothing
        with StoredCalls(settings, tmp_path / "stage", "generate", once=True) as calls:
            first = calls.ask([request("a"), request("b"), request("c", "Bye")], "part-0")
            other = calls.ask([request("d"), request("e", "Bye"), drawn, replace(drawn, id="g")], "part-1")
        assert "".join(sorted(name for name, _ in {**first, **other})) == "abcdefg"
        assert len(server.charged()) == 4  # Hello, Bye, and two that are drawn
    lines = [json.loads(line) for path in (tmp_path / "stage/calls").iterdir() for line in path.open()]
    assert sorted(line["id"] for line in lines if line.get("copy")) == ["b", "d", "e"]
    with StoredCalls(settings, tmp_path / "stage", "generate") as calls:
        calls.ask([request("a"), request("h")], "part-0")
    assert len(server.charged()) == 5


@pytest.mark.parametrize("model", ["openai:gpt-test", "anthropic:claude-test"])
def test_a_paid_call_is_reserved_once_and_never_repeated(tmp_path: Path, server: ProviderServer, model: str) -> None:
    requests = [request(f"item{n}", f"item{n}") for n in range(5)]
    for _ in range(2):
        with StoredCalls(paid(tmp_path, model), tmp_path / "stage", "review") as calls:
            assert len(calls.ask(requests, "part-00000")) == 5
    assert len(server.charged()) == 5
    events = [json.loads(line)["event"] for line in (tmp_path / "stage/costs/review.jsonl").read_text().splitlines()]
    assert (events.count("sent"), events.count("paid")) == (5, 5)


def test_the_limit_holds_over_all_parts(tmp_path: Path, server: ProviderServer) -> None:
    limit = 0.01
    for part in range(2):
        requests = [request(f"item{part}-{n}", f"item{n}") for n in range(100)]
        with (
            StoredCalls(paid(tmp_path, "openai:gpt-test", limit), tmp_path / "stage", "review") as calls,
            pytest.raises(IncompleteError, match=r"max_cost 0\.01: "),
        ):
            calls.ask(requests, f"part-{part:05}")
    assert 0 < len(server.charged()) < 200
    assert server.bill() <= limit
