"""The calls of one model for one stage: reserved before they are sent, settled by what came of them, within a limit."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from decimal import Decimal
from hashlib import sha256
from typing import Any, Self

from h2htalk.chat.prices import PriceList, add, dollars_text
from h2htalk.chat.protocol import (
    Billing,
    Bound,
    Call,
    CallOutcome,
    FailedCall,
    Outcome,
    Reply,
    Request,
)
from h2htalk.chat.store.call_records import BatchRecord, PaidCall
from h2htalk.chat.store.call_store import CallStore, fields_of
from h2htalk.chat.wire_formats import replies_of
from h2htalk.data.responses import Failure
from h2htalk.errors import ConfigError, quoted

_NAME_PRICE = "name it in a file of prices (--prices, prices = FILE)"
UNSENT = "not sent"  # of calls of a job that was only planned


class CostLimitError(ConfigError):
    """The worst case of a call would exceed the limit. It was not reserved and must not be sent."""


@dataclass
class StageCalls:
    """The calls of one model (`ENGINE:MODEL`) for one stage. Engines reserve and settle paid calls through it.

    Attributes:
        paid: whether they cost money; otherwise nothing is reserved.
        identity: the model's name in prompt hashes; default `model`.
        prices: the list of prices; None where dollars stay unknown.
        limit: US dollars that all calls of the store may cost, those of earlier starts included.
        claim: is called with a higher limit before a call is refused, and returns the new limit.
        endpoint, served_by: stored with every reply.

    Raises:
        ConfigError: there is a limit but no price.
    """

    store: CallStore
    stage: str
    model: str
    _: KW_ONLY
    paid: bool = True
    identity: str = ""
    prices: PriceList | None = None
    limit: Decimal | None = None
    endpoint: str | None = None
    served_by: str | None = None
    claim: Callable[[Decimal], Decimal] | None = None

    def __post_init__(self) -> None:
        self.identity = self.identity or self.model
        self.price = None
        if self.paid and self.prices is not None:
            self.price = self.prices.models.get(self.model)
        if self.paid and self.limit is not None and self.price is None:
            suggestion = self.prices.suggest(self.model) if self.prices else ""
            raise ConfigError(
                f"max_cost: the price of {self.model} is unknown: {suggestion}{_NAME_PRICE}"
            )

    def open(self, batch: bool) -> Self:
        """Open the store, price calls that had no price, and free jobs that were never sent.

        Raises ConfigError where jobs of this stage are open and `batch` is not set, or the price of earlier calls is
        unknown and there is a limit.
        """
        self.store.open()
        if self.prices is not None:
            self.store.reprice(self.prices)
        if self.paid and self.limit is not None and self.store.dollars() is None:
            raise ConfigError(
                f"max_cost: {self.store.path} holds calls whose price is unknown: {self._price_advice()}"
            )
        if not batch:
            require_no_jobs(self.open_jobs(), self.store.path)
            for job in self.open_jobs():
                self.abandon(job, UNSENT)
        return self

    def reserve(self, call: Call, bound: Bound) -> PaidCall:
        """Reserve one call at its worst case, in the file. Raises CostLimitError or DataError: it must not be sent."""
        return self._reserve([(call, bound, None)])[0]

    def plan(self, jobs: Sequence[Sequence[tuple[Call, Bound]]], when: float) -> list[BatchRecord]:
        """Plan batch jobs that are submitted together, and reserve all their calls or none. Raises as `reserve`."""
        event = {"event": "planned", "stage": self.stage, "asked": self.model, "when": when}
        marks = [secrets.token_hex(6) for _ in jobs]
        calls: list[tuple[Call, Bound, str | None]] = []
        for mark, calls_of_job in zip(marks, jobs, strict=True):
            calls += [(call, bound, mark) for call, bound in calls_of_job]
        self._reserve(calls, *({"job": mark, **event} for mark in marks))
        return [self.store.jobs[mark] for mark in marks]

    def _reserve(
        self, calls: list[tuple[Call, Bound, str | None]], *jobs: dict[str, Any]
    ) -> list[PaidCall]:
        store = self.store.open()
        paid_calls = []
        for number, (call, bound, batch) in enumerate(calls, len(store.calls) + 1):
            worst = None
            date = ""
            if self.price is not None:
                worst = self.price.worst(*bound, batch is not None)
                date = self.price.date
            prompts = [prompt_fingerprint(request, self.identity) for request in call.requests]
            samples = [request.sample for request in call.requests]
            first = call.requests[0]
            paid_call = PaidCall(
                number=number,
                stage=self.stage,
                model=self.model,
                id=first.id,
                samples=tuple(samples),
                bound=bound,
                worst=worst,
                prompts=tuple(prompts),
                item=first.item,
                batch=batch,
                prices=date,
            )
            paid_calls.append(paid_call)
        self._require_room([call.worst for call in paid_calls])
        store.reserve(paid_calls, jobs)
        return paid_calls

    def _require_room(self, worst: Sequence[Decimal | None]) -> None:
        if self.limit is None:
            return
        needed = add(*worst)
        committed = self.store.dollars()
        calls = "this call" if len(worst) == 1 else f"these {len(worst):,} calls"
        if needed is None:
            advice = "name the price, for a batch with `batch` too, in a file of prices"
            raise CostLimitError(f"max_cost: what {calls} can cost is unknown: {advice}")
        if committed is None:
            spent = (
                "max_cost: what was paid so far is unknown, as an answer came at an unknown price"
            )
            raise CostLimitError(f"{spent}: {self._price_advice()}")
        if committed + needed > self.limit and self.claim is not None:
            self.limit = self.claim(committed + needed)
        if committed + needed > self.limit:
            spent = f"max_cost {self.limit:f}: {dollars_text(committed, True)} US dollars are spent or reserved"
            needed_text = f"{calls} may cost {dollars_text(needed, True)} more: raise it (--max-cost), or ask less"
            raise CostLimitError(f"{spent}, and {needed_text}")

    def _price_advice(self) -> str:
        """Say how to name the price of a call whose price is unknown."""
        call = self.store.unpriced_call()
        if call is None:
            return _NAME_PRICE
        words = call.price_words
        factors = f"factors = {{ {words.partition(',')[0]} = FACTOR }}"
        where = f"the price of {call.model} in a file of prices (--prices, prices = FILE)"
        return f"that to {quoted(call.id)} says {quoted(words)}; write {factors} into {where}"

    def settle(self, call: PaidCall, outcome: CallOutcome) -> None:
        """Store what came of a call and what it cost, in one line. A refusal is a reply."""
        billing: Billing = "paid"
        reason = ""
        if isinstance(outcome, FailedCall):
            billing = outcome.billing
            reason = outcome.reason
        usage = outcome.usage if billing == "paid" else None
        usd = None
        if usage is not None and self.price is not None:
            usd = self.price.cost(usage, call.batch is not None)
        now = round(time.time(), 3)
        stored = [
            replace(reply, at=now, served_by=self.served_by)
            for reply in replies_of(outcome, len(call.samples))
        ]
        replies = list(zip(call.samples, call.prompts, stored, strict=False))
        line: dict[str, Any] = {"stage": self.stage, **call.names}
        if replies and call.id:
            lines = []
            for sample, prompt, reply in replies:
                lines.append(self._line(call.id, sample, reply) | {"prompt": prompt})
            line |= lines[0]
            if len(lines) > 1:
                line["more"] = lines[1:]
        elif outcome.request_id is not None:
            line["request_id"] = outcome.request_id
        settled = replace(
            call,
            billing=billing,
            usage=usage,
            usd=usd,
            request_id=outcome.request_id,
            reason=reason,
        )
        self.store.settle(settled, line)
        for sample, prompt, reply in replies:
            self.store.remember(self.stage, call.id, sample, prompt, reply)

    def store_outcome(self, request: Request, outcome: Outcome, copy: bool = False) -> None:
        """Store the outcome of a request, unless its line was written when it was paid for.

        `copy`: the outcome is that of an equal request, which was called for in its place.
        """
        if self.paid and isinstance(outcome, Reply) and not copy:
            return
        prompt = prompt_fingerprint(request, self.identity)
        fields: dict[str, Any] = {"prompt": prompt}
        if request.item:
            fields["item"] = request.item
        if copy:
            fields["copy"] = copy
        if isinstance(outcome, Reply) and outcome.at is None:
            # The copy of a stored reply keeps its time.
            outcome = replace(outcome, at=round(time.time(), 3), served_by=self.served_by)
        self.store_free_outcome(request.id, request.sample, outcome, fields)
        if isinstance(outcome, Reply):
            self.store.remember(self.stage, request.id, request.sample, prompt, outcome)

    def store_free_outcome(
        self, item: str, sample: int, outcome: Outcome, fields: dict[str, Any] | None = None
    ) -> None:
        """Store an outcome that cost nothing, in a line of its own that ends with `fields`."""
        line = self._line(item, sample, outcome) | {"stage": self.stage, "asked": self.identity}
        if fields is not None:
            line |= fields
        self.store.append(line)

    def _line(self, item: str, sample: int, outcome: Outcome) -> dict[str, Any]:
        """Return the fields of a `Response` or a `FailedResponse`, with the time that a reply has, or the present."""
        line: dict[str, Any] = {"id": item, "sample": sample}
        now = round(time.time(), 3)
        if isinstance(outcome, Failure):
            line["failure"] = fields_of(outcome)
            line["at"] = now
            return line
        line |= fields_of(outcome)
        line["usage"] = fields_of(outcome.usage)
        reply_time = line.pop("at", now)
        if self.endpoint:
            line["endpoint"] = self.endpoint
        line["at"] = reply_time
        return line

    def find(self, request: Request) -> Reply | None:
        """Return the stored reply to a request: to the same prompt of the same item, sample, stage and model."""
        prompt = prompt_fingerprint(request, self.identity)
        return self.store.replies.get((self.stage, request.id, request.sample, prompt))

    def spent(self) -> str:
        """Return the cost of all calls of the store, for the progress line; empty where they cost nothing."""
        if not self.paid:
            return ""
        paid = self.store.dollars("usd_paid")
        possible = self.store.dollars("usd_possible")
        if paid is None or possible is None:
            return "price unknown"
        text = dollars_text(paid)
        if possible:
            text += f" (+ {dollars_text(possible, True)} possibly)"
        return f"{text} US dollars"

    def open_jobs(self) -> list[BatchRecord]:
        """The jobs of this stage that still hold open calls, oldest first."""
        return self.store.open_jobs(self.stage)

    def abandon(
        self, record: BatchRecord, reason: str, billing: Billing = "free", why: str = ""
    ) -> None:
        """Give up a job without results: settle its open calls, and record `why` (the reason of its calls)."""
        for call in self.store.open_calls(record):
            self.settle(call, FailedCall(reason, "", billing))
        self.store.record_job_event(record, "abandoned", reason=why or reason)


def require_no_jobs(jobs: Sequence[BatchRecord], where: object) -> None:
    """Raise ConfigError where jobs may exist at the provider: without batches their calls would be paid twice."""
    labels = [job.label for job in jobs if job.state != "planned"]
    if labels:
        plural = "s" if len(labels) > 1 else ""
        names = f"batch job{plural} {', '.join(labels)}"
        raise ConfigError(f"{where}: waits for {names}: add --batch (batch = true) until collected")


def prompt_fingerprint(request: Request, model: str) -> str:
    """16 hexadecimal digits of the prompt and the model: a stored reply to another prompt or model is not used."""
    texts = [model]
    for message in request.messages:
        texts.append(f"{message.role}\0{message.content}")
    texts.append(repr(request.sampling))
    texts.append(request.response_schema.name if request.response_schema else "")
    return sha256("\0\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:16]
