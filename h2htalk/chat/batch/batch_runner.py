"""Answer requests by batch jobs: half the price, hours to wait, and no job lost or paid twice after a kill.

Each step is recorded in the call store before it is made, so that a restart knows the state of every job:

planned     nothing was sent: its calls are free, and are planned again
sending     the job may exist: it is searched for; where its existence stays unknown, its calls are possibly paid
submitted   the job is polled by its id and its results are read, repeatedly if need be: reading costs nothing

What is not there yet is no loss: a job of some minutes that nobody knows, or results of a job that its provider still
keeps, are asked for again for a while. Then the run ends without them, and the next one asks the same job. A job
continues at the provider when the run ends; jobs are never cancelled.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from h2htalk.chat.batch.job_apis import BatchJob, JobCallError, JobsApi, Result, line_bytes
from h2htalk.chat.engines import ChatOptions
from h2htalk.chat.error_bodies import clean
from h2htalk.chat.prices import add, dollars_text
from h2htalk.chat.protocol import (
    Billing,
    Call,
    CallOutcome,
    FailedCall,
    OnDone,
    Outcome,
    Reply,
    Request,
    Sampling,
)
from h2htalk.chat.store.call_records import BatchRecord, PaidCall
from h2htalk.chat.store.stage_calls import UNSENT, CostLimitError, StageCalls
from h2htalk.chat.wire_formats import WireFormat, outcomes
from h2htalk.data.responses import SampleKey
from h2htalk.errors import ConfigError, H2HTalkError, ModelCallError, counted
from h2htalk.text.escaping import printable

FIRST_POLL, LONGEST_POLL = (
    5.0,
    60.0,
)  # seconds between two polls, or two tries to submit: growing from call to call
SETTLE = 60.0  # seconds after which a new job must be in the provider's list
PATIENCE = 24 * 3600.0  # seconds of consecutive network errors that are waited out
RESULTS_WAIT = 15 * 60.0  # seconds for which results that are not there yet are asked for again
_LOG_EVERY = 300.0  # seconds between two lines about the same status
_LONGEST_ID = "0" * 12 + "-" + "9" * 9  # names of calls: jobs are measured before they have marks
_LEFTOVER = {
    "expired": FailedCall(
        "batch_expired", "the batch's time was over before this call was computed", "free", True
    ),
    "canceled": FailedCall(
        "canceled",
        "the batch was cancelled before this call was computed; the same command asks again",
        "free",
    ),
    "missing": FailedCall(
        "missing_result", "the batch ended without a result for this call", "possibly_paid"
    ),
}


@dataclass(slots=True)
class BatchRun:
    """Answers all requests by batch jobs.

    Attributes:
        positions: the positions of the requests, by id and sample.
        tries: how many batches asked for each.
        fruitless: jobs in a row without results.
        errors_since: time of the first of the current network errors.
        hold: seconds that the API asks the client to wait.
        late_since: by job, the time of the first answer without what must be there.
        postponed: jobs that this run asks no more, and the next one does.
        refused: calls, in the jobs so far, of which the provider refuses a parameter.
        printed: the status that was printed last, and when.
    """

    jobs: JobsApi
    wire: WireFormat
    requests: Sequence[Request]
    options: ChatOptions
    calls: StageCalls
    on_done: OnDone | None = None
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.time
    positions: dict[SampleKey, int] = field(default_factory=dict)
    done: dict[SampleKey, Outcome] = field(default_factory=dict)
    tries: Counter[SampleKey] = field(default_factory=Counter)
    fruitless: int = 0
    errors_since: float | None = None
    hold: float = 0.0
    late_since: dict[str, float] = field(default_factory=dict)
    postponed: set[str] = field(default_factory=set)
    refused: list[tuple[Call, FailedCall]] = field(default_factory=list)
    printed: tuple[str, float] = ("", float("-inf"))

    def run(self) -> list[Outcome]:
        """Collect jobs that an earlier run left open, then make new ones, until every request has an outcome.

        Raises ConfigError where the batch might pass the limit of costs (nothing is sent then), the provider refuses
        the job, or the store holds an open job of another model; ModelCallError where the provider cannot be used. A
        job that runs goes on; the next run attaches to it. The requests of a job whose results do not come fail with
        `results_late`: the job stays open, and the next run asks it again. Raises RefusedParameterError where a
        parameter is refused and no reply arrived: nothing was charged, and no outcome is given.
        """
        self.calls.open(batch=True)
        for index, request in enumerate(self.requests):
            self.positions[request.id, request.sample] = index
        if len(self.positions) < len(self.requests):
            raise ConfigError(
                "a batch cannot ask twice for the same sample of an item: number the samples"
            )
        for record in self.calls.open_jobs():
            if record.model != self.wire.model:
                job = f"{self.calls.store.path} has the open batch job {record.label} of {record.model}"
                raise ConfigError(f"{job}: collect it with that model, or name another folder")
            if record.state != "planned":
                self._count_tries(record)
        try:
            self._wait_for_all()
            self._resolve_refused()
            while missing := self._missing():
                self._submit(list(self.wire.calls(missing)))
                self._wait_for_all()
                self._resolve_refused()
        except KeyboardInterrupt:
            running = [job.label for job in self.calls.open_jobs() if job.state != "planned"]
            if running:
                plural = "s" if len(running) > 1 else ""
                jobs = f"batch job{plural} {', '.join(running)}"
                _print(f"{jobs} still running: the same command attaches to it again")
            raise
        return [self.done[key] for key in self.positions]

    def _missing(self) -> list[Request]:
        """Return the requests without an outcome."""
        return [
            self.requests[index] for key, index in self.positions.items() if key not in self.done
        ]

    def _count_tries(self, record: BatchRecord, times: int = 1) -> None:
        """Count a job as a try of each of its items (-1: it was none after all)."""
        items = set[SampleKey]()
        for call in self.calls.store.calls_of(record):
            items.update(call.items)
        self.tries.update({item: times for item in items if item in self.positions})

    # --- Submitting ---------------------------------------------------------------------------------------------

    def _submit(self, calls: Sequence[Call]) -> None:
        """Submit jobs of these calls. Where they might exceed the limit none is sent: CostLimitError, or, once others
        have their outcomes, they fail with `max_cost`."""
        chunks = self._split(calls)
        try:
            planned = []
            for chunk in chunks:
                planned.append([(call, self.wire.bound(call)) for call in chunk])
            records = self.calls.plan(planned, self.clock())
        except CostLimitError as error:
            if not any(self.tries.values()):
                raise CostLimitError(f"{error}; nothing of the batch was sent") from error
            for call in calls:
                self._deliver(call, FailedCall("max_cost", str(error), "free"))
            return
        try:
            for record, chunk in zip(records, chunks, strict=True):
                self._count_tries(record)
                self._send(record, chunk)
        except H2HTalkError:
            # Jobs that were not sent yet. Those that Ctrl-C or a kill leaves are resolved by the next run.
            for record in self.calls.open_jobs():
                if record.state == "planned":
                    self.calls.abandon(record, "refused")
            raise

    def _split(self, calls: Sequence[Call]) -> list[list[Call]]:
        """Calls in order, in as few jobs as the provider's limits allow."""
        chunks: list[list[Call]] = [[]]
        size = 0
        for call in calls:
            line = self.jobs.line(_LONGEST_ID, self.wire.body(call, batch=True))
            length = len(line_bytes(line)) + 1
            is_full = (
                len(chunks[-1]) >= self.jobs.most_calls or size + length > self.jobs.most_bytes
            )
            if chunks[-1] and is_full:
                chunks.append([])
                size = 0
            chunks[-1].append(call)
            size += length
        return chunks

    def _send(self, record: BatchRecord, calls: Sequence[Call]) -> None:
        """Submit one job. Only refusals are retried here; after any other error the job may exist."""
        deadline = self.clock() + self.options.deadline
        record_event = self.calls.store.record_job_event

        def lines() -> Iterator[Mapping[str, Any]]:
            for number, call in enumerate(calls):
                yield self.jobs.line(f"{record.batch}-{number}", self.wire.body(call, batch=True))

        for tries in count(1):
            sending = False
            try:
                if record.file is None:
                    file = self.jobs.upload(record, lines())
                    if file:
                        record = record_event(record, "uploaded", file=file)
                now = self.clock()
                record = record_event(record, "sending", when=now, after=self.jobs.newest())
                sending = True
                job = self.jobs.create(record, lines())
                record_event(record, "submitted", provider_id=job.id)
                return
            except JobCallError as error:
                if sending and not error.refused:
                    return
                failed = error.failed
            pause = max(min(FIRST_POLL * 2 ** (tries - 1), LONGEST_POLL), failed.wait or 0.0)
            retried = failed.retry and failed.fatal is None
            if not retried or tries >= self.options.attempts or self.clock() + pause > deadline:
                self.calls.abandon(record, failed.reason, why=failed.message)
                if not retried:
                    raise ConfigError(
                        f"the batch was refused, nothing was charged: {failed.fatal or failed.message}"
                    )
                advice = "check the connection, its proxy and the base URL in the environment, or start again later"
                raise ModelCallError(
                    f"the batch could not be submitted: {failed.message}; {advice}"
                )
            self.sleep(pause)

    # --- Waiting ------------------------------------------------------------------------------------------------

    def _wait_for_all(self) -> None:
        pause = FIRST_POLL
        while records := self._awaited_jobs():
            if sum(self._step(record) for record in records):
                pause = FIRST_POLL
                continue
            self.sleep(max(pause, self.hold))  # longer where the API asks for it
            self.hold = 0.0
            pause = min(1.5 * pause, LONGEST_POLL)

    def _awaited_jobs(self) -> list[BatchRecord]:
        """Return the open jobs that this run still asks."""
        return [job for job in self.calls.open_jobs() if job.batch not in self.postponed]

    def _step(self, record: BatchRecord) -> bool:
        """Advance one job; returns whether its state changed."""
        if record.state == "planned":
            self.calls.abandon(record, UNSENT)
            return True
        try:
            moved = self._look_for(record) if record.state == "sending" else self._poll(record)
        except JobCallError as error:
            if error.status in (404, 410) and self._may_be_late(record):
                return self._wait_for(record, f"not known yet ({error.failed.message})")
            self._wait_out(error, record)
            return False
        self.errors_since = None
        return moved

    def _poll(self, record: BatchRecord) -> bool:
        assert record.job is not None
        job = self.jobs.retrieve(record.job)
        if job.state == "running":
            self.late_since.pop(record.batch, None)
            self._show_progress(record, job)
            return False
        if job.state == "failed":
            self._take_refusal(record, job)
            return True
        if job.archived or job.late:
            return self._miss_results(record, f"the job has {job.status}", job.archived)
        return self._collect(record, job)

    def _show_progress(self, record: BatchRecord, job: BatchJob) -> None:
        finished = "?" if job.finished is None else f"{job.finished:,}"
        counts = f"batch  {finished}/{len(record.numbers):,}  {job.status}"
        minutes = max(self.clock() - record.when, 0.0) / 60
        text = f"{counts}  {minutes:,.0f} min"
        worst = add(*(call.worst for call in self.calls.store.open_calls(record)))
        if worst:
            text += f"  at most {dollars_text(worst, True)} US dollars at batch prices"
        self._show(f"{text}  {job.id}", f"{job.id} {counts}")

    def _look_for(self, record: BatchRecord) -> bool:
        """Search for a job that may exist, and attach to it; returns whether the search ended."""
        our_jobs = {job.job for job in self.calls.store.jobs.values() if job.job is not None}
        job, running, unreadable = self.jobs.find(record, our_jobs)
        if job is not None:
            self.calls.store.record_job_event(record, "submitted", provider_id=job.id)
        elif running or abs(self.clock() - record.when) < SETTLE:
            awaited = ", ".join(running) or "the list of jobs"
            text = f"batch {record.batch}: searching for its job: waiting for {awaited}"
            self._show(text, record.batch)
            return False
        elif unreadable:
            return self._miss_results(record, f"it may be {' or '.join(unreadable)}")
        else:
            self._count_tries(record, -1)
            self._abandon(record, "never submitted", "free")
        return True

    def _abandon(
        self, record: BatchRecord, reason: str, billing: Billing = "possibly_paid"
    ) -> None:
        """Give up a job that gives no results; its missing items are submitted again."""
        if billing == "possibly_paid":
            calls = counted(len(self.calls.store.open_calls(record)), "call")
            resent = f"{calls} count as possibly paid, and are sent and paid again"
            _print(f"batch job {record.label}: {reason}; {resent}")
        self.calls.abandon(record, reason, billing)
        self.fruitless += 1
        if self.fruitless >= self.options.attempts:
            jobs = f"{self.fruitless} batch jobs in a row gave no results, the last one: {reason}"
            raise ModelCallError(f"{jobs}; see the provider's status page, then start again")

    def _take_refusal(self, record: BatchRecord, job: BatchJob) -> None:
        """Handle a job that was refused before it began: nothing was computed."""
        problem = clean(job.problem) or job.status
        self.calls.abandon(record, "refused", why=problem)
        if job.crowded and any(record.state == "submitted" for record in self._awaited_jobs()):
            self._count_tries(record, -1)  # submitted again when the others have ended
            return
        advice = "correct that"
        if job.crowded:
            advice = "wait until other batches of the account have ended"
        raise ConfigError(
            f"batch job {job.id} was refused, nothing was charged: {problem}; {advice}, then start again"
        )

    def _wait_out(self, error: JobCallError, record: BatchRecord) -> None:
        """Note an error; the caller asks again after a pause. Raises ModelCallError for one that lasts."""
        not_lost = f"batch job {record.label} is not lost, the same command attaches to it"
        if error.status in (404, 410):
            job = f"no batch job {record.label} is known to this key (HTTP {error.status})"
            advice = self._advice_to_give_up(record)
            raise ModelCallError(f"{job}: use the key of the workspace that made it; {advice}")
        failed = error.failed
        if failed.fatal or not failed.retry:
            raise ModelCallError(f"{failed.fatal or failed.message}; {not_lost}")
        self.hold = min(failed.wait or 0.0, LONGEST_POLL)
        if self.errors_since is None:
            self.errors_since = self.clock()
        if self.clock() - self.errors_since >= PATIENCE:
            hours = f"{PATIENCE / 3600:.3g} hours"
            raise ModelCallError(f"no usable answer for {hours} ({failed.message}); {not_lost}")
        self._show(f"batch job {record.label}: {failed.message}; asking again", failed.message)

    def _advice_to_give_up(self, record: BatchRecord) -> str:
        lines = f'the lines with "job":"{record.batch}" from {self.calls.store.path}'
        return f"to give it up, remove {lines}"

    # --- What is not there yet ----------------------------------------------------------------------------------

    def _may_be_late(self, record: BatchRecord) -> bool:
        """Whether a job that nobody knows may be one that a server has not heard of yet."""
        is_new = self.clock() - record.when < RESULTS_WAIT
        return record.state == "submitted" and (is_new or record.batch in self.late_since)

    def _miss_results(self, record: BatchRecord, why: str, archived: bool = False) -> bool:
        """Wait for results that are not there, or give up a job that is older than its provider keeps them; returns
        whether the state of the job changed."""
        if archived or self.clock() - record.when > self.jobs.retention:
            self._abandon(record, f"its results are no longer kept ({why})")
            return True
        return self._wait_for(record, f"its results are not there yet ({why})")

    def _wait_for(self, record: BatchRecord, problem: str) -> bool:
        """Have the caller ask again after a pause, for `RESULTS_WAIT` seconds; then let the job's requests fail, and
        leave its calls open for the next run. Returns whether the wait has ended."""
        if self._is_awaited(record, problem):
            return False
        job = f"batch job {record.label}: {problem}"
        self.postponed.add(record.batch)
        advice = "the same command asks this job again and pays for nothing"
        message = f"{job} after {RESULTS_WAIT / 60:.3g} minutes; {advice}"
        _print(f"{message}; {self._advice_to_give_up(record)}")
        for paid_call in self.calls.store.open_calls(record):
            failed = FailedCall("results_late", message, "possibly_paid")
            self._deliver(_call_of(paid_call), failed)
        return True

    def _is_awaited(self, record: BatchRecord, problem: str) -> bool:
        """Whether what a job lacks is asked for again, for `RESULTS_WAIT` seconds since it was lacking first."""
        since = self.late_since.setdefault(record.batch, self.clock())
        if self.clock() - since >= RESULTS_WAIT:
            return False
        self._show(f"batch job {record.label}: {problem}; asking again", problem)
        return True

    def _show(self, text: str, status: str) -> None:
        """Print `text` when `status` is new, or every five minutes."""
        last_status, last_time = self.printed
        if status != last_status or self.clock() - last_time >= _LOG_EVERY:
            self.printed = (status, self.clock())
            _print(text)

    # --- Collecting ---------------------------------------------------------------------------------------------

    def _collect(self, record: BatchRecord, job: BatchJob) -> bool:
        """Take all results of an ended job, in any order: each settles its call, then is delivered. Returns whether
        the state of the job changed: not where its results are not there yet.

        All are read again after a broken stream; the calls that were settled and delivered before stay so.
        """
        counts = Counter[str]()
        fatal = None
        missing: dict[str, PaidCall] = {}
        for number, paid_call in enumerate(self.calls.store.calls_of(record)):
            missing[f"{record.batch}-{number}"] = paid_call
        try:
            for result in self.jobs.results(job):
                if result is None or result.custom_id not in missing:
                    counts["ignored"] += 1
                    continue
                counts[result.kind] += 1
                paid_call = missing.pop(result.custom_id)
                call = _call_of(paid_call)
                outcome = self._read(result, call)
                self._settle(paid_call, call, outcome)
                if isinstance(outcome, FailedCall) and not outcome.parameter:
                    fatal = outcome.fatal or fatal
        except JobCallError as error:
            if error.status not in (404, 410):
                raise
            return self._miss_results(record, error.failed.message)
        arrived = counts["succeeded"] + counts["ignored"]
        if missing and job.succeeded is not None and arrived < job.succeeded:
            # A proxy cut the results, or the file is not whole yet: reading it again is free.
            share = f"{arrived:,} of {job.succeeded:,} replies that the provider counts are there"
            if self._is_awaited(record, share):
                return False
            calls = counted(len(missing), "call counts", "calls count")
            _print(f"batch job {record.label}: {share}; {calls} as possibly paid")
        # They were never computed where every reply that the provider counts arrived; else each may have been paid.
        complete = job.succeeded is not None and counts["succeeded"] >= job.succeeded
        failed = replace(_LEFTOVER[job.leftover], billing="free" if complete else "possibly_paid")
        for paid_call in missing.values():
            counts["missing"] += 1
            self._settle(paid_call, _call_of(paid_call), failed)
        self.calls.store.record_job_event(record, "collected", status=job.status, **counts)
        self.fruitless = 0
        if counts["ignored"]:
            ignored = f"ignored {counts['ignored']:,} results of other calls or repeated ones"
            _print(f"batch job {job.id}: {ignored}")
        if fatal and not counts["succeeded"]:
            raise ModelCallError(fatal)
        return True

    def _read(self, result: Result, call: Call) -> CallOutcome:
        if result.kind == "succeeded":
            return self.wire.read(result.body, call, result.request_id)
        if result.kind != "errored":
            return _LEFTOVER[result.kind]
        failed = self.wire.read_error(result.status, result.body, {}, self._sent(call))
        # A reply that the provider's filter blocked may have been written, so the API's rules hold for it.
        free = result.free and not failed.filtered
        request_id = failed.request_id or result.request_id
        return replace(failed, billing="free" if free else failed.billing, request_id=request_id)

    def _settle(self, paid_call: PaidCall, call: Call, outcome: CallOutcome) -> None:
        """Settle a call, unless it was settled before a kill; deliver its outcomes, or leave it to the next batch."""
        if paid_call.billing == "open":
            self.calls.settle(paid_call, outcome)
        if isinstance(outcome, FailedCall) and outcome.parameter:
            self.refused.append((call, outcome))
            return
        retried = isinstance(outcome, FailedCall) and outcome.retry
        if not retried or self._tries(call) >= self.options.attempts:
            self._deliver(call, outcome)

    def _sent(self, call: Call) -> Mapping[str, Any] | None:
        """Return the JSON of a stored call; None where one of its requests is not asked for now."""
        requests = []
        for request in call.requests:
            position = self.positions.get((request.id, request.sample))
            if position is None:
                return None
            requests.append(self.requests[position])
        return self.wire.body(replace(call, requests=tuple(requests)), batch=True)

    def _resolve_refused(self) -> None:
        """Raise RefusedParameterError where a parameter was refused and no reply arrived, once no job is left that asks
        in the same form; else deliver those calls as failed ones."""
        refused = self.refused
        self.refused = []
        answered = any(isinstance(outcome, Reply) for outcome in self.done.values())
        for call, failed in refused:
            refusal = self.wire.refusal(failed.parameter, failed.message)
            if not answered:
                raise refusal
            message = f"{refusal}; other calls that sent it were answered"
            self._deliver(call, replace(failed, message=message))

    def _tries(self, call: Call) -> int:
        return max(self.tries[request.id, request.sample] for request in call.requests)

    def _deliver(self, call: Call, call_outcome: CallOutcome) -> None:
        """Deliver the outcomes of a call that are still asked for."""
        outcomes_of_call = outcomes(call_outcome, call, self._tries(call))
        for request, outcome in zip(call.requests, outcomes_of_call, strict=True):
            key = (request.id, request.sample)
            if key in self.positions and key not in self.done:
                self.done[key] = outcome
                if self.on_done is not None:
                    self.on_done(self.positions[key], outcome)


def _call_of(paid_call: PaidCall) -> Call:
    """Return the call that a stored one was, without its prompts."""
    requests = [Request(paid_call.id, (), Sampling(), sample) for sample in paid_call.samples]
    return Call(indexes=(), requests=tuple(requests))


def _print(text: str) -> None:
    """Print a line on standard error, in place of the progress line of a terminal."""
    start = "\r\x1b[K" if sys.stderr.isatty() else ""
    print(start + printable(text), file=sys.stderr, flush=True)
