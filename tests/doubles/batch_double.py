"""Batch APIs of both providers in memory, behind the real SDKs' transport: every byte, time and failure to order.

    double = BatchDouble("openai")
    double.run(requests("a", "b"), folder)        # run_batches with the real SDK's client
    double.bill, double.asked                     # what it charged, and how often for each text

Nothing sleeps: a pause moves `double.now` on, and a job that was created runs until `double.runtime` is over.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
from batch_double_wire import (
    FATES,
    TOKENS,
    DoubleJob,
    Pieces,
    anthropic_job,
    anthropic_row,
    openai_job,
    openai_row,
)

from h2htalk.chat.batch.batch_runner import run_batches
from h2htalk.chat.batch.job_apis import AnthropicJobs, OpenAIJobs
from h2htalk.chat.chat_options import ChatOptions
from h2htalk.chat.costs.prices import Price, PriceList
from h2htalk.chat.hosted.anthropic_wire import AnthropicWire
from h2htalk.chat.hosted.hosted_chat import connection_failure
from h2htalk.chat.hosted.openai_wire import OpenAIWire
from h2htalk.chat.protocol import Message, Outcome, Request, Sampling
from h2htalk.chat.store.call_store import CallStore, StageCalls

PROVIDERS = ("openai", "anthropic")
KEY = "sk-made-up-0123456789"
USD = {"input": Decimal(3), "output": Decimal(15), "cache_read": Decimal("0.3")}
PRICE = Price(**USD, cache_write=Decimal(4), cache_write_1h=Decimal(6), batch=Decimal("0.5"))
CALL_USD = (TOKENS[0] * USD["input"] + TOKENS[1] * USD["output"]) / 1_000_000 / 2
MODELS = {"openai": OpenAIWire("gpt-test", KEY), "anthropic": AnthropicWire("claude-test", KEY)}

Fate = Callable[[str, int], str]  # of a text, when it is asked for the n-th time (from 1)


def requests(*texts: str, samples: int = 1) -> list[Request]:
    """One request a text and sample; the text is the item's id too."""
    return [
        Request(text, (Message("system", "Be kind."), Message("user", text)), Sampling(0.7, seed=sample), sample)
        for text in texts
        for sample in range(samples)
    ]


