"""The interface of a provider's batch jobs, and the records that both providers return."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from h2htalk.chat.store.records import BatchRecord

# How a call ended. The last two were never computed and cost nothing.
Kind = Literal["succeeded", "errored", "expired", "canceled"]
LONGEST_LINE = 1 << 26  # bytes of one result; beyond it the results are broken (64 MiB)
CONNECT_TIMEOUT = 30.0  # seconds
TRANSFER_TIMEOUT = 600.0  # seconds without a byte, while a job's requests or results go over the wire


@dataclass(frozen=True, slots=True)
class BatchJob:
    """A batch job as its provider describes it.

    Attributes:
        id, status: as the provider names them.
        state: `failed` means that it was refused whole: none of its calls was computed.
        calls, finished: how many it holds, and how many of them are done; None where unknown.
        succeeded: how many gave a reply; None where unknown.
        leftover: the kind of calls without a result, once it has ended.
        outputs: where its results are.
        problem: of a failed one, why.
        crowded: it failed only because the account's queue is full.
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
    """The result of a call of a job.

    `status` (0: unknown) and `body` are those of the live API. `free`: the provider charges nothing for it; errors
    without it follow the rules of the live API.
    """

    custom_id: str
    kind: Kind
    body: object = None
    status: int = 200
    request_id: str | None = None
    free: bool = False


@dataclass(frozen=True, slots=True)
class Search:
    """The outcome of a search for a job whose id is unknown.

    `job`: the job that was found. Else it may be one of `running`, which their results will show, or one of
    `unreadable`, which have ended and can no longer be read. All empty: there is no such job.
    """

    job: BatchJob | None = None
    running: tuple[BatchJob, ...] = ()
    unreadable: tuple[str, ...] = ()


class JobCallError(Exception):
    """A call about a job gave no usable answer. Internal: `polling` waits or raises an error.

    Attributes:
        status: of HTTP; None where no answer was read.
        reached: whether anything was sent at all.
        body, headers: of the answer.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        reached: bool = True,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message, self.status, self.reached = message, status, reached
        self.body, self.headers = body, headers or {}


class JobsApi(Protocol):
    """One provider's batch jobs. Every method may raise JobCallError."""

    @property
    def most_calls(self) -> int:
        """Calls that a job may hold, with a margin."""
        ...

    @property
    def most_bytes(self) -> int:
        """Bytes that its requests may have, with a margin."""
        ...

    def line(self, custom_id: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """One call as a job holds it."""
        ...

    def upload(self, record: BatchRecord, lines: Iterable[Mapping[str, Any]]) -> str | None:
        """Upload the requests where the provider requires it; returns their id. Costs nothing."""
        ...

    def newest(self) -> str | None:
        """Return the newest job where `find` needs it, else None."""
        ...

    def create(self, record: BatchRecord, lines: Iterable[Mapping[str, Any]]) -> BatchJob:
        """Submit the job. It may exist even if this raises, unless the answer was a refusal."""
        ...

    def find(self, record: BatchRecord, known: Collection[str]) -> Search:
        """Search for a job that may exist; `known`: ids of our other jobs."""
        ...

    def retrieve(self, job: str) -> BatchJob:
        """Return the state of a job."""
        ...

    def results(self, job: BatchJob) -> Iterator[Result | None]:
        """Stream the results of an ended job, in any order; None stands for a line that cannot be read."""
        ...


@dataclass(slots=True)
class JsonLines:
    """Split a stream of bytes into JSON objects. Only a line feed ends a line: text may hold other separators."""

    chunks: Iterable[bytes]
    _parts: list[bytes] = field(default_factory=list)

    def __iter__(self) -> Iterator[Mapping[str, Any] | None]:
        """Yield objects in order, None for a line that is none. Empty lines are left out."""
        size = 0
        for chunk in self.chunks:
            *ended, rest = chunk.split(b"\n")
            for part in ended:
                self._parts.append(part)
                line = b"".join(self._parts)
                self._parts.clear()
                size = 0
                if line.strip():
                    yield _read_object(line)
            size += len(rest)
            if size > LONGEST_LINE:
                raise JobCallError(f"a result is longer than {LONGEST_LINE >> 20} MiB")
            if rest:
                self._parts.append(rest)
        if (line := b"".join(self._parts)).strip():
            yield _read_object(line)


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
    """The value at a path of keys in JSON; None where there is none."""
    for key in path:
        raw = raw.get(key) if isinstance(raw, Mapping) else None
    return raw


def text_or_none(value: object) -> str | None:
    """Return a text that is not empty, None for anything else."""
    return value if isinstance(value, str) and value else None


def count_or_none(value: object) -> int | None:
    """A whole number from 0; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def total(values: Sequence[int | None]) -> int | None:
    """A sum, unknown as soon as one part is."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


@contextmanager
def sdk_errors(sdk: Any) -> Iterator[None]:
    """Raise JobCallError for what the SDK (`openai` or `anthropic`) or the transport under it raises."""
    import httpx2

    base = getattr(sdk, "OpenAIError", None) or sdk.AnthropicError  # what all errors of the SDK are
    try:
        yield
    except sdk.APIStatusError as error:
        raise JobCallError(
            f"HTTP {error.status_code}",
            status=error.status_code,
            body=_json(error.response),
            headers=error.response.headers,
        ) from None
    except sdk.APIConnectionError as error:
        raise _connection_error(error.__cause__ or error) from None
    except httpx2.HTTPError as error:  # while results stream, the SDK is no longer around the transport
        raise _connection_error(error) from None
    except (base, ValueError, TypeError, AttributeError) as error:
        # ValueError: a body that is not JSON. TypeError, AttributeError: JSON of another shape, which the SDKs take
        # for what they expect. Their texts may quote it at length, so only the kind is kept.
        raise JobCallError(f"the answer cannot be read ({type(error).__name__})", status=200) from None


def _connection_error(error: BaseException) -> JobCallError:
    from h2htalk.chat.hosted.sdk_transport import connection_failure

    found = connection_failure(error, None)
    status = 200 if found.reason == "malformed_reply" else None
    return JobCallError(found.message, status=status, reached=found.billing != "free")


def _json(response: Any) -> object:
    """The whole body of an error; None where it is not JSON. A streamed one is read first."""
    import httpx2

    try:
        response.read()
        return response.json()
    except (ValueError, httpx2.HTTPError, httpx2.StreamError):
        return None
