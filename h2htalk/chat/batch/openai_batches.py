"""OpenAI's Batch API: upload a file of requests, start a job, download a file of replies and one of errors.

Half the price, up to 24 hours, 50,000 requests and 200 MB a job. A job has our mark in its metadata, by which one
whose id never arrived is recognised.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from h2htalk.chat.batch.provider import (
    CONNECT_TIMEOUT,
    TRANSFER_TIMEOUT,
    BatchJob,
    JobCallError,
    JsonLines,
    Kind,
    Result,
    Search,
    count_or_none,
    line_bytes,
    pick,
    sdk_errors,
    text_or_none,
)
from h2htalk.chat.provider_errors import clean
from h2htalk.chat.store.records import BatchRecord
from h2htalk.data.files import write_problem
from h2htalk.errors import DataError

if TYPE_CHECKING:
    from openai import OpenAI
    from openai.types import Batch

ENDPOINT: Final = "/v1/chat/completions"
_MARK = "h2htalk"  # the metadata's key
_SKEW = 48 * 3600.0  # seconds by which this machine's clock may differ from theirs
_PROBLEMS = 3  # errors of a refused job that a message quotes
_KINDS: dict[str, Kind] = {"batch_expired": "expired", "batch_cancelled": "canceled"}


class OpenAIJobs:
    """See `JobsApi`. The client's own retries are switched off: a repeated `create` would be a second job."""

    most_calls = 50_000
    most_bytes = 190_000_000

    def __init__(self, client: OpenAI) -> None:
        import httpx2

        timeout = httpx2.Timeout(TRANSFER_TIMEOUT, connect=CONNECT_TIMEOUT)
        self._client = client.with_options(max_retries=0, timeout=timeout)

    def line(self, custom_id: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"custom_id": custom_id, "method": "POST", "url": ENDPOINT, "body": body}

    def upload(self, record: BatchRecord, lines: Iterable[Mapping[str, Any]]) -> str | None:
        import openai

        with tempfile.TemporaryFile() as file:  # up to 190 MB that need not lie in memory
            try:
                for line in lines:
                    file.write(line_bytes(line) + b"\n")
                file.seek(0)
            except OSError as error:
                raise DataError(f"{tempfile.gettempdir()}: {write_problem(error)}") from error
            with sdk_errors(openai):
                name = f"{_MARK}-{record.batch}.jsonl"
                made = self._client.files.create(file=(name, file), purpose="batch")
        if (file_id := text_or_none(getattr(made, "id", None))) is None:
            raise JobCallError("the answer names no file", status=200)
        return file_id

    def newest(self) -> str | None:
        return None  # the mark identifies the job

    def create(self, record: BatchRecord, lines: Iterable[Mapping[str, Any]]) -> BatchJob:
        import openai

        assert record.file is not None  # the store records it before `sending`
        with sdk_errors(openai):
            made = self._client.batches.create(
                input_file_id=record.file,
                endpoint=ENDPOINT,
                completion_window="24h",
                metadata={_MARK: record.batch},
            )
            return _read_job(made)

    def find(self, record: BatchRecord, known: Collection[str]) -> Search:
        import openai

        with sdk_errors(openai):
            for made in self._client.batches.list(limit=100):  # newest first, page after page
                mark = pick(made.metadata, _MARK)
                if mark == record.batch or (record.file is not None and made.input_file_id == record.file):
                    return Search(_read_job(made))
                if made.created_at < record.when - _SKEW:
                    break
        return Search()

    def retrieve(self, job: str) -> BatchJob:
        import openai

        with sdk_errors(openai):
            return _read_job(self._client.batches.retrieve(job))

    def results(self, job: BatchJob) -> Iterator[Result | None]:
        import openai

        for file_id in job.outputs:
            with (
                sdk_errors(openai),
                self._client.files.with_streaming_response.content(file_id) as response,
            ):
                for line in JsonLines(response.iter_bytes()):
                    yield _read_result(line)


def _read_job(made: Batch) -> BatchJob:
    """Read a job. The SDK accepts any answer, so every field is checked."""
    job_id, status = text_or_none(getattr(made, "id", None)), text_or_none(getattr(made, "status", None))
    if job_id is None or not job_id.isprintable() or status is None:
        raise JobCallError("the answer describes no job", status=200)
    outputs = tuple(i for i in map(text_or_none, (made.output_file_id, made.error_file_id)) if i)
    problem, crowded = _read_problems(made)
    counts = made.request_counts
    completed, failed = (
        count_or_none(getattr(counts, "completed", None)),
        count_or_none(getattr(counts, "failed", None)),
    )
    ended = status in ("completed", "expired", "cancelled", "failed")
    return BatchJob(
        job_id,
        clean(status),
        "running" if not ended else "failed" if status == "failed" and not outputs else "ended",
        # 0 until the file of requests was looked through.
        count_or_none(getattr(counts, "total", None)) or None,
        None if completed is None or failed is None else completed + failed,
        completed,
        "expired" if status == "expired" else "canceled" if status == "cancelled" else "missing",
        outputs,
        problem,
        crowded,
    )


def _read_problems(made: Batch) -> tuple[str, bool]:
    """Return the first errors of a refused job, and whether all of them report a full queue."""
    errors = getattr(made.errors, "data", None)
    if not isinstance(errors, list):
        return "", False
    lines, codes, messages = ([getattr(e, key, None) for e in errors] for key in ("line", "code", "message"))
    described = [
        (f"line {line}: " if count_or_none(line) is not None else "")
        + (text_or_none(message) or text_or_none(code) or "no reason given")
        for line, code, message in list(zip(lines, codes, messages, strict=True))[:_PROBLEMS]
    ]
    more = [f"{len(errors) - _PROBLEMS} more"] if len(errors) > _PROBLEMS else []
    crowded = bool(errors) and all(code == "token_limit_exceeded" for code in codes)
    return "; ".join(described + more), crowded


def _read_result(line: Mapping[str, Any] | None) -> Result | None:
    """Read a line of either file: a `response` with its status, or an `error`."""
    custom_id = text_or_none(pick(line, "custom_id"))
    if custom_id is None:
        return None
    status = count_or_none(pick(line, "response", "status_code"))
    if status is not None:
        body = pick(line, "response", "body")
        request_id = text_or_none(pick(line, "response", "request_id"))
        return Result(custom_id, "succeeded" if status == 200 else "errored", body, status, request_id)
    code = text_or_none(pick(line, "error", "code"))
    if code is None:
        return None
    # An error without a response is that of the batch, such as `request_timeout`: treated as a server error.
    kind = _KINDS.get(code, "errored")
    return Result(custom_id, kind, {"error": pick(line, "error")}, 500)
