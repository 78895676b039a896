"""`server:MODEL@URL` against a real socket: what is sent, kept, tried again and given up."""

from __future__ import annotations

import asyncio
import gc
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from loopback import Answer, LoopbackServer, completion

from h2htalk.chat.chat_options import ChatOptions
from h2htalk.chat.engines import open_chat
from h2htalk.chat.protocol import Chat, Message, Outcome, Reply, Request, Sampling
from h2htalk.chat.server.endpoint import KEY_VARIABLE
from h2htalk.data.responses import Failure
from h2htalk.errors import ConfigError, ModelCallError, PausedError


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """asyncio logs what was left lying about: an exception nobody saw, a session nobody closed."""
    yield
    gc.collect()
    records = caplog.get_records("call") + caplog.records
    assert [record.getMessage() for record in records if record.name == "asyncio"] == []


def requests_of(*texts: str) -> list[Request]:
    sampling = Sampling(temperature=0.7, top_p=0.9, max_tokens=96, seed=41)
    return [Request(text, (Message("system", "Be kind."), Message("user", text)), sampling) for text in texts]


def items(count: int) -> list[Request]:
    return requests_of(*(f"item {number}" for number in range(count)))


def chat_with(server: LoopbackServer, **options: Any) -> Chat:
    return open_chat(server.spec, ChatOptions(**options))


def reasons(outcomes: Sequence[Outcome]) -> list[str]:
    return [outcome.reason if isinstance(outcome, Failure) else "ok" for outcome in outcomes]


# What is sent and what is kept


def test_replies_come_back_in_order_with_all_that_the_server_said() -> None:
    def echo(payload: dict[str, Any], _: int) -> Answer:
        body = completion(payload["messages"][-1]["content"], "length", reasoning_content="hm")
        return Answer(body, headers={"x-request-id": "req-7"})

    texts = ["I am tired", "今天的天气真好", 'quotes " and \\ and \n', "😴"]
    with LoopbackServer(reply=echo) as server:
        outcomes = chat_with(server).complete(requests_of(*texts))
    assert [outcome.text for outcome in outcomes if isinstance(outcome, Reply)] == texts
    first = outcomes[0]
    assert isinstance(first, Reply)
    assert (first.finish_reason, first.thinking, first.request_id) == ("length", "hm", "req-7")
    assert first.usage.to_dict() == {"input_tokens": 120, "output_tokens": 24}


def test_finished_items_are_handed_over_in_the_calling_thread_while_others_run() -> None:
    done: list[tuple[int, Outcome, int, int]] = []
    with LoopbackServer(faults_at={"item 0": "rate_limited"}, fault_times=1) as server:
        outcomes = chat_with(server).complete(
            items(5), lambda i, o: done.append((i, o, threading.get_ident(), server.requests))
        )
    assert [index for index, *_ in done][-1] == 0  # item 0 had to wait and held no other up
    assert sorted(index for index, *_ in done) == [0, 1, 2, 3, 4]
    assert all(outcomes[index] is outcome for index, outcome, *_ in done)
    assert {thread for _, _, thread, _ in done} == {threading.get_ident()}
    assert done[0][-1] < 6


def test_concurrency_bounds_requests_and_connections_which_are_used_again() -> None:
    with LoopbackServer(latency=0.02) as server:
        chat_with(server, concurrency=8).complete(items(80))
    assert (server.in_flight_max, server.connections, server.requests) == (8, 8, 80)


def test_a_thread_may_call_and_a_running_event_loop_may_not() -> None:
    async def from_a_coroutine(chat: Chat) -> list[Outcome]:
        with pytest.raises(ConfigError, match=r"asyncio\.to_thread"):
            chat.complete(items(1))
        return await asyncio.to_thread(chat.complete, items(2))

    with LoopbackServer() as server:
        assert reasons(asyncio.run(from_a_coroutine(chat_with(server)))) == ["ok", "ok"]


def test_a_chat_may_be_used_again_and_closed_twice() -> None:
    with LoopbackServer() as server:
        chat = chat_with(server)
        assert reasons(chat.complete(items(2)) + chat.complete(items(2))) == ["ok"] * 4
        chat.close()
        chat.close()


