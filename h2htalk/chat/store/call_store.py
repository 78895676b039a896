"""`calls.jsonl` of a folder: every call of a model is reserved before it is sent, and its reply is its settlement.

    {"reserved": 7, "stage": "generate", "asked": "openai:gpt-4o", "id": "item-1", "worst": "0.0041", ...}
    {"call": 7, "stage": "generate", "id": "item-1", "sample": 0, "text": "...", "usage": {...}, "usd": "0.0012", ...}
    {"call": 8, "id": "item-2", "cost": "possible", "reason": "timeout"}       or "free", or "paid"
    {"call": 9, "priced": "0.0020"}                                            a price that came later than the call
    {"id": "item-3", "sample": 0, "stage": "generate", "text": "..."}          of a model that costs nothing
    {"id": "item-2", "sample": 0, "stage": "generate", "failure": {...}}       given up, after all its attempts
    {"job": "3f0a...", "event": "planned", ...}                                a batch job (`records.BatchRecord`)

A call without a second line was cut by a kill: possibly paid, at its worst case. One of a batch job stays open until
the job is found again. What was paid, possibly paid and reserved in all stages never exceeds the limit. `id` is
that of the request; where this names more than the item that it is about, `item` is the item.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from h2htalk.chat.calls import Answer, Billing, Bound, Call, FailedCall, replies_of
from h2htalk.chat.costs.prices import PriceList
from h2htalk.chat.protocol import Outcome, Reply, Request
from h2htalk.chat.store.records import (
    COST_NAMES,
    BatchRecord,
    CallBooks,
    PaidCall,
    Totals,
    add,
    dollars_text,
    money_text,
    sum_totals,
)
from h2htalk.data.append_log import AppendLog
from h2htalk.data.files import read_jsonl, write_problem
from h2htalk.data.responses import CALLS, FailedResponse, Failure, Response, read_outcomes
from h2htalk.errors import ConfigError, DataError

UNSETTLED = "interrupted"  # the reason of a call that a kill left open
GIVEN_UP = "given_up"  # of a call of a batch job whose lines were removed
UNSENT = "not sent"  # of calls of a job that was only planned
_COSTLESS = b'{"id":'  # lines begin with it that are about no money
_REPLY = tuple(one.name for one in fields(Reply))


class CostLimitError(ConfigError):
    """The worst case of a call would exceed the limit. It was not reserved and must not be sent."""


class CallStore:
    """The one writer of a `calls.jsonl`; None keeps it in memory only. Not for several threads at once.

    Attributes:
        books: what it says about money and jobs.
        replies: replies by stage, id, sample and hash of the prompt, where they are kept.
        by_prompt: the last of them by stage and hash of the prompt.
        outcomes: how many replies and final failures it holds.
        on_outcome: called with each of those that are there, and its position; may raise DataError.
    """

    def __init__(self, path: Path | None = None, keep_replies: bool = False) -> None:
        """Nothing is read or written before `open`."""
        self.path, self._keep = path, keep_replies
        self.books = CallBooks()
        self.replies: dict[tuple[str, str, int, str], Reply] = {}
        self.by_prompt: dict[tuple[str, str], Reply] = {}
        self.outcomes = 0
        self.on_outcome: Callable[[Response | FailedResponse, str], None] = lambda response, where: None
        self._log: AppendLog | None = None
        self._opened = False

    def open(self) -> Self:
        """Open the file, or create it, and settle what a kill left open. Calling it twice does no harm.

        Raises:
            DataError: another process writes it, or a line is damaged (file and line are named).
        """
        if self._opened:
            return self
        self._log, self._opened = None if self.path is None else AppendLog(self.path, self._read), True
        for call in list(self.books.open.values()):
            if call.batch is None or call.batch not in self.books.jobs:
                lost = UNSETTLED if call.batch is None else GIVEN_UP
                self.settle(replace(call, billing="possibly_paid", reason=lost), call.names)
        return self

    def _read(self, record: dict[str, Any], where: str) -> None:
        """Take one line that is there. Raises DataError, which begins with `where`."""
        self.books.read(record, where)
        prompts = (str(one.get("prompt", "")) for one in (record, *record.get("more", ())))
        for response, prompt in zip(read_outcomes(record, where), prompts, strict=False):
            self.outcomes += 1
            self.on_outcome(response, where)
            if self._keep and isinstance(response, Response):
                key = str(record.get("stage", "")), response.id, response.sample, prompt
                self.remember(*key, Reply(**_fields(response)))

    def remember(self, stage: str, item: str, sample: int, prompt: str, reply: Reply) -> None:
        """Keep a reply, if replies are kept."""
        if self._keep:
            self.replies[stage, item, sample, prompt] = self.by_prompt[stage, prompt] = reply

    def append(self, *records: dict[str, Any], sync: bool = False) -> None:
        """Write lines, all or none; `sync`: to the disk. Raises DataError where they cannot be written."""
        self.open()
        if self._log is None:
            return
        self._log.append_all(records)
        self.outcomes += sum("text" in record or "failure" in record for record in records)
        if sync:
            try:
                with self._log.path.open("ab") as file:
                    os.fsync(file.fileno())
            except OSError as error:
                raise DataError(f"{self.path}: {write_problem(error)}") from error

    def settle(self, call: PaidCall, line: dict[str, Any]) -> None:
        """Write how an open call ended: a line of that content, and what it cost."""
        if call.number not in self.books.open:
            raise ValueError(f"call {call.number} is settled already")
        record = {"call": call.number, **line}
        if (cost := COST_NAMES.get(call.billing, "paid")) != "paid":
            record["cost"] = cost
        if call.reason:
            record["reason"] = call.reason
        if call.usage is not None:
            record["usage"] = call.usage.to_dict()
        if call.usd is not None:
            record["usd"] = money_text(call.usd)
        self.append(record)
        self.books.settled(call)

    def reprice(self, prices: PriceList) -> None:
        """Write down prices of calls whose cost was unknown, as far as they are known now."""
        for number, call in list(self.books.unpriced.items()):
            if (price := prices.find(call.model)) is None:
                continue
            batch = call.batch is not None
            if call.cost[0] == "usd_paid" and call.usage is not None:
                usd = price.cost(call.usage, batch)
            else:
                usd = price.worst(call.bound.input_tokens, call.bound.output_tokens, batch)
            if usd is not None:
                self.append({"call": number, "priced": money_text(usd)})
                self.books.priced(number, usd)

    def worthless(self) -> bool:
        """Whether nothing is lost with the file: it holds no reply, nothing may have been paid, and no job may run."""
        worth = (t.paid or t.possibly_paid or t.open for t in self.books.totals().values())
        return not (self.outcomes or any(worth) or any(job.state != "closed" for job in self.books.jobs.values()))

    def close(self) -> None:
        """Release the file; open calls stay open in it. Calling it twice does no harm."""
        if self._log is not None:
            self._log.close()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass
class StageCalls:
    """The calls of one model for one stage, in a store. Engines reserve and settle paid calls through it.

    Nothing is touched before `open`. Raises ConfigError for a limit without a price.

    Attributes:
        store: of the stage's folder.
        stage: what the calls are for.
        model: `ENGINE:MODEL`, as price files name it.
        paid: whether they cost money: a model that costs nothing reserves nothing.
        identity: the model as the hash of a prompt has it; empty: `model`.
        prices: None where they are unknown; calls are counted, and their dollars stay unknown.
        limit: US dollars that all calls of the store may cost, those of earlier starts included.
        endpoint: what is asked; stored with every reply.
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

    def __post_init__(self) -> None:
        self.identity = self.identity or self.model
        self.price = self.prices.find(self.model) if self.prices is not None and self.paid else None
        if self.paid and self.limit is not None and self.price is None:
            meant = self.prices.suggest(self.model) if self.prices else ""
            raise ConfigError(
                f"max_cost: the price of {self.model} is unknown: {meant}name it in a file of prices (--prices, "
                "prices = FILE)"
            )

    def open(self, batch: bool) -> Self:
        """Open the store, price what had no price, and free jobs that were never sent.

        Raises:
            ConfigError: batch jobs of this stage are open and `batch` is not set: their calls would be paid twice.
                Or there is a limit, and calls of earlier starts whose price is unknown.
            DataError: the store is damaged, or another process writes it.
        """
        self.store.open()
        if self.prices is not None:
            self.store.reprice(self.prices)
        if self.paid and self.limit is not None and self.store.books.committed is None:
            raise ConfigError(
                f"max_cost: {self.store.path} holds calls whose price is unknown: name it in a file of prices "
                "(--prices, prices = FILE)"
            )
        if not batch:
            require_no_jobs(self.open_jobs(), self.store.path)
            for job in self.open_jobs():
                self.abandon(job, UNSENT)
        return self

    # --- Before a call ------------------------------------------------------------------------------------------

    def reserve(self, call: Call, bound: Bound) -> PaidCall:
        """Reserve one call at its worst case; the reservation is in the file when this returns.

        Raises:
            CostLimitError: it might exceed the limit.
            DataError: it cannot be written; then it must not be sent.
        """
        return self._reserve([(call, bound, None)])[0]

    def plan(self, jobs: Sequence[Sequence[tuple[Call, Bound]]], when: float) -> list[BatchRecord]:
        """Plan batch jobs that are submitted together, and reserve all their calls or none. Raises as `reserve`."""
        about = {"event": "planned", "stage": self.stage, "asked": self.model, "when": when}
        lines = [{"job": secrets.token_hex(6), **about} for _ in jobs]
        pairs = zip(lines, jobs, strict=True)
        self._reserve([(call, bound, str(line["job"])) for line, calls in pairs for call, bound in calls], lines)
        return [self.store.books.jobs[str(line["job"])] for line in lines]

    def _reserve(
        self, calls: Sequence[tuple[Call, Bound, str | None]], jobs: Sequence[dict[str, Any]] = ()
    ) -> list[PaidCall]:
        store, price, made = self.store.open(), self.price, []
        for number, (call, bound, batch) in enumerate(calls, store.books.last + 1):
            tokens, samples = (bound.input_tokens, bound.output_tokens), tuple(one.sample for one in call.requests)
            worst = None if price is None else price.worst(*tokens, batch is not None)
            prompts = tuple(prompt_fingerprint(request, self.identity) for request in call.requests)
            names, date = (call.request.item, batch), "" if price is None else price.date
            about = (number, self.stage, self.model, call.request.id)
            made.append(PaidCall(*about, samples, bound, worst, prompts, *names, date))
        self._require_room([call.worst for call in made])
        store.append(*jobs, *(call.to_dict() for call in made), sync=bool(jobs))
        for line in jobs:
            store.books.job_event(line)
        for one in made:
            store.books.reserved(one)
        return made

    def _require_room(self, worst: Sequence[Decimal | None]) -> None:
        if self.limit is None:
            return
        needed, committed = add(*worst), self.store.books.committed
        what = "this call" if len(worst) == 1 else f"these {len(worst):,} calls"
        if needed is None:
            raise CostLimitError(
                f"max_cost: what {what} can cost is unknown: name the price, for a batch with `batch` too, in a file "
                "of prices"
            )
        if committed is None:
            raise CostLimitError("max_cost: what was paid so far is unknown: an answer came at an unknown price")
        if committed + needed > self.limit:
            raise CostLimitError(
                f"max_cost {self.limit:f}: {dollars_text(committed, True)} US dollars are spent or reserved, and "
                f"{what} may cost {dollars_text(needed, True)} more: raise it (--max-cost), or ask less"
            )

    # --- After a call -------------------------------------------------------------------------------------------

    def settle(self, call: PaidCall, found: Answer | FailedCall) -> None:
        """Store what came of a call and what it cost, in one line.

        A reply without a complete usage counts as possibly paid, at its worst case. A refusal is a reply.
        """
        failed = found if isinstance(found, FailedCall) else None
        billing, reason = (failed.billing, failed.reason) if failed else ("paid", "")
        usage = found.usage if billing == "paid" else None
        usd = self.price.cost(usage, call.batch is not None) if usage is not None and self.price else None
        line: dict[str, Any] = {"stage": self.stage, **call.names}
        replies = list(zip(call.samples, call.prompts, replies_of(found, len(call.samples)), strict=False))
        if replies and call.id:
            first, *more = (self._line(call.id, s, reply) | {"prompt": prompt} for s, prompt, reply in replies)
            line |= first | ({"more": more} if more else {})
        elif found.request_id is not None:
            line["request_id"] = found.request_id
        ended = replace(call, billing=billing, usage=usage, usd=usd, request_id=found.request_id, reason=reason)
        self.store.settle(ended, line)
        for sample, prompt, reply in replies:
            self.store.remember(self.stage, call.id, sample, prompt, reply)

    def done(self, request: Request, outcome: Outcome, copy: bool = False) -> None:
        """Store the outcome of a request, unless its line was written when it was paid for.

        `copy`: the outcome is that of an equal request, which was called for in its place.
        """
        if self.paid and isinstance(outcome, Reply) and not copy:
            return
        prompt = prompt_fingerprint(request, self.identity)
        more = (("prompt", prompt), ("item", request.item), ("copy", copy))
        self.put(request.id, request.sample, outcome, {key: value for key, value in more if value})
        if isinstance(outcome, Reply):
            self.store.remember(self.stage, request.id, request.sample, prompt, outcome)

    def put(self, item: str, sample: int, outcome: Outcome, more: dict[str, Any] | None = None) -> None:
        """Store an outcome that cost nothing, in a line of its own with `more` fields."""
        line = self._line(item, sample, outcome) | {"stage": self.stage, "asked": self.identity}
        self.store.append(line | (more or {}))

    def _line(self, item: str, sample: int, outcome: Outcome) -> dict[str, Any]:
        at = round(time.time(), 3)
        if isinstance(outcome, Failure):
            return FailedResponse(item, sample, outcome, at).to_dict()
        return Response(item, sample, **_fields(outcome), endpoint=self.endpoint or None, at=at).to_dict()

    def find(self, request: Request) -> Reply | None:
        """Return the stored reply to a request: to the same prompt of the same item, sample, stage and model."""
        prompt = prompt_fingerprint(request, self.identity)
        return self.store.replies.get((self.stage, request.id, request.sample, prompt))

    def spent(self) -> str:
        """Return the cost of all calls of the store, for the progress line; empty where they cost nothing."""
        if not self.paid:
            return ""
        totals = sum_totals(self.store.books.totals().values())
        paid, possible = totals.usd_paid, totals.usd_possible
        if paid is None or possible is None:
            return "price unknown"
        return f"{dollars_text(paid)}{f' (+ {dollars_text(possible, True)} possibly)' if possible else ''} US dollars"

    # --- Batch jobs ---------------------------------------------------------------------------------------------

    def open_jobs(self) -> list[BatchRecord]:
        """The jobs of this stage that still hold open calls, oldest first."""
        return self.store.books.open_jobs(self.stage)

    def note(self, record: BatchRecord, event: str, **details: Any) -> BatchRecord:
        """Record an event of a job, to the disk; returns its new state."""
        line = {"job": record.batch, "event": event, **details}
        self.store.append(line, sync=True)
        return self.store.books.job_event(line)

    def abandon(self, record: BatchRecord, reason: str, billing: Billing = "free", why: str = "") -> None:
        """Give up a job without results: settle its open calls, and record `why` (the reason of its calls)."""
        for call in self.store.books.calls_of(record).values():
            self.settle(call, FailedCall(reason, "", billing))
        self.note(record, "abandoned", reason=why or reason)


