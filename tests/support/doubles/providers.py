"""A server on the loopback interface that plays OpenAI and Anthropic to their real SDKs, and keeps books of its own.

    with ProviderServer(faults={"gateway_timeout": 0.1}, fault_times=1) as server:
        subprocess.run([...], env=server.environment())
        server.bill(), server.charged(), server.seen

It serves chat completions, messages, and the batch jobs of both; it wants the key, refuses what the real APIs refuse,
and charges what it computes. `BatchApi` is its batch APIs without a wire. Results are shuffled.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import random
import re
import time
import zlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from support.doubles.loopback import Answer, LoopbackHttp, header

# Made up. It holds what base64, URLs and JSON each write in another way, so that a search can find every spelling.
KEY = "sk-made-up/4711+For=Tests&only~%x"
MODELS = {"openai": ("gpt-test",), "anthropic": ("claude-test",)}
ID_HEADER = {"openai": "x-request-id", "anthropic": "request-id"}
REPLY = "That sounds like a long day. I am here, so tell me what stayed with you the most."
REFUSAL = "I cannot help with that."
BYTES_PER_TOKEN = 3  # of UTF-8: near enough to a tokenizer for English and Chinese alike
TOKENS_AROUND_MESSAGE = 3
CACHES: dict[str | None, tuple[str, ...]] = {
    None: (),
    "5m": ("cache_write",),
    "1h": ("cache_write_1h",),
}


class Refused(Exception):
    """A request that the API refuses, free of charge."""

    def __init__(
        self,
        status: int,
        kind: str,
        message: str,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.kind, self.message, self.code, self.headers = (
            status,
            kind,
            message,
            code,
            dict(headers or {}),
        )


@dataclass(frozen=True, slots=True)
class Asked:
    """A checked request. `item`: its last user message. `texts`: of the prompt. `lifetime`: of its cache, if any."""

    provider: str
    model: str
    item: str
    texts: list[str]
    max_tokens: int
    samples: int = 1
    schema: dict[str, Any] | None = None
    lifetime: str | None = None


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a call is billed for; the four kinds of input exclude one another."""

    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cache_write_1h: int = 0
    output: int = 0


