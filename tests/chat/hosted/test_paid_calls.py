"""The live loop of hosted APIs: what calls cost, what they wait for, and what the limit lets out."""

from __future__ import annotations

import random
import time
from decimal import Decimal
from typing import Any

import pytest
from hosted_made import Api, Books, error, reasons, requests_of, scripted, sharing, text_of, worst_case
from loopback import REPLY, Answer, LoopbackServer

from h2htalk.chat.protocol import Reply
from h2htalk.data.responses import Failure, Usage
from h2htalk.errors import ConfigError

BO = "You are Bo, who mends nets. " * 120


@pytest.fixture
def anthropic(monkeypatch: pytest.MonkeyPatch, hosted_loop: None) -> Api:
    return Api("anthropic", monkeypatch)


def test_a_call_is_reserved_then_sent_then_settled_then_delivered(provider: Api) -> None:
    outcomes, books, _ = provider.run({}, "a", "b")
    assert reasons(outcomes) == ["ok", "ok"]
    assert books.story == ["sent a", "paid a", "delivered a", "sent b", "paid b", "delivered b"]
    assert (books.totals().paid, books.totals().usd_paid) == (2, Decimal("0.00072"))


@pytest.mark.parametrize(
    ("said", "usage"), [("content_filter", Usage(0, 0)), ("Output blocked by content filtering policy", Usage())]
)
def test_a_declined_prompt_is_a_refusal_a_blocked_reply_possibly_paid(provider: Api, said: str, usage: Usage) -> None:
    blocked = Answer({"error": {"message": said, "code": said}}, 400)
    (reply,), books, server = provider.run({"a": [blocked]}, "a")
    assert isinstance(reply, Reply)
    assert (reply.text, reply.finish_reason, reply.usage) == ("", "refusal", usage)
    assert (server.requests, books.totals().possibly_paid) == (1, int(usage == Usage()))


def test_what_is_not_the_api_ends_the_run_after_a_few_answers_which_may_be_paid(provider: Api) -> None:
    books, texts = Books(), [str(number) for number in range(20)]
    page = {text: [Answer("<html>Welcome</html>")] for text in texts}
    with pytest.raises(ConfigError, match=rf"is not the API of .*the first 8 .*Welcome.*{provider.name.upper()}_BASE_"):
        provider.run(page, *texts, calls=books)
    assert (books.totals().unmetered, books.totals().open) == (8, 0)


def test_rate_limits_count_against_the_deadline_and_not_against_the_attempts(provider: Api) -> None:
    limits = [error(429, headers={"retry-after-ms": "1"})] * 12
    outcomes, books, _ = provider.run({"a": limits}, "a", attempts=1)
    assert reasons(outcomes) == ["ok"]
    assert books.totals().free == 12
    outcomes, _, _ = provider.run({"a": [error(529)] * 10_000}, "a", deadline=0.3, timeout=0.3)
    assert reasons(outcomes)[0] in ("overloaded", "timeout")  # of the last call, which may be in flight


def test_all_calls_wait_when_one_is_asked_to_slow_down(provider: Api) -> None:
    times: list[float] = []

    def answer(payload: dict[str, Any], count: int) -> str | Answer:
        times.append(time.monotonic())
        return error(429, headers={"retry-after": "0.4"}) if len(times) == 1 else REPLY

    with LoopbackServer(reply=answer) as server:
        assert reasons(provider.open(server.url, concurrency=2).complete(requests_of(*"abcdefgh"))) == ["ok"] * 8
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


def test_seconds_spent_waiting_for_the_limit_do_not_count_against_the_deadline(provider: Api) -> None:
    books = Books(limit=worst_case(provider.name) + Decimal("0.0008"))  # for one call in flight
    slow = {text: [Answer(provider.answer(), delay=0.4)] for text in "abc"}
    outcomes, _, server = provider.run(slow, *"abc", calls=books, concurrency=3, timeout=0.7, deadline=0.7)
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
        anthropic.open(server.url, concurrency=1).complete([*sharing(*"stuv"), *sharing(*"wxyz", persona=BO)])
    assert asked == list("swtxuyvz")  # so that no cache grows old


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
def test_whatever_happens_each_item_ends_once_and_the_books_cover_what_was_computed(provider: Api, seed: int) -> None:
    draw = random.Random(seed)
    computed = 0

    def answer(payload: dict[str, Any], count: int) -> str | Answer:
        nonlocal computed
        kind = draw.randrange(12)
        computed += kind > 2  # what is refused is not computed; what is lost may be
        bad = [error(429, headers={"retry-after-ms": "20"}), error(529), error(500), "drop", error(504)]
        bad += [Answer("garbage"), Answer(provider.answer(usage=None))]
        return bad[kind] if kind < len(bad) else Answer(provider.answer(), delay=draw.random() * 0.02)

    limit = worst_case(provider.name) * draw.randrange(8, 60)
    books, done = Books(limit=limit), list[int]()
    requests = [*requests_of(*map(str, range(40))), *sharing("x", "y", "z")]
    with LoopbackServer(reply=answer) as server:
        chat = provider.open(server.url, concurrency=8, attempts=3, calls=books)
        outcomes = chat.complete(requests, lambda index, _: done.append(index))
    assert sorted(done) == list(range(len(requests)))
    totals = books.totals()
    assert books.totals().open == 0
    assert totals.paid >= reasons(outcomes).count("ok")
    assert totals.paid + totals.possibly_paid == computed
    assert totals.usd_committed is not None
    assert totals.usd_committed <= limit
    assert set(reasons(outcomes)) <= {"ok", "malformed_reply", "connection", "http_504", "http_500", "max_cost"}