def test_the_key_is_sent_as_bearer_and_never_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    def repeat_it(payload: dict[str, Any], _: int) -> Answer:
        return Answer({"error": {"message": f"bad field, {next(iter(server.authorizations))}"}}, 400)

    monkeypatch.setenv(KEY_VARIABLE, "sk-loopback-4711")
    with LoopbackServer(reply=repeat_it) as server:
        chat = chat_with(server)
        outcome = chat.complete(items(1))[0]
    assert server.authorizations == {"Bearer sk-loopback-4711"}
    assert outcome == Failure("bad_request", "HTTP 400: bad field, Bearer [key]", 1)
    assert "4711" not in str(chat.subject)


def test_without_a_key_no_authorization_is_sent() -> None:
    with LoopbackServer() as server:
        chat_with(server).complete(items(1))
    assert server.authorizations == set()


def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with LoopbackServer() as server:
        assert reasons(chat_with(server).complete(items(1))) == ["ok"]


# What no item can survive


@pytest.mark.parametrize(
    ("fault", "advice"),
    [
        (
            "unauthorized",
            r"^http://127\.0\.0\.1:\d+/v1/chat/completions .*HTTP 401.*: set H2HTALK_SERVER_KEY$",
        ),
        ("unknown_model", r"^http://.* has no model 'loopback' .*does not exist.*check the model's name"),
    ],
)
def test_a_wrong_key_or_model_ends_the_batch_at_once(fault: str, advice: str) -> None:
    with LoopbackServer(faults={fault: 1.0}) as server, pytest.raises(ConfigError, match=advice):
        chat_with(server, concurrency=4).complete(items(100))
    assert server.requests <= 8


def test_no_server_is_an_error_that_says_what_to_do() -> None:
    with LoopbackServer() as server:
        pass
    start = time.monotonic()
    with pytest.raises(ModelCallError, match=r"^http://\S+ does not answer .*Connection refused\): start it"):
        chat_with(server).complete(items(100))
    assert time.monotonic() - start < 2


def test_a_redirect_is_not_followed() -> None:
    def elsewhere(payload: dict[str, Any], _: int) -> Answer:
        return Answer(status=307, headers={"location": server.url + "/chat/completions"})

    with (
        LoopbackServer(reply=elsewhere) as server,
        pytest.raises(ConfigError, match=r"redirects \(HTTP 307\)"),
    ):
        chat_with(server, concurrency=1).complete(items(3))
    assert server.requests == 1


def test_after_the_first_reply_such_failures_are_the_items_own() -> None:
    faults_at = {"item 1": "unauthorized", "item 2": "unknown_model"}
    with LoopbackServer(faults_at=faults_at) as server:
        outcomes = chat_with(server, concurrency=1).complete(items(4))
    assert reasons(outcomes) == ["ok", "unauthorized", "not_found", "ok"]
    assert server.requests == 4


# What is tried again


def test_passing_faults_are_survived() -> None:
    faults = ("http_500", "rate_limited", "malformed", "drop", "hang")
    with LoopbackServer(faults_at={name: name for name in faults}, fault_times=1) as server:
        start, ends = time.monotonic(), dict[str, float]()
        outcomes = chat_with(server, timeout=1).complete(
            requests_of(*faults), lambda index, _: ends.update({faults[index]: time.monotonic() - start})
        )
    assert reasons(outcomes) == ["ok"] * 5
    assert server.counts_by_message() == Counter(faults) + Counter(faults)
    assert ends["rate_limited"] >= 1  # as its retry-after says
    assert min(ends[name] for name in ("http_500", "malformed", "drop")) >= 0.375  # half a second, spread


def test_a_wait_beyond_the_deadline_is_not_begun() -> None:
    with LoopbackServer(reply=lambda *_: Answer(status=429, headers={"retry-after": "25"})) as server:
        start = time.monotonic()
        outcome = chat_with(server, timeout=2).complete(items(1))[0]
        assert time.monotonic() - start < 2
    assert outcome == Failure(
        "rate_limited",
        "HTTP 429; it asks for a pause of 25 s, and no time is left of the 4 s that one request may take",
        1,
    )


# What stops a batch


