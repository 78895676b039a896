"""The live loop of hosted APIs: what calls wait for: the API's wish, room under the limit, a cache."""

from __future__ import annotations

import asyncio
import time
from decimal import Decimal
from typing import Any

import httpx2
import pytest
from hosted_made import (
    Books,
    Double,
    error,
    faults,
    ok,
    reasons,
    requests_of,
    run,
    sharing,
    text_of,
    worst_case,
)

from h2htalk.chat.chat_options import ChatOptions
from h2htalk.data.responses import Failure

pytestmark = pytest.mark.usefixtures("hosted_loop")


# Waiting


def test_a_retry_after_beyond_the_deadline_fails_at_once_and_says_so(provider: str) -> None:
    started = time.monotonic()
    answer = error(429, "slow down", headers={"retry-after": "86400"})
    outcomes, double, books = run(provider, {"a": [answer] * 9}, "a", "b", deadline=60)
    assert time.monotonic() - started < 30
    assert reasons(outcomes) == ["rate_limited", "ok"]
    assert isinstance(outcomes[0], Failure)
    assert "86,400 s" in outcomes[0].message
    assert "60 s" in outcomes[0].message
    assert (len(double.asked), books.totals().free) == (2, 1)


def test_rate_limits_count_against_the_deadline_and_not_against_the_attempts(provider: str) -> None:
    limits = [error(429, headers={"retry-after-ms": "1"})] * 12
    outcomes, _, books = run(provider, {"a": limits}, "a", attempts=1)
    assert reasons(outcomes) == ["ok"]
    assert books.totals().free == 12
    endless = [error(529)] * 10_000
    outcomes, _, _ = run(provider, {"a": endless}, "a", deadline=0.3, timeout=0.3)
    assert reasons(outcomes) == ["overloaded"]


def test_all_calls_wait_when_one_is_asked_to_slow_down(provider: str) -> None:
    times: list[float] = []

    def answer(body: dict[str, Any]) -> httpx2.Response:
        times.append(time.monotonic())
        if len(times) == 1:
            return error(429, headers={"retry-after": "0.4"})
        return ok(provider)

    double = Double(provider, answer)
    outcomes = double.chat(ChatOptions(concurrency=2)).complete(requests_of(*"abcdefgh"))
    assert reasons(outcomes) == ["ok"] * 8
    early = [at for at in times if at - times[0] < 0.39]
    assert len(early) <= 2  # the one that was refused, and the one that was on its way


def test_a_slow_drip_ends_with_the_attempt(provider: str) -> None:
    class Drip(httpx2.AsyncByteStream):
        async def __aiter__(self) -> Any:
            while True:
                await asyncio.sleep(0.02)
                yield b" "

    started = time.monotonic()
    drip = [httpx2.Response(200, stream=Drip()) for _ in range(2)]
    outcomes, _, books = run(provider, {"a": drip}, "a", timeout=0.2, attempts=2)
    assert reasons(outcomes) == ["timeout"]
    assert time.monotonic() - started < 2
    assert books.totals().possibly_paid == 2


# The limit


def test_the_limit_lets_nothing_out_that_might_pass_it(provider: str) -> None:
    # One worst case, and room for two of the answers, which cost 0.00007 each.
    books = Books(limit=worst_case(provider) + Decimal("0.00015"))
    outcomes, double, _ = run(provider, {}, *"abcdef", ledger=books, concurrency=4)
    assert reasons(outcomes) == ["ok"] * 3 + ["max_cost"] * 3
    assert [outcome.attempts for outcome in outcomes if isinstance(outcome, Failure)] == [0, 0, 0]
    assert all("--max-cost" in outcome.message for outcome in outcomes if isinstance(outcome, Failure))
    assert len(double.asked) == 3
    assert books.totals().usd_committed == Decimal("0.00021")


def test_calls_on_their_way_may_make_room(provider: str) -> None:
    books = Books(limit=2 * worst_case(provider))
    outcomes, _, _ = run(provider, {}, *"abcdefghij", ledger=books, concurrency=8)
    assert reasons(outcomes) == ["ok"] * 10
    sent = [line for line in books.story if line.startswith("sent")]
    assert sent == [f"sent {text}" for text in "abcdefghij"]  # who waits for room is served first


# Caches on request


def test_the_first_call_of_a_shared_prefix_goes_ahead_alone() -> None:
    answered: list[str] = []
    before: dict[str, list[str]] = {}

    async def answer(body: dict[str, Any]) -> httpx2.Response:
        before[text_of(body)] = list(answered)
        await asyncio.sleep(0.05)
        answered.append(text_of(body))
        return ok("anthropic")

    requests = [*sharing(*"abcd"), *sharing(*"efgh", persona="You are Bo, who mends nets. " * 120)]
    outcomes = Double("anthropic", answer).chat().complete([*requests, *requests_of("i")])
    assert reasons(outcomes) == ["ok"] * 9
    assert before["a"] == before["e"] == before["i"] == []  # nobody waits for another's prefix
    assert all("a" in before[text] for text in "bcd")
    assert all("e" in before[text] for text in "fgh")


def test_when_the_first_fails_the_next_goes_ahead() -> None:
    answers = {"a": [error(400)], "b": [error(500)] * 2}
    double = faults(answers, "anthropic")
    outcomes = double.chat(ChatOptions(attempts=2)).complete(sharing(*"abcde"))
    assert reasons(outcomes) == ["bad_request", "http_500", "ok", "ok", "ok"]
    assert double.texts()[:4] == ["a", "b", "b", "c"]


def test_prefixes_take_turns_so_that_no_cache_grows_old() -> None:
    double = Double("anthropic", lambda body: ok("anthropic"))
    bo = sharing(*"efgh", persona="You are Bo, who mends nets. " * 120)
    double.chat(ChatOptions(concurrency=1)).complete([*sharing(*"abcd"), *bo])
    assert double.texts() == list("aebfcgdh")
