"""Answer requests by batch jobs: half the price, hours to wait, and no job lost or paid twice after a kill.

Each step is recorded in the call store before it is made, so that a restart knows the state of every job:

planned     nothing was sent: its calls are free, and are planned again
sending     the job may exist: it is searched for; where its existence stays unknown, its calls are possibly paid
submitted   the job is polled by its id and its results are read, repeatedly if need be: reading costs nothing

A job continues at the provider when the run ends; jobs are never cancelled.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any

from h2htalk.chat.batch.job_apis import BatchJob, JobCallError, JobsApi, Result, line_bytes
from h2htalk.chat.engines import ChatOptions
from h2htalk.chat.prices import add, dollars_text
from h2htalk.chat.protocol import Answer, Billing, Call, FailedCall, Found, OnDone, Outcome, Request, Sampling
from h2htalk.chat.store.call_store import UNSENT, BatchRecord, CostLimitError, PaidCall, StageCalls
from h2htalk.chat.wires import WireFormat, clean, outcomes
from h2htalk.data.responses import SampleKey
from h2htalk.errors import ConfigError, H2HTalkError, ModelCallError
from h2htalk.text.escaping import printable

FIRST_POLL, LONGEST_POLL = 5.0, 60.0  # seconds between two polls, or two tries to submit: growing from call to call
SETTLE = 60.0  # seconds after which a new job must be in the provider's list
PATIENCE = 24 * 3600.0  # seconds of consecutive network errors that are waited out
_LOG_EVERY = 300.0  # seconds between two lines about the same status
_LONGEST_ID = "0" * 12 + "-" + "9" * 9  # names of calls: jobs are measured before they have marks
_LEFTOVER = {
    "expired": FailedCall("batch_expired", "the batch's time was over before this call was computed", "free", True),
    "canceled": FailedCall(
        "canceled", "the batch was cancelled before this call was computed; the same command asks again", "free"
    ),
    "missing": FailedCall("missing_result", "the batch ended without a result for this call", "possibly_paid"),
}


@dataclass(slots=True)
class BatchRun:
    """Answers all requests by batch jobs. `places`: of the requests, by id and sample; `tries`: how many batches asked
    for each. `fruitless`: jobs in a row without results. `since`: time of the first of the current network errors.
    `hold`: seconds that the API asks the client to wait. `shown`: the status that was printed last, and when."""

    jobs: JobsApi
    wire: WireFormat
    requests: Sequence[Request]
    options: ChatOptions
    calls: StageCalls
    on_done: OnDone | None = None
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.time
    places: dict[SampleKey, int] = field(default_factory=dict)
    done: dict[SampleKey, Outcome] = field(default_factory=dict)
    tries: Counter[SampleKey] = field(default_factory=Counter)
    fruitless: int = 0
    since: float | None = None
    hold: float = 0.0
    shown: tuple[str, float] = ("", float("-inf"))

    def run(self) -> list[Outcome]:
        """Collect jobs that an earlier run left open, then make new ones, until every request has an outcome. Raises
        ConfigError where the batch might pass the limit of costs (nothing is sent then), the provider refuses the job,
        or the store holds an open job of another model; ModelCallError where the provider cannot be used. A job that
        runs goes on; the next run attaches to it."""
        self.calls.open(batch=True)
        self.places = {(r.id, r.sample): index for index, r in enumerate(self.requests)}
        if len(self.places) < len(self.requests):
            raise ConfigError("a batch cannot ask twice for the same sample of an item: number the samples")
        for record in self.calls.open_jobs():
            if record.model != self.wire.model:
                what = f"{self.calls.store.path} has the open batch job {record.label} of {record.model}"
                raise ConfigError(f"{what}: collect it with that model, or name another folder")
            if record.state != "planned":
                self._asked(record)
        try:
            self._wait_for_all()
            while missing := [place for key, place in self.places.items() if key not in self.done]:
                self._submit(list(self.wire.calls([self.requests[place] for place in missing])))
                self._wait_for_all()
        except KeyboardInterrupt:
            if running := ", ".join(one.label for one in self.calls.open_jobs() if one.state != "planned"):
                plural = "s" if "," in running else ""
                _say(f"batch job{plural} {running} still running: the same command attaches to it again")
            raise
        return [self.done[key] for key in self.places]

    def _asked(self, record: BatchRecord, times: int = 1) -> None:
        """Note that a job asks for these items (-1: it did not after all)."""
        items = (item for call in self.calls.store.calls_of(record) for item in call.items)
        self.tries.update(dict.fromkeys((item for item in items if item in self.places), times))

    # --- Submitting ---------------------------------------------------------------------------------------------

    def _submit(self, calls: Sequence[Call]) -> None:
        """Submit jobs of these calls. Where they might exceed the limit none is sent: CostLimitError, or, once others
        have their outcomes, they fail with `max_cost`."""
        chunks = self._split(calls)
        try:
            planned = [[(call, self.wire.bound(call)) for call in chunk] for chunk in chunks]
            records = self.calls.plan(planned, self.clock())
        except CostLimitError as error:
            if not any(self.tries.values()):
                raise CostLimitError(f"{error}; nothing of the batch was sent") from error
            for call in calls:
                self._give(call, FailedCall("max_cost", str(error), "free"))
            return
        try:
            for record, chunk in zip(records, chunks, strict=True):
                self._asked(record)
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
            length = len(line_bytes(self.jobs.line(_LONGEST_ID, self.wire.body(call, batch=True)))) + 1
            if chunks[-1] and (len(chunks[-1]) >= self.jobs.most_calls or size + length > self.jobs.most_bytes):
                chunks.append([])
                size = 0
            chunks[-1].append(call)
            size += length
        return chunks

    def _send(self, record: BatchRecord, calls: Sequence[Call]) -> None:
        """Submit one job. Only refusals are retried here; after any other error the job may exist."""
        deadline, note = self.clock() + self.options.deadline, self.calls.store.note

        def lines() -> Iterator[Mapping[str, Any]]:
            for number, call in enumerate(calls):
                yield self.jobs.line(f"{record.batch}-{number}", self.wire.body(call, batch=True))

        for tries in count(1):
            sending = False
            try:
                if record.file is None and (file := self.jobs.upload(record, lines())):
                    record = note(record, "uploaded", file=file)
                record = note(record, "sending", when=self.clock(), after=self.jobs.newest())
                sending = True
                note(record, "submitted", provider_id=self.jobs.create(record, lines()).id)
                return
            except JobCallError as error:
                if sending and not error.refused:
                    return
                failed = error.failed
            pause = max(min(FIRST_POLL * 2 ** (tries - 1), LONGEST_POLL), failed.wait or 0.0)
            again = failed.retry and failed.fatal is None
            if not again or tries >= self.options.attempts or self.clock() + pause > deadline:
                self.calls.abandon(record, failed.reason, why=failed.message)
                if not again:
                    raise ConfigError(f"the batch was refused, nothing was charged: {failed.fatal or failed.message}")
                advice = "check the connection, its proxy and the base URL in the environment, or start again later"
                raise ModelCallError(f"the batch could not be submitted: {failed.message}; {advice}")
            self.sleep(pause)

    # --- Waiting ------------------------------------------------------------------------------------------------

    def _wait_for_all(self) -> None:
        pause = FIRST_POLL
        while records := self.calls.open_jobs():
            if sum(self._step(record) for record in records):
                pause = FIRST_POLL
                continue
            self.sleep(max(pause, self.hold))  # longer where the API asks for it
            self.hold, pause = 0.0, min(1.5 * pause, LONGEST_POLL)

    def _step(self, record: BatchRecord) -> bool:
        """Advance one job; returns whether its state changed."""
        if record.state == "planned":
            self.calls.abandon(record, UNSENT)
            return True
        try:
            moved = self._look_for(record) if record.state == "sending" else self._poll(record)
        except JobCallError as error:
            self._endure(error, record)
            return False
        self.since = None
        return moved

    def _poll(self, record: BatchRecord) -> bool:
        assert record.job is not None
        job = self.jobs.retrieve(record.job)
        if job.state == "running":
            worst = add(*(call.worst for call in self.calls.store.calls_of(record) if call.billing == "open"))
            money = f"  at most {dollars_text(worst, True)} US dollars at batch prices" if worst else ""
            minutes = max(self.clock() - record.when, 0.0) / 60
            done = "?" if job.finished is None else f"{job.finished:,}"
            counts = f"batch  {done}/{len(record.numbers):,}  {job.status}"
            self._show(f"{counts}  {minutes:,.0f} min{money}  {job.id}", f"{job.id} {counts}")
        elif job.state == "failed":
            self._take_refusal(record, job)
        else:
            self._collect(record, job)
        return job.state != "running"

    def _look_for(self, record: BatchRecord) -> bool:
        """Search for a job that may exist, and attach to it; returns whether the search ended."""
        known = {other.job for other in self.calls.store.jobs.values() if other.job is not None}
        job, running, unreadable = self.jobs.find(record, known)
        if job is not None:
            self.calls.store.note(record, "submitted", provider_id=job.id)
        elif running or abs(self.clock() - record.when) < SETTLE:
            what = ", ".join(running) or "the list of jobs"
            self._show(f"batch {record.batch}: searching for its job: waiting for {what}", record.batch)
            return False
        elif unreadable:
            self._lose(record, f"may be one of {', '.join(unreadable)}, whose results are no longer kept")
        else:
            self._asked(record, -1)
            self._lose(record, "never submitted", "free")
        return True

    def _lose(self, record: BatchRecord, reason: str, billing: Billing = "possibly_paid") -> None:
        """Give up a job that gives no results; its missing items are submitted again."""
        self.calls.abandon(record, reason, billing)
        self.fruitless += 1
        if self.fruitless >= self.options.attempts:
            what = f"{self.fruitless} batch jobs in a row gave no results, the last one: {reason}"
            raise ModelCallError(f"{what}; see the provider's status page, then start again")

    def _take_refusal(self, record: BatchRecord, job: BatchJob) -> None:
        """Handle a job that was refused before it began: nothing was computed."""
        problem = clean(job.problem) or job.status
        self.calls.abandon(record, "refused", why=problem)
        if job.crowded and any(other.state == "submitted" for other in self.calls.open_jobs()):
            self._asked(record, -1)  # submitted again when the others have ended
            return
        advice = "wait until other batches of the account have ended" if job.crowded else "correct that"
        raise ConfigError(f"batch job {job.id} was refused, nothing was charged: {problem}; {advice}, then start again")

    def _endure(self, error: JobCallError, record: BatchRecord) -> None:
        """Note an error; the caller asks again after a pause. Raises ModelCallError for one that lasts."""
        goes_on = f"batch job {record.label} is not lost, the same command attaches to it"
        if error.status in (404, 410):
            give_up = f'to give it up, remove the lines with "job":"{record.batch}" from {self.calls.store.path}'
            what = f"no batch job {record.label} is known to this key (HTTP {error.status})"
            raise ModelCallError(f"{what}: use the key of the workspace that made it; {give_up}")
        failed = error.failed
        if failed.fatal or not failed.retry:
            raise ModelCallError(f"{failed.fatal or failed.message}; {goes_on}")
        self.hold = min(failed.wait or 0.0, LONGEST_POLL)
        self.since = self.clock() if self.since is None else self.since
        if self.clock() - self.since >= PATIENCE:
            raise ModelCallError(f"no usable answer for {PATIENCE / 3600:.3g} hours ({failed.message}); {goes_on}")
        self._show(f"batch job {record.label}: {failed.message}; asking again", failed.message)

    def _show(self, text: str, status: str) -> None:
        """Print `text` when `status` is new, or every five minutes."""
        if status != self.shown[0] or self.clock() - self.shown[1] >= _LOG_EVERY:
            self.shown = status, self.clock()
            _say(text)

    # --- Collecting ---------------------------------------------------------------------------------------------

    def _collect(self, record: BatchRecord, job: BatchJob) -> None:
        """Take all results of an ended job, in any order: each settles its call, then is delivered. All are read again
        after a broken stream; what was settled and delivered before stays."""
        counts, fatal = Counter[str](), None
        left = {f"{record.batch}-{n}": call for n, call in enumerate(self.calls.store.calls_of(record))}
        try:
            for result in self.jobs.results(job):
                if result is None or result.custom_id not in left:
                    counts["ignored"] += 1
                    continue
                counts[result.kind] += 1
                fatal = self._take(left.pop(result.custom_id), partial(self._found, result)) or fatal
        except JobCallError as error:
            if error.status not in (404, 410):
                raise
            # The results are gone; calls without a result are possibly paid.
            self._lose(record, f"its results are no longer kept ({error.failed.message})")
            return
        # They were never computed where every reply that the provider counts arrived; else each may have been paid.
        whole = job.succeeded is not None and counts["succeeded"] >= job.succeeded
        failed = replace(_LEFTOVER[job.leftover], billing="free" if whole else "possibly_paid")
        for reserved in left.values():
            counts["missing"] += 1
            self._take(reserved, lambda _: failed)
        self.calls.store.note(record, "collected", status=job.status, **counts)
        self.fruitless = 0
        if counts["ignored"]:
            _say(f"batch job {job.id}: ignored {counts['ignored']:,} results of other calls or repeated ones")
        if fatal and not counts["succeeded"]:
            raise ModelCallError(fatal)

    def _found(self, result: Result, call: Call) -> Found:
        if result.kind == "succeeded":
            return self.wire.read(result.body, call, result.request_id)
        if result.kind != "errored":
            return _LEFTOVER[result.kind]
        failed = self.wire.read_error(result.status, result.body, {})
        # A reply that the provider's filter blocked may have been written, so the API's rules hold for it.
        free = result.free and not failed.refusal
        request_id = failed.request_id or result.request_id
        return replace(failed, billing="free" if free else failed.billing, request_id=request_id)

    def _take(self, reserved: PaidCall, read: Callable[[Call], Found]) -> str | None:
        """Settle a call, unless it was settled before a kill; deliver its outcomes, or leave it to the next batch.
        Returns advice where no call can succeed."""
        call = Call((), tuple(Request(reserved.id, (), Sampling(), sample) for sample in reserved.samples))
        found = read(call)
        if reserved.billing == "open":
            self.calls.settle(reserved, found)
        if isinstance(found, Answer) or not found.retry or self._tries(call) >= self.options.attempts:
            self._give(call, found)
        return found.fatal if isinstance(found, FailedCall) else None

    def _tries(self, call: Call) -> int:
        return max(self.tries[request.id, request.sample] for request in call.requests)

    def _give(self, call: Call, found: Found) -> None:
        """Deliver the outcomes of a call that are still asked for."""
        for request, outcome in zip(call.requests, outcomes(found, call, self._tries(call)), strict=True):
            key = request.id, request.sample
            if key in self.places and key not in self.done:
                self.done[key] = outcome
                if self.on_done is not None:
                    self.on_done(self.places[key], outcome)


def _say(text: str) -> None:
    """Print a line on standard error, in place of the progress line of a terminal."""
    print(("\r\x1b[K" if sys.stderr.isatty() else "") + printable(text), file=sys.stderr, flush=True)
