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
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from h2htalk.chat.prices import PriceList, Totals, add, dollars_text, money_text
from h2htalk.chat.protocol import Billing, Bound, Call, FailedCall, Found, Outcome, Reply, Request
from h2htalk.chat.wires import replies_of
from h2htalk.data.files import AppendLog, read_jsonl, writing
from h2htalk.data.records import read_record
from h2htalk.data.responses import CALLS, FailedResponse, Failure, Response, SampleKey, Usage, read_outcomes
from h2htalk.errors import ConfigError, DataError, quoted

_NAME_PRICE = "name it in a file of prices (--prices, prices = FILE)"
UNSENT = "not sent"  # of calls of a job that was only planned
_COSTLESS = b'{"id":'  # lines begin with it that are about no money
_NOTHING = Decimal(0)
_FIELDS: Mapping[type, list[str]] = {kind: [item.name for item in fields(kind)] for kind in (Reply, Usage, Failure)}
Dollars = Annotated[Decimal, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]


class CostLimitError(ConfigError):
    """The worst case of a call would exceed the limit. It was not reserved and must not be sent."""


# --- What the lines say -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PaidCall:
    """A call that may cost money: the most that it can cost (`bound` in tokens, `worst` in dollars), and how it ended.
    `id`: of its requests; empty once it was erased. `prompts`: the fingerprint of each sample's prompt. `item`: what
    it is about, where `id` names more. `batch`: the mark of its job. `prices`: their date. `usage`, `usd`: of a paid
    call; None where they are unknown. `reason`: of a call without a usable reply."""

    number: Annotated[Count, Field(alias="reserved")]
    stage: str
    model: Annotated[str, Field(alias="asked")]
    id: str
    samples: tuple[Count, ...]
    bound: Bound
    worst: Dollars | None
    prompts: tuple[str, ...] = ()
    item: str | None = None
    batch: str | None = None
    prices: str = ""
    billing: Billing | Literal["open"] = "open"
    usage: Usage | None = None
    usd: Decimal | None = None
    request_id: str | None = None
    reason: str = ""

    @property
    def items(self) -> tuple[SampleKey, ...]:
        """The samples that it asks for."""
        return tuple((self.id, sample) for sample in self.samples)

    @property
    def names(self) -> dict[str, Any]:
        """The ids in every line about it."""
        return {"id": self.id} if self.item is None else {"id": self.id, "item": self.item}

    @property
    def unmetered(self) -> bool:
        """Whether the reply came without a count of its tokens: it cost its worst case at most."""
        usage = self.usage
        return self.billing == "paid" and (usage is None or usage.input_tokens is None or usage.output_tokens is None)

    @property
    def cost(self) -> tuple[str, Decimal | None]:
        """The sum of `Totals` that it belongs to, and the dollars: what was paid, else its worst case."""
        if self.billing == "free" or (self.billing == "paid" and not self.unmetered):
            return "usd_paid", self.usd if self.billing == "paid" else _NOTHING
        return "usd_open" if self.billing == "open" else "usd_possible", self.worst

    def to_dict(self) -> dict[str, Any]:
        """Return its line before it is sent."""
        line = {"reserved": self.number, "stage": self.stage, "asked": self.model, **self.names}
        line |= {"samples": self.samples, "bound": self.bound, "worst": money_text(self.worst), "prompts": self.prompts}
        return line | {name: value for name in ("batch", "prices") if (value := getattr(self, name))}


