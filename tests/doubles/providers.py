"""A server on the loopback interface that plays OpenAI and Anthropic to their real SDKs, and keeps books of its own.

    with ProviderServer(faults={"gateway_timeout": 0.1}, fault_times=1) as server:
        subprocess.run([...], env=server.environment())
        server.bill(), server.charged(), server.seen

It serves chat completions, messages, and the batch jobs of both; it wants the key, refuses what the real APIs refuse,
and charges what it computes.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from aiohttp import web
from provider_batches import BatchApi, Found, Job
from provider_model import REPLY, Asked, Model, Tokens
from provider_wires import ID_HEADER, KEY, Refused, error, read, reply

# US dollars per million tokens.
PRICES: dict[str, dict[str, str]] = {
    "openai:gpt-test": {"input": "2.50", "output": "10.00", "cache_read": "1.25"},
    "openai:reasoner-test": {"input": "2.00", "output": "8.00", "cache_read": "0.50"},
    "anthropic:claude-test": {
        "input": "3.00",
        "output": "15.00",
        "cache_read": "0.30",
        "cache_write": "3.75",
        "cache_write_1h": "6.00",
    },
}
BATCH_FACTOR = Decimal("0.5")
STRANGER = {"model": "somebody-elses", "max_tokens": 1, "messages": [{"role": "user", "content": "nightly"}]}
_SLOW = "Slow down: too many requests a minute."
# An API may repeat the key that it refuses, and a gateway what it was sent: nothing of it may be shown or stored.
_KEY_TEXT, _BROKEN = (
    f"Incorrect API key provided: {KEY}.",
    f"The server had an error with 'Authorization: Bearer {KEY}'.",
)
# Refused before anything is computed, in the words of OpenAI and of Anthropic.
_SAID: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    "rate_limited": (
        (429, "requests", _SLOW, "rate_limit_exceeded", {"retry-after": "1"}),
        (429, "rate_limit_error", _SLOW, None, {"retry-after": "1"}),
    ),
    "overloaded": ((503, "server_error", "The engine is overloaded."), (529, "overloaded_error", "Overloaded")),
    "http_500": ((500, "server_error", _BROKEN), (500, "api_error", _BROKEN)),
    "unauthorized": (
        (401, "invalid_request_error", _KEY_TEXT, "invalid_api_key"),
        (401, "authentication_error", _KEY_TEXT),
    ),
    "unknown_model": ((404, "", "no such model", "model_not_found"), (404, "not_found_error", "model: claude-nowhere")),
    "context_length": (
        (400, "invalid_request_error", "maximum context length is 8192 tokens", "context_length_exceeded"),
        (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
    ),
    "no_credit": (
        (429, "insufficient_quota", "You exceeded your current quota.", "insufficient_quota"),
        (402, "billing_error", "Your credit balance is too low."),
    ),
}
# Seen in the reply, which is whole and charged.
WRITTEN = ("refusal", "truncated", "malformed_form", "out_of_range", "no_usage", "garbage")
# Computed and charged, but no whole reply arrives.
LOST = ("gateway_timeout", "drop_after", "cut", "hang")
# Nothing is computed: the connection ends before; results of a batch that are no reply.
UNCHARGED = ("drop_before", "expired", "canceled")
FAULTS = (*_SAID, *WRITTEN, *LOST, *UNCHARGED)


@dataclass(slots=True)
class JobPlan:
    """How jobs behave; the counts are used up.

    Attributes:
        looks: a job ends at the so-many-th look at it, by itself or in a list.
        unmade: creations whose connection ends before there is a job.
        create_dropped: creations whose job is made, but whose reply never arrives.
        polls_failed: retrievals that answer 500.
        results_cut: readings of results that break in the middle.
        strangers: jobs of somebody else, of equal size, made just before ours.
    """

    looks: int = 1
    unmade: int = 0
    create_dropped: int = 0
    polls_failed: int = 0
    results_cut: int = 0
    strangers: int = 0

    def use(self, name: str) -> bool:
        """Whether this time is one of the first so many."""
        left = getattr(self, name)
        setattr(self, name, max(0, left - 1))
        return bool(left)


@dataclass(slots=True)
class Charge:
    """One computed call. `arrived`: its reply left whole, with its usage."""

    model: str
    item: str
    samples: int
    tokens: Tokens
    batch: bool
    request_id: str
    arrived: bool = False

    @property
    def dollars(self) -> Decimal:
        """What this call costs by `PRICES`."""
        prices = PRICES[self.model]
        kinds = ("input", "output", "cache_read", "cache_write", "cache_write_1h")
        sums = (getattr(self.tokens, kind) * Decimal(prices.get(kind, prices["input"])) for kind in kinds)
        return sum(sums, Decimal(0)) / 1_000_000 * (BATCH_FACTOR if self.batch else 1)


def price_file() -> str:
    """The prices as a price file that h2htalk reads."""
    lines = ['date = "2026-11-20"', 'currency = "USD"']
    for model, kinds in PRICES.items():
        lines.append(f'[models."{model}"]')
        lines += [f'{kind} = "{dollars}"' for kind, dollars in kinds.items()]
        lines.append(f'batch = "{BATCH_FACTOR}"')
    return "\n".join(lines) + "\n"


@dataclass
class ProviderServer(BatchApi):
    """The server in a thread of its own, as a context manager.

    Attributes:
        faults: fault -> share of items that meet it. faults_at: word in the last user message -> fault, or
            `FAULT:TIMES`.
        fault_times: an item meets its fault in its first so many requests; None: for good.
        after: fault -> number of charged calls after which every request meets it.
        latency: seconds between a call's charge and its reply.
        dearest: every call costs as much as it can.
        plan: how batch jobs behave.
        seen: last user message -> well-formed requests that came for it, in batches too.
    """

    faults: dict[str, float] = field(default_factory=dict)
    faults_at: dict[str, str] = field(default_factory=dict)
    fault_times: int | None = None
    after: dict[str, int] = field(default_factory=dict)
    latency: float = 0.0
    dearest: bool = False
    plan: JobPlan = field(default_factory=JobPlan)
    reply: str = REPLY
    seen: Counter[str] = field(default_factory=Counter)
    in_flight: int = 0
    in_flight_max: int = 0

    def __post_init__(self) -> None:
        super().__init__()
        names = {name.partition(":")[0] for name in (*self.faults, *self.faults_at.values(), *self.after)}
        assert names <= {*FAULTS}, names - {*FAULTS}
        self.model = Model(self.reply, self.dearest)
        self._charges: list[Charge] = []
        self._number = 0
        self._started = threading.Event()

    def environment(self) -> dict[str, str]:
        """This process's environment, with both SDKs' variables pointing here."""
        ours = {"OPENAI_BASE_URL": f"{self.url}/v1", "ANTHROPIC_BASE_URL": self.url}
        return {**os.environ, **ours, "OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY}

    def charged(self) -> list[Charge]:
        """Every call that was computed, in order."""
        return list(self._charges)

    def bill(self) -> Decimal:
        """US dollars in all."""
        return sum((charge.dollars for charge in self.charged()), Decimal(0))

    def mend(self) -> None:
        """Switch all faults off for the requests to come."""
        self.faults, self.faults_at, self.after = {}, {}, {}

    def fault_of(self, item: str) -> str | None:
        """The fault of this request of an item."""
        self.seen[item] += 1
        for name, calls in self.after.items():
            if len(self._charges) >= calls:
                return name
        found = next(
            (name for text, name in self.faults_at.items() if re.search(rf"{re.escape(text)}(?!\d)", item)), ""
        )
        draw = int.from_bytes(hashlib.blake2b(item.encode(), digest_size=8).digest(), "big") / 2**64
        for name, share in self.faults.items():
            found = found or (name if 0 <= draw < share else "")
            draw -= share
        name, _, times = found.partition(":")
        most = int(times) if times else self.fault_times
        return name if name and (most is None or self.seen[item] <= most) else None

    def compute_call(
        self, provider: str, body: Any, request_id: str, batch: bool
    ) -> tuple[str | None, dict[str, Any], Charge | None, Asked]:
        """Check, compute and charge one request; raises Refused, free of charge."""
        asked = read(provider, body)
        fault = self.fault_of(asked.item)
        if fault in _SAID:
            raise Refused(*_SAID[fault][provider == "anthropic"])
        if fault in UNCHARGED and batch == (fault != "drop_before"):
            return fault, {}, None, asked
        texts, finish, tokens = self.model.write(asked, fault)
        charge = Charge(f"{provider}:{asked.model}", asked.item, asked.samples, tokens, batch, request_id)
        self._charges.append(charge)
        return fault, reply(asked, texts, finish, tokens, request_id, fault != "no_usage"), charge, asked

    # --- Batch jobs ---------------------------------------------------------------------------------------------

    def ends(self, job: Job) -> bool:
        return job.looks >= self.plan.looks

    def compute(self, job: Job, body: Any) -> tuple[Found, str]:
        request_id = self._next_id()
        if job.strange:
            return Refused(400, "invalid_request_error", "not yours"), request_id
        try:
            fault, made, charge, asked = self.compute_call(job.provider, body, request_id, batch=True)
        except Refused as refused:
            return refused, request_id
        if charge is None:
            return fault, request_id
        self.model.finish(asked)
        charge.arrived = fault != "no_usage"
        return made, request_id

    def create(self, provider: str, lines: list[tuple[str, Any]], **more: Any) -> Job:
        while self.plan.use("strangers"):
            strange = [(f"nightly-{number}", STRANGER) for number in range(len(lines))]
            super().create(provider, strange, strange=True)
        return super().create(provider, lines, **more)

    async def _batches(self, request: web.Request) -> web.StreamResponse:
        content, making = await request.read(), request.method == "POST" and not request.path.endswith("files")
        if making and self.plan.use("unmade"):
            return drop(request)
        if request.path.endswith(self.jobs[-1].id if self.jobs else "/") and self.plan.use("polls_failed"):
            raise Refused(500, "server_error", "The server had an error.")
        found = self.answer(request.method, request.path, request.query, content)
        if making and self.plan.use("create_dropped"):
            return drop(request)
        if isinstance(found, dict):
            return web.json_response(found)
        rows = b"".join(json.dumps(row).encode() + b"\n" for row in found)
        return await send(request, rows, {}, 2 / 3 if self.plan.use("results_cut") else 1)

    # --- The wire -----------------------------------------------------------------------------------------------

    def _next_id(self) -> str:
        self._number += 1
        return f"req_{self._number:06}"

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        provider = "anthropic" if request.path.startswith("/v1/messages") else "openai"
        request_id = self._next_id()
        self.in_flight += 1
        self.in_flight_max = max(self.in_flight, self.in_flight_max)
        try:
            if request.headers.get("authorization") != f"Bearer {KEY}":
                raise Refused(*_SAID["unauthorized"][provider == "anthropic"])
            if request.path not in ("/v1/chat/completions", "/v1/messages"):
                return await self._batches(request)
            return await self._live(request, provider, request_id)
        except Refused as refused:
            headers = {ID_HEADER[provider]: request_id, **refused.headers}
            return web.json_response(error(provider, refused, request_id), status=refused.status, headers=headers)
        finally:
            self.in_flight -= 1

    async def _live(self, request: web.Request, provider: str, request_id: str) -> web.StreamResponse:
        body = json.loads(await request.read())
        fault, made, charge, asked = self.compute_call(provider, body, request_id, batch=False)
        await asyncio.sleep(3600 if fault == "hang" else self.latency)
        if fault == "gateway_timeout":
            raise Refused(504, "timeout_error", "The upstream did not answer in time")
        if fault in ("drop_before", "drop_after"):
            return drop(request)
        content = json.dumps(made).encode() if fault != "garbage" else b'{"id": "%s' % KEY.encode()
        # Before it goes out: the client may look at the books the moment it has the reply.
        if (
            charge is not None
            and fault != "cut"
            and request.transport is not None
            and not request.transport.is_closing()
        ):
            self.model.finish(asked)
            charge.arrived = fault not in ("no_usage", "garbage")
        headers = {ID_HEADER[provider]: request_id, "content-type": "application/json"}
        return await send(request, content, headers, 2 / 3 if fault == "cut" else 1)

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(client_max_size=300 * 2**20)
        app.add_routes([web.route("*", "/{path:.*}", self._handle)])
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        self._started.set()
        await self._stop.wait()
        await runner.cleanup()

    def __enter__(self) -> ProviderServer:
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        assert self._started.wait(10), "the imitated provider did not start"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)


def drop(request: web.Request) -> web.Response:
    """End the connection without a word."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


async def send(
    request: web.Request, content: bytes, headers: Mapping[str, str], share: float = 1.0
) -> web.StreamResponse:
    """Send a body that is announced whole, or a share of it, in pieces that end anywhere."""
    stream = web.StreamResponse(headers={**headers, "content-length": str(len(content))})
    await stream.prepare(request)
    sent = content[: int(len(content) * share)]
    for start in range(0, len(sent), 1000):
        await stream.write(sent[start : start + 1000])
    if share < 1 and request.transport is not None:
        request.transport.close()
    return stream
