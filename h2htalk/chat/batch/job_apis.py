"""The batch jobs of OpenAI and Anthropic over their SDKs: make, find and look at jobs, stream results.

OpenAI: upload a file of requests, start a job, download a file of replies and one of errors; 50,000 requests and 200 MB
a job, which has our mark in its metadata. Anthropic: one call submits all requests, one streams all results; 100,000
requests and 256 MB a job, results kept for 29 days. Its job holds nothing of ours but the `custom_id` of each request,
which only its results show: a job whose id never arrived is searched for among the later ones by its number of calls.
"""

from __future__ import annotations

import json
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from importlib import import_module
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, TypeVar

import httpx2

from h2htalk.chat.error_bodies import clean
from h2htalk.chat.protocol import FailedCall
from h2htalk.chat.server import CONNECT_TIMEOUT
from h2htalk.chat.store.call_records import BatchRecord
from h2htalk.chat.wire_formats import WireFormat
from h2htalk.data.files import writing

LONGEST_LINE = 1 << 26  # bytes of one result; beyond it the results are broken (64 MiB)
TRANSFER_TIMEOUT = (
    600.0  # seconds without a byte, while a job's requests or results go over the wire
)
CLOCK_SKEW = 48 * 3600.0  # seconds by which this machine's clock may differ from theirs
ENDPOINT: Final = "/v1/chat/completions"
_MARK = "h2htalk"  # the key of an OpenAI job's metadata
_PROBLEMS = 3  # errors of a refused job that a message quotes
T = TypeVar("T")
Leftover = Literal["missing", "expired", "canceled"]
Kind = Literal["succeeded", "errored", "expired", "canceled"]
_CODES: Mapping[str, Kind] = {"batch_expired": "expired", "batch_cancelled": "canceled"}
_TYPES: Mapping[str, Kind] = {"canceled": "canceled", "expired": "expired"}
_LEFTOVERS: Mapping[str, Leftover] = {"expired": "expired", "cancelled": "canceled"}