@dataclass(slots=True)
class Model:
    """Writes replies, each with a number of its own, and counts them: a quarter of each prompt is read from a cache.

    `dearest`: every call costs as much as it can: a token for each byte, every budget used up, nothing cached.
    `numbered`: else a hash of the prompt stands for the number, and equal requests get equal replies.
    """

    reply: str = REPLY
    dearest: bool = False
    written: int = 0
    numbered: bool = True

    def count(self, text: str) -> int:
        size = len(text.encode())
        return size if self.dearest else math.ceil(size / BYTES_PER_TOKEN)

    def write(self, asked: Asked, fault: str | None) -> tuple[list[str], str, Tokens]:
        """Return the texts of a reply, how it ended, and what it costs; `fault`: one that shows in the reply itself."""
        texts, finish = [], "stop"
        for _ in range(asked.samples):
            self.written += 1
            text = self._text(asked, fault)
            if fault == "refusal":
                finish = fault
            elif fault == "truncated" or self.count(text) > asked.max_tokens:
                text, finish = text[: len(text) // 2], "length"
            texts.append(text)
        output = sum(map(self.count, texts))
        if finish == "length" or self.dearest:
            output = asked.max_tokens * asked.samples
        pieces = [*asked.texts, *([json.dumps(asked.schema)] if asked.schema else [])]
        total = sum(self.count(text) + TOKENS_AROUND_MESSAGE for text in pieces)
        cached = (
            {}
            if self.dearest
            else dict.fromkeys(("cache_read", *CACHES[asked.lifetime]), total // 4)
        )
        return texts, finish, Tokens(total - sum(cached.values()), output=output, **cached)

    def _text(self, asked: Asked, fault: str | None) -> str:
        if fault == "refusal":
            return REFUSAL
        if asked.schema is None:
            mark = (
                self.written
                if self.numbered
                else f"{zlib.crc32(''.join(asked.texts).encode()):08x}"
            )
            return f"{self.reply} ({mark})"
        return json.dumps(fill(asked.schema, asked.schema))


def fill(schema: dict[str, Any], root: dict[str, Any]) -> Any:
    """A value of that JSON schema."""
    if "$ref" in schema:
        return fill(root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    if "enum" in schema or "const" in schema:
        return schema.get("const", schema.get("enum", [None])[0])
    if "anyOf" in schema:
        return fill(schema["anyOf"][0], root)
    match schema.get("type"):
        case "object":
            return {name: fill(part, root) for name, part in schema.get("properties", {}).items()}
        case "array":
            return [fill(schema["items"], root)]
        case "integer" | "number":
            return schema.get("minimum", 5)
        case "boolean":
            return True
        case "null":
            return None
    return "as the person said"


def read(provider: str, body: Any) -> Asked:
    """The request in a body; raises Refused as the API does."""
    model, messages, system = body["model"], body["messages"], body.get("system") or []
    if model not in MODELS[provider]:
        raise Refused(404, "not_found_error", f"model: {model}", "model_not_found")
    texts = [block["text"] for block in system] + [message["content"] for message in messages]
    if provider == "anthropic":
        lifetime = next(
            (block["cache_control"]["ttl"] for block in system if "cache_control" in block), None
        )
        schema = body["output_config"]["format"]["schema"] if "output_config" in body else None
        return Asked(provider, model, texts[-1], texts, body["max_tokens"], 1, schema, lifetime)
    schema = body["response_format"]["json_schema"]["schema"] if "response_format" in body else None
    item = [message["content"] for message in messages if message["role"] == "user"][-1]
    return Asked(
        provider, model, item, texts, body["max_completion_tokens"], body.get("n") or 1, schema
    )


def reply(
    asked: Asked, texts: list[str], finish: str, tokens: Tokens, request_id: str, usage: bool
) -> dict[str, Any]:
    """The JSON of a reply."""
    if asked.provider == "openai":
        refused = finish == "refusal"
        says = [
            {"content": None, "refusal": text} if refused else {"content": text} for text in texts
        ]
        ended = {"finish_reason": "stop" if refused else finish}
        choices = [
            {"index": n, "message": {"role": "assistant", **said}, **ended}
            for n, said in enumerate(says)
        ]
        made = {
            "id": f"chatcmpl-{request_id}",
            "model": asked.model,
            "system_fingerprint": "fp_test",
        }
        made["choices"] = choices
        counts: dict[str, Any] = {
            "prompt_tokens": tokens.input + tokens.cache_read,
            "completion_tokens": tokens.output,
            "prompt_tokens_details": {"cached_tokens": tokens.cache_read},
        }
    else:
        content: list[dict[str, Any]] = [{"type": "text", "text": texts[0]}] if texts[0] else []
        stop = {"stop": "end_turn", "length": "max_tokens"}.get(finish, finish)
        made = {
            "id": f"msg_{request_id}",
            "type": "message",
            "role": "assistant",
            "model": asked.model,
        }
        made |= {"content": content, "stop_reason": stop}
        counts = {
            "input_tokens": tokens.input,
            "output_tokens": tokens.output,
            "cache_read_input_tokens": tokens.cache_read,
            "cache_creation_input_tokens": tokens.cache_write + tokens.cache_write_1h,
            "cache_creation": {
                "ephemeral_5m_input_tokens": tokens.cache_write,
                "ephemeral_1h_input_tokens": tokens.cache_write_1h,
            },
        }
    return made | ({"usage": counts} if usage else {})


def error(provider: str, refused: Refused, request_id: str) -> dict[str, Any]:
    """The JSON of an error, live or in a batch's result."""
    words = {"type": refused.kind, "message": refused.message}
    if provider == "openai":
        return {"error": words | {"code": refused.code}}
    return {"type": "error", "error": words, "request_id": request_id}


# A reply's JSON, a refusal, why the request was never tried (`expired`, `canceled`), or None: no result is kept.
Found = dict[str, Any] | Refused | str | None
PREFIX = {"openai": "batch", "anthropic": "msgbatch"}


@dataclass(slots=True)
class Job:
    """A job: `lines` are `(custom_id, body)`; `results` are the lines of its files once it has ended."""

    id: str
    provider: str
    lines: list[tuple[str, Any]]
    created: float = field(default_factory=time.time)
    file: str = ""
    metadata: dict[str, str] | None = None
    problems: list[dict[str, Any]] = field(default_factory=list)
    archived: bool = False
    looks: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    results: list[dict[str, Any]] | None = None


class BatchApi:
    """The jobs, oldest first, and the files. A double has `ends(job)` and `compute(job, body)`.

    `not_yet`: how often a job is unknown when it is asked for (`job`), an ended one does not say where its replies are
    (`place`), its results are not found (`results`) or hold only the first of them (`rest`), although all is there.
    """

    page_size = 100
    url = "http://double"

    def __init__(self) -> None:
        self.not_yet = Counter[str]()
        self.jobs: list[Job] = []
        self.files: dict[str, bytes] = {}
        self.random = random.Random(0)

    def create(self, provider: str, lines: list[tuple[str, Any]], **more: Any) -> Job:
        assert len(dict(lines)) == len(lines) > 0
        job = Job(f"{PREFIX[provider]}_{len(self.jobs)}", provider, lines, **more)
        self.jobs.append(job)
        return job

    def listed(self, provider: str) -> list[Job]:
        """The jobs that a list shows, newest first."""
        return [job for job in reversed(self.jobs) if job.provider == provider]

    def answer(
        self, method: str, path: str, query: Mapping[str, str], content: bytes
    ) -> dict[str, Any] | list[Any]:
        """Answer a call by JSON, or by lines of results; raises Refused."""
        match method, path.removeprefix("/v1").strip("/").split("/"):
            case "POST", ["files"]:
                file_id = f"file-{len(self.files)}"
                boundary = content.partition(b"\r\n")[0]
                [part] = [part for part in content.split(boundary) if b"filename=" in part]
                self.files[file_id] = part.split(b"\r\n\r\n", 1)[1].removesuffix(b"\r\n")
                return {"id": file_id, "object": "file"}
            case "POST", ["batches"]:
                sent = json.loads(content)
                assert (sent["endpoint"], sent["completion_window"]) == (
                    "/v1/chat/completions",
                    "24h",
                )
                rows = [json.loads(line) for line in self.files[sent["input_file_id"]].splitlines()]
                lines = [(row["custom_id"], row["body"]) for row in rows]
                return self.show(
                    self.create(
                        "openai", lines, file=sent["input_file_id"], metadata=sent["metadata"]
                    )
                )
            case "POST", ["messages", "batches"]:
                rows = json.loads(content)["requests"]
                assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", row["custom_id"]) for row in rows)
                return self.show(
                    self.create("anthropic", [(row["custom_id"], row["params"]) for row in rows])
                )
            case "GET", ["batches"]:
                return self._page("openai", query)
            case "GET", ["messages", "batches"]:
                return self._page("anthropic", query)
            case "GET", ["batches", name] | ["messages", "batches", name] if job := self.job(name):
                self.require_there("job")
                return self.show(job)
            case "GET", ["messages", "batches", name, "results"] if job := self.job(name):
                return self.readable(job)
            case "GET", ["files", name, "content"] if (
                job := self.job(name.partition("+")[0])
            ) and not job.archived:
                return [
                    row
                    for row in self.readable(job)
                    if (row.get("error") is None) == name.endswith("+out")
                ]
        raise Refused(404, "not_found_error", f"nothing at {path}")

    def readable(self, job: Job) -> list[dict[str, Any]]:
        """The results of a job that can be read now."""
        self.require_there("results")
        results = job.results or []
        return results if self.is_there("rest") else results[:1]

    def is_there(self, part: str) -> bool:
        """Whether a part of a job shows; counts how often it did not."""
        if not self.not_yet[part]:
            return True
        self.not_yet[part] -= 1
        return False

    def require_there(self, part: str) -> None:
        if not self.is_there(part):
            raise Refused(404, "not_found_error", f"no {part}")

    def job(self, job_id: str) -> Job | None:
        return next((job for job in self.jobs if job.id == job_id), None)

    def _page(self, provider: str, query: Mapping[str, str]) -> dict[str, Any]:
        """A page of the list, newest first, behind the job `after`."""
        newest, after = self.listed(provider), query.get("after") or query.get("after_id")
        start = next((n + 1 for n, job in enumerate(newest) if job.id == after), 0)
        end = start + min(self.page_size, int(query.get("limit", 20)))
        return {
            "data": [self.show(job, listed=True) for job in newest[start:end]],
            "has_more": end < len(newest),
        }

    def end(self, job: Job) -> bool:
        """Look at a job; all its calls are computed when it has ended."""
        job.looks += 1
        if job.results is None and not job.problems and self.ends(job):
            job.results = []
            for custom_id, body in job.lines:
                found, request_id = self.compute(job, body)
                kind = (
                    found
                    if isinstance(found, str)
                    else "errored"
                    if isinstance(found, Refused)
                    else "succeeded"
                )
                job.counts[kind] += 1
                if found is not None:
                    job.results.append(
                        {"custom_id": custom_id} | row_of(job.provider, found, request_id)
                    )
            self.random.shuffle(job.results)
        return job.results is not None or bool(job.problems)

    def show(self, job: Job, listed: bool = False) -> dict[str, Any]:
        """Describe a job as its provider does."""
        ended, counts = self.end(job), job.counts
        names_place = ended and self.is_there("place")
        at = datetime.fromtimestamp(job.created, UTC).isoformat()
        if job.provider == "anthropic":
            shown = {kind: counts[kind] for kind in ("succeeded", "errored", "canceled", "expired")}
            return {
                "id": job.id,
                "processing_status": "ended" if ended else "in_progress",
                "request_counts": {"processing": 0 if ended else len(job.lines), **shown},
                "created_at": at,
                "archived_at": at if job.archived else None,
                "results_url": f"{self.url}/v1/messages/batches/{job.id}/results"
                if names_place
                else None,
            }
        status = "expired" if counts["expired"] else "completed"
        whole, failed = (
            ended and not job.problems,
            counts["errored"] + counts["expired"] + counts["canceled"],
        )
        return {
            "id": job.id,
            "status": "failed" if job.problems else status if ended else "in_progress",
            "errors": {"object": "list", "data": job.problems} if job.problems else None,
            "created_at": int(job.created),
            "input_file_id": job.file or "file-strange",
            "metadata": job.metadata,
            "request_counts": {
                "total": len(job.lines),
                "completed": counts["succeeded"],
                "failed": failed,
            },
            "output_file_id": f"{job.id}+out" if whole and names_place else None,
            "error_file_id": f"{job.id}+err" if whole and names_place else None,
        }


def row_of(provider: str, found: dict[str, Any] | Refused | str, request_id: str) -> dict[str, Any]:
    """What came of a request, in a line of results."""
    if provider == "anthropic":
        if isinstance(found, str):
            return {"result": {"type": found}}
        if isinstance(found, Refused):
            return {"result": {"type": "errored", "error": error(provider, found, request_id)}}
        return {"result": {"type": "succeeded", "message": found}}
    if isinstance(found, str):
        code = {"expired": "batch_expired", "canceled": "batch_cancelled"}[found]
        return {"response": None, "error": {"code": code, "message": "not executed"}}
    status, body = (
        (found.status, error(provider, found, request_id))
        if isinstance(found, Refused)
        else (200, found)
    )
    return {
        "response": {"status_code": status, "request_id": request_id, "body": body},
        "error": None,
    }


# US dollars per million tokens, by kind.
KINDS = ("input", "output", "cache_read", "cache_write", "cache_write_1h")
PRICES = {
    "openai:gpt-test": ("2.50", "10.00", "1.25"),
    "anthropic:claude-test": ("3.00", "15.00", "0.30", "3.75", "6.00"),
}
BATCH_FACTOR = Decimal("0.5")
_SLOW = "Slow down: too many requests a minute."
# An API may repeat the key that it refuses, and a gateway what it was sent: nothing of it may be shown or stored.
_KEY_TEXT = f"Incorrect API key provided: {KEY}."
_BROKEN = f"The server had an error with 'Authorization: Bearer {KEY}'."
# Refused before anything is computed, in the words of OpenAI and of Anthropic.
_SAID: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    "rate_limited": (
        (429, "requests", _SLOW, "rate_limit_exceeded", {"retry-after": "1"}),
        (429, "rate_limit_error", _SLOW, None, {"retry-after": "1"}),
    ),
    "overloaded": (
        (503, "server_error", "The engine is overloaded."),
        (529, "overloaded_error", "Overloaded"),
    ),
    "http_500": ((500, "server_error", _BROKEN), (500, "api_error", _BROKEN)),
    "unauthorized": (
        (401, "invalid_request_error", _KEY_TEXT, "invalid_api_key"),
        (401, "authentication_error", _KEY_TEXT),
    ),
    "context_length": (
        (
            400,
            "invalid_request_error",
            "maximum context length is 8192 tokens",
            "context_length_exceeded",
        ),
        (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
    ),
    "no_credit": (
        (429, "insufficient_quota", "You exceeded your current quota.", "insufficient_quota"),
        (402, "billing_error", "Your credit balance is too low."),
    ),
}


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
        prices = zip(
            KINDS, PRICES[self.model], strict=False
        )  # OpenAI does not bill what it writes to its cache
        sums = (getattr(self.tokens, kind) * Decimal(dollars) for kind, dollars in prices)
        return sum(sums, Decimal(0)) / 1_000_000 * (BATCH_FACTOR if self.batch else 1)


def price_file() -> str:
    """The prices as a price file that h2htalk reads."""
    text = 'date = "2026-11-20"\ncurrency = "USD"\n'
    for model, prices in PRICES.items():
        text += f'[models."{model}"]\nbatch = "{BATCH_FACTOR}"\n'
        text += "".join(
            f'{kind} = "{dollars}"\n' for kind, dollars in zip(KINDS, prices, strict=False)
        )
    return text


class ProviderServer(LoopbackHttp, BatchApi):
    """The server in a thread of its own, as a context manager. `seen`: well-formed requests by their last user message.

    Faults are those of `_SAID`; `refusal`, `truncated`, `no_usage` and `garbage`,
    which are seen in the reply; `gateway_timeout`, `drop_after`, `cut` and `hang`, where a charged reply does not
    arrive; and `drop_before`, where nothing is charged.

    Args:
        faults: fault -> share of items that meet it. faults_at: word in the last user message -> fault. Either may be
            `FAULT:TIMES`: an item meets it in its first so many requests only.
        after: fault -> number of charged calls after which every request meets it.
        latency: seconds between a call's charge and its reply.
        dearest: every call costs as much as it can.
        looks: a batch job ends at the so-many-th look at it, by itself or in a list.
        price_words: what each answer says of its price, as Anthropic's usage or OpenAI's answer has it.
    """

    def __init__(
        self,
        faults: dict[str, float] | None = None,
        faults_at: dict[str, str] | None = None,
        after: dict[str, int] | None = None,
        latency: float = 0.0,
        dearest: bool = False,
        looks: int = 1,
        price_words: Mapping[str, str] | None = None,
    ) -> None:
        LoopbackHttp.__init__(self, latency)
        BatchApi.__init__(self)
        self.faults, self.faults_at, self.after = faults or {}, faults_at or {}, after or {}
        self.looks = looks
        self.price_words = dict(price_words or {})
        self.model = Model(REPLY, dearest)
        self.seen: Counter[str] = Counter()
        self._charges: list[Charge] = []
        self._number = 0

    def environment(self) -> dict[str, str]:
        """This process's environment, with both SDKs' variables pointing here."""
        ours = {"OPENAI_BASE_URL": f"{self.url}/v1", "ANTHROPIC_BASE_URL": self.url}
        return {**os.environ, **ours, "OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY}

    def charged(self) -> list[Charge]:
        """Every call that was computed, in order."""
        return list(self._charges)

    def bill(self) -> Decimal:
        """US dollars in all."""
        return sum((charge.dollars for charge in self._charges), Decimal(0))

    def mend(self) -> None:
        """Switch all faults off for the requests to come."""
        self.faults, self.faults_at, self.after = {}, {}, {}

    def fault_of(self, item: str) -> str | None:
        """The fault of this request of an item."""
        self.seen[item] += 1
        for name, calls in self.after.items():
            if len(self._charges) >= calls:
                return name
        at = (
            (re.search(rf"{re.escape(text)}(?!\d)", item), name)
            for text, name in self.faults_at.items()
        )
        found = next((name for met, name in at if met), "")
        draw = int.from_bytes(hashlib.blake2b(item.encode(), digest_size=8).digest(), "big") / 2**64
        for name, share in self.faults.items():
            found = found or (name if 0 <= draw < share else "")
            draw -= share
        name, _, times = found.partition(":")
        return name if name and (not times or self.seen[item] <= int(times)) else None

    def compute_call(
        self, provider: str, body: Any, request_id: str, batch: bool
    ) -> tuple[str | None, dict[str, Any], Charge | None]:
        """Check, compute and charge one request; raises Refused, free of charge."""
        asked = read(provider, body)
        fault = self.fault_of(asked.item)
        if fault in _SAID:
            raise Refused(*_SAID[fault][provider == "anthropic"])
        if fault == "drop_before":  # nothing is computed: the connection ends before
            return fault, {}, None
        texts, finish, tokens = self.model.write(asked, fault)
        charge = Charge(
            f"{provider}:{asked.model}", asked.item, asked.samples, tokens, batch, request_id
        )
        self._charges.append(charge)
        answer = reply(asked, texts, finish, tokens, request_id, fault != "no_usage")
        place_of_words = answer if provider == "openai" else answer.get("usage", {})
        place_of_words.update(self.price_words)
        return fault, answer, charge

    def ends(self, job: Job) -> bool:
        return job.looks >= self.looks

    def compute(self, job: Job, body: Any) -> tuple[Found, str]:
        request_id = self._next_id()
        try:
            fault, made, charge = self.compute_call(job.provider, body, request_id, batch=True)
        except Refused as refused:
            return refused, request_id
        if charge is None:
            return fault, request_id
        charge.arrived = fault != "no_usage"
        return made, request_id

    def _next_id(self) -> str:
        self._number += 1
        return f"req_{self._number:06}"

    def reply_to(self, head: bytes, body: bytes) -> Answer | str:
        method, target = head.split(b" ", 2)[:2]
        provider = "anthropic" if target.startswith(b"/v1/messages") else "openai"
        request_id = self._next_id()
        try:
            if header(head, b"authorization") != f"Bearer {KEY}":
                raise Refused(*_SAID["unauthorized"][provider == "anthropic"])
            if target in (b"/v1/chat/completions", b"/v1/messages"):
                return self._live(json.loads(body), provider, request_id)
            url = urlsplit(target.decode())
            found = self.answer(method.decode(), url.path, dict(parse_qsl(url.query)), body)
            rows = (
                b""
                if isinstance(found, dict)
                else b"".join(json.dumps(row).encode() + b"\n" for row in found)
            )
            return Answer(found if isinstance(found, dict) else rows)
        except Refused as refused:
            headers = {ID_HEADER[provider]: request_id, **refused.headers}
            return Answer(error(provider, refused, request_id), refused.status, headers)

    def _live(self, body: Any, provider: str, request_id: str) -> Answer | str:
        fault, made, charge = self.compute_call(provider, body, request_id, batch=False)
        if fault == "gateway_timeout":
            raise Refused(504, "timeout_error", "The upstream did not answer in time")
        if fault in ("hang", "drop_before", "drop_after"):
            return fault.partition("_")[0]
        content = json.dumps(made).encode() if fault != "garbage" else b'{"id": "%s' % KEY.encode()

        def sent() -> None:
            if charge is not None:
                charge.arrived = fault not in ("no_usage", "garbage", "cut")

        headers = {ID_HEADER[provider]: request_id, "content-type": "application/json"}
        return Answer(content, headers=headers, share=2 / 3 if fault == "cut" else 1, sent=sent)
