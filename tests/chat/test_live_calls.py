"""The live loop over both transports, against a real socket: what is sent, stored, tried again and given up."""

from __future__ import annotations

import asyncio
import random
import socket
import threading
import time
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest

from h2htalk.chat.protocol import Chat, Outcome, Reply
from h2htalk.data.responses import Failure, Usage
from h2htalk.errors import ConfigError, ModelCallError, PausedError
from support.doubles.loopback import REPLY, Answer, LoopbackServer
from support.hosted_apis import (
    Api,
    Books,
    error,
    reasons,
    requests_of,
    scripted,
    sharing,
    text_of,
    worst_case,
)

pytestmark = pytest.mark.usefixtures("hosted_loop")


def names(count: int) -> list[str]:
    return [f"item {number}" for number in range(count)]


def test_replies_come_back_in_order_with_the_names_that_the_api_gave(api: Api) -> None:
    def echo(payload: dict[str, Any], _: int) -> Answer:
        return Answer(api.answer(text_of(payload)), headers={"x-request-id": "req-7"})

    texts = ["I am tired", "今天的天气真好", 'quotes " and \\ and \n', "😴"]
    with LoopbackServer(reply=echo) as server:
        outcomes = api.open(server.url).complete(requests_of(*texts))
    assert [outcome.text for outcome in outcomes if isinstance(outcome, Reply)] == texts
    assert {(one.request_id, one.model) for one in outcomes if isinstance(one, Reply)} == {
        ("req-7", "loopback")
    }


def test_finished_items_are_handed_over_in_the_calling_thread_while_others_run(api: Api) -> None:
    done: list[tuple[int, Outcome, int]] = []
    with LoopbackServer(reply=scripted({"item 0": [error(503, delay=0.3)]})) as server:
        chat = api.open(server.url)
        here = threading.get_ident
        outcomes = chat.complete(requests_of(*names(5)), lambda i, o: done.append((i, o, here())))
    assert done[-1][0] == 0  # item 0 had to wait and held no other up
    assert [outcome for _, outcome, _ in sorted(done, key=lambda one: one[0])] == outcomes
    assert {thread for *_, thread in done} == {threading.get_ident()}


def test_concurrency_bounds_requests_and_connections_which_are_used_again(api: Api) -> None:
    with LoopbackServer(latency=0.02) as server:
        chat = api.open(server.url, concurrency=8)
        assert reasons(chat.complete(requests_of(*names(40)))) == ["ok"] * 40
        assert (server.in_flight_max, server.connections, server.requests) == (8, 8, 40)
        assert reasons(chat.complete(requests_of("again"))) == [
            "ok"
        ]  # a chat may be used again, and closed twice
        chat.close()
        chat.close()
    assert api.open(server.url).complete([]) == []


def test_a_running_event_loop_and_a_thread_may_call(api: Api) -> None:
    """In a notebook, where a loop runs, every call ended in an error about an internal function."""

    async def from_a_coroutine(chat: Chat) -> list[Outcome]:
        return chat.complete(requests_of("a")) + await asyncio.to_thread(
            chat.complete, requests_of("b", "c")
        )

    with LoopbackServer() as server:
        assert reasons(asyncio.run(from_a_coroutine(api.open(server.url)))) == ["ok"] * 3


@pytest.mark.parametrize(
    ("status", "kind", "advice"),
    [
        (401, ConfigError, r"refused the key \(HTTP 401\): check"),
        (402, ModelCallError, "no credit left .*add credit"),
        (307, ConfigError, r"redirects \(HTTP 307\), which is not followed"),
    ],
)
def test_a_wrong_key_or_address_ends_the_run_at_once(
    api: Api, status: int, kind: type[Exception], advice: str
) -> None:
    headers = {"location": "/v1/elsewhere"}
    with LoopbackServer(reply=lambda *_: error(status, "so it is", headers)) as server:
        with pytest.raises(kind, match=advice):
            api.open(server.url, concurrency=4).complete(requests_of(*names(100)))
        assert server.requests <= 8


