"""Submit requests as batch jobs: split by the provider's limits, reserved all or none, recorded, sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from h2htalk.chat.batch.provider import JobCallError, JobsApi, line_bytes
from h2htalk.chat.batch.results import Outcomes
from h2htalk.chat.calls import Call, FailedCall, WireFormat, outcomes
from h2htalk.chat.chat_options import ChatOptions
from h2htalk.chat.store.call_store import CostLimitError, StageCalls
from h2htalk.chat.store.records import BatchRecord, add
from h2htalk.errors import ConfigError, H2HTalkError, ModelCallError

_FIRST_PAUSE, _LONGEST_PAUSE = 5.0, 60.0  # seconds between tries to submit
_LONGEST_ID = "0" * 12 + "-" + "9" * 9  # of `BatchRecord.custom_id`: jobs are measured before they have marks


@dataclass(frozen=True, slots=True)
class Submitter:
    """Submits jobs; `batch_runner` waits for them.

    Attributes:
        outcomes: knows the requests, and how often each was asked for.
        pause: waits so many seconds between two tries to submit.
    """

    jobs: JobsApi
    wire: WireFormat
    options: ChatOptions
    calls: StageCalls
    outcomes: Outcomes
    pause: Callable[[float], None]

    def submit(self, places: Sequence[int], clock: Callable[[], float]) -> None:
        """Submit jobs for the requests at these indexes.

        A job that may or may not exist stays `sending` in the store.

        Raises:
            CostLimitError: they might exceed the limit; nothing was sent. (Once others have their outcomes, these
                requests fail with `max_cost` instead.)
            ConfigError, ModelCallError: the provider refuses.
        """
        chunks = self._split(self._calls_for(places))
        try:
            records = self.calls.plan([[(call, self.wire.bound(call)) for call in chunk] for chunk in chunks], clock())
        except CostLimitError as error:
            self._take_over_limit(chunks, error)
            return
        try:
            for record, chunk in zip(records, chunks, strict=True):
                self.outcomes.asked(record)
                self._send(record, chunk, clock)
        except H2HTalkError:
            # Jobs that were not sent yet. Those that Ctrl-C or a kill leaves are resolved by the next run.
            for record in self.calls.open_jobs():
                if record.state == "planned":
                    self.calls.abandon(record, "refused")
            raise

    def _take_over_limit(self, chunks: Sequence[Sequence[Call]], error: CostLimitError) -> None:
        if not any(self.outcomes.tries.values()):
            raise CostLimitError(f"{error}; nothing of the batch was sent")
        for chunk in chunks:
            for call in chunk:
                found = outcomes(FailedCall("max_cost", str(error), "free"), call, self._tries(call))
                self.outcomes.give(call, found)

    def _tries(self, call: Call) -> int:
        return max(self.outcomes.tries[index] for index in call.indexes)

    def _calls_for(self, places: Sequence[int]) -> list[Call]:
        """The calls for these requests, with their places among all."""
        requests = self.outcomes.requests
        calls = self.wire.calls([requests[place] for place in places])
        return [replace(call, indexes=tuple(places[index] for index in call.indexes)) for call in calls]

    def _split(self, calls: Sequence[Call]) -> list[list[Call]]:
        """Calls in order, in as few jobs as the provider's limits allow."""
        chunks: list[list[Call]] = [[]]
        size = 0
        for call in calls:
            body = self.wire.body(call, batch=True)
            length = len(line_bytes(self.jobs.line(_LONGEST_ID, body))) + 1
            full = len(chunks[-1]) >= self.jobs.most_calls or size + length > self.jobs.most_bytes
            if chunks[-1] and full:
                chunks.append([])
                size = 0
            chunks[-1].append(call)
            size += length
        return chunks

    def _lines(self, record: BatchRecord, calls: Sequence[Call]) -> Iterator[Mapping[str, Any]]:
        for number, call in enumerate(calls):
            yield self.jobs.line(record.custom_id(number), self.wire.body(call, batch=True))

    def _send(
        self,
        record: BatchRecord,
        calls: Sequence[Call],
        clock: Callable[[], float],
    ) -> None:
        """Submit one job. Only refusals are retried here; after any other error the job may exist."""
        worst = add(*(call.worst for call in self.calls.store.books.calls_of(record).values()))
        deadline = clock() + self.options.deadline
        tries = 0
        while True:
            tries += 1
            sending = False
            try:
                if record.file is None and (file := self.jobs.upload(record, self._lines(record, calls))):
                    record = self.calls.note(record, "uploaded", file=file)
                after = self.jobs.newest()
                record = self.calls.note(record, "sending", when=clock(), after=after, worst_usd=worst)
                sending = True
                job = self.jobs.create(record, self._lines(record, calls))
                self.calls.note(record, "submitted", provider_id=job.id)
                return
            except JobCallError as error:
                if sending and not _is_refusal(error):
                    return
                failed = self._read(error)
            pause = max(min(_FIRST_PAUSE * 2 ** (tries - 1), _LONGEST_PAUSE), failed.wait or 0.0)
            again = failed.retry and failed.fatal is None and tries < self.options.attempts
            if not again or clock() + pause > deadline:
                self.calls.abandon(record, failed.reason, why=failed.message)
                raise _advice(failed, pause if again else 0.0)
            self.pause(pause)

    def _read(self, error: JobCallError) -> FailedCall:
        if error.status is None or error.status == 200:
            return FailedCall("connection", error.message, "free", retry=True)
        return self.wire.read_error(error.status, error.body, error.headers)


def _is_refusal(error: JobCallError) -> bool:
    """Whether a job certainly does not exist: nothing was sent, or the API refused it. A server that broke may have
    created it before."""
    if error.status is None:
        return not error.reached
    return (400 <= error.status < 500 and error.status not in (408, 499)) or error.status == 529


def _advice(failed: FailedCall, pause: float) -> H2HTalkError:
    if failed.fatal is not None or not failed.retry:
        return ConfigError(f"the batch was refused, nothing was charged: {failed.fatal or failed.message}")
    wait = f", which asks to wait {pause:,.0f} s" if pause > _LONGEST_PAUSE else ""
    advice = "start again later"
    if failed.reason == "connection":
        advice = "check the connection, its proxy and the base URL in the environment, then start again"
    return ModelCallError(f"the batch could not be submitted: {failed.message}{wait}; {advice}")
