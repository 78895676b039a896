"""The batch APIs of both providers in memory, behind the real SDKs' transport: every byte, time and failure to order.

    double = BatchDouble("openai")
    double.run(requests("a", "b"), folder)        # `BatchRun` with the real SDK's client
    double.bill, double.asked                     # what it charged, and how often for each text

Nothing sleeps: a pause moves `double.now` on, and a job that was created runs until `double.runtime` is over.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from loopback import completion, message
from provider_batches import BatchApi, Found, Job
from provider_wires import Refused, error

from h2htalk.chat.batch.batch_runner import BatchRun
from h2htalk.chat.batch.job_apis import AnthropicJobs, OpenAIJobs
from h2htalk.chat.engines import ChatOptions
from h2htalk.chat.hosted.hosted_chat import connection_failure
from h2htalk.chat.prices import Price, PriceList, Totals
from h2htalk.chat.protocol import Message, Outcome, Reply, Request, Sampling
from h2htalk.chat.store.call_store import BatchRecord, CallStore, StageCalls, read_store
from h2htalk.chat.wires import AnthropicWire, OpenAIWire
from h2htalk.data.responses import SampleKey

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
}
# What becomes of a text, when it is asked for the n-th time (from 1): `ok`, a key of `REFUSALS`, `expired`, `canceled`,
# `garbage`, `missing` (computed, but no result is kept), `uncomputed`. All but `ok`, `garbage`, `missing` are free.
Fate = Callable[[str, int], str]


def requests(*texts: str, samples: int = 1) -> list[Request]:
    """One request a text and sample; the text is the item's id too."""
    return [
        Request(text, (Message("system", "Be kind."), Message("user", text)), Sampling(0.7, seed=sample), sample)
        for text in texts
        for sample in range(samples)
    ]


class BatchDouble(BatchApi):
    """See the module. `before` and `after` are called with `METHOD path`, around what a call does; what they raise
    stands for a connection that breaks before or after the provider did its part."""

    page_size = 2  # paging is part of every search

    def __init__(self, provider: str, fate: Fate = lambda text, times: "ok", seed: int = 0) -> None:
        super().__init__()
        self.provider, self.fate = provider, fate
        self.api = MODELS[provider]
        self.random = random.Random(seed)
        self.now = 1_800_000_000.0
        self.runtime = 20.0  # seconds that a job takes
        self.list_lag = 0.0  # seconds until a job shows in the list
        self.pauses: list[float] = []
        self.asked: Counter[str] = Counter()
        self.charged: Counter[str] = Counter()
        self.calls: list[str] = []
        self.problems: list[dict[str, Any]] = []  # of the jobs to come: their validation fails
        self.answers: list[httpx2.Response] = []  # said instead of doing anything, first come first served
        self.cut = 0  # readings of results that break in the middle
        self.extra: list[dict[str, Any] | bytes] = []  # lines that are put among all results
        self.before: Callable[[str], None] = lambda call: None
        self.after: Callable[[str], None] = lambda call: None

    @property
    def bill(self) -> Decimal:
        return CALL_USD * sum(self.charged.values())

    def jobs_api(self) -> OpenAIJobs | AnthropicJobs:
        """What speaks to it, over the real SDK. A call that is repeated by the SDK itself would be seen here."""
        client = httpx2.Client(transport=httpx2.MockTransport(self.handle))
        if self.provider == "openai":
            return OpenAIJobs(openai.OpenAI(api_key=KEY, http_client=client), connection_failure)
        return AnthropicJobs(anthropic.Anthropic(api_key=KEY, http_client=client), connection_failure)

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def calls_in(self, store: CallStore, limit: Decimal | None = None) -> StageCalls:
        prices = PriceList("", {self.api.model: PRICE})
        return StageCalls(store, "generate", self.api.model, prices=prices, limit=limit)

    def calls_at(self, folder: Path, limit: Decimal | None = None) -> StageCalls:
        return self.calls_in(CallStore(folder / "calls.jsonl"), limit)

    def run(
        self,
        asked: list[Request],
        place: Path | StageCalls,
        on_done: Callable[[int, Outcome], None] | None = None,
        attempts: int = 4,
    ) -> list[Outcome]:
        options = ChatOptions(batch=True, attempts=attempts)
        calls = self.calls_at(place) if isinstance(place, Path) else place
        try:
            clock = {"sleep": self.sleep, "clock": lambda: self.now}
            return BatchRun(self.jobs_api(), self.api, asked, options, calls, on_done, **clock).run()
        finally:
            calls.store.close()

    def handle(self, request: httpx2.Request) -> httpx2.Response:
        call = f"{request.method} {request.url.path}"
        self.calls.append(call)
        self.before(call)
        if self.answers:
            return self.answers.pop(0)
        try:
            found = self.answer(request.method, request.url.path, request.url.params, request.read())
        except Refused as refused:
            return self.error(refused.status, refused.kind, refused.message)
        self.after(call)
        if isinstance(found, dict):
            return httpx2.Response(200, json=found)
        lines = [json.dumps(row, ensure_ascii=False).encode() for row in found]
        lines += [row if isinstance(row, bytes) else json.dumps(row).encode() for row in self.extra]
        self.random.shuffle(lines)
        content = b"\n".join(lines) + (b"\n" if self.random.random() < 0.5 else b"")
        broken, self.cut = self.cut > 0, max(0, self.cut - 1)
        return httpx2.Response(200, stream=Pieces(content, broken))

    def error(self, status: int, kind: str, text: str) -> httpx2.Response:
        return httpx2.Response(status, json=error("anthropic", Refused(status, kind, text), "req-e"))

    def listed(self, provider: str) -> list[Job]:
        return [job for job in super().listed(provider) if self.now >= job.created + self.list_lag]

    def create(self, provider: str, lines: list[tuple[str, Any]], **more: Any) -> Job:
        return super().create(provider, lines, **{"created": self.now, "problems": self.problems, **more})

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
            made = {name: value for name, value in made.items() if name not in ("choices", "content")}
        return made, f"req-{text}"