@dataclass(frozen=True, slots=True)
class _End:
    """A line that ends a call (its replies aside), or prices it later."""

    call: Annotated[int, Field(ge=1)]
    cost: Billing = "paid"
    usage: Usage | None = None
    usd: Dollars | None = None
    request_id: str | None = None
    reason: str = ""
    priced: Dollars | None = None


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """The state of one batch job: `planned` (not sent), `sending` (possibly), `submitted` (not collected) or `closed`.
    `batch`: its mark, 12 random hex digits, by which it is known before the provider gives it an id (`job`). `when`:
    Unix time of the last request that was sent. `numbers`: its calls' numbers in the store, in their order in the job.
    `file`: OpenAI's id of the uploaded requests. `after`: the provider's newest job before this one."""

    batch: str
    stage: str
    model: str
    when: float
    state: Literal["planned", "sending", "submitted", "closed"] = "planned"
    numbers: list[int] = field(default_factory=list)
    file: str | None = None
    after: str | None = None
    job: str | None = None

    @property
    def label(self) -> str:
        """The job's id, or its mark while it has none, for messages."""
        return self.job or f"{self.batch} (without an id yet)"

    def after_event(self, line: Mapping[str, Any]) -> BatchRecord:
        """Return the job after one more line about it. Raises KeyError or ValueError for a line that cannot follow."""
        match line["event"]:
            case "uploaded":
                return replace(self, file=str(line["file"]))
            case "sending":
                return replace(self, state="sending", when=float(line["when"]), after=line.get("after"))
            case "submitted":
                return replace(self, state="submitted", job=str(line["provider_id"]))
            case "collected" | "abandoned":
                return replace(self, state="closed")
        raise ValueError(f"event is {quoted(line['event'])}")


# --- The file ---------------------------------------------------------------------------------------------------