def test_after_the_first_reply_such_a_failure_is_the_items_own_at_a_server_and_ends_a_paid_run(
    api: Api,
) -> None:
    answers = {
        "a": [],
        "b": [Answer(api.answer(), delay=0.2)],
        "c": [error(401)],
        "d": [error(404)],
    }
    books = Books()
    requests = requests_of(*"abcdefgh")
    with LoopbackServer(reply=scripted(answers)) as server:
        chat = api.open(server.url, concurrency=2, calls=books)
        if not api.paid:
            assert reasons(chat.complete(requests)) == [
                "ok",
                "ok",
                "unauthorized",
                "not_found",
                *["ok"] * 4,
            ]
            return
        with pytest.raises(ConfigError, match="refused the key"):
            chat.complete(requests, books.stored(requests))
        assert server.requests == 3
    # What was on its way is kept.
    assert {"paid a", "delivered a", "paid b", "delivered b", "free c"} <= set(books.story)
    assert (books.totals().open, books.totals().possibly_paid) == (0, 0)


def test_nothing_at_the_address_ends_the_run_before_the_first_answer(api: Api) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    books = Books()
    start = time.monotonic()
    with pytest.raises(
        ModelCallError, match=rf"^http://127\.0\.0\.1:{port}\S* does not answer .*no conn"
    ) as caught:
        api.open(f"http://127.0.0.1:{port}/v1", calls=books, concurrency=1).complete(
            requests_of("a", "b")
        )
    assert api.key not in str(caught.value)
    assert (books.totals().free, books.totals().open) == (int(api.paid), 0)
    assert time.monotonic() - start < 2


@pytest.mark.parametrize(
    ("first", "billing"),
    [
        (error(429, headers={"retry-after": "0"}), "free"),
        (error(500), "free"),
        (Answer("<html>timeout</html>", 504), "possibly_paid"),
        *((fault, "possibly_paid") for fault in ("drop", "cut", "hang", "drip")),
    ],
)
def test_what_never_arrived_or_was_refused_is_asked_again_and_booked(
    api: Api, first: Any, billing: str
) -> None:
    outcomes, books, server = api.run(
        {"a": [first]}, "a", timeout=0.5 if first in ("hang", "drip") else 20
    )
    assert reasons(outcomes) == ["ok"]
    assert server.requests == 2
    paid = ["sent a", f"{billing} a", "sent a", "paid a"] if api.paid else []
    assert books.story == [*paid, "delivered a"]


@pytest.mark.parametrize(
    ("answer", "reason", "billing"),
    [
        (Answer("<html>hello</html>"), "malformed_reply", "paid"),
        (Answer("not gzip", headers={"content-encoding": "gzip"}), "malformed_reply", "paid"),
        ("giant", "malformed_reply", "paid"),
        (error(400), "bad_request", "free"),
        (error(500, headers={"x-should-retry": "false"}), "http_500", "free"),
        (error(429, "slow down", headers={"retry-after": "86400"}), "rate_limited", "free"),
    ],
)
def test_what_asking_again_cannot_help_is_asked_once(
    api: Api, answer: Any, reason: str, billing: str
) -> None:
    outcomes, books, server = api.run({"a": [answer]}, "first", "a", "b", deadline=60)
    if not api.paid and reason == "malformed_reply" and answer != "giant":
        assert reasons(outcomes) == ["ok"] * 3  # it cost nothing, so it was asked for again
        return
    assert reasons(outcomes) == ["ok", reason, "ok"]
    assert isinstance(outcomes[1], Failure)
    assert (outcomes[1].attempts, server.requests) == (1, 3)
    assert ("86,400 s" in outcomes[1].message) == (reason == "rate_limited")
    assert not api.paid or books.story[3:6] == ["sent a", f"{billing} a", "delivered a"]


@pytest.mark.parametrize("raised", [OSError("disk full"), KeyboardInterrupt(), SystemExit(3)])
def test_what_on_done_raises_stops_the_run_and_is_passed_on(
    api: Api, raised: BaseException
) -> None:
    done: list[int] = []

    def refuse(index: int, _: Outcome) -> None:
        done.append(index)
        if len(done) == 5:
            raise raised

    books = Books()
    with LoopbackServer(faults={"hang": 0.2}) as server, pytest.raises(type(raised)) as caught:
        api.open(server.url, concurrency=8, calls=books).complete(requests_of(*names(200)), refuse)
    assert caught.value is raised
    assert len(done) == 5
    assert server.requests < 30
    assert books.totals().open == 0  # what nobody kept is possibly paid
    assert not api.paid or (books.totals().paid, books.totals().possibly_paid > 0) == (5, True)


