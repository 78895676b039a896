"""What the batch jobs of both providers have in common: their records, calls through the SDK, lines of results."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from itertools import chain
from typing import Any, ClassVar, Literal

from h2htalk.chat.calls import CONNECT_TIMEOUT
from h2htalk.chat.store.records import BatchRecord

LONGEST_LINE = 1 << 26  # bytes of one result; beyond it the results are broken (64 MiB)
TRANSFER_TIMEOUT = 600.0  # seconds without a byte, while a job's requests or results go over the wire
CLOCK_SKEW = 48 * 3600.0  # seconds by which this machine's clock may differ from theirs


@dataclass(frozen=True, slots=True)
class BatchJob:
    """A batch job as its provider describes it.

    Attributes:
        id, status: as the provider names them.
        state: `failed` means that it was refused whole: none of its calls was computed.
        calls, finished: how many it holds, and how many of them are done; None where unknown.
        succeeded: how many gave a reply; None where unknown.
        leftover: what became of calls without a result, once it has ended.
        outputs: where its results are.
        problem: why a failed one was refused; `crowded`: only because the account's queue is full.
    """

    id: str
    status: str
    state: Literal["running", "ended", "failed"]
    calls: int | None = None
    finished: int | None = None
    succeeded: int | None = None
    leftover: Literal["missing", "expired", "canceled"] = "missing"
    outputs: tuple[str, ...] = ()
    problem: str = ""
    crowded: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a call of a job; calls that expired or were cancelled were never computed and cost nothing.

    `status` (0: unknown) and `body` are those of the live API. `free`: the provider charges nothing for it; errors
    without it follow the rules of the live API.
    """

    custom_id: str
    kind: Literal["succeeded", "errored", "expired", "canceled"]
    body: object = None
    status: int = 200
    request_id: str | None = None
    free: bool = False


@dataclass(frozen=True, slots=True)
class Search:
    """The outcome of a search for a job whose id is unknown: `job`, else it may be one of `running`, which their
    results will show, or one of `unreadable`, which have ended and can no longer be read."""

    job: BatchJob | None = None
    running: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()


@dataclass(eq=False)
class JobCallError(Exception):
    """A call about a job gave no usable answer. Internal: `batch_runner` waits or raises an error.

    `status`: of HTTP, None where no answer was read; `body`, `headers`: of the answer; `reached`: something was sent.
    """

    message: str
    status: int | None = None
    reached: bool = True
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict)


