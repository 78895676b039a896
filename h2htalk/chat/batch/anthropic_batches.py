"""Anthropic's Message Batches: one call submits all requests, one streams all results.

Half the price, up to 24 hours, 100,000 requests and 256 MB a job; results are kept for 29 days. A job holds nothing of
ours but the `custom_id` of each request, which only its results show: a job whose id never arrived is searched for
among the later ones by the number of its requests.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

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
    pick,
    sdk_errors,
    text_or_none,
    total,
)
from h2htalk.chat.provider_errors import clean
from h2htalk.chat.store.records import BatchRecord

if TYPE_CHECKING:
    from anthropic import Anthropic
    from anthropic.types.messages import MessageBatch

_COUNTS = ("processing", "succeeded", "errored", "canceled", "expired")
_KINDS: dict[str, Kind] = {"canceled": "canceled", "expired": "expired"}
_SKEW = 48 * 3600.0  # seconds by which this machine's clock may differ from theirs


class AnthropicJobs:
    """See `JobsApi`. The client's own retries are switched off: a repeated `create` would be a second job."""

    most_calls = 100_000
    most_bytes = 240_000_000

    def __init__(self, client: Anthropic) -> None:
        import httpx2

        timeout = httpx2.Timeout(TRANSFER_TIMEOUT, connect=CONNECT_TIMEOUT)
        self._batches = client.with_options(max_retries=0, timeout=timeout).messages.batches

    def line(self, custom_id: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"custom_id": custom_id, "params": body}

    def upload(self, record: BatchRecord, lines: Iterable[Mapping[str, Any]]) -> str | None:
        return None  # the requests go with `create`

    def newest(self) -> str | None:
        import anthropic

        with sdk_errors(anthropic):
            for made in self._batches.list(limit=1).data:
                return _read_job(made).id
        return None

    def create(self, record: BatchRecord, lines: Iterable[Mapping[str, Any]]) -> BatchJob:
        import anthropic

        requests: Any = list(lines)
        with sdk_errors(anthropic):
            return _read_job(self._batches.create(requests=requests))

    def find(self, record: BatchRecord, known: Collection[str]) -> Search:
        import anthropic

        candidates: list[BatchJob] = []
        with sdk_errors(anthropic):
            for made in self._batches.list(limit=100):  # newest first, page after page
                job, age = _read_job(made), record.when - made.created_at.timestamp()
                # Made before ours. The time is for the case that the one before ours was deleted since.
                if job.id == record.after or age > _SKEW:
                    break
                if job.calls == len(record.calls) and job.id not in known and age > -_SKEW:
                    candidates.append(job)
        running, unreadable = [], []
        for listed in candidates:
            # The list may be out of date.
            job = listed if listed.state == "ended" else self.retrieve(listed.id)
            if job.state == "running":
                running.append(job)
                continue
            ours = self._is_ours(job, record)
            if ours:
                return Search(job)
            if ours is None:
                unreadable.append(job.id)
        return Search(None, tuple(running), tuple(unreadable))

    def _is_ours(self, job: BatchJob, record: BatchRecord) -> bool | None:
        """Whether the first result of an ended job has one of our names; None where it can no longer be read."""
        try:
            for result in self.results(job):
                if result is not None:
                    return record.number(result.custom_id) is not None
        except JobCallError as error:
            if error.status is None or error.status == 429 or error.status >= 500:
                raise
        return None

    def retrieve(self, job: str) -> BatchJob:
        import anthropic

        with sdk_errors(anthropic):
            return _read_job(self._batches.retrieve(job))

    def results(self, job: BatchJob) -> Iterator[Result | None]:
        import anthropic

        if not job.outputs:
            raise JobCallError("the job's results are no longer kept", status=404)
        with (
            sdk_errors(anthropic),
            # Read as bytes: the SDK's reader stops at the first line that is not JSON.
            self._batches.with_streaming_response.results(job.id) as response,
        ):
            for line in JsonLines(response.iter_bytes()):
                yield _read_result(line)


def _read_job(made: MessageBatch) -> BatchJob:
    """Read a job. The SDK accepts any answer, so every field is checked."""
    job_id = text_or_none(getattr(made, "id", None))
    status = text_or_none(getattr(made, "processing_status", None))
    if job_id is None or not job_id.isprintable() or status is None:
        raise JobCallError("the answer describes no job", status=200)
    counts = {name: count_or_none(getattr(getattr(made, "request_counts", None), name, None)) for name in _COUNTS}
    calls = total(list(counts.values()))
    return BatchJob(
        job_id,
        clean(status),
        "ended" if status == "ended" else "running",
        calls,
        None if calls is None else calls - (counts["processing"] or 0),
        counts["succeeded"],
        outputs=(job_id,) if made.results_url and made.archived_at is None else (),
    )


def _read_result(line: Mapping[str, Any] | None) -> Result | None:
    custom_id, kind = text_or_none(pick(line, "custom_id")), pick(line, "result", "type")
    if custom_id is None or not isinstance(kind, str):
        return None
    if kind == "succeeded":
        return Result(custom_id, "succeeded", pick(line, "result", "message"))
    if kind == "errored":
        error = pick(line, "result", "error")  # the body of an error as the live API sends it
        name = text_or_none(pick(error, "request_id"))
        return Result(custom_id, "errored", error, status=0, request_id=name, free=True)
    return Result(custom_id, _KINDS[kind]) if kind in _KINDS else None