@pytest.mark.parametrize(("count", "concurrency", "asked"), [(40, 64, 80), (100, 2, 20)])
def test_an_endpoint_that_hangs_pauses_a_run_after_a_wave(
    api: Api, count: int, concurrency: int, asked: int
) -> None:
    with LoopbackServer(faults={"hang": 1.0}) as server:
        with pytest.raises(
            PausedError, match=r"^paused: http://.* \d+ calls in a row .*no complete answer"
        ) as paused:
            # Half of the time limit is for the connection: 64 at once may take a slow machine more than a second.
            api.open(server.url, concurrency=concurrency, timeout=6).complete(
                requests_of(*names(count))
            )
        assert paused.value.exit_code == 3
        assert server.requests <= asked
    done: list[Outcome] = []
    with LoopbackServer(faults={"http_500": 1.0}) as server:
        chat = api.open(server.url, concurrency=4)
        with pytest.raises(PausedError, match=r"8 calls in a row .*fell"):
            chat.complete(requests_of(*names(100)), lambda _, outcome: done.append(outcome))
    assert 8 <= reasons(done).count("http_500") == len(done) < 16


def test_what_one_item_is_refused_for_or_an_answer_in_between_does_not_pause_a_run(
    api: Api,
) -> None:
    with LoopbackServer(faults={"context_length": 1.0}) as server:
        chat = api.open(server.url, concurrency=2)
        assert reasons(chat.complete(requests_of(*names(50)))) == ["context_length"] * 50
    texts = [f"{'item' if number % 20 else 'slow'} {number}" for number in range(60)]
    with LoopbackServer(faults_at={"slow": "hang"}) as server:
        chat = api.open(server.url, concurrency=4, timeout=0.5, attempts=2)
        assert Counter(reasons(chat.complete(requests_of(*texts)))) == {"ok": 57, "timeout": 3}


BO = "You are Bo, who mends nets. " * 120


@pytest.fixture
def anthropic(monkeypatch: pytest.MonkeyPatch, hosted_loop: None) -> Api:
    return Api("anthropic", monkeypatch)


@pytest.mark.parametrize(
    ("said", "usage"),
    [("content_filter", Usage(0, 0)), ("Output blocked by content filtering policy", Usage())],
)
def test_a_declined_prompt_is_a_filtered_reply_a_blocked_reply_possibly_paid(
    provider: Api, said: str, usage: Usage
) -> None:
    blocked = Answer({"error": {"message": said, "code": said}}, 400)
    (reply,), books, server = provider.run({"a": [blocked]}, "a")
    assert isinstance(reply, Reply)
    assert (reply.text, reply.finish_reason, reply.usage) == ("", "content_filter", usage)
    assert (server.requests, books.totals().possibly_paid) == (1, int(usage == Usage()))


def test_what_is_not_the_api_ends_the_run_after_a_few_answers_which_may_be_paid(
    provider: Api,
) -> None:
    books = Books()
    texts = [str(number) for number in range(20)]
    page = {text: [Answer("<html>Welcome</html>")] for text in texts}
    with pytest.raises(
        ConfigError,
        match=rf"is not the API of .*the first 8 .*Welcome.*{provider.name.upper()}_BASE_",
    ):
        provider.run(page, *texts, calls=books)
    assert (books.totals().unmetered, books.totals().open) == (8, 0)


def test_rate_limits_count_against_the_deadline_and_not_against_the_attempts(provider: Api) -> None:
    limits = [error(429, headers={"retry-after-ms": "1"})] * 12
    outcomes, books, _ = provider.run({"a": limits}, "a", attempts=1)
    assert reasons(outcomes) == ["ok"]
    assert books.totals().free == 12
    outcomes, _, _ = provider.run({"a": [error(529)] * 10_000}, "a", deadline=0.3, timeout=0.3)
    assert reasons(outcomes)[0] in (
        "overloaded",
        "timeout",
    )  # of the last call, which may be in flight


def test_all_calls_wait_when_one_is_asked_to_slow_down(provider: Api) -> None:
    times: list[float] = []

    def answer(payload: dict[str, Any], count: int) -> str | Answer:
        times.append(time.monotonic())
        return error(429, headers={"retry-after": "0.4"}) if len(times) == 1 else REPLY

    with LoopbackServer(reply=answer) as server:
        assert (
            reasons(provider.open(server.url, concurrency=2).complete(requests_of(*"abcdefgh")))
            == ["ok"] * 8
        )
    early = [at for at in times if at - times[0] < 0.39]
    assert len(early) <= 2  # the one that was refused, and the one that was on its way