class JobsApi:
    """One provider's batch jobs over its SDK, whose retries are off: a repeated `create` would be a second job.

    Every method may raise JobCallError. The SDK's typed models accept any answer, so its raw responses are read.
    """

    most_calls: ClassVar[int]  # that a job may hold, with a margin
    most_bytes: ClassVar[int]  # that its requests may have, with a margin
    after: ClassVar[str]  # the parameter of the list that names the last job of the page before

    def __init__(self, client: Any) -> None:
        import httpx2

        timeout = httpx2.Timeout(TRANSFER_TIMEOUT, connect=CONNECT_TIMEOUT)
        self.client = client.with_options(max_retries=0, timeout=timeout)
        self.batches: Any = None  # the SDK's methods for jobs, with raw responses
        self.stream: Any = None  # and the one that streams an output
        self._sdk = import_module(type(client).__module__.partition(".")[0])

    def line(self, custom_id: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """One call as a job holds it."""
        raise NotImplementedError

    def upload(self, record: BatchRecord, lines: Iterable[Mapping[str, Any]]) -> str | None:
        """Upload the requests where the provider requires it; returns their id. Costs nothing."""
        return None

    def newest(self) -> str | None:
        """Return the newest job where `find` needs it, else None."""
        return None

    def create(self, record: BatchRecord, lines: Iterable[Mapping[str, Any]]) -> BatchJob:
        """Submit the job. It may exist even if this raises, unless the answer was a refusal."""
        raise NotImplementedError

    def find(self, record: BatchRecord, known: Collection[str]) -> Search:
        """Search for a job that may exist; `known`: ids of our other jobs."""
        raise NotImplementedError

    def read_job(self, raw: Mapping[str, Any]) -> BatchJob:
        """Read the JSON of a job."""
        raise NotImplementedError

    def read_result(self, line: Mapping[str, Any] | None) -> Result | None:
        """Read a line of results; None for one that cannot be read."""
        raise NotImplementedError

    def retrieve(self, job: str) -> BatchJob:
        """Return the state of a job."""
        return self.read_job(self.call(self.batches.retrieve, job))

    def results(self, job: BatchJob) -> Iterator[Result | None]:
        """Stream the results of an ended job, in any order; None stands for a line that cannot be read."""
        for output in job.outputs:
            # Read as bytes: a reader of the SDK stops at the first line that is not JSON.
            with sdk_errors(self._sdk), self.stream(output) as response:
                for line in json_lines(response.iter_bytes()):
                    yield self.read_result(line)

    def call(self, method: Callable[..., Any], /, *arguments: Any, **named: Any) -> Mapping[str, Any]:
        """Call a method of the SDK that gives a raw response; returns the JSON object of the answer."""
        with sdk_errors(self._sdk):
            body = json.loads(method(*arguments, **named).http_response.content)
        if not isinstance(body, dict):
            raise JobCallError("the answer describes no job", status=200)
        return body

    def listed(self, limit: int = 100) -> Iterator[Mapping[str, Any]]:
        """All jobs of the account, newest first, page after page."""
        last: dict[str, str] = {}
        while True:
            page = self.call(self.batches.list, limit=limit, **last)
            jobs = page.get("data")
            if not isinstance(jobs, list) or not all(isinstance(job, dict) for job in jobs):
                raise JobCallError("the answer lists no jobs", status=200)
            yield from jobs
            if not jobs or page.get("has_more") is False:
                return
            last = {self.after: self.named(jobs[-1], "id")[0]}

    def named(self, raw: Mapping[str, Any], status: str) -> tuple[str, str]:
        """Return the id of a job and the field that holds its status."""
        job, state = text_or_none(raw.get("id")), text_or_none(raw.get(status))
        if job is None or not job.isprintable() or state is None:
            raise JobCallError("the answer describes no job", status=200)
        return job, state


def json_lines(chunks: Iterable[bytes]) -> Iterator[Mapping[str, Any] | None]:
    """Split a stream of bytes into JSON objects, None for a line that is none; empty lines are left out.

    Only a line feed ends a line: text may hold other separators.
    """
    parts: list[bytes] = []
    size = 0
    for chunk in chain(chunks, (b"\n",)):
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            line, size = b"".join((*parts, part)), 0
            parts.clear()
            if line.strip():
                yield _read_object(line)
        parts.append(rest)
        size += len(rest)
        if size > LONGEST_LINE:
            raise JobCallError(f"a result is longer than {LONGEST_LINE >> 20} MiB")


def _read_object(line: bytes) -> Mapping[str, Any] | None:
    try:
        raw = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return raw if isinstance(raw, dict) else None


def line_bytes(line: Mapping[str, Any]) -> bytes:
    """Return a call as JSON bytes. Half a surrogate pair becomes its JSON escape."""
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


def pick(raw: object, *path: str) -> Any:
    """Return the value at a path of keys in JSON; None where there is none."""
    for key in path:
        raw = raw.get(key) if isinstance(raw, Mapping) else None
    return raw


def text_or_none(value: object) -> str | None:
    """Return a text that is not empty, None for anything else."""
    return value if isinstance(value, str) and value else None


def count_or_none(value: object) -> int | None:
    """Return a whole number from 0, None for anything else."""
    return value if type(value) is int and value >= 0 else None


@contextmanager
def sdk_errors(sdk: Any) -> Iterator[None]:
    """Raise JobCallError for what the SDK (`openai` or `anthropic`) or the transport under it raises."""
    import httpx2

    base = getattr(sdk, "OpenAIError", None) or sdk.AnthropicError  # what all errors of the SDK are
    try:
        yield
    except sdk.APIStatusError as error:
        body: object = None
        with suppress(ValueError, httpx2.HTTPError, httpx2.StreamError):
            body = json.loads(error.response.read())  # streamed or not
        status, headers = error.status_code, error.response.headers
        raise JobCallError(f"HTTP {status}", status, body=body, headers=headers) from None
    except sdk.APIConnectionError as error:
        raise _connection_error(error.__cause__ or error) from None
    except httpx2.HTTPError as error:  # while results stream, the SDK is no longer around the transport
        raise _connection_error(error) from None
    except (base, ValueError, TypeError, AttributeError, RecursionError) as error:
        # ValueError: a body that is not JSON. TypeError, AttributeError: JSON of another shape, which the SDKs take
        # for what they expect. Their texts may quote it at length, so only the kind is kept.
        raise JobCallError(f"the answer cannot be read ({type(error).__name__})", status=200) from None


def _connection_error(error: BaseException) -> JobCallError:
    from h2htalk.chat.hosted.sdk_transport import connection_failure

    found = connection_failure(error, None)
    status = 200 if found.reason == "malformed_reply" else None
    return JobCallError(found.message, status, reached=found.billing != "free")
