"""The batch APIs of both providers in memory, behind the real SDKs' transport: every byte, time and failure to order.

    double = BatchDouble("openai", folder)        # with a call store in the folder
    double.ask("a", "b")                          # a `BatchRun` with the real SDK's client: texts, or reasons
    double.bill, double.asked, double.totals      # what it charged, how often for each text, what the store says

Nothing sleeps: a pause moves `double.now` on, and a job that was created runs until `double.runtime` is over.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from h2htalk.chat.anthropic_wire import AnthropicWire
from h2htalk.chat.batch.batch_runner import BatchRun
from h2htalk.chat.batch.job_apis import AnthropicJobs, OpenAIJobs
from h2htalk.chat.engines import ChatOptions
from h2htalk.chat.hosted.hosted_chat import connection_failure
from h2htalk.chat.openai_wire import OpenAIWire
from h2htalk.chat.prices import Price, PriceList, Totals
from h2htalk.chat.protocol import Message, OnDone, Outcome, Reply, Request, Sampling
from h2htalk.chat.store.call_records import BatchRecord
from h2htalk.chat.store.call_store import CallStore, read_store
from h2htalk.chat.store.stage_calls import StageCalls
from h2htalk.data.responses import Response, SampleKey, read_answers
from support.doubles.loopback import completion, message
from support.doubles.providers import BatchApi, Found, Job, Refused, error

PROVIDERS = ("openai", "anthropic")
KEY = "sk-made-up-0123456789"
TOKENS = (120, 24)  # input and output that each reply is charged for
USD = {"input": Decimal(3), "output": Decimal(15), "cache_read": Decimal("0.3")}
PRICE = Price(**USD, cache_write=Decimal(4), cache_write_1h=Decimal(6), batch=Decimal("0.5"))
CALL_USD = (TOKENS[0] * USD["input"] + TOKENS[1] * USD["output"]) / 1_000_000 / 2
MODELS = {"openai": OpenAIWire("gpt-test", KEY), "anthropic": AnthropicWire("claude-test", KEY)}
REFUSALS = {
    "invalid": Refused(400, "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"),
    "overloaded": Refused(503, "overloaded_error", "Overloaded"),
    "timeout": Refused(504, "timeout_error", "Timed out"),
    "fatal": Refused(401, "authentication_error", "no"),
    "no system": Refused(400, "invalid_request_error", "system role is not supported"),
}
# What becomes of a text, when it is asked for the n-th time (from 1): `ok`, a key of `REFUSALS`, `expired`, `canceled`,
# `garbage`, `missing` (computed, but no result is kept), `uncomputed`. All but `ok`, `garbage`, `missing` are free.
Fate = Callable[[str, int], str]


def requests(*texts: str, samples: int = 1) -> list[Request]:
    """One request a text and sample; the text is the item's id too."""
    return [
        Request(
            text,
            (Message("system", "Be kind."), Message("user", text)),
            Sampling(0.7, seed=sample),
            sample,
        )
        for text in texts
        for sample in range(samples)
    ]


class Killed(BaseException):
    """Nothing may catch it, as nothing catches `kill -9`."""