@pytest.mark.parametrize("error", [ValueError("disk full"), KeyboardInterrupt(), SystemExit(3)])
def test_what_on_done_raises_stops_the_batch_and_is_passed_on(error: BaseException) -> None:
    calls = []

    def refuse(index: int, _: Outcome) -> None:
        calls.append(index)
        if len(calls) == 5:
            raise error

    with LoopbackServer(faults={"hang": 0.2}) as server, pytest.raises(type(error)) as caught:
        chat_with(server, concurrency=8).complete(items(200), refuse)
    assert caught.value is error
    assert len(calls) == 5
    assert server.requests < 30


INTERRUPTED = """
import sys
from h2htalk.chat.protocol import Message, Request, Sampling
from h2htalk.chat.chat_options import ChatOptions
from h2htalk.chat.engines import open_chat
requests = [Request(str(i), (Message("user", f"item {i}"),), Sampling()) for i in range(50)]
def done(index, outcome):
    print(index, flush=True)
try:
    open_chat(sys.argv[1], ChatOptions(concurrency=8)).complete(requests, done)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_ctrl_c_ends_a_waiting_batch_without_noise() -> None:
    with LoopbackServer(faults={"hang": 0.5}) as server:
        command = [sys.executable, "-W", "always::ResourceWarning", "-c", INTERRUPTED, server.spec]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(0.2)
            process.send_signal(signal.SIGINT)
            out, noise = process.communicate(timeout=20)
    assert out.splitlines()[-1] == "interrupted"
    assert noise == ""


# A server that answers no more


@pytest.mark.parametrize(("count", "concurrency", "asked"), [(40, 64, 60), (100, 16, 24), (100, 2, 10)])
def test_a_server_that_hangs_pauses_the_run_after_one_wave(count: int, concurrency: int, asked: int) -> None:
    with LoopbackServer(faults={"hang": 1.0}) as server:
        with pytest.raises(PausedError, match=r"^paused: http://.* \d+ calls in a row .*no complete answer") as paused:
            chat_with(server, concurrency=concurrency, timeout=1).complete(items(count))
        assert paused.value.exit_code == 3
        assert server.requests <= asked


def test_errors_of_the_server_pause_the_run_once_calls_were_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("h2htalk.chat.pacing.FIRST_WAIT", 0.001)
    done: list[Outcome] = []
    with (
        LoopbackServer(faults={"http_500": 1.0}) as server,
        pytest.raises(PausedError, match=r"8 calls in a row .*fell"),
    ):
        chat_with(server, concurrency=4).complete(items(100), lambda _, outcome: done.append(outcome))
    assert reasons(done) == ["http_500"] * len(done)
    assert 8 <= len(done) < 16


def test_what_one_item_is_refused_for_or_an_answer_in_between_does_not_pause_a_run() -> None:
    with LoopbackServer(faults={"context_length": 1.0}) as server:
        assert reasons(chat_with(server, concurrency=2).complete(items(50))) == ["context_length"] * 50
    texts = [f"{'item' if number % 20 else 'slow'} {number}" for number in range(60)]
    with LoopbackServer(faults_at={"slow": "hang"}) as server:
        outcomes = chat_with(server, concurrency=4, timeout=0.2).complete(requests_of(*texts))
    assert Counter(reasons(outcomes)) == {"ok": 57, "timeout": 3}


# The storm


def test_every_item_of_a_bad_day_is_accounted_for_and_asked_again_after_it() -> None:
    rates = {"http_500": 0.02, "rate_limited": 0.01, "hang": 0.005, "malformed": 0.005}
    requests = items(1000)
    finished: Counter[int] = Counter()
    with LoopbackServer(faults=rates) as server:
        chat = chat_with(server, timeout=1.5, attempts=2)
        outcomes = chat.complete(requests, lambda index, _: finished.update([index]))
        drawn = server.faults_by_message()
        failed = [r for r, outcome in zip(requests, outcomes, strict=True) if isinstance(outcome, Failure)]
        server.mend()
        assert reasons(chat.complete(failed)) == ["ok"] * len(failed)
    named = {None: "ok", "hang": "timeout", "malformed": "malformed_reply"}
    assert reasons(outcomes) == [named.get(drawn[request.id], str(drawn[request.id])) for request in requests]
    assert Counter(drawn.values()).keys() == {None, *rates}
    assert finished == Counter(range(1000))
    assert server.requests == 1000 + 2 * len(failed)