def require_no_jobs(jobs: Sequence[BatchRecord], where: object) -> None:
    """Raise ConfigError where jobs may exist at the provider: without batches their calls would be paid twice."""
    if sent := [job.label for job in jobs if job.state != "planned"]:
        plural = "s" if len(sent) > 1 else ""
        raise ConfigError(
            f"{where}: waits for batch job{plural} {', '.join(sent)}: add --batch (batch = true) until collected"
        )


def prompt_fingerprint(request: Request, model: str) -> str:
    """16 hexadecimal digits of the prompt and the model: a stored reply to another prompt or model is not used."""
    parts = [model, *(f"{message.role}\0{message.content}" for message in request.messages)]
    parts += [repr(request.sampling), request.response_schema.name if request.response_schema else ""]
    return sha256("\0\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _fields(one: Reply | Response) -> dict[str, Any]:
    """What a reply and its response have in common."""
    return {name: getattr(one, name) for name in _REPLY}


# --- Readers, which need no lock and write nothing ----------------------------------------------------------------


def read_books(path: Path, ended: list[PaidCall] | None = None) -> CallBooks:
    """Read the money and the jobs of a `calls.jsonl`, which may not exist; calls that have ended are added to `ended`.

    Raises:
        DataError: a damaged line; names file and line.
    """
    books = CallBooks()
    for where, record in read_jsonl(path, torn_tail=True, skip=(_COSTLESS,)) if path.exists() else ():
        if (call := books.read(record, where)) is not None and ended is not None:
            ended.append(call)
    return books


def call_files(folder: Path) -> list[Path]:
    """The stores of a run, study or workspace: its own, that of its judges, those of its stages."""
    return [path for path in (folder / CALLS, *sorted(folder.glob(f"*/{CALLS}"))) if path.exists()]


def read_costs(folder: Path) -> dict[str, Totals]:
    """Read the totals of each stage; empty where no call cost anything. Raises DataError for a damaged line."""
    return {stage: one for path in call_files(folder) for stage, one in read_books(path).totals().items()}


def read_calls(folder: Path) -> Iterator[PaidCall]:
    """Every paid call, those that have not ended last. Raises DataError for a damaged line."""
    for path in call_files(folder):
        ended: list[PaidCall] = []
        books = read_books(path, ended)
        yield from (*ended, *books.open.values())