class BatchDouble:
    """See the module. `before` and `after` are called with `METHOD path`, around what a call does; what they raise
    stands for a connection that breaks before or after the provider did its part."""

    def __init__(self, provider: str, fate: Fate = lambda text, times: "ok", seed: int = 0) -> None:
        self.provider, self.fate = provider, fate
        self.api = MODELS[provider]
        self.random = random.Random(seed)
        self.now = 1_800_000_000.0
        self.runtime = 20.0  # seconds that a job takes
        self.list_lag = 0.0  # seconds until a job shows in the list
        self.list_is_stale = False  # it shows no job's end
        self.pauses: list[float] = []
        self.jobs: list[DoubleJob] = []
        self.files: dict[str, bytes] = {}
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
            return OpenAIJobs(
                openai.OpenAI(api_key=KEY, base_url="http://double/v1", http_client=client), connection_failure
            )
        return AnthropicJobs(
            anthropic.Anthropic(api_key=KEY, base_url="http://double", http_client=client), connection_failure
        )

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
            return run_batches(self.jobs_api(), self.api, asked, options, calls, on_done, **clock)
        finally:
            calls.store.close()

    # --- The wire -----------------------------------------------------------------------------------------------

    def handle(self, request: httpx2.Request) -> httpx2.Response:
        call = f"{request.method} {request.url.path}"
        self.calls.append(call)
        self.before(call)
        if self.answers:
            return self.answers.pop(0)
        answer = self._answer(request, request.url.path.removeprefix("/v1"))
        self.after(call)
        return answer

    def _answer(self, request: httpx2.Request, path: str) -> httpx2.Response:
        match request.method, path.strip("/").split("/"):
            case "POST", ["files"]:
                file_id = f"file-{len(self.files)}"
                boundary = re.search(rb"boundary=([^;]+)", request.headers["content-type"].encode())
                assert boundary
                parts = request.read().split(b"--" + boundary[1])
                [content] = [part for part in parts if b"filename=" in part]
                self.files[file_id] = content.split(b"\r\n\r\n", 1)[1].removesuffix(b"\r\n")
                return httpx2.Response(200, json={"id": file_id, "object": "file"})
            case "GET", ["files", name, "content"]:
                job_id, _, kind = name.partition("+")
                job = self.job(job_id)
                if job is None or job.archived:
                    return self.error(404, "not_found_error", "no such file")
                return self._stream(
                    [row for row in self._results(job) if (row.get("error") is None) == (kind == "out")]
                )
            case "POST", ["batches"]:
                sent = json.loads(request.content)
                rows = [json.loads(line) for line in self.files[sent["input_file_id"]].splitlines()]
                lines = [(row["custom_id"], row["body"]) for row in rows]
                return self._show(self.create(lines, file=sent["input_file_id"], metadata=sent["metadata"]))
            case "POST", ["messages", "batches"]:
                rows = json.loads(request.content)["requests"]
                return self._show(self.create([(row["custom_id"], row["params"]) for row in rows]))
            case "GET", ["batches"] | ["messages", "batches"]:
                return self._page(request)
            case "GET", ["batches", job_id] | ["messages", "batches", job_id] if job := self.job(job_id):
                return self._show(job)
            case "GET", ["messages", "batches", job_id, "results"] if job := self.job(job_id):
                return self._stream(self._results(job))
        return self.error(404, "not_found_error", f"nothing at {path}")

    def error(self, status: int, kind: str, text: str) -> httpx2.Response:
        return httpx2.Response(status, json={"type": "error", "error": {"type": kind, "message": text}})

    def _page(self, request: httpx2.Request) -> httpx2.Response:
        """Two jobs at most, newest first, whatever was asked for: paging is part of every search."""
        after = request.url.params.get("after") or request.url.params.get("after_id")
        newest = [job for job in self.jobs[::-1] if self.now >= job.created + self.list_lag]
        start = next((n + 1 for n, job in enumerate(newest) if job.id == after), 0)
        page = newest[start : start + 2]
        data = [json.loads(self._show(job, self.list_is_stale).content) for job in page]
        last = page[-1].id if page else None
        return httpx2.Response(200, json={"data": data, "has_more": start + 2 < len(newest), "last_id": last})

    def _stream(self, rows: list[dict[str, Any]]) -> httpx2.Response:
        lines = [json.dumps(row, ensure_ascii=False).encode() for row in rows]
        lines += [row if isinstance(row, bytes) else json.dumps(row).encode() for row in self.extra]
        self.random.shuffle(lines)
        content = b"\n".join(lines) + (b"\n" if self.random.random() < 0.5 else b"")
        broken, self.cut = self.cut > 0, max(0, self.cut - 1)
        return httpx2.Response(200, stream=Pieces(content, broken))

    # --- Jobs ---------------------------------------------------------------------------------------------------

    def create(self, lines: list[tuple[str, Any]], created: float | None = None, **more: Any) -> DoubleJob:
        """A job of ours, or, called by a test, of somebody else."""
        name = "batch" if self.provider == "openai" else "msgbatch"
        at = self.now if created is None else created
        job = DoubleJob(f"{name}_{len(self.jobs)}", lines, at, problems=self.problems, **more)
        self.jobs.append(job)
        return job

    def job(self, job_id: str) -> DoubleJob | None:
        return next((job for job in self.jobs if job.id == job_id), None)

    def end(self, job: DoubleJob) -> bool:
        """Whether a job has ended; it computes all its calls when it does."""
        if job.problems or (self.now < job.created + self.runtime and not job.canceled):
            return bool(job.problems)
        if job.results is None:
            job.results = [row for line in job.lines if (row := self._compute(job, *line)) is not None]
        return True

    def _results(self, job: DoubleJob) -> list[dict[str, Any]]:
        assert self.end(job), "results were asked for before the job had ended"
        return job.results or []

    def _compute(self, job: DoubleJob, custom_id: str, body: Any) -> dict[str, Any] | None:
        text = body["messages"][-1]["content"]
        self.asked[text] += 1
        fate = "canceled" if job.canceled else self.fate(text, self.asked[text])
        assert fate in FATES
        kind = {"expired": "expired", "canceled": "canceled"}.get(fate, "errored")
        job.counts["succeeded" if fate in ("ok", "garbage", "missing") else kind] += 1
        if fate in ("ok", "garbage", "missing"):
            self.charged[text] += 1
        if fate in ("missing", "uncomputed"):
            return None
        speak = openai_row if self.provider == "openai" else anthropic_row
        return {"custom_id": custom_id} | speak(fate, text, body)

    def _show(self, job: DoubleJob, stale: bool = False) -> httpx2.Response:
        speak = openai_job if self.provider == "openai" else anthropic_job
        return httpx2.Response(200, json=speak(job, self.end(job) and not stale))