class CallStore:
    """The one writer of a `calls.jsonl`; None keeps it in memory only. Not for several threads at once.
    It holds all paid calls by their numbers from 1, batch jobs by mark, replies by stage, id, sample and hash of the
    prompt and again by stage and hash alone, and the number of replies and final failures. `on_outcome` is called with
    each of those that the file holds when it is opened, and its position. Nothing is read or written before `open`."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.calls: list[PaidCall] = []
        self.jobs: dict[str, BatchRecord] = {}
        self.replies: dict[tuple[str, str, int, str], Reply] = {}
        self.by_prompt: dict[tuple[str, str], Reply] = {}
        self.outcomes = 0
        self.on_outcome: Callable[[Response | FailedResponse, str], None] = lambda response, where: None
        self._dollars = dict.fromkeys(("usd_paid", "usd_possible", "usd_open"), _NOTHING)  # of calls whose cost is
        self._unknown: Counter[str] = Counter()  # known; and how many others there are
        self._log: AppendLog | None = None
        self._opened = False

    def open(self) -> Self:
        """Open the file, or create it, and settle what a kill left open. May be called twice. Raises DataError where
        another process writes it, or for a damaged line."""
        if self._opened:
            return self
        self._log, self._opened = None if self.path is None else AppendLog(self.path, self._read), True
        for call in [call for call in self.calls if call.billing == "open"]:
            if call.batch is None or call.batch not in self.jobs:
                lost = "interrupted" if call.batch is None else "given_up"  # a kill, or its job's lines were removed
                self.settle(replace(call, billing="possibly_paid", reason=lost), call.names)
        return self

    def _read(self, record: dict[str, Any], where: str) -> None:
        """Take one line that is there. Raises DataError, which begins with `where`."""
        self.take(record, where)
        prompts = (str(one.get("prompt", "")) for one in (record, *record.get("more", ())))
        for response, prompt in zip(read_outcomes(record, where), prompts, strict=False):
            self.outcomes += 1
            self.on_outcome(response, where)
            if isinstance(response, Response):
                key = str(record.get("stage", "")), response.id, response.sample, prompt
                self.remember(*key, Reply(**{item.name: getattr(response, item.name) for item in fields(Reply)}))

    def take(self, record: Mapping[str, Any], where: str) -> None:
        """Take what a line says about money and jobs; raises DataError for one that cannot follow those before it."""
        try:
            if "reserved" in record:
                made = read_record(PaidCall, {"id": "", **record}, where)
                if made.number != len(self.calls) + 1:
                    raise ValueError(f"call {made.number} cannot follow call {len(self.calls)}")
                self._put(made)
            elif "job" in record:
                self._take_event(record)
            elif "call" in record:
                end = read_record(_End, record, where)
                call = self.calls[end.call - 1] if end.call <= len(self.calls) else None
                awaited = call is not None and (call.billing == "open" if end.priced is None else call.cost[1] is None)
                if call is None or not awaited:
                    raise ValueError(f"call {end.call} is not open")
                if end.priced is not None:  # its price came later than the call
                    paid = call.cost[0] == "usd_paid"
                    self._put(replace(call, usd=end.priced) if paid else replace(call, worst=end.priced))
                else:
                    about = {name: getattr(end, name) for name in ("usage", "usd", "request_id", "reason")}
                    self._put(replace(call, billing=end.cost, **about))
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
        self._dollars[name] += sign * (dollars or 0)
        self._unknown[name] += sign * (dollars is None)

    def _take_event(self, line: Mapping[str, Any]) -> BatchRecord:
        mark = str(line["job"])
        if line["event"] == "planned":
            self.jobs[mark] = BatchRecord(mark, str(line["stage"]), str(line["asked"]), float(line["when"]))
        elif mark not in self.jobs:
            raise ValueError(f"batch {quoted(mark)} was never planned")
        else:
            self.jobs[mark] = self.jobs[mark].after_event(line)
        return self.jobs[mark]

    # --- What it holds ------------------------------------------------------------------------------------------

    def dollars(self, *names: str) -> Decimal | None:
        """Return one or several of the sums `usd_paid`, `usd_possible`, `usd_open` of all calls; None: unknown."""
        return add(*(None if self._unknown[name] else self._dollars[name] for name in names or self._dollars))

    def totals(self) -> dict[str, Totals]:
        """Return the totals of each stage that had a call."""
        stages: dict[str, Totals] = {}
        for call in self.calls:
            sums, usage, (name, dollars) = stages.setdefault(call.stage, Totals()), call.usage or Usage(), call.cost
            tokens = [(one, getattr(usage, one) or 0) for one in ("input_tokens", "cache_read_tokens", "output_tokens")]
            for counted, number in (("calls", 1), (call.billing, 1), ("unmetered", int(call.unmetered)), *tokens):
                setattr(sums, counted, getattr(sums, counted) + number)
            setattr(sums, name, add(getattr(sums, name), dollars))
            sums.prices = call.prices
        return stages

    def calls_of(self, job: BatchRecord) -> list[PaidCall]:
        """Return the calls of a job, in their order."""
        return [self.calls[number - 1] for number in job.numbers]

    def open_jobs(self, stage: str) -> list[BatchRecord]:
        """Return the jobs of a stage that still hold open calls, oldest first."""
        jobs = (job for job in self.jobs.values() if job.state != "closed" and job.stage == stage)
        return [job for job in jobs if any(call.billing == "open" for call in self.calls_of(job))]

    def worthless(self) -> bool:
        """Whether nothing is lost with the file: it holds no reply, nothing may have been paid, and no job may run."""
        costs_nothing = all(call.billing == "free" for call in self.calls)
        return not self.outcomes and costs_nothing and all(job.state == "closed" for job in self.jobs.values())

    def remember(self, stage: str, item: str, sample: int, prompt: str, reply: Reply) -> None:
        """Keep a reply, to be found by its item or its prompt."""
        self.replies[stage, item, sample, prompt] = self.by_prompt[stage, prompt] = reply

    # --- Writing ------------------------------------------------------------------------------------------------

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
        """Write reserved calls, and the batch jobs that they are of, all or none."""
        self.append(*jobs, *(call.to_dict() for call in calls), sync=bool(jobs))
        for line in jobs:
            self._take_event(line)
        for call in calls:
            self._put(call)

    def settle(self, call: PaidCall, line: dict[str, Any]) -> None:
        """Write how an open call ended: a line of that content, and what it cost."""
        if self.calls[call.number - 1].billing != "open":
            raise ValueError(f"call {call.number} is settled already")
        ended = {
            "cost": call.billing if call.billing != "paid" else "",
            "reason": call.reason,
            "usd": money_text(call.usd),
        }
        record = {"call": call.number, **line} | {name: value for name, value in ended.items() if value}
        self.append(record | ({} if call.usage is None else {"usage": _known(call.usage)}))
        self._put(call)

    def note(self, record: BatchRecord, event: str, **details: Any) -> BatchRecord:
        """Write an event of a job, to the disk; returns its new state."""
        line = {"job": record.batch, "event": event, **details}
        self.append(line, sync=True)
        return self._take_event(line)

    def reprice(self, prices: PriceList) -> None:
        """Write down prices of calls whose cost was unknown, as far as they are known now."""
        for call in [call for call in self.calls if call.cost[1] is None]:
            if (price := prices.models.get(call.model)) is None:
                continue
            metered, batch = call.usage if call.cost[0] == "usd_paid" else None, call.batch is not None
            usd = price.worst(*call.bound, batch) if metered is None else price.cost(metered, batch)
            if usd is not None:
                line = {"call": call.number, "priced": money_text(usd)}
                self.append(line)
                self.take(line, str(self.path))

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
    for where, record in read_jsonl(path, torn_tail=True, skip=(_COSTLESS,)) if path.exists() else ():
        store.take(record, where)
    return store


def read_stores(folder: Path) -> Iterator[CallStore]:
    """Read the stores of a run, study or workspace: its own, that of its judges, those of its stages."""
    yield from map(read_store, (folder / CALLS, *sorted(folder.glob(f"*/{CALLS}"))))


def read_costs(folder: Path) -> dict[str, Totals]:
    """Read the totals of each stage; empty where no call cost anything. Raises DataError for a damaged line."""
    return {stage: one for store in read_stores(folder) for stage, one in store.totals().items()}


# --- The calls of one stage -------------------------------------------------------------------------------------


@dataclass
class StageCalls:
    """The calls of one model (`ENGINE:MODEL`) for one stage. Engines reserve and settle paid calls through it. `paid`:
    whether they cost money: else nothing is reserved. `identity`: the model as the hash of a prompt has it; empty:
    `model`. `prices`: None where dollars stay unknown. `limit`: US dollars that all calls of the store may cost, those
    of earlier starts included; `claim` is asked for that many before a call is refused, and returns the new limit.
    `endpoint`: stored with every reply. Raises ConfigError for a limit but no price."""

    store: CallStore
    stage: str
    model: str
    _: KW_ONLY
    paid: bool = True
    identity: str = ""
    prices: PriceList | None = None
    limit: Decimal | None = None
    endpoint: str | None = None
    claim: Callable[[Decimal], Decimal] | None = None

    def __post_init__(self) -> None:
        self.identity = self.identity or self.model
        self.price = self.prices.models.get(self.model) if self.prices is not None and self.paid else None
        if self.paid and self.limit is not None and self.price is None:
            meant = self.prices.suggest(self.model) if self.prices else ""
            raise ConfigError(f"max_cost: the price of {self.model} is unknown: {meant}{_NAME_PRICE}")

    def open(self, batch: bool) -> Self:
        """Open the store, price what had no price, and free jobs that were never sent. Raises ConfigError where jobs of
        this stage are open and `batch` is not set, or the price of earlier calls is unknown and there is a limit."""
        self.store.open()
        if self.prices is not None:
            self.store.reprice(self.prices)
        if self.paid and self.limit is not None and self.store.dollars() is None:
            raise ConfigError(f"max_cost: {self.store.path} holds calls whose price is unknown: {_NAME_PRICE}")
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
        about = {"event": "planned", "stage": self.stage, "asked": self.model, "when": when}
        lines = [{"job": secrets.token_hex(6), **about} for _ in jobs]
        pairs = zip(lines, jobs, strict=True)
        self._reserve([(call, bound, str(line["job"])) for line, calls in pairs for call, bound in calls], *lines)
        return [self.store.jobs[str(line["job"])] for line in lines]

    def _reserve(self, calls: list[tuple[Call, Bound, str | None]], *jobs: dict[str, Any]) -> list[PaidCall]:
        store, price, made = self.store.open(), self.price, []
        for number, (call, bound, batch) in enumerate(calls, len(store.calls) + 1):
            worst = None if price is None else price.worst(*bound, batch is not None)
            prompts = tuple(prompt_fingerprint(request, self.identity) for request in call.requests)
            about = (number, self.stage, self.model, call.requests[0].id, tuple(one.sample for one in call.requests))
            date = "" if price is None else price.date
            made.append(PaidCall(*about, bound, worst, prompts, call.requests[0].item, batch, date))
        self._require_room([call.worst for call in made])
        store.reserve(made, jobs)
        return made

    def _require_room(self, worst: Sequence[Decimal | None]) -> None:
        if self.limit is None:
            return
        needed, committed = add(*worst), self.store.dollars()
        what = "this call" if len(worst) == 1 else f"these {len(worst):,} calls"
        if needed is None:
            advice = "name the price, for a batch with `batch` too, in a file of prices"
            raise CostLimitError(f"max_cost: what {what} can cost is unknown: {advice}")
        if committed is None:
            raise CostLimitError("max_cost: what was paid so far is unknown: an answer came at an unknown price")
        if committed + needed > self.limit and self.claim is not None:
            self.limit = self.claim(committed + needed)
        if committed + needed > self.limit:
            spent = f"max_cost {self.limit:f}: {dollars_text(committed, True)} US dollars are spent or reserved"
            more = f"{what} may cost {dollars_text(needed, True)} more: raise it (--max-cost), or ask less"
            raise CostLimitError(f"{spent}, and {more}")

    def settle(self, call: PaidCall, found: Found) -> None:
        """Store what came of a call and what it cost, in one line. A refusal is a reply."""
        billing, reason = (found.billing, found.reason) if isinstance(found, FailedCall) else ("paid", "")
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
        """Store the outcome of a request, unless its line was written when it was paid for. `copy`: the outcome is that
        of an equal request, which was called for in its place."""
        if self.paid and isinstance(outcome, Reply) and not copy:
            return
        prompt = prompt_fingerprint(request, self.identity)
        more = {"prompt": prompt, "item": request.item, "copy": copy}
        self.put(request.id, request.sample, outcome, {key: value for key, value in more.items() if value})
        if isinstance(outcome, Reply):
            self.store.remember(self.stage, request.id, request.sample, prompt, outcome)

    def put(self, item: str, sample: int, outcome: Outcome, more: dict[str, Any] | None = None) -> None:
        """Store an outcome that cost nothing, in a line of its own with `more` fields."""
        line = self._line(item, sample, outcome) | {"stage": self.stage, "asked": self.identity}
        self.store.append(line | (more or {}))

    def _line(self, item: str, sample: int, outcome: Outcome) -> dict[str, Any]:
        """The fields of a `Response` or a `FailedResponse`."""
        about, at = {"id": item, "sample": sample}, round(time.time(), 3)
        if isinstance(outcome, Failure):
            return about | {"failure": _known(outcome), "at": at}
        where = {"endpoint": self.endpoint} if self.endpoint else {}
        return about | _known(outcome) | {"usage": _known(outcome.usage), **where, "at": at}

    def find(self, request: Request) -> Reply | None:
        """Return the stored reply to a request: to the same prompt of the same item, sample, stage and model."""
        prompt = prompt_fingerprint(request, self.identity)
        return self.store.replies.get((self.stage, request.id, request.sample, prompt))

    def spent(self) -> str:
        """Return the cost of all calls of the store, for the progress line; empty where they cost nothing."""
        if not self.paid:
            return ""
        paid, possible = self.store.dollars("usd_paid"), self.store.dollars("usd_possible")
        if paid is None or possible is None:
            return "price unknown"
        return f"{dollars_text(paid)}{f' (+ {dollars_text(possible, True)} possibly)' if possible else ''} US dollars"

    def open_jobs(self) -> list[BatchRecord]:
        """The jobs of this stage that still hold open calls, oldest first."""
        return self.store.open_jobs(self.stage)

    def abandon(self, record: BatchRecord, reason: str, billing: Billing = "free", why: str = "") -> None:
        """Give up a job without results: settle its open calls, and record `why` (the reason of its calls)."""
        for call in self.store.calls_of(record):
            if call.billing == "open":
                self.settle(call, FailedCall(reason, "", billing))
        self.store.note(record, "abandoned", reason=why or reason)


def require_no_jobs(jobs: Sequence[BatchRecord], where: object) -> None:
    """Raise ConfigError where jobs may exist at the provider: without batches their calls would be paid twice."""
    if sent := [job.label for job in jobs if job.state != "planned"]:
        named = f"batch job{'s' if len(sent) > 1 else ''} {', '.join(sent)}"
        raise ConfigError(f"{where}: waits for {named}: add --batch (batch = true) until collected")


def prompt_fingerprint(request: Request, model: str) -> str:
    """16 hexadecimal digits of the prompt and the model: a stored reply to another prompt or model is not used."""
    parts = [model, *(f"{message.role}\0{message.content}" for message in request.messages)]
    parts += [repr(request.sampling), request.response_schema.name if request.response_schema else ""]
    return sha256("\0\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _known(one: Reply | Usage | Failure) -> dict[str, Any]:
    """The fields that are not None, as their lines hold them."""
    return {name: value for name in _FIELDS[type(one)] if (value := getattr(one, name)) is not None}
