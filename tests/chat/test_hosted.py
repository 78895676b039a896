"""The live loop of hosted APIs: what is booked, tried again, waited for and given up, through the real SDKs."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hosted_made import KEYS, PROVIDERS, Double, error, ok, reasons, requests_of, set_keys, slowly, text_of

from h2htalk.chat.anthropic_api import AnthropicChat
from h2htalk.chat.anthropic_wire import AnthropicApi
from h2htalk.chat.base import ChatOptions, Message, OnDone, Outcome, Reply, Request, Sampling, open_chat
from h2htalk.chat.bookings import Booking, Settlement
from h2htalk.chat.connections import open_client, open_pool
from h2htalk.chat.costs import Price
from h2htalk.chat.ledger import Ledger
from h2htalk.chat.openai_api import OpenAIChat
from h2htalk.chat.openai_wire import OpenAIApi
from h2htalk.data.run import Failure
from h2htalk.errors import ConfigError, H2HTalkError, ModelCallError

PRICE = Price(input=Decimal(1), output=Decimal(10), cache_write=Decimal(2), cache_write_1h=Decimal(2))
Answer = Callable[[dict[str, Any]], httpx2.Response | Awaitable[httpx2.Response]]


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    set_keys(monkeypatch)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits between attempts are as they are, but a hundred times shorter."""
    monkeypatch.setattr("h2htalk.chat.server_protocol.FIRST_WAIT", 0.005)
    monkeypatch.setattr("h2htalk.chat.server_protocol.LONGEST_WAIT", 0.08)


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """asyncio logs what was left lying about: an exception nobody saw, a connection nobody closed."""
    yield
    gc.collect(1)  # the young: a whole collection takes half a second once the SDKs are loaded
    records = caplog.get_records("call") + caplog.records
    assert [record.getMessage() for record in records if record.name == "asyncio"] == []


@pytest.fixture(params=PROVIDERS)
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Books(Ledger):
    """A ledger that remembers in which order things happened, replies included."""

    def __init__(self, limit: Decimal | None = None, price: Price | None = PRICE) -> None:
        super().__init__(None, model="made-up", price=price, limit=limit)
        self.story: list[str] = []

    def reserve_all(self, *args: Any, **more: Any) -> list[Booking]:
        made = super().reserve_all(*args, **more)
        self.story += [f"sent {booking.items[0][0]}" for booking in made]
        return made

    def _settle(self, end: Settlement) -> None:
        super()._settle(end)
        self.story.append(f"{end.charge} {end.booking.items[0][0]}")

    def stored(self, requests: list[Request]) -> OnDone:
        return lambda index, outcome: self.story.append(f"stored {requests[index].id}")


def faults(answers: dict[str, list[Any]], provider: str) -> tuple[Double, Answer]:
    """A double that answers each item by its own list, then plainly; an exception in it is raised."""

    def answer(body: dict[str, Any]) -> httpx2.Response | Awaitable[httpx2.Response]:
        todo = answers.get(text_of(body), [])
        found = todo.pop(0) if todo else ok(provider)
        if isinstance(found, Exception):
            raise found
        return found() if callable(found) else found  # type: ignore[no-any-return]

    return Double(provider, answer), answer


def run(
    provider: str, answers: dict[str, list[Any]], *texts: str, **options: Any
) -> tuple[list[Outcome], Double, Books]:
    """Ask for the items, one after the other unless told otherwise, with books."""
    double, _ = faults(answers, provider)
    books = options.pop("ledger", None) or Books()
    requests = requests_of(*texts)
    chat = double.chat(ChatOptions(**{"concurrency": 1, "ledger": books, **options}))
    return chat.complete(requests, books.stored(requests)), double, books


# Booking


def test_a_call_is_booked_then_sent_then_stored_then_paid(provider: str) -> None:
    outcomes, _, books = run(provider, {}, "a", "b")
    assert reasons(outcomes) == ["ok", "ok"]
    assert books.story == ["sent a", "stored a", "paid a", "sent b", "stored b", "paid b"]
    totals = books.totals()
    assert (totals.paid, totals.input_tokens, totals.output_tokens) == (2, 40, 10)
    assert totals.usd_paid == Decimal("0.00014")