class BatchDouble(BatchApi):
    """See the module. `before` and `after` are called with `METHOD path`, around what a call does; what they raise
    stands for a connection that breaks before or after the provider did its part."""

    page_size = 2  # paging is part of every search

    def __init__(
        self,
        provider: str,
        folder: Path,
        fate: Fate = lambda text, times: "ok",
        items: Sequence[Request] = (),
    ) -> None:
        super().__init__()
        self.provider, self.folder, self.fate = provider, folder, fate
        self.api = MODELS[provider]
        self.place = {"openai": "/v1/batches", "anthropic": "/v1/messages/batches"}[
            provider
        ]  # of its jobs
        self.items = list(items) or requests("a", "b", "c")  # that `resume` asks for
        self.now = 1_800_000_000.0
        self.runtime = 20.0  # seconds that a job takes
        self.list_lag = 0.0  # seconds until a job shows in the list
        self.pauses: list[float] = []
        self.asked, self.charged = Counter[str](), Counter[str]()
        self.calls: list[str] = []
        self.problems: list[dict[str, Any]] = []  # of the jobs to come: their validation fails
        self.answers: list[
            httpx2.Response
        ] = []  # said instead of doing anything, first come first served
        self.cut = 0  # readings of results that break in the middle
        self.extra: list[dict[str, Any] | bytes] = []  # lines that are put among all results
        self.before: Callable[[str], None] = lambda call: None
        self.after: Callable[[str], None] = lambda call: None

    def jobs_api(self) -> OpenAIJobs | AnthropicJobs:
        """What speaks to it, over the real SDK."""
        client = httpx2.Client(transport=httpx2.MockTransport(self.handle))
        if self.provider == "openai":
            return OpenAIJobs(
                openai.OpenAI(api_key=KEY, http_client=client), self.api, connection_failure
            )
        return AnthropicJobs(
            anthropic.Anthropic(api_key=KEY, http_client=client), self.api, connection_failure
        )

    def run(
        self,
        asked: Sequence[Request],
        on_done: OnDone | None = None,
        attempts: int = 4,
        limit: Decimal | None = None,
    ) -> list[Outcome]:
        prices = PriceList("", {self.api.model: PRICE})
        with CallStore(self.folder / "calls.jsonl") as self.store:
            calls = StageCalls(self.store, "generate", self.api.model, prices=prices, limit=limit)
            options = ChatOptions(batch=True, attempts=attempts)
            jobs_api = self.jobs_api()
            return BatchRun(
                jobs_api, self.api, asked, options, calls, on_done, self.sleep, lambda: self.now
            ).run()

    def ask(self, *names: str, **more: Any) -> list[str]:
        """Ask for items: the text of each reply, or the reason of its failure."""
        return [
            o.text if isinstance(o, Reply) else o.reason for o in self.run(requests(*names), **more)
        ]

    def interrupted(self, *names: str) -> None:
        """Ask for items, and press Ctrl-C at the first call after a job was made."""

        def before(_: str) -> None:
            if self.jobs:
                raise KeyboardInterrupt

        self.before = before
        with pytest.raises(KeyboardInterrupt):
            self.ask(*names)
        self.before = lambda call: None

    def resume(self, **more: Any) -> list[Outcome]:
        """Ask for those of `items` that have no stored reply."""
        replies = self.replies()
        missing = [request for request in self.items if (request.id, request.sample) not in replies]
        given: Counter[int] = Counter()
        outcomes = self.run(missing, lambda index, _: given.update([index]), **more)
        assert given == dict.fromkeys(range(len(missing)), 1), (
            "every request has exactly one outcome"
        )
        return outcomes

    def killed(self) -> None:
        """As `resume`, but it does not end by itself."""
        with pytest.raises(Killed):
            self.resume()

    def replies(self) -> dict[SampleKey, str]:
        """The stored texts."""
        stored = read_answers(self.folder / "calls.jsonl")
        return {key: one.text for key, one in stored.items() if isinstance(one, Response)}

    def is_whole(self) -> bool:
        """Whether every item has its own reply."""
        return self.replies() == {(one.id, one.sample): f"re: {one.id}" for one in self.items}

    def require_paid_once(self) -> None:
        """The provider charged each call once, and the store says just that."""
        assert self.is_whole()
        assert self.totals.usd_paid == self.bill == len(list(self.api.calls(self.items))) * CALL_USD
        assert (self.totals.open, self.totals.possibly_paid, self.totals.usd_open) == (0, 0, 0)

    @property
    def bill(self) -> Decimal:
        return CALL_USD * sum(self.charged.values())

    @property
    def totals(self) -> Totals:
        return self.store.totals().get("generate", Totals())

    @property
    def open_jobs(self) -> list[BatchRecord]:
        return read_store(self.folder / "calls.jsonl").open_jobs("generate")

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def refuse_jobs(self, status: int, text: str, pauses: int = 10**6) -> None:
        """Refuse to make jobs from now on, until a run has paused so often."""
        self.pauses.clear()

        def before(call: str) -> None:
            if call == f"POST {self.place}" and len(self.pauses) < pauses:
                raise Refused(status, "made_up_error", text)

        self.before = before

    def stranger(self, calls: int, seconds: float = 0.0) -> Job:
        """A job of somebody else, made so many seconds from now."""
        lines = [
            (f"nightly-{n}", {"messages": [{"content": "somebody else's"}]}) for n in range(calls)
        ]
        return self.create(self.provider, lines, created=self.now + seconds)

    def handle(self, request: httpx2.Request) -> httpx2.Response:
        call = f"{request.method} {request.url.path}"
        self.calls.append(call)
        try:
            self.before(call)
            if self.answers:
                return self.answers.pop(0)
            found = self.answer(
                request.method, request.url.path, request.url.params, request.read()
            )
            self.after(call)
        except Refused as refused:
            return httpx2.Response(refused.status, json=error("anthropic", refused, "req-e"))
        if isinstance(found, dict):
            return httpx2.Response(200, json=found)
        lines = [json.dumps(row, ensure_ascii=False).encode() for row in found]
        lines += [row if isinstance(row, bytes) else json.dumps(row).encode() for row in self.extra]
        self.random.shuffle(lines)
        content = b"\n".join(lines) + (b"\n" if self.random.random() < 0.5 else b"")
        broken, self.cut = self.cut > 0, max(0, self.cut - 1)
        return httpx2.Response(200, content=pieces(content, broken))

    def listed(self, provider: str) -> list[Job]:
        return [job for job in super().listed(provider) if self.now >= job.created + self.list_lag]

    def create(self, provider: str, lines: list[tuple[str, Any]], **more: Any) -> Job:
        return super().create(
            provider, lines, **{"created": self.now, "problems": self.problems, **more}
        )

    def ends(self, job: Job) -> bool:
        return self.now >= job.created + self.runtime

    def compute(self, job: Job, body: Any) -> tuple[Found, str]:
        text = body["messages"][-1]["content"]
        self.asked[text] += 1
        fate = self.fate(text, self.asked[text])
        if fate in REFUSALS or fate in ("expired", "canceled"):
            return REFUSALS.get(fate, fate), "req-e"
        if fate == "uncomputed":
            job.counts["succeeded"] -= 1
            return None, ""
        self.charged[text] += 1
        if fate == "missing":
            return None, ""
        made = message(f"re: {text}")
        if self.provider == "openai":
            made = completion(f"re: {text}")
            made["choices"] = [made["choices"][0] | {"index": n} for n in range(body.get("n") or 1)]
        if fate == "garbage":
            made = {
                name: value for name, value in made.items() if name not in ("choices", "content")
            }
        return made, f"req-{text}"


def pieces(content: bytes, broken: bool) -> Iterator[bytes]:
    """A body in pieces that end anywhere; a broken one ends in the middle."""
    for start in range(0, len(content) * 2 // 3 if broken else len(content), 97):
        yield content[start : start + 97]
    if broken:
        raise httpx2.RemoteProtocolError("peer closed connection")


def fates(each: int = 1, **by_text: str) -> Fate:
    """What becomes of a text: its fates in turn, each of so many calls, the last one for good; else `ok`."""

    def fate(text: str, times: int) -> str:
        words = by_text.get(text, "ok").split()
        return words[min((times - 1) // each, len(words) - 1)]

    return fate


def fail_at(wanted: str, error: BaseException | None = None) -> Callable[[str], None]:
    """For `before` and `after`: raise an error, or kill, at the first call with that text; later ones go through."""
    left = [error or Killed()]

    def hook(call: str) -> None:
        if wanted in call and left:
            raise left.pop()

    return hook