class Pieces(httpx2.SyncByteStream):
    """A body in pieces that end anywhere; a broken one ends in the middle."""

    def __init__(self, content: bytes, broken: bool) -> None:
        self.content, self.broken = content, broken

    def __iter__(self) -> Iterator[bytes]:
        content = self.content[: len(self.content) * 2 // 3] if self.broken else self.content
        for start in range(0, len(content), 97):
            yield content[start : start + 97]
        if self.broken:
            raise httpx2.RemoteProtocolError("peer closed connection")


# --- Stories: what came of requests, and runs that are killed and started again ---------------------------------

both = pytest.mark.parametrize("provider", PROVIDERS)


def texts(outcomes: list[Outcome]) -> list[str]:
    """What each request got: the reply's text, or the failure's reason."""
    return [o.text if isinstance(o, Reply) else o.reason for o in outcomes]


def fates(**by_text: str) -> Fate:
    """What becomes of a text: its fates in turn, the last one for good; `ok` where nothing is ordered."""

    def fate(text: str, times: int) -> str:
        words = by_text.get(text, "ok").split()
        return words[min(times, len(words)) - 1]

    return fate


def interrupt_once_there_is(double: BatchDouble) -> Callable[[str], None]:
    """Ctrl-C at the first call after a job was made."""

    def before(_: str) -> None:
        if double.jobs:
            raise KeyboardInterrupt

    return before


def events(folder: Path) -> list[str]:
    """What was recorded of jobs."""
    lines = map(json.loads, (folder / "calls.jsonl").read_text().splitlines())
    return [line["event"] for line in lines if "job" in line]


PLACE = {"openai": "/v1/batches", "anthropic": "/v1/messages/batches"}  # where jobs are made and looked at


def jobs_in(folder: Path) -> list[BatchRecord]:
    """The open jobs of a store."""
    return read_store(folder / "calls.jsonl").open_jobs("generate")


def totals(calls: StageCalls) -> Totals:
    return calls.store.totals().get(calls.stage, Totals())


class Killed(BaseException):
    """Nothing may catch it, as nothing catches `kill -9`."""


class Story:
    """A run that is killed and started again, with the call store of its folder."""

    def __init__(self, double: BatchDouble, folder: Path, asked: list[Request], limit: Decimal | None = None):
        self.double, self.folder, self.asked, self.limit = double, folder, asked, limit
        self.stored: dict[SampleKey, Outcome] = {}
        self.attempts = 4
        self.before_store: Callable[[], None] = lambda: None
        self.after_store: Callable[[], None] = lambda: None

    def run(self) -> list[Outcome]:
        """One start: asks for what is not stored."""
        store = CallStore(self.folder / "calls.jsonl").open()
        self.stored |= {(item, sample): reply for (_, item, sample, _), reply in store.replies.items()}
        missing = [request for request in self.asked if not isinstance(self.answer(request), Reply)]
        given: Counter[int] = Counter()

        def on_done(index: int, outcome: Outcome) -> None:
            given[index] += 1
            self.before_store()
            self.stored[missing[index].id, missing[index].sample] = outcome
            self.after_store()

        calls = self.double.calls_in(store, self.limit)
        outcomes = self.double.run(missing, calls, on_done, self.attempts)
        self.totals = totals(calls)
        assert given == dict.fromkeys(range(len(missing)), 1), "every request has exactly one outcome"
        return outcomes

    def killed(self) -> None:
        """One start that does not end by itself."""
        with pytest.raises(Killed):
            self.run()

    def answer(self, request: Request) -> Outcome | None:
        return self.stored.get((request.id, request.sample))

    def is_whole(self) -> bool:
        """Everything has its own reply."""
        answers = [self.answer(request) for request in self.asked]
        return all(isinstance(a, Reply) and a.text == f"re: {r.id}" for a, r in zip(answers, self.asked, strict=True))

    def require_paid_once(self) -> None:
        """The provider charged each call once, and the store says just that."""
        assert self.is_whole()
        calls = len(self.double.api.calls(self.asked))
        assert self.totals.usd_paid == self.double.bill == calls * CALL_USD
        assert (self.totals.open, self.totals.possibly_paid, self.totals.usd_open) == (0, 0, 0)

    @property
    def open_jobs(self) -> list[str]:
        return [job.state for job in jobs_in(self.folder)]


def story(provider: str, folder: Path, *names: str) -> Story:
    return Story(BatchDouble(provider), folder, requests(*(names or ("a", "b", "c"))))


def kill_at(wanted: str, error: BaseException | None = None) -> Callable[[str], None]:
    """For `before` and `after`: kill at the first call that starts so; later ones go through."""
    left = [error or Killed()]

    def hook(call: str) -> None:
        if call.startswith(wanted) and left:
            raise left.pop()

    return hook


def stranger(double: BatchDouble, calls: int, seconds: float = 0.0) -> Job:
    """A job of somebody else, made so many seconds from now."""
    body = {"messages": [{"content": "somebody else's"}]}
    return double.create(double.provider, [(f"nightly-{n}", body) for n in range(calls)], created=double.now + seconds)