@pytest.mark.parametrize(
    ("first", "charge"),
    [
        (error(429, headers={"retry-after": "0"}), "free"),
        (error(529), "free"),
        (error(500), "free"),
        (error(503), "free"),
        (error(409), "free"),
        (error(502), "lost"),
        (error(504), "lost"),
        (error(408), "lost"),
        (httpx2.Response(524, text="<html>timeout</html>"), "lost"),
        (httpx2.ReadTimeout("slow"), "lost"),
        (httpx2.ReadError("reset"), "lost"),
        (httpx2.WriteError("reset"), "lost"),
        (httpx2.RemoteProtocolError("peer closed connection without sending complete message body"), "lost"),
        (lambda: slowly(5, httpx2.Response(200)), "lost"),
    ],
)
def test_only_what_never_arrived_or_was_refused_is_asked_again_and_every_attempt_is_booked(
    provider: str, first: Any, charge: str
) -> None:
    outcomes, double, books = run(provider, {"a": [first]}, "a", timeout=0.3)
    assert reasons(outcomes) == ["ok"]
    assert len(double.asked) == 2
    assert books.story == ["sent a", f"{charge} a", "sent a", "stored a", "paid a"]


@pytest.mark.parametrize(
    ("answer", "reason", "charge"),
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
def test_what_asking_again_cannot_help_is_asked_once(
    provider: str, answer: Any, reason: str, charge: str
) -> None:
    outcomes, double, books = run(provider, {"a": [answer]}, "a", "b")
    assert reasons(outcomes) == [reason, "ok"]
    assert (outcomes[0].attempts if isinstance(outcomes[0], Failure) else 0, len(double.asked)) == (1, 2)
    assert books.story[:3] == ["sent a", f"{charge} a", "stored a"]


def test_a_call_is_given_up_after_its_attempts(provider: str) -> None:
    outcomes, double, books = run(provider, {"a": [error(500, "oops")] * 9}, "a", "b", attempts=3)
    assert outcomes[0] == Failure("http_500", "HTTP 500: oops", 3)
    assert isinstance(outcomes[1], Reply)
    assert (len(double.asked), books.totals().free, books.open_count) == (4, 3, 0)


def test_a_reply_without_a_count_of_tokens_is_possibly_paid_at_its_worst(provider: str) -> None:
    outcomes, _, books = run(provider, {"a": [ok(provider, usage=None)]}, "a")
    assert reasons(outcomes) == ["ok"]
    totals = books.totals()
    assert (totals.paid, totals.unmetered, totals.usd_paid) == (1, 1, Decimal(0))
    assert totals.usd_possible is not None
    assert totals.usd_possible > 0


# Waiting


def test_a_retry_after_beyond_the_deadline_fails_at_once_and_says_so(provider: str) -> None:
    started = time.monotonic()
    answer = error(429, "slow down", headers={"retry-after": "86400"})
    outcomes, double, books = run(provider, {"a": [answer] * 9}, "a", "b", deadline=60)
    assert time.monotonic() - started < 5
    assert reasons(outcomes) == ["rate_limited", "ok"]
    assert isinstance(outcomes[0], Failure)
    assert "86400 s" in outcomes[0].message
    assert "60 s" in outcomes[0].message
    assert (len(double.asked), books.totals().free) == (2, 1)


@pytest.mark.parametrize("after", ["1e400", "inf", "-5", "nan", "soon", "Thu, 01 Jan 1970 00:00:00 GMT"])
def test_an_absurd_retry_after_neither_hangs_nor_breaks_anything(provider: str, after: str) -> None:
    started = time.monotonic()
    outcomes, _, books = run(
        provider, {"a": [error(429, headers={"retry-after": after})]}, "a", "b", deadline=3, timeout=1
    )
    assert time.monotonic() - started < 4
    assert reasons(outcomes) in (["ok", "ok"], ["rate_limited", "ok"])
    assert books.open_count == 0


def test_rate_limits_count_against_the_deadline_and_not_against_the_attempts(provider: str) -> None:
    limits = [error(429, headers={"retry-after-ms": "1"})] * 12
    outcomes, _, books = run(provider, {"a": limits}, "a", attempts=1)
    assert reasons(outcomes) == ["ok"]
    assert books.totals().free == 12
    endless = [error(529)] * 10_000
    outcomes, _, _ = run(provider, {"a": endless}, "a", deadline=0.3, timeout=0.3)
    assert reasons(outcomes) == ["overloaded"]


def test_whoever_asks_for_no_wait_is_not_asked_over_and_over(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("h2htalk.chat.server_protocol.FIRST_WAIT", 0.1)
    monkeypatch.setattr("h2htalk.chat.server_protocol.LONGEST_WAIT", 0.4)
    _, double, _ = run(
        provider, {"a": [error(429, headers={"retry-after": "0"})] * 10_000}, "a", deadline=1, timeout=0.5
    )
    assert 3 <= len(double.asked) <= 8


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
    assert books.totals().lost == 2


def test_concurrency_is_what_was_asked_for(provider: str) -> None:
    flying = most = 0

    async def answer(body: dict[str, Any]) -> httpx2.Response:
        nonlocal flying, most
        flying += 1
        most = max(most, flying)
        await asyncio.sleep(0.01)
        flying -= 1
        return ok(provider)

    Double(provider, answer).chat(ChatOptions(concurrency=5)).complete(requests_of(*map(str, range(40))))
    assert most == 5


def test_answers_keep_the_order_of_the_requests(provider: str) -> None:
    def answer(body: dict[str, Any]) -> Awaitable[httpx2.Response]:
        return slowly(0.02 if text_of(body) in "aceg" else 0, ok(provider, text_of(body)))

    outcomes = Double(provider, answer).chat().complete(requests_of(*"abcdefgh"))
    assert [outcome.text for outcome in outcomes if isinstance(outcome, Reply)] == list("abcdefgh")


# The limit


def worst_case(provider: str) -> Decimal:
    """What a call of these tests may cost at most."""
    api = OpenAIApi("made-up") if provider == "openai" else AnthropicApi("made-up")
    bound = api.bound(api.calls(requests_of("a"))[0])
    dollars = PRICE.worst(bound.input_tokens, bound.output_tokens)
    assert dollars is not None
    return dollars


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


# What ends the run


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (error(401, "bad key"), ConfigError),
        (error(402, "pay"), ModelCallError),
        (error(404, "gone"), ConfigError),
    ],
)
def test_trouble_for_all_ends_the_run_at_any_time_and_keeps_what_was_on_its_way(
    provider: str, answer: httpx2.Response, kind: type[H2HTalkError]
) -> None:
    answers = {"c": [answer], "b": [lambda: slowly(0.2, ok(provider))]}
    double, _ = faults(answers, provider)
    books, requests = Books(), requests_of(*"abcdefgh")
    chat = double.chat(ChatOptions(concurrency=2, ledger=books))
    with pytest.raises(kind):
        chat.complete(requests, books.stored(requests))
    assert {"stored a", "paid a", "stored b", "paid b", "free c"} <= set(books.story)
    assert (books.open_count, books.totals().lost, len(double.asked)) == (0, 0, 3)


