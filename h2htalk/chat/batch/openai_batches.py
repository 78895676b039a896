"""OpenAI's Batch API: upload a file of requests, start a job, download a file of replies and one of errors.

Half the price, up to 24 hours, 50,000 requests and 200 MB a job. A job has our mark in its metadata, by which one
whose id never arrived is recognised.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, Literal

from h2htalk.chat.batch.provider import (
    CLOCK_SKEW,
    BatchJob,
    JobCallError,
    JobsApi,
    Result,
    Search,
    count_or_none,
    line_bytes,
    pick,
    text_or_none,
)
from h2htalk.chat.provider_errors import clean
from h2htalk.chat.store.records import BatchRecord
from h2htalk.data.files import write_problem
from h2htalk.errors import DataError

ENDPOINT: Final = "/v1/chat/completions"
_MARK = "h2htalk"  # the metadata's key
_PROBLEMS = 3  # errors of a refused job that a message quotes
_KINDS: Mapping[str, Literal["expired", "canceled"]] = {"batch_expired": "expired", "batch_cancelled": "canceled"}


class OpenAIJobs(JobsApi):
    """See `JobsApi`."""

    most_calls = 50_000
    most_bytes = 190_000_000
    after = "after"

    def __init__(self, client: Any) -> None:
        super().__init__(client)
        self.batches = self.client.batches.with_raw_response
        self.stream = self.client.files.with_streaming_response.content

    def line(self, custom_id: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"custom_id": custom_id, "method": "POST", "url": ENDPOINT, "body": body}

    def upload(self, record: BatchRecord, lines: Iterable[Mapping[str, Any]]) -> str | None:
        with tempfile.TemporaryFile() as file:  # up to 190 MB that need not lie in memory
            try:
                for line in lines:
                    file.write(line_bytes(line) + b"\n")
                file.seek(0)
            except OSError as error:
                raise DataError(f"{tempfile.gettempdir()}: {write_problem(error)}") from error
            named = (f"{_MARK}-{record.batch}.jsonl", file)
            made = self.call(self.client.files.with_raw_response.create, file=named, purpose="batch")
        if (file_id := text_or_none(made.get("id"))) is None:
            raise JobCallError("the answer names no file", status=200)
        return file_id

    def create(self, record: BatchRecord, lines: Iterable[Mapping[str, Any]]) -> BatchJob:
        about = {"endpoint": ENDPOINT, "completion_window": "24h", "metadata": {_MARK: record.batch}}
        return self.read_job(self.call(self.batches.create, input_file_id=record.file, **about))

    def find(self, record: BatchRecord, known: Collection[str]) -> Search:
        for raw in self.listed():
            same_file = record.file is not None and pick(raw, "input_file_id") == record.file
            if same_file or pick(raw, "metadata", _MARK) == record.batch:
                return Search(self.read_job(raw))
            if (created := count_or_none(raw.get("created_at"))) is None:
                raise JobCallError("the answer describes no job", status=200)
            if created < record.when - CLOCK_SKEW:
                break
        return Search()

    def read_job(self, raw: Mapping[str, Any]) -> BatchJob:
        job_id, status = self.named(raw, "status")
        files = map(text_or_none, (raw.get("output_file_id"), raw.get("error_file_id")))
        outputs = tuple(file for file in files if file)
        completed, failed, calls = (
            count_or_none(pick(raw, "request_counts", name)) for name in ("completed", "failed", "total")
        )
        problem, crowded = _read_problems(pick(raw, "errors", "data"))
        ended = status in ("completed", "expired", "cancelled", "failed")
        return BatchJob(
            job_id,
            clean(status),
            "running" if not ended else "failed" if status == "failed" and not outputs else "ended",
            calls or None,  # 0 until the file of requests was looked through
            None if completed is None or failed is None else completed + failed,
            completed,
            "expired" if status == "expired" else "canceled" if status == "cancelled" else "missing",
            outputs,
            problem,
            crowded,
        )

    def read_result(self, line: Mapping[str, Any] | None) -> Result | None:
        """Read a line of either file: a `response` with its status, or an `error`."""
        custom_id = text_or_none(pick(line, "custom_id"))
        if custom_id is None:
            return None
        status = count_or_none(pick(line, "response", "status_code"))
        if status is not None:
            body, request_id = (pick(line, "response", name) for name in ("body", "request_id"))
            return Result(
                custom_id, "succeeded" if status == 200 else "errored", body, status, text_or_none(request_id)
            )
        code = text_or_none(pick(line, "error", "code"))
        if code is None:
            return None
        # An error without a response is that of the batch, such as `request_timeout`: treated as a server error.
        return Result(custom_id, _KINDS.get(code, "errored"), {"error": pick(line, "error")}, 500)


def _read_problems(errors: object) -> tuple[str, bool]:
    """Return the first errors of a refused job, and whether all of them report a full queue."""
    if not isinstance(errors, list):
        return "", False
    described = [
        (f"line {line}: " if (line := count_or_none(pick(error, "line"))) is not None else "")
        + (text_or_none(pick(error, "message")) or text_or_none(pick(error, "code")) or "no reason given")
        for error in errors[:_PROBLEMS]
    ]
    more = [f"{len(errors) - _PROBLEMS} more"] if len(errors) > _PROBLEMS else []
    crowded = bool(errors) and all(pick(error, "code") == "token_limit_exceeded" for error in errors)
    return "; ".join(described + more), crowded