def test_the_limit_lets_nothing_out_that_might_pass_it(provider: Api) -> None:
    # One worst case, and room for two of the answers, which cost 0.00036 each.
    books = Books(limit=worst_case(provider.name) + Decimal("0.0008"))
    outcomes, _, server = provider.run({}, *"abcdef", calls=books, concurrency=4)
    assert reasons(outcomes) == ["ok"] * 3 + ["max_cost"] * 3
    failures = [one for one in outcomes if isinstance(one, Failure)]
    assert all(one.attempts == 0 and "--max-cost" in one.message for one in failures)
    assert server.requests == 3
    assert books.totals().usd_committed == Decimal("0.00108")


def test_seconds_spent_waiting_for_the_limit_do_not_count_against_the_deadline(
    provider: Api,
) -> None:
    books = Books(limit=worst_case(provider.name) + Decimal("0.0008"))  # for one call in flight
    slow = {text: [Answer(provider.answer(), delay=0.4)] for text in "abc"}
    outcomes, _, server = provider.run(
        slow, *"abc", calls=books, concurrency=3, timeout=0.7, deadline=0.7
    )
    assert (reasons(outcomes), server.in_flight_max) == (["ok"] * 3, 1)


def test_the_first_call_of_a_shared_prefix_goes_ahead_alone(anthropic: Api) -> None:
    asked: dict[str, float] = {}

    def answer(payload: dict[str, Any], count: int) -> Answer:
        asked[text_of(payload)] = time.monotonic()
        return Answer(anthropic.answer(), delay=0.1)

    with LoopbackServer(reply=answer) as server:
        requests = [*sharing(*"abcd"), *sharing(*"efgh", persona=BO), *requests_of("i")]
        assert reasons(anthropic.open(server.url).complete(requests)) == ["ok"] * 9
    first = min(asked.values())
    assert {text for text, at in asked.items() if at < first + 0.1} == {"a", "e", "i"}


def test_when_the_first_fails_the_next_goes_ahead_and_prefixes_take_turns(anthropic: Api) -> None:
    said = scripted({"a": [error(400)], "b": [error(500)] * 2})
    asked: list[str] = []

    def answer(body: dict[str, Any], count: int) -> str | Answer:
        asked.append(text_of(body))
        return said(body, count)

    with LoopbackServer(reply=answer) as server:
        outcomes = anthropic.open(server.url, attempts=2).complete(sharing(*"abcde"))
        assert reasons(outcomes) == ["bad_request", "http_500", "ok", "ok", "ok"]
        assert asked[:4] == ["a", "b", "b", "c"]
        asked.clear()
        anthropic.open(server.url, concurrency=1).complete(
            [*sharing(*"stuv"), *sharing(*"wxyz", persona=BO)]
        )
    assert asked == list("swtxuyvz")  # so that no cache grows old


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))]
)
def test_whatever_happens_each_item_ends_once_and_the_books_cover_what_was_computed(
    provider: Api, seed: int
) -> None:
    draw = random.Random(seed)
    computed = 0

    def answer(payload: dict[str, Any], count: int) -> str | Answer:
        nonlocal computed
        kind = draw.randrange(12)
        computed += kind > 2  # what is refused is not computed; what is lost may be
        bad = [
            error(429, headers={"retry-after-ms": "20"}),
            error(529),
            error(500),
            "drop",
            error(504),
        ]
        bad += [Answer("garbage"), Answer(provider.answer(usage=None))]
        return (
            bad[kind] if kind < len(bad) else Answer(provider.answer(), delay=draw.random() * 0.02)
        )

    limit = worst_case(provider.name) * draw.randrange(8, 60)
    books = Books(limit=limit)
    done = list[int]()
    requests = [*requests_of(*map(str, range(40))), *sharing("x", "y", "z")]
    with LoopbackServer(reply=answer) as server:
        chat = provider.open(server.url, concurrency=8, attempts=3, calls=books)
        outcomes = chat.complete(requests, lambda index, _: done.append(index))
    assert sorted(done) == list(range(len(requests)))
    totals = books.totals()
    assert books.totals().open == 0
    assert totals.paid >= reasons(outcomes).count("ok")
    assert totals.paid + totals.possibly_paid == computed
    assert totals.usd_committed <= limit
    assert set(reasons(outcomes)) <= {
        "ok",
        "malformed_reply",
        "connection",
        "http_504",
        "http_500",
        "max_cost",
    }
