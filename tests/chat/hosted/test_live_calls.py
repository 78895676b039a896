"""The live loop of hosted APIs, through the real SDKs: what is reserved, stored, and asked again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable
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
    slowly,
    text_of,
    worst_case,
)

from h2htalk.chat.chat_options import ChatOptions
from h2htalk.chat.protocol import Outcome
from h2htalk.data.responses import Failure
from h2htalk.errors import ConfigError, PausedError

pytestmark = pytest.mark.usefixtures("hosted_loop")


# Reservation


def test_a_call_is_booked_then_sent_then_stored_then_paid(provider: str) -> None:
    outcomes, _, books = run(provider, {}, "a", "b")
    assert reasons(outcomes) == ["ok", "ok"]
    assert books.story == ["sent a", "stored a", "paid a", "sent b", "stored b", "paid b"]
    totals = books.totals()
    assert (totals.paid, totals.input_tokens, totals.output_tokens) == (2, 40, 10)
    assert totals.usd_paid == Decimal("0.00014")


@pytest.mark.parametrize(
    ("first", "billing"),
    [
        (error(429, headers={"retry-after": "0"}), "free"),
        (error(529), "free"),
        (error(500), "free"),
        (error(503), "free"),
        (error(409), "free"),
        (error(502), "possibly_paid"),
        (error(504), "possibly_paid"),
        (error(408), "possibly_paid"),
        (httpx2.Response(524, text="<html>timeout</html>"), "possibly_paid"),
        (httpx2.ReadTimeout("slow"), "possibly_paid"),
        (httpx2.ReadError("reset"), "possibly_paid"),
        (httpx2.WriteError("reset"), "possibly_paid"),
        (
            httpx2.RemoteProtocolError("peer closed connection without sending complete message body"),
            "possibly_paid",
        ),
        (lambda: slowly(5, httpx2.Response(200)), "possibly_paid"),
    ],
)
def test_only_what_never_arrived_or_was_refused_is_asked_again_and_every_attempt_is_booked(
    provider: str, first: Any, billing: str
) -> None:
    outcomes, double, books = run(provider, {"a": [first]}, "a", timeout=0.3)
    assert reasons(outcomes) == ["ok"]
    assert len(double.asked) == 2
    assert books.story == ["sent a", f"{billing} a", "sent a", "stored a", "paid a"]


@pytest.mark.parametrize(
    ("answer", "reason", "billing"),
    [
        (httpx2.Response(200, text="<html>hello</html>"), "malformed_reply", "paid"),
        (httpx2.Response(200, json={"choices": [], "content": 1}), "malformed_reply", "paid"),
        (httpx2.Response(200, text=""), "malformed_reply", "paid"),
        (httpx2.Response(200, text="[" * 100_000), "malformed_reply", "paid"),
        (httpx2.Response(204), "malformed_reply", "paid"),
        (httpx2.DecodingError("bad gzip"), "malformed_reply", "paid"),
        (error(400), "bad_request", "free"),
        (error(413), "context_length", "free"),
        (error(422), "bad_request", "free"),
        (error(500, headers={"x-should-retry": "false"}), "http_500", "free"),
    ],
)
def test_what_asking_again_cannot_help_is_asked_once(provider: str, answer: Any, reason: str, billing: str) -> None:
    outcomes, double, books = run(provider, {"a": [answer]}, "a", "b")
    assert reasons(outcomes) == [reason, "ok"]
    assert (outcomes[0].attempts if isinstance(outcomes[0], Failure) else 0, len(double.asked)) == (1, 2)
    assert books.story[:3] == ["sent a", f"{billing} a", "stored a"]


def test_a_reply_without_a_count_of_tokens_is_possibly_paid_at_its_worst(provider: str) -> None:
    outcomes, _, books = run(provider, {"a": [ok(provider, usage=None)]}, "a")
    assert reasons(outcomes) == ["ok"]
    totals = books.totals()
    assert (totals.paid, totals.unmetered, totals.usd_paid) == (1, 1, Decimal(0))
    assert totals.usd_possible is not None
    assert totals.usd_possible > 0


# An endpoint that answers no more


@pytest.mark.parametrize(("made", "calls"), [(lambda: error(503, "down"), 8), (lambda: slowly(5, error(500)), 4)])
def test_many_failures_in_a_row_pause_the_run(provider: str, made: Any, calls: int) -> None:
    names = [f"n{number}" for number in range(60)]
    with pytest.raises(PausedError, match=rf"^paused: https://api\S+ did not answer {calls} calls in a row"):
        run(provider, {name: [made] * 9 for name in names}, *names, concurrency=2, timeout=0.1)


# Storing


def test_an_error_in_on_done_stops_the_run_and_what_arrived_is_paid(provider: str) -> None:
    answers = {"b": [lambda: slowly(0.5, ok(provider))]}
    double = faults(answers, provider)
    books = Books()

    def full(index: int, outcome: Outcome) -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        double.chat(ChatOptions(concurrency=2, ledger=books)).complete(requests_of(*"abcd"), full)
    assert sorted(books.story) == ["paid a", "possibly_paid b", "sent a", "sent b"]


def test_once_an_answer_could_not_be_stored_nothing_more_goes_out(provider: str) -> None:
    both = asyncio.Event()

    async def answer(body: dict[str, Any]) -> httpx2.Response:
        if text_of(body) in "ab":
            if len(double.asked) == 2:
                both.set()
            await both.wait()  # so both arrive in the same moment
        return ok(provider)

    double, books = Double(provider, answer), Books()

    def full(index: int, outcome: Outcome) -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        double.chat(ChatOptions(concurrency=2, ledger=books)).complete(requests_of(*"abcd"), full)
    assert double.texts() == ["a", "b"]
    assert (books.totals().paid, books.totals().possibly_paid) == (
        1,
        1,
    )  # what nobody kept is not said to be paid for


def test_it_says_so_inside_a_running_loop(provider: str) -> None:
    async def inside() -> None:
        Double(provider, lambda body: ok(provider)).chat().complete(requests_of("a"))

    with pytest.raises(ConfigError, match="to_thread"):
        asyncio.run(inside())


# Everything at once


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
def test_whatever_happens_each_item_ends_once_and_the_books_cover_what_was_computed(provider: str, seed: int) -> None:
    draw = random.Random(seed)
    computed = 0

    def answer(body: dict[str, Any]) -> httpx2.Response | Awaitable[httpx2.Response]:
        nonlocal computed
        kind = draw.randrange(12)
        computed += kind not in (0, 1, 2)  # what is refused is not computed; what is lost may be
        if kind == 3:
            raise httpx2.ReadError("reset")
        quick: dict[int, httpx2.Response] = {
            0: error(429, headers={"retry-after-ms": "20"}),
            1: error(529),
            2: error(500),
            4: error(504),
            5: httpx2.Response(200, text="garbage"),
            6: ok(provider, usage=None),
        }
        return slowly(draw.random() * 0.02, quick.get(kind, ok(provider)))

    limit = worst_case(provider) * draw.randrange(8, 60)
    books = Books(limit=limit)
    done: list[int] = []
    requests = [*requests_of(*map(str, range(40))), *sharing("x", "y", "z")]
    chat = Double(provider, answer).chat(ChatOptions(concurrency=8, attempts=3, ledger=books))
    outcomes = chat.complete(requests, lambda index, outcome: done.append(index))
    assert sorted(done) == list(range(len(requests)))
    totals = books.totals()
    assert books.open_count == 0
    assert totals.paid >= reasons(outcomes).count("ok")
    assert totals.paid + totals.possibly_paid == computed
    assert totals.usd_committed is not None
    assert totals.usd_committed <= limit
    assert set(reasons(outcomes)) <= {
        "ok",
        "malformed_reply",
        "connection",
        "http_504",
        "http_500",
        "max_cost",
    }
