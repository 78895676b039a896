"""Turn the results of batch jobs into outcomes: each settles its call in the store, then is delivered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from h2htalk.chat.batch.provider import BatchJob, Result
from h2htalk.chat.calls import Answer, Billing, Call, FailedCall, WireFormat, outcomes
from h2htalk.chat.protocol import OnDone, Outcome, Request, Sampling
from h2htalk.chat.store.call_store import StageCalls
from h2htalk.chat.store.records import BatchRecord, PaidCall
from h2htalk.data.responses import SampleKey
from h2htalk.errors import ConfigError

_EXPIRED = FailedCall("batch_expired", "the batch's time was over before this call was computed", "free", retry=True)
_CANCELED = FailedCall(
    "canceled", "the batch was cancelled before this call was computed; the same command asks again", "free"
)
_MISSING = FailedCall("missing_result", "the batch ended without a result for this call", "possibly_paid")
_LEFTOVER = {"expired": _EXPIRED, "canceled": _CANCELED, "missing": _MISSING}


@dataclass(slots=True)
class Outcomes:
    """The outcomes of one call of `run_batches`, filled as results come in.

    Attributes:
        attempts: batches that may ask for an item, the first included.
        done: one outcome for each request, None while there is none.
        tries: how many batches asked for a request so far.
        fatal: advice, once a whole job failed for a reason that every call would meet.
    """

    wire: WireFormat
    calls: StageCalls
    requests: Sequence[Request]
    on_done: OnDone | None
    attempts: int
    done: list[Outcome | None] = field(init=False)
    tries: Counter[int] = field(default_factory=Counter)
    fatal: str | None = None
    _places: dict[SampleKey, int] = field(init=False)

    def __post_init__(self) -> None:
        self.done = [None] * len(self.requests)
        self._places = {(r.id, r.sample): index for index, r in enumerate(self.requests)}
        if len(self._places) < len(self.requests):
            raise ConfigError("a batch cannot ask twice for the same sample of an item: number the samples")

    def missing(self) -> list[int]:
        """Places of the requests that have no outcome yet."""
        return [index for index, outcome in enumerate(self.done) if outcome is None]

    def asked(self, record: BatchRecord, times: int = 1) -> None:
        """A job asks for these items (-1: it did not after all)."""
        for items in record.calls:
            for item in items:
                if (index := self._places.get(item)) is not None:
                    self.tries[index] += times

    def give(self, call: Call, found: Sequence[Outcome]) -> None:
        """Deliver the outcomes of a call that are still asked for."""
        for index, outcome in zip(call.indexes, found, strict=True):
            if index >= 0 and self.done[index] is None:
                self.done[index] = outcome
                if self.on_done is not None:
                    self.on_done(index, outcome)

    def take(self, record: BatchRecord, job: BatchJob, results: Iterable[Result | None]) -> Counter[str]:
        """Take all results of an ended job, in any order; returns how many there were of each kind.

        Results that cannot be read, are of another job or repeat one are `ignored`.
        """
        reservations = self.calls.store.books.calls_of(record)
        counts: Counter[str] = Counter()
        hopeless: list[tuple[Call, FailedCall]] = []
        left = set(range(len(record.calls)))
        for result in results:
            number = None if result is None else record.number(result.custom_id)
            if result is None or number is None or number not in left:
                counts["ignored"] += 1
                continue
            left.remove(number)
            counts[result.kind] += 1
            call = self._call(record.calls[number])
            failed = self._take_one(call, reservations.pop(number, None), result)
            if failed is not None:
                hopeless.append((call, failed))
        self._take_leftovers(record, job, left, reservations, counts)
        self._take_hopeless(hopeless, counts["succeeded"])
        return counts

    def _call(self, items: tuple[SampleKey, ...]) -> Call:
        """Return a call of a job. Samples that are no longer asked for have the index -1: their replies are read for
        their cost."""
        places = [self._places.get(item, -1) for item in items]
        wanted = next((self.requests[place] for place in places if place >= 0), None)
        like = wanted or Request(items[0][0], (), Sampling())
        requests = tuple(
            self.requests[place] if place >= 0 else replace(like, sample=sample)
            for place, (_, sample) in zip(places, items, strict=True)
        )
        return Call(tuple(places), requests)

    def _take_one(self, call: Call, reservation: PaidCall | None, result: Result) -> FailedCall | None:
        """Take one result; returns the failed call where its reason may concern the whole job."""
        if result.kind == "succeeded":
            found = self.wire.read(result.body, call, result.request_id)
            self._settle(reservation, found)
            self.give(call, outcomes(found, call, self._tries(call)))
            return None
        if result.kind == "errored":
            failed = self.wire.read_error(result.status, result.body, {})
            # A reply that the provider's filter blocked may have been written, so the API's rules hold for it.
            billing: Billing = "free" if result.free and not failed.refusal else failed.billing
            failed = replace(failed, billing=billing, request_id=failed.request_id or result.request_id)
        else:
            failed = _LEFTOVER[result.kind]
        if failed.fatal is not None:
            self._settle(reservation, failed)
            return failed
        self._give_failed(call, reservation, failed)
        return None

    def _give_failed(self, call: Call, reservation: PaidCall | None, failed: FailedCall) -> None:
        """Leave an item without a reply to the next batch, or deliver its failure."""
        tries = self._tries(call)
        self._settle(reservation, failed)
        if not failed.retry or tries >= self.attempts:
            self.give(call, outcomes(failed, call, tries))

    def _take_leftovers(
        self,
        record: BatchRecord,
        job: BatchJob,
        left: Iterable[int],
        reservations: dict[int, PaidCall],
        counts: Counter[str],
    ) -> None:
        """Take calls without a result. They were never computed where every reply that the provider counts arrived;
        else each may have been paid."""
        whole = job.succeeded is not None and counts["succeeded"] >= job.succeeded
        failed = replace(_LEFTOVER[job.leftover], billing="free" if whole else "possibly_paid")
        for number in sorted(left):
            counts["missing"] += 1
            call = self._call(record.calls[number])
            self._give_failed(call, reservations.pop(number, None), failed)

    def _take_hopeless(self, hopeless: Sequence[tuple[Call, FailedCall]], succeeded: int) -> None:
        """Treat such failures as fatal where no call succeeded, else as failures of their items."""
        if hopeless and not succeeded:
            self.fatal = hopeless[0][1].fatal
            return
        for call, failed in hopeless:
            self.give(call, outcomes(failed, call, self._tries(call)))

    def _tries(self, call: Call) -> int:
        return max(1, *(self.tries[index] for index in call.indexes))

    def _settle(self, reservation: PaidCall | None, found: Answer | FailedCall) -> None:
        """Settle a call, unless it was settled before a kill."""
        if reservation is not None:
            self.calls.settle(reservation, found)
