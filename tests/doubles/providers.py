"""A server on the loopback interface that plays OpenAI and Anthropic to their real SDKs, and keeps books of its own.

    with ProviderServer(faults={"gateway_timeout": 0.1}, fault_times=1) as server:
        subprocess.run([...], env=server.environment())
        server.bill(), server.charged(), server.seen

It serves chat completions, files and batches, messages, token counts and message batches; it wants the key, refuses
what the real APIs refuse, and charges what it computes. Faults: `provider_faults`; batch jobs: `provider_jobs`.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from decimal import Decimal
from types import ModuleType
from typing import Any

import provider_anthropic
import provider_openai
from aiohttp import web
from provider_anthropic_batches import AnthropicBatches
from provider_books import Books, Charge, price_file
from provider_delivery import REQUEST_ID, Computed, deliver
from provider_faults import BATCH_RESULTS, FAULTS, KEY, LOST, UNSENT, FaultPlan, Refused, refusal_of
from provider_jobs import Found, JobPlan, Jobs
from provider_model import REPLY, Model
from provider_openai_batches import OpenAIBatches

__all__ = ["FAULTS", "KEY", "Charge", "JobPlan", "ProviderServer", "price_file"]

LARGEST_BODY = 300 * 2**20
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ProviderServer:
    """The server in a thread of its own, as a context manager.

    Args:
        faults: fault -> share of items that meet it. faults_at: word in the last user message -> fault, or
            `FAULT:TIMES`.
        fault_times: an item meets its fault in its first so many requests; None: for good.
        after: fault -> number of charged calls after which every request meets it.
        latency: seconds between a call's charge and its reply.
        dearest: every call costs as much as it can.
        jobs: how batch jobs behave.
        reply: what the model writes.
    """

    def __init__(
        self,
        *,
        faults: Mapping[str, float] | None = None,
        faults_at: Mapping[str, str] | None = None,
        fault_times: int | None = None,
        after: Mapping[str, int] | None = None,
        latency: float = 0.0,
        dearest: bool = False,
        jobs: JobPlan | None = None,
        reply: str = REPLY,
    ) -> None:
        self.plan = FaultPlan(dict(faults or {}), dict(faults_at or {}), fault_times, dict(after or {}))
        self.latency = latency
        self.model = Model(reply, dearest)
        self.books = Books()
        self.jobs = Jobs(jobs or JobPlan())
        self.port = 0
        self.refused: Counter[str] = Counter()  # what refused requests were told
        self.in_flight = self.in_flight_max = 0
        self._number = 0
        self._stop: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def seen(self) -> Counter[str]:
        """Last user message -> well-formed requests that came for it, in batches too."""
        return self.plan.seen.copy()

    def environment(self) -> dict[str, str]:
        """This process's environment, with both SDKs' variables pointing here."""
        ours = {"OPENAI_BASE_URL": f"{self.url}/v1", "ANTHROPIC_BASE_URL": self.url}
        return {**os.environ, **ours, "OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY}

    def charged(self) -> list[Charge]:
        """Every call that was computed, in order."""
        return self.books.charged()

    def bill(self) -> Decimal:
        """US dollars in all."""
        return self.books.bill()

    def mend(self) -> None:
        """Switch all faults off for the requests to come."""
        self.plan.mend()

    # What it computes.

    def compute(self, wire: ModuleType, body: Any, request_id: str, batch: bool = False) -> Computed:
        """Check, compute and charge one request; raises Refused, free of charge."""
        asked = wire.read(body)
        fault = self.plan.draw(asked.item, len(self.books.charged()))
        if fault is not None and (refused := refusal_of(fault, wire.PROVIDER)):
            raise refused
        if fault in (BATCH_RESULTS if batch else UNSENT):
            return Computed(fault, asked, {}, None)
        draft, tokens = self.model.write(asked, fault)
        reported = fault not in ("no_usage", "garbage", *LOST)
        charge = Charge(
            f"{wire.PROVIDER}:{asked.model}",
            asked.item,
            asked.samples,
            tokens,
            batch,
            request_id,
            reported=reported,
        )
        made = wire.reply(asked, draft, tokens, request_id, with_usage=fault != "no_usage")
        return Computed(fault, asked, made, self.books.add(charge))

    def compute_in_batch(self, wire: ModuleType, body: Any) -> tuple[Found, str]:
        """One request of a job, and its request id; faults of a connection do not exist there."""
        request_id = self.next_id()
        try:
            computed = self.compute(wire, body, request_id, batch=True)
        except Refused as refused:
            return refused, request_id
        if computed.charge is None:
            return computed.fault or "expired", request_id
        self._finish(computed)
        return computed.body, request_id

    def _finish(self, computed: Computed) -> None:
        """A reply goes out whole: from now on its prefix can be read from the cache."""
        if computed.charge is not None:
            self.model.caches.finish(computed.asked)
            self.books.delivered(computed.charge)

    def next_id(self) -> str:
        self._number += 1
        return f"req_{self._number:06}"

    # How it answers.

    def guarded(self, wire: ModuleType, handle: Handler) -> Handler:
        """A handler behind the key, whose refusals are answered as that provider does."""

        async def answer(request: web.Request) -> web.StreamResponse:
            request[REQUEST_ID] = self.next_id()
            self.in_flight += 1
            self.in_flight_max = max(self.in_flight, self.in_flight_max)
            try:
                check_key(request, wire)
                return await handle(request)
            except Refused as refused:
                self.refused[refused.message] += 1
                headers = {wire.ID_HEADER: request[REQUEST_ID], **refused.headers}
                error = wire.error(refused, request[REQUEST_ID])
                return web.json_response(error, status=refused.status, headers=headers)
            finally:
                self.in_flight -= 1

        return answer

    def live(self, wire: ModuleType) -> Handler:
        """The handler of one live call."""

        async def answer(request: web.Request) -> web.StreamResponse:
            computed = self.compute(wire, wire.parse(await request.read()), request[REQUEST_ID])
            await asyncio.sleep(self.latency)
            return await deliver(request, wire, computed, lambda: self._finish(computed))

        return self.guarded(wire, answer)

    async def _count_tokens(self, request: web.Request) -> web.Response:
        asked = provider_anthropic.read({"max_tokens": 1, **provider_anthropic.parse(await request.read())})
        return web.json_response({"input_tokens": sum(self.model.counts(asked))})

    async def _models(self, request: web.Request) -> web.Response:
        """Both providers list their models here; only Anthropic's SDK names a version."""
        wire = provider_anthropic if "anthropic-version" in request.headers else provider_openai
        return web.json_response(wire.models())

    # Its life.

    async def serve(self, started: Callable[[], object]) -> None:
        """Serve until `stop`; `started` is called once the port is known."""
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(client_max_size=LARGEST_BODY)
        app.add_routes(
            [
                web.post("/v1/chat/completions", self.live(provider_openai)),
                web.post("/v1/messages", self.live(provider_anthropic)),
                web.post("/v1/messages/count_tokens", self.guarded(provider_anthropic, self._count_tokens)),
                web.get("/v1/models", self.guarded(provider_openai, self._models)),
                *OpenAIBatches(self).routes(),
                *AnthropicBatches(self).routes(),
            ]
        )
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
        self.port = runner.addresses[0][1]
        started()
        await self._stop.wait()
        await runner.cleanup()

    def __enter__(self) -> ProviderServer:
        started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self.serve(started.set)), daemon=True)
        self._thread.start()
        if not started.wait(10):
            raise RuntimeError("the provider double did not start")
        return self

    def __exit__(self, *_: object) -> None:
        if self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        if self._thread is not None:
            self._thread.join(10)


def check_key(request: web.Request, wire: ModuleType) -> None:
    """Raise the refusal of a request that does not carry the key as that provider wants it."""
    if request.headers.get("authorization") != f"Bearer {KEY}":
        refused = refusal_of("unauthorized", wire.PROVIDER)
        assert refused is not None
        raise refused
    if wire is provider_anthropic and "anthropic-version" in request.headers:
        if request.headers["anthropic-version"] not in provider_anthropic.VERSIONS:
            raise provider_anthropic.refuse("anthropic-version: is not a valid version")
    elif wire is provider_anthropic:
        raise provider_anthropic.refuse("anthropic-version: header is required")