def test_what_is_not_the_api_ends_the_run_after_a_few_answers_which_may_be_paid(
    provider: str,
) -> None:
    page = [httpx2.Response(200, text="<html>Welcome</html>")]
    books, texts = Books(), [str(number) for number in range(20)]
    with pytest.raises(
        ConfigError, match=rf"is no .* API \(the first 8 .*Welcome.*{provider.upper()}_BASE_URL"
    ):
        run(provider, {text: list(page) for text in texts}, *texts, ledger=books)
    assert (books.totals().unmetered, books.totals().open) == (8, 0)


def test_beside_one_real_answer_nonsense_is_each_calls_own(provider: str) -> None:
    page = httpx2.Response(200, text="<html>Welcome</html>")
    texts = [str(number) for number in range(20)]
    outcomes, _, _ = run(provider, {text: [page] for text in texts[1:]}, *texts)
    assert reasons(outcomes) == ["ok"] + ["malformed_reply"] * 19


@pytest.mark.parametrize("charset", ["zlib_codec", "undefined", "idna", "rot13"])
def test_an_error_in_a_charset_that_is_none_is_that_calls_own(provider: str, charset: str) -> None:
    headers = {"content-type": f"application/json; charset={charset}"}
    double = Double(provider, lambda body: httpx2.Response(500, content=b"\xff..", headers=headers))
    pool = open_pool("http://127.0.0.1", 1)
    client = httpx2.AsyncClient(transport=httpx2.MockTransport(double), event_hooks=pool.event_hooks)
    chat_class = OpenAIChat if provider == "openai" else AnthropicChat
    assert reasons(chat_class("m", ChatOptions(attempts=1), client).complete(requests_of("a"))) == [
        "http_500"
    ]


