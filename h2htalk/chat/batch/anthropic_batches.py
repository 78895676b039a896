"""Anthropic's Message Batches: one call submits all requests, one streams all results.

Half the price, up to 24 hours, 100,000 requests and 256 MB a job; results are kept for 29 days. A job holds nothing of
ours but the `custom_id` of each request, which only its results show: a job whose id never arrived is searched for
among the later ones by the number of its requests.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Literal

from h2htalk.chat.batch.provider import (
    CLOCK_SKEW,
    BatchJob,
    JobCallError,
    JobsApi,
    Result,
    Search,
    count_or_none,
    pick,
    text_or_none,
)
from h2htalk.chat.provider_errors import clean
from h2htalk.chat.store.records import BatchRecord

_COUNTS = ("processing", "succeeded", "errored", "canceled", "expired")
_KINDS: Mapping[str, Literal["expired", "canceled"]] = {"canceled": "canceled", "expired": "expired"}


class AnthropicJobs(JobsApi):
    """See `JobsApi`."""

    most_calls = 100_000
    most_bytes = 240_000_000
    after = "after_id"

    def __init__(self, client: Any) -> None:
        super().__init__(client)
        self.batches = self.client.messages.batches.with_raw_response
        self.stream = self.client.messages.batches.with_streaming_response.results

    def line(self, custom_id: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"custom_id": custom_id, "params": body}

    def newest(self) -> str | None:
        return next((self.read_job(raw).id for raw in self.listed(limit=1)), None)

    def create(self, record: BatchRecord, lines: Iterable[Mapping[str, Any]]) -> BatchJob:
        return self.read_job(self.call(self.batches.create, requests=list(lines)))

    def find(self, record: BatchRecord, known: Collection[str]) -> Search:
        running, unreadable = [], []
        for listed in list(self._candidates(record, known)):
            # The list may be out of date.
            job = listed if listed.state == "ended" else self.retrieve(listed.id)
            if job.state == "running":
                running.append(job.id)
                continue
            ours = self._is_ours(job, record)
            if ours:
                return Search(job)
            if ours is None:
                unreadable.append(job.id)
        return Search(None, tuple(running), tuple(unreadable))

    def _candidates(self, record: BatchRecord, known: Collection[str]) -> Iterator[BatchJob]:
        """Jobs of the same number of calls that may have been made when ours was sent."""
        for raw in self.listed():
            job = self.read_job(raw)
            try:
                age = record.when - datetime.fromisoformat(str(raw.get("created_at"))).timestamp()
            except ValueError:
                raise JobCallError("the answer describes no job", status=200) from None
            # Made before ours. The time is for the case that the one before ours was deleted since.
            if job.id == record.after or age > CLOCK_SKEW:
                return
            if job.calls == len(record.calls) and job.id not in known and age > -CLOCK_SKEW:
                yield job

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
            raise JobCallError("the job's results are no longer kept", status=404)
        yield from super().results(job)

    def read_job(self, raw: Mapping[str, Any]) -> BatchJob:
        job_id, status = self.named(raw, "processing_status")
        counts = {
            name: number for name in _COUNTS if (number := count_or_none(pick(raw, "request_counts", name))) is not None
        }
        calls = sum(counts.values()) if len(counts) == len(_COUNTS) else None
        return BatchJob(
            job_id,
            clean(status),
            "ended" if status == "ended" else "running",
            calls,
            None if calls is None else calls - counts["processing"],
            counts.get("succeeded"),
            outputs=(job_id,) if raw.get("results_url") and raw.get("archived_at") is None else (),
        )

    def read_result(self, line: Mapping[str, Any] | None) -> Result | None:
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
