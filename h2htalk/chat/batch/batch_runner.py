"""Answer requests by batch jobs: half the price, hours to wait, and no job lost or paid twice after a kill.

Each step is recorded in the call store before it is made, so that a restart knows the state of every job:

planned     nothing was sent: its calls are free, and are planned again
sending     the job may exist: it is searched for; where its existence stays unknown, its calls are possibly paid
submitted   the job is polled by its id and its results are read, repeatedly if need be: reading costs nothing

A job continues at the provider when the run ends; jobs are never cancelled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from h2htalk.chat.batch.polling import Pace, Polling, WaitLine
from h2htalk.chat.batch.provider import BatchJob, JobCallError, JobsApi
from h2htalk.chat.batch.results import Outcomes
from h2htalk.chat.batch.submission import Submitter
from h2htalk.chat.calls import WireFormat
from h2htalk.chat.chat_options import ChatOptions
from h2htalk.chat.protocol import OnDone, Outcome, Request
from h2htalk.chat.provider_errors import scrub
from h2htalk.chat.store.call_store import UNSENT, StageCalls
from h2htalk.chat.store.records import BatchRecord, add, dollars_text
from h2htalk.errors import ConfigError, ModelCallError

__all__ = ["Pace", "run_batches"]


def run_batches(
    jobs: JobsApi,
    wire: WireFormat,
    requests: Sequence[Request],
    options: ChatOptions,
    calls: StageCalls,
    on_done: OnDone | None = None,
    *,
    pace: Pace | None = None,
) -> list[Outcome]:
    """Answer all requests by batch jobs; `Chat.complete` of a hosted API where `options.batch` is set.

    Jobs that an earlier run left open are collected first, then a new one is made of what is still missing:

        return run_batches(OpenAIJobs(openai.OpenAI(...)), api, requests, self._options, calls, on_done)

    Args:
        jobs: the provider's batch jobs, over a synchronous client of its SDK.
        wire: builds the bodies and reads the replies.
        requests: any number; with none, what is open is collected and settled.
        options: `attempts`: batches that may ask for an item.
        calls: where jobs and their calls are recorded.
        on_done: as in `Chat.complete`, called in this thread in the order of the results.
        pace: when to poll.

    Returns:
        One outcome a request, in the order of `requests`.

    Raises:
        ConfigError: the batch might pass the limit of costs (nothing is sent then), the provider refuses the job, or
            the store holds an open job of another model.
        ModelCallError: the provider cannot be used. A job that runs goes on; the same call attaches to it.
        DataError: the store is damaged, or another process writes it.
    """
    calls.open(batch=True)
    outcomes = Outcomes(wire, calls, requests, on_done, options.attempts)
    pace, line = pace or Pace(), WaitLine()
    polling = Polling(wire, str(calls.store.path), pace, line)
    run = _Run(jobs, wire, options, calls, outcomes, pace, line, polling)
    try:
        return run.finish()
    except KeyboardInterrupt:
        run.report_running()
        raise
    finally:
        line.clear()


@dataclass(slots=True)
class _Run:
    jobs: JobsApi
    wire: WireFormat
    options: ChatOptions
    calls: StageCalls
    outcomes: Outcomes
    pace: Pace
    line: WaitLine
    polling: Polling
    fruitless: int = 0  # jobs in a row without results

    def finish(self) -> list[Outcome]:
        """Collect open jobs and submit missing requests, until every request has an outcome."""
        for record in self.calls.open_jobs():
            if record.model != self.wire.model:
                raise ConfigError(
                    f"{self.calls.store.path} has the open batch job {record.label} of {record.model}: "
                    f"collect it with that model, or name another folder"
                )
            if record.state != "planned":
                self.outcomes.asked(record)
        submitter = Submitter(self.jobs, self.wire, self.options, self.calls, self.outcomes, self.pace.sleep)
        while True:
            self._wait_for_all()
            if self.outcomes.fatal is not None:
                raise ModelCallError(self.outcomes.fatal)
            if not (missing := self.outcomes.missing()):
                return [outcome for outcome in self.outcomes.done if outcome is not None]
            submitter.submit(missing, self.pace.clock)

    def report_running(self) -> None:
        """Print which jobs continue at the provider after Ctrl-C."""
        running = [record for record in self.calls.open_jobs() if record.state != "planned"]
        if running:
            labels = ", ".join(record.label for record in running)
            plural = "s" if len(running) > 1 else ""
            self.line.say(f"batch job{plural} {labels} still running: the same command attaches to it again")

    # --- Waiting ------------------------------------------------------------------------------------------------

    def _wait_for_all(self) -> None:
        """Wait until no job is open."""
        pause = self.pace.first
        while records := self.calls.open_jobs():
            moved = [record for record in records if self._step(record)]
            if moved:
                pause = self.pace.first
                continue
            self.polling.pause(pause)
            pause = min(pause * self.pace.growth, self.pace.longest)

    def _step(self, record: BatchRecord) -> bool:
        """Advance one job; returns whether its state changed."""
        if record.state == "planned":
            self._abandon(record, UNSENT)
            return True
        try:
            if record.state == "sending":
                return self._look_for(record)
            assert record.job is not None
            job = self.jobs.retrieve(record.job)
            self.polling.rest()
        except JobCallError as error:
            self.polling.endure(error, record)
            return False
        if job.state == "running":
            self._show(record, job)
            return False
        self.calls.note(record, "ended", status=job.status)
        if job.state == "failed":
            self._take_refusal(record, job)
        else:
            self._collect(record, job)
        return True

    def _look_for(self, record: BatchRecord) -> bool:
        """Search for a job that may exist, and attach to it; returns whether the search ended."""
        search = self.jobs.find(record, self.calls.job_ids)
        self.polling.rest()
        if search.job is not None:
            self.calls.note(record, "submitted", provider_id=search.job.id)
            return True
        young = abs(self.pace.clock() - record.when) < self.pace.settle
        if search.running or young:
            what = ", ".join(job.id for job in search.running) or "the list of jobs"
            self.line.show(f"batch {record.batch}: searching for its job: waiting for {what}", record.batch)
            return False
        if search.unreadable:
            jobs = ", ".join(search.unreadable)
            self._abandon(record, f"may be one of {jobs}, whose results are no longer kept", possibly_paid=True)
        else:
            self._abandon(record, "never submitted")
        return True

    def _abandon(self, record: BatchRecord, reason: str, possibly_paid: bool = False) -> None:
        """Give up a job without results; its missing items are submitted again."""
        self.calls.abandon(record, reason, "possibly_paid" if possibly_paid else "free")
        if record.state == "planned":
            return
        if not possibly_paid:
            self.outcomes.asked(record, -1)
        self.fruitless += 1
        if self.fruitless >= self.options.attempts:
            raise ModelCallError(
                f"{self.fruitless} batch jobs in a row gave no results, the last one: {reason}; see the provider's "
                "status page, then start again"
            )

    def _take_refusal(self, record: BatchRecord, job: BatchJob) -> None:
        """Handle a job that was refused before it began: nothing was computed."""
        others = [other for other in self.calls.open_jobs() if other.batch != record.batch]
        problem = scrub(job.problem, None) or job.status
        self.calls.abandon(record, "refused", why=problem)
        if job.crowded and any(other.state == "submitted" for other in others):
            self.outcomes.asked(record, -1)  # submitted again when the others have ended
            return
        advice = "wait until other batches of the account have ended" if job.crowded else "correct that"
        raise ConfigError(f"batch job {job.id} was refused, nothing was charged: {problem}; {advice}, then start again")

    # --- Collecting ---------------------------------------------------------------------------------------------

    def _collect(self, record: BatchRecord, job: BatchJob) -> None:
        try:
            results = self.polling.read(record, lambda: self.jobs.results(job))
            counts = self.outcomes.take(record, job, results)
        except JobCallError as error:  # the results are gone; calls without a result are possibly paid
            self._abandon(record, f"its results are no longer kept ({error.message})", possibly_paid=True)
            return
        self.calls.note(record, "collected", **counts)
        self.fruitless = 0
        if counts["ignored"]:
            self.line.say(f"batch job {job.id}: ignored {counts['ignored']:,} results of other calls or repeated ones")

    def _show(self, record: BatchRecord, job: BatchJob) -> None:
        """Show the state of a job and the most that it can cost."""
        worst = add(*(call.worst for call in self.calls.store.books.calls_of(record).values()))
        money = f"  at most {dollars_text(worst, True)} US dollars at batch prices" if worst else ""
        minutes = max(self.pace.clock() - record.when, 0.0) / 60
        done = "?" if job.finished is None else f"{job.finished:,}"
        counts = f"batch  {done}/{len(record.calls):,}  {job.status}"
        # The id comes last, because a narrow terminal cuts the end of the line.
        self.line.show(f"{counts}  {minutes:,.0f} min{money}  {job.id}", f"{job.id} {counts}")