def test_batch_jobs_are_read_as_utf8_too() -> None:
    response = httpx2.Response(500, content=b"{}", headers={"content-type": "x; charset=undefined"})
    with open_client("http://127.0.0.1") as client:
        for hook in client.event_hooks["response"]:
            hook(response)
    assert response.text == "{}"


@pytest.mark.parametrize("text", ["örg", "org\nname"])
def test_a_header_that_cannot_be_sent_is_free_and_not_quoted(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", text)
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.getsockname()[1]}/v1")
        books = Books()
        with pytest.raises(ModelCallError, match=r"nothing was sent: .* a header from the env") as caught:
            OpenAIChat("m", ChatOptions(ledger=books)).complete(requests_of("a"))
    assert text not in str(caught.value)
    assert (books.totals().free, books.totals().lost) == (1, 0)


@pytest.mark.parametrize("where", ["header", "id", "finish"])
def test_a_key_that_comes_back_as_a_name_or_a_reason_is_not_kept(provider: str, where: str) -> None:
    key = KEYS[provider]
    plain = ok(provider, **({"id": key} if where == "id" else {}))
    body = plain.json()
    if where == "finish":
        body |= {"stop_reason": key}
        for choice in body.get("choices", []):
            choice["finish_reason"] = key
    headers = {"x-request-id": key} if where == "header" else {}
    outcomes, _, _ = run(provider, {"a": [httpx2.Response(200, json=body, headers=headers)]}, "a")
    assert isinstance(outcomes[0], Reply)
    assert "[key]" in repr(outcomes[0])
    assert key not in repr(outcomes[0])


def test_an_answer_that_can_only_just_be_read_is_shown_without_breaking(provider: str) -> None:
    for depth in range(900, 1000, 2):  # somewhere here JSON can be read and no longer be written
        content = b'{"a":' * depth + b"1" + b"}" * depth
        outcomes, _, _ = run(provider, {"a": [httpx2.Response(200, content=content)]}, "a")
        assert reasons(outcomes) == ["malformed_reply"]


@pytest.mark.parametrize("failure", [httpx2.ConnectError("refused"), httpx2.ConnectTimeout("silent")])
def test_nothing_at_the_address_ends_the_run_before_the_first_answer(
    provider: str, failure: Exception
) -> None:
    with pytest.raises(ModelCallError, match=f"{provider.upper()}_BASE_URL"):
        run(provider, {"a": [failure]}, "a", "b")
    outcomes, _, books = run(provider, {"b": [failure]}, "a", "b")
    assert reasons(outcomes) == ["ok", "ok"]
    assert books.story[3:5] == ["sent b", "free b"]


