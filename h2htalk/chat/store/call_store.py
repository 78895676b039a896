"""`calls.jsonl` of a folder: each call is reserved before it is sent, and its reply's line settles it, with its cost.

    {"reserved": 7, "stage": "generate", "asked": "openai:gpt-4o", "id": "item-1", "worst": "0.0041", ...}
    {"call": 7, "stage": "generate", "id": "item-1", "sample": 0, "text": "...", "usage": {...}, "usd": "0.0012", ...}
    {"call": 8, "id": "item-2", "cost": "possibly_paid", "reason": "timeout"}  or "free", or "paid"
    {"call": 9, "priced": "0.0020"}                                            a price that came later than the call
    {"id": "item-3", "sample": 0, "stage": "generate", "text": "..."}          of a model that costs nothing
    {"id": "item-2", "sample": 0, "stage": "generate", "failure": {...}}       given up, after all its attempts
    {"job": "3f0a...", "event": "planned", ...}                                a batch job (`BatchRecord`)

A call without a second line was cut by a kill: possibly paid, at its worst case. One of a batch job stays open until
the job is found again. What was paid, possibly paid and reserved in all stages never exceeds the limit. `id` is
that of the request; where this names more than the item that it is about, `item` is the item.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Self

from h2htalk.chat.prices import PriceList, Totals, add, money_text
from h2htalk.chat.protocol import Reply
from h2htalk.chat.store.call_records import BatchRecord, PaidCall, Settlement
from h2htalk.data.files import AppendLog, read_jsonl, writing
from h2htalk.data.records import read_record
from h2htalk.data.responses import (
    CALLS,
    FailedResponse,
    Failure,
    Response,
    Usage,
    read_outcomes,
)
from h2htalk.errors import DataError, quoted

_COSTLESS = b'{"id":'  # lines begin with it that are about no money
_REPLY_FIELDS = [field.name for field in fields(Reply)]
_FIELDS: Mapping[type, list[str]] = {
    Reply: _REPLY_FIELDS,
    Usage: [field.name for field in fields(Usage)],
    Failure: [field.name for field in fields(Failure)],
}


class CallStore:
    """The one writer of a `calls.jsonl`; None keeps it in memory only. Not for several threads at once.

    It holds all paid calls by their numbers from 1, batch jobs by mark, replies by stage, id, sample and hash of the
    prompt and also by stage and hash alone, and the number of replies and final failures. `on_outcome` is called with
    each of those that the file holds when it is opened, and its position. Nothing is read or written before `open`.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.calls: list[PaidCall] = []
        self.jobs: dict[str, BatchRecord] = {}
        self.replies: dict[tuple[str, str, int, str], Reply] = {}
        self.by_prompt: dict[tuple[str, str], Reply] = {}
        self.outcomes = 0
        self.on_outcome: Callable[[Response | FailedResponse, str], None] = lambda response, where: (
            None
        )
        # The sums of calls whose cost is known, and how many others there are.
        self._dollars = dict.fromkeys(("usd_paid", "usd_possible", "usd_open"), Decimal(0))
        self._unknown: Counter[str] = Counter()
        self._log: AppendLog | None = None
        self._opened = False

    def open(self) -> Self:
        """Open the file, or create it, and settle what a kill left open. May be called twice.

        Raises DataError where another process writes it, or for a damaged line.
        """
        if self._opened:
            return self
        if self.path is not None:
            self._log = AppendLog(self.path, self._read)
        self._opened = True
        for call in [call for call in self.calls if call.billing == "open"]:
            if call.batch in self.jobs:
                continue
            # A kill, or its job's lines were removed.
            reason = "interrupted" if call.batch is None else "given_up"
            self.settle(replace(call, billing="possibly_paid", reason=reason), call.names)
        return self

    def _read(self, record: dict[str, Any], where: str) -> None:
        """Apply a line of the file. Raises DataError, which begins with `where`."""
        self.apply_line(record, where)
        lines = (record, *record.get("more", ()))
        outcomes = read_outcomes(record, where)
        for line, response in zip(lines, outcomes, strict=False):
            self.outcomes += 1
            self.on_outcome(response, where)
            if isinstance(response, Response):
                stage = str(record.get("stage", ""))
                prompt = str(line.get("prompt", ""))
                reply = Reply(**{name: getattr(response, name) for name in _REPLY_FIELDS})
                self.remember(stage, response.id, response.sample, prompt, reply)

    def apply_line(self, record: Mapping[str, Any], where: str) -> None:
        """Apply a line about money or jobs. Raises DataError for one that cannot follow those before it."""
        try:
            if "reserved" in record:
                call = read_record(PaidCall, {"id": "", **record}, where)
                if call.number != len(self.calls) + 1:
                    raise ValueError(f"call {call.number} cannot follow call {len(self.calls)}")
                self._put(call)
            elif "job" in record:
                self._apply_event(record)
            elif "call" in record:
                settlement = read_record(Settlement, record, where)
                if settlement.call > len(self.calls):
                    raise ValueError(f"call {settlement.call} is not open")
                self._put(settlement.applied(self.calls[settlement.call - 1]))
        except (KeyError, ValueError, TypeError) as error:
            why = f"{error.args[0]} is missing" if isinstance(error, KeyError) else error
            raise DataError(f"{where}: not a line of a call store: {why}") from error

    def _put(self, call: PaidCall) -> None:
        if call.number > len(self.calls):
            self.calls.append(call)
            if call.batch in self.jobs:
                self.jobs[call.batch].numbers.append(call.number)
        else:
            self._count(self.calls[call.number - 1], -1)
            self.calls[call.number - 1] = call
        self._count(call, 1)

    def _count(self, call: PaidCall, sign: int) -> None:
        name, dollars = call.cost
        if dollars is None:
            self._unknown[name] += sign
        else:
            self._dollars[name] += sign * dollars

    def _apply_event(self, line: Mapping[str, Any]) -> BatchRecord:
        mark = str(line["job"])
        if line["event"] == "planned":
            self.jobs[mark] = BatchRecord(
                batch=mark,
                stage=str(line["stage"]),
                model=str(line["asked"]),
                when=float(line["when"]),
            )
        elif mark not in self.jobs:
            raise ValueError(f"batch {quoted(mark)} was never planned")
        else:
            self.jobs[mark] = self.jobs[mark].after_event(line)
        return self.jobs[mark]

    # --- Content --------------------------------------------------------------------------------

    def dollars(self, *names: str) -> Decimal | None:
        """Return one or several of the sums `usd_paid`, `usd_possible`, `usd_open` of all calls; None: unknown."""
        total = Decimal(0)
        for name in names or self._dollars:
            if self._unknown[name]:
                return None
            total += self._dollars[name]
        return total

    def totals(self) -> dict[str, Totals]:
        """Return the totals of each stage that had a call."""
        stages: dict[str, Totals] = {}
        for call in self.calls:
            totals = stages.setdefault(call.stage, Totals())
            usage = call.usage or Usage()
            totals.calls += 1
            totals.unmetered += call.unmetered
            totals.input_tokens += usage.input_tokens or 0
            totals.cache_read_tokens += usage.cache_read_tokens or 0
            totals.output_tokens += usage.output_tokens or 0
            totals.prices = call.prices
            totals.unpriced = call.price_words or totals.unpriced
            setattr(totals, call.billing, getattr(totals, call.billing) + 1)
            name, dollars = call.cost
            setattr(totals, name, add(getattr(totals, name), dollars))
        return stages

    def unpriced_call(self) -> PaidCall | None:
        """Return the first call whose answer says of its price what the list does not know."""
        return next((call for call in self.calls if call.price_words), None)

    def calls_of(self, job: BatchRecord) -> list[PaidCall]:
        """Return the calls of a job, in their order."""
        return [self.calls[number - 1] for number in job.numbers]

    def open_calls(self, job: BatchRecord) -> list[PaidCall]:
        """Return the calls of a job that have not ended, in their order."""
        return [call for call in self.calls_of(job) if call.billing == "open"]

    def open_jobs(self, stage: str) -> list[BatchRecord]:
        """Return the jobs of a stage that still hold open calls, oldest first."""
        jobs = [job for job in self.jobs.values() if job.state != "closed" and job.stage == stage]
        return [job for job in jobs if self.open_calls(job)]

    def is_disposable(self) -> bool:
        """Whether nothing is lost with the file: it holds no reply, nothing may have been paid, and no job may run."""
        if self.outcomes or any(call.billing != "free" for call in self.calls):
            return False
        return all(job.state == "closed" for job in self.jobs.values())

    def remember(self, stage: str, item: str, sample: int, prompt: str, reply: Reply) -> None:
        """Keep a reply, by its item and by its prompt."""
        self.replies[stage, item, sample, prompt] = reply
        self.by_prompt[stage, prompt] = reply

    # --- Writing --------------------------------------------------------------------------------

    def append(self, *records: dict[str, Any], sync: bool = False) -> None:
        """Write lines, all or none; `sync`: to the disk. Raises DataError where they cannot be written."""
        self.open()
        if self._log is None:
            return
        self._log.append(*records)
        self.outcomes += sum("text" in record or "failure" in record for record in records)
        if sync:
            with writing(self._log.path), self._log.path.open("ab") as file:
                os.fsync(file.fileno())

    def reserve(self, calls: Sequence[PaidCall], jobs: Sequence[dict[str, Any]]) -> None:
        """Write reserved calls, and the batch jobs that hold them, all or none."""
        lines = [call.to_dict() for call in calls]
        self.append(*jobs, *lines, sync=bool(jobs))
        for line in jobs:
            self._apply_event(line)
        for call in calls:
            self._put(call)

    def settle(self, call: PaidCall, line: dict[str, Any]) -> None:
        """Write how an open call ended: a line of that content, and its cost."""
        if self.calls[call.number - 1].billing != "open":
            raise ValueError(f"call {call.number} is settled already")
        record = {"call": call.number, **line}
        if call.billing != "paid":
            record["cost"] = call.billing
        if call.reason:
            record["reason"] = call.reason
        if call.usd is not None:
            record["usd"] = money_text(call.usd)
        if call.usage is not None:
            record["usage"] = fields_of(call.usage)
        self.append(record)
        self._put(call)

    def record_job_event(self, record: BatchRecord, event: str, **details: Any) -> BatchRecord:
        """Write an event of a job, to the disk; return its new state."""
        line = {"job": record.batch, "event": event, **details}
        self.append(line, sync=True)
        return self._apply_event(line)

    def reprice(self, prices: PriceList) -> None:
        """Write down prices of calls whose cost was unknown, as far as they are known now."""
        for call in [call for call in self.calls if call.cost[1] is None]:
            price = prices.models.get(call.model)
            if price is None:
                continue
            batch = call.batch is not None
            metered = call.cost[0] == "usd_paid"
            if metered and call.usage is not None:
                usd = price.cost(call.usage, batch)
            else:
                usd = price.worst(*call.bound, batch)
            if usd is not None:
                line = {"call": call.number, "priced": money_text(usd)}
                self.append(line)
                self.apply_line(line, str(self.path))

    def close(self) -> None:
        """Release the file; open calls stay open in it. Calling it twice does no harm."""
        if self._log is not None:
            self._log.close()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(self, *_: object) -> None:
        self.close()


def read_store(path: Path) -> CallStore:
    """Read the money and the jobs of a `calls.jsonl`, which may not exist, without a lock. Raises DataError."""
    store = CallStore()
    if path.exists():
        for where, record in read_jsonl(path, torn_tail=True, skip=(_COSTLESS,)):
            store.apply_line(record, where)
    return store


def read_stores(folder: Path) -> Iterator[CallStore]:
    """Read the store of a run, study or workspace, that of its judges, and those of its stages."""
    yield from map(read_store, (folder / CALLS, *sorted(folder.glob(f"*/{CALLS}"))))


def read_costs(folder: Path) -> dict[str, Totals]:
    """Read the totals of each stage; empty where no call cost anything. Raises DataError for a damaged line."""
    costs: dict[str, Totals] = {}
    for store in read_stores(folder):
        costs |= store.totals()
    return costs


def fields_of(record: Reply | Usage | Failure) -> dict[str, Any]:
    """Return the fields that are not None, as their lines hold them."""
    values = {name: getattr(record, name) for name in _FIELDS[type(record)]}
    return {name: value for name, value in values.items() if value is not None}
