"""Asking within a stage: an answer is stored as it comes, and no paid call is repeated."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from providers import ProviderServer, price_file

from h2htalk.chat.protocol import Message, Request, Sampling
from h2htalk.curation.model_calls.stored_calls import Asking, AskSettings, check_model
from h2htalk.curation.pipeline import Incomplete
from h2htalk.errors import ConfigError, DataError

SAMPLING = Sampling(max_tokens=16)


def request(name: str, said: str = "Hello", sample: int = 0) -> Request:
    return Request(name, (Message("user", said),), SAMPLING, sample)


def scripted(tmp_path: Path, *lines: dict[str, object]) -> AskSettings:
    path = tmp_path / "replies.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return AskSettings(f"scripted:{path}")


def test_answers_are_by_id_and_sample_and_lie_in_the_stage(tmp_path: Path) -> None:
    settings = scripted(tmp_path, {"id": "a", "text": "yes"}, {"id": "a", "sample": 1, "text": "no"})
    with Asking(settings, tmp_path / "stage", "review") as asking:
        answers = asking.ask([request("a"), request("a", sample=1)], "part-00000")
    assert {key: reply.text for key, reply in answers.items()} == {("a", 0): "yes", ("a", 1): "no"}
    assert len((tmp_path / "stage/calls/part-00000.jsonl").read_text().splitlines()) == 2


def test_what_is_stored_is_not_asked_again(tmp_path: Path) -> None:
    with Asking(scripted(tmp_path, {"id": "a", "text": "first"}), tmp_path / "stage", "review") as asking:
        asking.ask([request("a")], "part-00000")
    again = scripted(tmp_path, {"id": "*", "text": "second"})
    with Asking(again, tmp_path / "stage", "review") as asking:
        answers = asking.ask([request("a"), request("b")], "part-00000")
    assert (answers["a", 0].text, answers["b", 0].text) == ("first", "second")


def test_an_answer_to_other_words_is_not_this_ones(tmp_path: Path) -> None:
    settings = scripted(tmp_path, {"id": "*", "text": "x"})
    with Asking(settings, tmp_path / "stage", "review") as asking:
        asking.ask([request("a", "Hello")], "part-00000")
        asking.ask([request("a", "Good evening")], "part-00000")
    assert len((tmp_path / "stage/calls/part-00000.jsonl").read_text().splitlines()) == 2


def test_a_failed_call_leaves_the_part_incomplete_and_is_asked_again(tmp_path: Path) -> None:
    failing = scripted(
        tmp_path,
        {"id": "a", "failure": {"reason": "timeout", "message": "never answered"}},
        {"id": "b", "text": "x"},
    )
    with (
        Asking(failing, tmp_path / "stage", "review") as asking,
        pytest.raises(Incomplete, match="1 calls of part-00000 failed, first a: never answered"),
    ):
        asking.ask([request("a"), request("b")], "part-00000")
    with Asking(scripted(tmp_path, {"id": "a", "text": "y"}), tmp_path / "stage", "review") as asking:
        assert asking.ask([request("a"), request("b")], "part-00000")["a", 0].text == "y"


def test_another_models_answers_are_not_this_ones(tmp_path: Path, server: ProviderServer) -> None:
    """Answers outlive --again: without the model in what they answer, a new model would have got the old one's."""
    for model in ("openai:gpt-test", "anthropic:claude-test", "openai:gpt-test"):
        with Asking(paid(tmp_path, model), tmp_path / "stage", "review") as asking:
            asking.ask([request("a", "a")], "part-00000")
    assert len(server.charged()) == 2
    assert len(list((tmp_path / "stage/costs").glob("review*.jsonl"))) == 2


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (AskSettings("opnai:x"), "unknown engine 'opnai'"),
        (AskSettings("scripted:no-such-file.jsonl"), "no-such-file.jsonl"),
        (AskSettings("openai:gpt-test"), "OPENAI_API_KEY"),
        (AskSettings("openai:unheard-of", 1.0), "price of openai:unheard-of is unknown"),
        (AskSettings("embedded", batch=True), "embedded has no batches"),
    ],
)
def test_a_model_that_cannot_be_asked_is_told_before_anything_is(
    monkeypatch: pytest.MonkeyPatch, settings: AskSettings, told: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigError, match=told):
        check_model(settings)


def test_a_torn_last_line_is_asked_again(tmp_path: Path) -> None:
    settings = scripted(tmp_path, {"id": "*", "text": "x"})
    with Asking(settings, tmp_path / "stage", "review") as asking:
        asking.ask([request("a"), request("b")], "part-00000")
    path = tmp_path / "stage/calls/part-00000.jsonl"
    path.write_bytes(path.read_bytes()[:-9])
    with Asking(settings, tmp_path / "stage", "review") as asking:
        assert set(asking.ask([request("a"), request("b")], "part-00000")) == {("a", 0), ("b", 0)}


def test_a_line_that_is_no_call_is_named(tmp_path: Path) -> None:
    path = tmp_path / "stage/calls/part-00000.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text('{"id": "a", "sample": 0, "text": "x"}\n')
    with (
        Asking(scripted(tmp_path, {"id": "*", "text": "x"}), tmp_path / "stage", "review") as asking,
        pytest.raises(DataError, match=r"part-00000\.jsonl:1: not a stored call"),
    ):
        asking.ask([request("a")], "part-00000")


# --- Hosted models, through the real SDK ------------------------------------------------------------------------


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> ProviderServer:
    with ProviderServer() as running:
        for name, value in running.environment().items():
            monkeypatch.setenv(name, value)
        yield running


def paid(tmp_path: Path, model: str, max_cost: float | None = None) -> AskSettings:
    (tmp_path / "prices.toml").write_text(price_file())
    return AskSettings(model, max_cost, prices=str(tmp_path / "prices.toml"))


@pytest.mark.parametrize("model", ["openai:gpt-test", "anthropic:claude-test"])
def test_a_paid_call_is_booked_once_and_never_repeated(
    tmp_path: Path, server: ProviderServer, model: str
) -> None:
    requests = [request(f"item{n}", f"item{n}") for n in range(5)]
    for _ in range(2):
        with Asking(paid(tmp_path, model), tmp_path / "stage", "review") as asking:
            assert len(asking.ask(requests, "part-00000")) == 5
    assert len(server.charged()) == 5
    events = [
        json.loads(line)["event"] for line in (tmp_path / "stage/costs/review.jsonl").read_text().splitlines()
    ]
    assert (events.count("sent"), events.count("paid")) == (5, 5)


def test_the_limit_holds_over_all_parts(tmp_path: Path, server: ProviderServer) -> None:
    limit = 0.01
    for part in range(2):
        requests = [request(f"item{part}-{n}", f"item{n}") for n in range(100)]
        with (
            Asking(paid(tmp_path, "openai:gpt-test", limit), tmp_path / "stage", "review") as asking,
            pytest.raises(Incomplete, match=r"max_cost 0\.01: "),
        ):
            asking.ask(requests, f"part-{part:05}")
    assert 0 < len(server.charged()) < 200
    assert server.bill() <= limit