@dataclass(frozen=True, slots=True)
class BatchJob:
    """A batch job as its provider describes it; `failed`: it was refused whole, and none of its calls was computed.

    `finished` and `succeeded` of its `calls` are done and gave a reply; None where unknown. `leftover`: what became of
    calls without a result. `late`: it has ended, and does not say yet where its replies are; `archived`: the provider
    says that it keeps them no longer. `problem`: why a failed one was refused; `crowded`: the account's queue is full.
    """

    id: str
    status: str
    state: Literal["running", "ended", "failed"]
    calls: int | None = None
    finished: int | None = None
    succeeded: int | None = None
    leftover: Leftover = "missing"
    outputs: tuple[str, ...] = ()
    late: bool = False
    archived: bool = False
    problem: str = ""
    crowded: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a call of a job. `status` (0: unknown) and `body` are those of the live API, whose rules errors
    follow that are not `free`."""

    custom_id: str
    kind: Kind
    body: object = None
    status: int = 200
    request_id: str | None = None
    free: bool = False


# Our job, and others that may be ours: those that run, whose results will tell, and those that can no longer be read.
Search = tuple[BatchJob | None, list[str], list[str]]


@dataclass(eq=False)
class JobCallError(Exception):
    """A call about a job gave no usable answer. `status`: of HTTP, None where no answer was read; `reached`: something
    was sent."""

    failed: FailedCall
    status: int | None
    reached: bool = True

    @property
    def refused(self) -> bool:
        """Whether a job certainly does not exist; a server that broke may have created it before."""
        if self.status is None:
            return not self.reached
        return (300 <= self.status < 500 and self.status not in (408, 499)) or self.status == 529


class JobsApi(ABC):
    """One provider's batch jobs over its SDK. Every method may raise JobCallError. Its retries are off: a repeated
    `create` would be a second job. Its typed models accept any answer, so its raw responses are read."""

    most_calls: ClassVar[int]  # that a job may hold, with a margin
    most_bytes: ClassVar[int]  # that its requests may have, with a margin
    retention: ClassVar[float]  # seconds for which the provider keeps the results of a job
    after: ClassVar[str]  # the parameter of the list that names the last job of the page before
    methods: ClassVar[str]  # the SDK's methods for jobs, as a path of attributes
    outputs: ClassVar[str]  # and the one that streams an output

    def __init__(self, client: Any, wire: WireFormat, broken: Callable[..., FailedCall]) -> None:
        """Take the SDK's client, and what reads errors of the API and of the connection."""
        timeout = httpx2.Timeout(TRANSFER_TIMEOUT, connect=CONNECT_TIMEOUT)
        self.client = client.with_options(max_retries=0, timeout=timeout)
        self.batches = attrgetter(self.methods)(self.client).with_raw_response
        self.stream = attrgetter(self.outputs)(self.client)
        self._wire = wire
        self._broken = broken
        self._sdk = import_module(type(client).__module__.partition(".")[0])

    @abstractmethod
    def line(self, custom_id: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """One call as a job holds it."""

    def upload(self, record: BatchRecord, lines: Iterable[Mapping[str, Any]]) -> str | None:
        """Upload the requests where the provider requires it; returns their id. Costs nothing."""
        return None

    def newest(self) -> str | None:
        """Return the newest job where `find` needs it, else None."""
        return None

    @abstractmethod
    def create(self, record: BatchRecord, lines: Iterable[Mapping[str, Any]]) -> BatchJob:
        """Submit the job. It may exist even if this raises, unless the answer was a refusal."""

    @abstractmethod
    def find(self, record: BatchRecord, our_jobs: Collection[str]) -> Search:
        """Search for a job that may exist; `our_jobs`: ids of our other jobs."""

    @abstractmethod
    def read_job(self, raw: Mapping[str, Any]) -> BatchJob:
        """Read the JSON of a job."""

    @abstractmethod
    def read_result(self, line: Mapping[str, Any] | None) -> Result | None:
        """Read a line of results; None for one that cannot be read."""

    def retrieve(self, job: str) -> BatchJob:
        """Return the state of a job."""
        return self.read_job(self.call(self.batches.retrieve, job))

    def results(self, job: BatchJob) -> Iterator[Result | None]:
        """Stream the results of an ended job, in any order; None stands for a line that cannot be read."""
        for output in job.outputs:
            # Read as bytes: a reader of the SDK stops at the first line that is not JSON.
            with self._errors(), self.stream(output) as response:
                for line in json_lines(response.iter_bytes()):
                    yield self.read_result(line)

    def call(
        self, method: Callable[..., Any], /, *arguments: Any, **keywords: Any
    ) -> Mapping[str, Any]:
        """Call a method of the SDK that gives a raw response; return the JSON object of the answer."""
        with self._errors():
            body = json.loads(method(*arguments, **keywords).http_response.content)
        return require(body if isinstance(body, dict) else None)

    def listed(self, limit: int = 100) -> Iterator[Mapping[str, Any]]:
        """All jobs of the account, newest first, page after page."""
        last: dict[str, str] = {}
        while True:
            page = self.call(self.batches.list, limit=limit, **last)
            jobs = page.get("data")
            if not isinstance(jobs, list) or not all(isinstance(job, dict) for job in jobs):
                raise unusable("the answer lists no jobs")
            yield from jobs
            if not jobs or page.get("has_more") is False:
                return
            last = {self.after: text_of(jobs[-1], "id")}

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise JobCallError for what the SDK or the transport under it raises."""
        sdk = self._sdk
        base_error = getattr(sdk, "OpenAIError", None) or sdk.AnthropicError
        try:
            yield
        except sdk.APIStatusError as error:
            body: object = None
            with suppress(ValueError, httpx2.HTTPError, httpx2.StreamError):
                body = json.loads(error.response.read())  # streamed or not
            failed = self._wire.read_error(error.status_code, body, error.response.headers)
            raise JobCallError(failed, error.status_code) from None
        except (
            sdk.APIConnectionError,
            httpx2.HTTPError,
        ) as error:  # the latter while results stream
            failed = self._broken(error.__cause__ or error, None)
            status = 200 if failed.reason == "malformed_reply" else None
            reached = failed.billing != "free"
            raise JobCallError(replace(failed, retry=True), status, reached) from None
        except (base_error, ValueError, TypeError, AttributeError, RecursionError) as error:
            # Not JSON, or JSON of another shape, which the text may quote at length: only the kind is kept.
            raise unusable(f"the answer cannot be read ({type(error).__name__})") from None


class OpenAIJobs(JobsApi):
    """OpenAI's batch jobs: a file of requests is uploaded, files of replies and errors are downloaded."""

    most_calls = 50_000
    most_bytes = 190_000_000
    retention = 30 * 24 * 3600.0
    after = "after"
    methods = "batches"
    outputs = "files.with_streaming_response.content"

    def line(self, custom_id: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"custom_id": custom_id, "method": "POST", "url": ENDPOINT, "body": body}

    def upload(self, record: BatchRecord, lines: Iterable[Mapping[str, Any]]) -> str | None:
        with tempfile.TemporaryFile() as file:  # up to 190 MB that need not lie in memory
            with writing(Path(tempfile.gettempdir())):
                file.writelines(line_bytes(line) + b"\n" for line in lines)
                file.seek(0)
            name = f"{_MARK}-{record.batch}.jsonl"
            create = self.client.files.with_raw_response.create
            return text_of(self.call(create, file=(name, file), purpose="batch"), "id")

    def create(self, record: BatchRecord, lines: Iterable[Mapping[str, Any]]) -> BatchJob:
        raw = self.call(
            self.batches.create,
            input_file_id=record.file,
            endpoint=ENDPOINT,
            completion_window="24h",
            metadata={_MARK: record.batch},
        )
        return self.read_job(raw)

    def find(self, record: BatchRecord, our_jobs: Collection[str]) -> Search:
        for raw in self.listed():
            same_file = record.file is not None and pick(raw, "input_file_id") == record.file
            if same_file or pick(raw, "metadata", _MARK) == record.batch:
                return self.read_job(raw), [], []
            if require(count_or_none(raw.get("created_at"))) < record.when - CLOCK_SKEW:
                break
        return None, [], []

    def read_job(self, raw: Mapping[str, Any]) -> BatchJob:
        job_id = text_of(raw, "id")
        status = clean(text_of(raw, "status"))
        files = [text_or_none(raw.get(name)) for name in ("output_file_id", "error_file_id")]
        outputs = tuple(file for file in files if file)
        state: Literal["running", "ended", "failed"] = "running"
        if status == "failed" and not outputs:
            state = "failed"
        elif status in ("completed", "expired", "cancelled", "failed"):
            state = "ended"
        completed, failed, calls = _counts(raw, "completed", "failed", "total")
        finished = None if completed is None or failed is None else completed + failed
        late = False
        if state == "ended" and files[0] is None:
            is_counted = finished is not None and finished == calls
            awaits_counts = status == "completed" and not outputs and not is_counted
            late = bool(completed) or awaits_counts
        problem, crowded = _read_problems(pick(raw, "errors", "data"))
        return BatchJob(
            id=job_id,
            status=status,
            state=state,
            calls=calls or None,  # 0 until the file of requests was looked through
            finished=finished,
            succeeded=completed,
            leftover=_LEFTOVERS.get(status, "missing"),
            outputs=outputs,
            late=late,
            problem=problem,
            crowded=crowded,
        )

    def read_result(self, line: Mapping[str, Any] | None) -> Result | None:
        """Read a line of either file: a `response` with its status, or an `error`."""
        custom_id = text_or_none(pick(line, "custom_id"))
        if custom_id is None:
            return None
        status = count_or_none(pick(line, "response", "status_code"))
        if status is not None:
            return Result(
                custom_id=custom_id,
                kind="succeeded" if status == 200 else "errored",
                body=pick(line, "response", "body"),
                status=status,
                request_id=text_or_none(pick(line, "response", "request_id")),
            )
        code = text_or_none(pick(line, "error", "code"))
        if code is None:
            return None
        # An error without a response is that of the batch, such as `request_timeout`: treated as a server error.
        kind = _CODES.get(code, "errored")
        return Result(custom_id, kind, body={"error": pick(line, "error")}, status=500)


def _read_problems(errors: object) -> tuple[str, bool]:
    """Return the first errors of a refused job, and whether all of them report a full queue."""
    if not isinstance(errors, list):
        return "", False
    problems = [
        f"line {pick(error, 'line')}: {pick(error, 'message')}" for error in errors[:_PROBLEMS]
    ]
    if len(errors) > _PROBLEMS:
        problems.append(f"{len(errors) - _PROBLEMS} more")
    crowded = all(pick(error, "code") == "token_limit_exceeded" for error in errors)
    return "; ".join(problems), bool(errors) and crowded


class AnthropicJobs(JobsApi):
    """Anthropic's batch jobs: one call submits all requests, one streams all results."""

    most_calls = 100_000
    most_bytes = 240_000_000
    retention = 29 * 24 * 3600.0
    after = "after_id"
    methods = "messages.batches"
    outputs = "messages.batches.with_streaming_response.results"

    def line(self, custom_id: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"custom_id": custom_id, "params": body}

    def newest(self) -> str | None:
        return next((text_of(raw, "id") for raw in self.listed(limit=1)), None)

    def create(self, record: BatchRecord, lines: Iterable[Mapping[str, Any]]) -> BatchJob:
        return self.read_job(self.call(self.batches.create, requests=list(lines)))

    def find(self, record: BatchRecord, our_jobs: Collection[str]) -> Search:
        """Read the results of all jobs of as many calls that may have been made when ours was sent."""
        candidates = []
        for raw in self.listed():
            job = self.read_job(raw)
            with self._errors():
                created = datetime.fromisoformat(str(raw.get("created_at"))).timestamp()
            age = record.when - created
            # Made before ours. The time is for the case that the job before ours was deleted since.
            if job.id == record.after or age > CLOCK_SKEW:
                break
            if job.calls == len(record.numbers) and job.id not in our_jobs and age > -CLOCK_SKEW:
                candidates.append(job)
        running = []
        unreadable = []
        for job in candidates:
            if job.state != "ended":  # the list may be out of date
                job = self.retrieve(job.id)
            if job.state == "running":
                running.append(job.id)
                continue
            ours = self._is_ours(job, record)
            if ours:
                return job, [], []
            if ours is None:
                unreadable.append(job.id)
        return None, running, unreadable

    def _is_ours(self, job: BatchJob, record: BatchRecord) -> bool | None:
        """Whether the first result of an ended job has one of our names; None where it can no longer be read."""
        try:
            for result in self.results(job):
                if result is not None:
                    return result.custom_id.startswith(f"{record.batch}-")
        except JobCallError as error:
            if error.status is None or error.status == 429 or error.status >= 500:
                raise
        return None

    def results(self, job: BatchJob) -> Iterator[Result | None]:
        if not job.outputs:
            raise unusable("the job does not say where its results are", 404)
        yield from super().results(job)

    def read_job(self, raw: Mapping[str, Any]) -> BatchJob:
        job_id = text_of(raw, "id")
        status = clean(text_of(raw, "processing_status"))
        counts = _counts(raw, "processing", "succeeded", "errored", "canceled", "expired")
        processing, succeeded, *_ = counts
        calls = None if None in counts else sum(number or 0 for number in counts)
        archived = raw.get("archived_at") is not None
        has_results = raw.get("results_url") and not archived
        has_ended = status == "ended"
        outputs = (job_id,) if has_results else ()
        finished = None if calls is None else calls - (processing or 0)
        return BatchJob(
            id=job_id,
            status=status,
            state="ended" if has_ended else "running",
            late=has_ended and not has_results,
            archived=archived,
            calls=calls,
            finished=finished,
            succeeded=succeeded,
            outputs=outputs,
        )

    def read_result(self, line: Mapping[str, Any] | None) -> Result | None:
        custom_id = text_or_none(pick(line, "custom_id"))
        kind = pick(line, "result", "type")
        if custom_id is None or not isinstance(kind, str):
            return None
        if kind == "succeeded":
            return Result(custom_id, kind="succeeded", body=pick(line, "result", "message"))
        if kind == "errored":
            error = pick(line, "result", "error")  # the body of an error as the live API sends it
            request_id = text_or_none(pick(error, "request_id"))
            return Result(custom_id, "errored", error, status=0, request_id=request_id, free=True)
        return Result(custom_id, _TYPES[kind]) if kind in _TYPES else None


# --- JSON -------------------------------------------------------------------------------------------------------


def json_lines(chunks: Iterable[bytes]) -> Iterator[Mapping[str, Any] | None]:
    """Split a stream of bytes into JSON objects, None for a line that is none. Only a line feed ends a line: text may
    hold other separators."""
    pieces: list[bytes] = []
    size = 0
    for chunk in chain(chunks, (b"\n",)):
        *line_ends, last_piece = chunk.split(b"\n")
        for line_end in line_ends:
            line = b"".join((*pieces, line_end))
            pieces.clear()
            size = 0
            if line.strip():
                raw: Any = None
                with suppress(ValueError, RecursionError):
                    raw = json.loads(line)
                yield raw if isinstance(raw, dict) else None
        pieces.append(last_piece)
        size += len(last_piece)
        if size > LONGEST_LINE:
            raise unusable(f"a result is longer than {LONGEST_LINE >> 20} MiB")


def line_bytes(line: Mapping[str, Any]) -> bytes:
    """Return a call as JSON bytes. Half a surrogate pair becomes its JSON escape."""
    text = json.dumps(line, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace")


def text_of(raw: Mapping[str, Any], name: str) -> str:
    """Return a text that an answer about a job must have."""
    text = text_or_none(raw.get(name)) or ""
    return require(text if text.isprintable() and text else None)


def unusable(why: str, status: int = 200) -> JobCallError:
    """Return the error for an answer that cannot be used; the call is sent again."""
    return JobCallError(FailedCall("connection", why, "free", retry=True), status)


def require(value: T | None) -> T:
    """Return a value that an answer about a job must have; raises JobCallError where it has none."""
    if value is None:
        raise unusable("the answer describes no job")
    return value


def pick(raw: object, *path: str) -> Any:
    """Return the value at a path of keys in JSON; None where there is none."""
    for key in path:
        raw = raw.get(key) if isinstance(raw, Mapping) else None
    return raw


def text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def count_or_none(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _counts(raw: Mapping[str, Any], *names: str) -> list[int | None]:
    return [count_or_none(pick(raw, "request_counts", name)) for name in names]