def test_a_closed_port_is_named_without_the_key(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{provider.upper()}_BASE_URL", "http://127.0.0.1:9/v1")
    books = Books()
    with pytest.raises(ModelCallError, match=r"^http://127\.0\.0\.1:9 does not answer") as caught:
        open_chat(f"{provider}:made-up", ChatOptions(ledger=books)).complete(requests_of("a"))
    assert KEYS[provider] not in str(caught.value)
    assert (books.totals().free, books.open_count) == (1, 0)


@pytest.mark.parametrize("proxy", ["socks9://me:secret@10.0.0.1", "://", "ftp://me:secret@10.0.0.1:1"])
def test_a_proxy_that_cannot_be_used_is_named_by_its_variable(
    provider: str, proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    with pytest.raises(ConfigError, match="ALL_PROXY") as caught:
        open_chat(f"{provider}:made-up").complete(requests_of("a"))
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_an_error_in_on_done_stops_the_run_and_what_arrived_is_paid(provider: str) -> None:
    answers = {"b": [lambda: slowly(0.5, ok(provider))]}
    double, _ = faults(answers, provider)
    books = Books()

    def full(index: int, outcome: Outcome) -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        double.chat(ChatOptions(concurrency=2, ledger=books)).complete(requests_of(*"abcd"), full)
    assert sorted(books.story) == ["lost b", "paid a", "sent a", "sent b"]


INTERRUPTED = """
import sys
from hosted_made import Double, ok, requests_of, slowly, text_of
from test_hosted import Books
from h2htalk.chat.base import ChatOptions

provider, books, requests = sys.argv[1], Books(), requests_of(*"abcd")
def answer(body):
    return ok(provider) if text_of(body) == "a" else slowly(30, ok(provider))
def store(index, outcome):
    books.stored(requests)(index, outcome)
    print("waiting", flush=True)
try:
    Double(provider, answer).chat(ChatOptions(concurrency=2, ledger=books)).complete(requests, store)
except KeyboardInterrupt:
    print(*books.story, books.open_count, sep=", ", flush=True)
"""


def test_ctrl_c_books_what_is_on_its_way_as_possibly_paid(provider: str) -> None:
    command = [sys.executable, "-W", "always::ResourceWarning", "-c", INTERRUPTED, provider]
    here = os.pathsep.join((str(Path(__file__).parent), str(Path(__file__).parents[1])))
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=os.environ | {"PYTHONPATH": here}, **pipes) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        out, noise = process.communicate(timeout=20)
    story = out.strip().split(", ")
    assert story[:5] == ["sent a", "sent b", "stored a", "paid a", "sent c"]
    assert sorted(story[5:]) == ["0", "lost b", "lost c"]
    assert noise == ""


def test_it_says_so_inside_a_running_loop(provider: str) -> None:
    async def inside() -> None:
        Double(provider, lambda body: ok(provider)).chat().complete(requests_of("a"))

    with pytest.raises(ConfigError, match="to_thread"):
        asyncio.run(inside())


def test_nothing_to_ask_is_nothing_asked(provider: str) -> None:
    double = Double(provider, lambda body: ok(provider))
    assert double.chat().complete([]) == []
    assert double.asked == []


# Caches on request


PERSONA = "You are Ava, who keeps a lighthouse. " * 90


def sharing(*texts: str, persona: str = PERSONA) -> list[Request]:
    system = Message("system", persona, shared=len(persona))
    return [Request(text, (system, Message("user", text)), Sampling(None)) for text in texts]


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
    double, _ = faults(answers, "anthropic")
    outcomes = double.chat(ChatOptions(attempts=2)).complete(sharing(*"abcde"))
    assert reasons(outcomes) == ["bad_request", "http_500", "ok", "ok", "ok"]
    assert double.texts()[:4] == ["a", "b", "b", "c"]


def test_openai_caches_by_itself_so_nobody_waits() -> None:
    flying: list[int] = []

    async def answer(body: dict[str, Any]) -> httpx2.Response:
        flying.append(1)
        await asyncio.sleep(0.1)
        return ok("openai", text=str(len(flying)))

    Double("openai", answer).chat().complete(sharing(*"abcd"))
    assert len(flying) == 4


def test_prefixes_take_turns_so_that_no_cache_grows_old() -> None:
    double = Double("anthropic", lambda body: ok("anthropic"))
    bo = sharing(*"efgh", persona="You are Bo, who mends nets. " * 120)
    double.chat(ChatOptions(concurrency=1)).complete([*sharing(*"abcd"), *bo])
    assert double.texts() == list("aebfcgdh")


# Everything at once


@pytest.mark.parametrize("seed", range(6))
def test_whatever_happens_each_item_ends_once_and_the_books_cover_what_was_computed(
    provider: str, seed: int
) -> None:
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
    assert totals.paid + totals.lost == computed
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
