"""Paid calls, batch jobs and totals, and the one fold that reads them from `calls.jsonl`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from decimal import ROUND_CEILING, ROUND_HALF_UP, Decimal
from typing import Annotated, Any, Literal

from pydantic import Field, PlainSerializer

from h2htalk.chat.calls import Billing, Bound
from h2htalk.data.records import adapter, read_record
from h2htalk.data.responses import SampleKey, Usage
from h2htalk.errors import DataError, quoted

_NOTHING = Decimal(0)
Dollars = Annotated[
    Decimal, Field(ge=0, allow_inf_nan=False), PlainSerializer(lambda dollars: money_text(dollars), when_used="json")
]
Count = Annotated[int, Field(ge=0)]
_TOKENS = ("input_tokens", "cache_read_tokens", "output_tokens")
_COST: Mapping[str, Billing] = {"free": "free", "paid": "paid", "possible": "possibly_paid"}
COST_NAMES: Mapping[str, str] = {billing: name for name, billing in _COST.items()}


@dataclass(frozen=True, slots=True)
class PaidCall:
    """A call that may cost money: the most that it can cost, and how it ended.

    Attributes:
        number: its number in the store.
        stage, model: what it is for, and `ENGINE:MODEL`.
        id, samples: of its requests; the id is empty once it was erased.
        bound, worst: the most that it can cost, in tokens and in US dollars (None: unknown).
        prompts: the fingerprint of the prompt of each sample.
        item: what the requests are about, where `id` names more.
        batch: the mark of its job.
        prices: the date of its prices.
        billing: `open` until it has ended.
        usage, usd: of a paid call; None where they are unknown.
        reason: of a call without a usable reply.
    """

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
        line: dict[str, Any] = adapter(PaidCall).dump_python(self, mode="json", by_alias=True, exclude_defaults=True)
        return line


@dataclass(frozen=True, slots=True)
class _End:
    """A line that ends a call (its replies aside), or prices it later."""

    call: Count
    cost: Literal["free", "paid", "possible"] = "paid"
    usage: Usage | None = None
    usd: Dollars | None = None
    request_id: str | None = None
    reason: str = ""
    priced: Dollars = _NOTHING


# planned: not sent. sending: possibly sent. submitted: it runs, or has ended and is not collected.
State = Literal["planned", "sending", "submitted", "closed"]


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """The state of one batch job.

    Attributes:
        batch: its mark, 12 random hex digits, by which it is known before the provider gives it an id.
        stage, model: what its calls are for, and `ENGINE:MODEL`.
        when: Unix time of the last request that was sent.
        calls: the samples that each of its calls asks for; the position of a call is its number in the job.
        first: the number of its first call in the store.
        file: OpenAI's id of the uploaded requests.
        after: the provider's newest job before this one, where a job is recognised by its position only.
        job: the provider's id.
    """

    batch: str
    stage: str
    model: str
    when: float
    state: State = "planned"
    calls: list[tuple[SampleKey, ...]] = field(default_factory=list)
    first: int = 0
    file: str | None = None
    after: str | None = None
    job: str | None = None

    @property
    def label(self) -> str:
        """The job's id, or its mark while it has none, for messages."""
        return self.job or f"{self.batch} (without an id yet)"

    def custom_id(self, number: int) -> str:
        """Return the name of a call in the job."""
        return f"{self.batch}-{number}"

    def after_event(self, raw: Mapping[str, Any]) -> BatchRecord:
        """Return the job after one more line about it. Raises KeyError or ValueError for a line that cannot follow."""
        event = raw["event"]
        if event == "uploaded":
            return replace(self, file=_text(raw["file"]))
        if event == "sending":
            return replace(self, state="sending", when=float(raw["when"]), after=raw.get("after"))
        if event == "submitted":
            return replace(self, state="submitted", job=_text(raw["provider_id"]))
        if event not in ("collected", "abandoned"):
            raise ValueError(f"event is {quoted(event)}")
        return replace(self, state="closed")


# --- Totals -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Totals:
    """The totals of a stage's calls. Every attempt is a call; dollars are exact, and None where unknown.

    Attributes:
        calls: all that were sent, open ones included.
        paid, free, possibly_paid: how they ended; `unmetered` of the paid ones came without a token count.
        input_tokens, cache_read_tokens, output_tokens: of the paid ones, as far as they were counted.
        usd_paid: for replies that arrived and were counted.
        usd_possible: the most for possibly paid and unmetered calls.
        usd_open: the most for calls that have not ended (a running batch).
        prices: the date of the prices of the last calls; empty where their price is unknown.
    """

    calls: int = 0
    paid: int = 0
    free: int = 0
    possibly_paid: int = 0
    unmetered: int = 0
    open: int = 0
    input_tokens: int = 0
    cache_read_tokens: int = 0
    output_tokens: int = 0
    usd_paid: Decimal | None = _NOTHING
    usd_possible: Decimal | None = _NOTHING
    usd_open: Decimal | None = _NOTHING
    prices: str = ""

    @property
    def usd_committed(self) -> Decimal | None:
        """The most that all calls so far can have cost."""
        return add(self.usd_paid, self.usd_possible, self.usd_open)

    def count(self, call: PaidCall, sign: int) -> None:
        """Add a call (-1: take it out again), but for dollars that are unknown."""
        tokens = [(name, getattr(call.usage, name)) for name in _TOKENS] if call.usage is not None else ()
        for name, number in (("calls", 1), (call.billing, 1), ("unmetered", call.unmetered), *tokens, call.cost):
            if number:
                setattr(self, name, getattr(self, name) + sign * number)

    def to_dict(self) -> dict[str, Any]:
        """As summaries and JSON have it; dollars as decimal text, null where unknown."""
        values = ((item.name, getattr(self, item.name)) for item in fields(self))
        return {name: money_text(v) if isinstance(v, Decimal) else v for name, v in values}


def sum_totals(stages: Iterable[Totals]) -> Totals:
    """Add the totals of several stages; `prices` lists each date among them."""
    totals = list(stages)
    values: dict[str, Any] = {item.name: [getattr(one, item.name) for one in totals] for item in fields(Totals)}
    prices = ", ".join(sorted({*values.pop("prices")} - {""}))
    for name, parts in values.items():
        values[name] = add(*parts) if name.startswith("usd_") else sum(parts)
    return Totals(**values, prices=prices)


def add(*dollars: Decimal | None) -> Decimal | None:
    """Return a sum, None as soon as one part is unknown."""
    total = _NOTHING
    for amount in dollars:
        if amount is None:
            return None
        total += amount
    return total


def dollars_text(dollars: Decimal | None, at_most: bool = False) -> str:
    """Format dollars: cents from one dollar on, four decimals below it; `at_most` is rounded up, never down."""
    if dollars is None:
        return "unknown"
    places = Decimal("0.01") if dollars >= 1 or not dollars else Decimal("0.0001")
    if not at_most and 0 < dollars < places:
        return "less than 0.0001"
    return f"{dollars.quantize(places, ROUND_CEILING if at_most else ROUND_HALF_UP):,}"


def money_text(dollars: Decimal | None) -> str | None:
    """Format dollars for files: plain decimal digits, never an exponent."""
    return None if dollars is None else f"{dollars:f}"


# --- The fold ---------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class CallBooks:
    """What `calls.jsonl` says about money and batch jobs, the same whether its calls are made now or read again.

    Attributes:
        last: the number of the last call.
        open: calls that are reserved and not settled, by number.
        jobs: all batch jobs by mark, oldest first.
        unpriced: calls whose cost is unknown, by number.
    """

    last: int = 0
    open: dict[int, PaidCall] = field(default_factory=dict)
    jobs: dict[str, BatchRecord] = field(default_factory=dict)
    unpriced: dict[int, PaidCall] = field(default_factory=dict)
    _stages: dict[str, Totals] = field(default_factory=dict)  # without the costs of unpriced calls

    def totals(self) -> dict[str, Totals]:
        """The totals of each stage that had a call."""
        totals = {stage: replace(one) for stage, one in self._stages.items()}
        for call in self.unpriced.values():
            setattr(totals[call.stage], call.cost[0], None)
        return totals

    @property
    def committed(self) -> Decimal | None:
        """The most that all calls of all stages can have cost."""
        return None if self.unpriced else add(*(one.usd_committed for one in self._stages.values()))

    def reserved(self, call: PaidCall) -> None:
        """Add a reserved call."""
        self.last, self.open[call.number] = call.number, call
        self._count(None, call)
        self._stages[call.stage].prices = call.prices
        if call.batch is not None and (job := self.jobs.get(call.batch)) is not None:
            if not job.calls:
                self.jobs[call.batch] = replace(job, first=call.number)
            job.calls.append(call.items)

    def settled(self, call: PaidCall) -> None:
        """Take the end of an open call."""
        self._count(self.open.pop(call.number), call)

    def priced(self, number: int, dollars: Decimal) -> None:
        """Take the price of a call that came later than the call."""
        before = self.unpriced[number]
        paid = before.cost[0] == "usd_paid"
        after = replace(before, usd=dollars) if paid else replace(before, worst=dollars)
        self._count(before, after)
        if number in self.open:
            self.open[number] = after

    def _count(self, before: PaidCall | None, after: PaidCall) -> None:
        """Count a call as it is now, and no longer as it was."""
        sums = self._stages.setdefault(after.stage, Totals())
        if before is not None:
            sums.count(before, -1)
            self.unpriced.pop(after.number, None)
        sums.count(after, 1)
        if after.cost[1] is None:
            self.unpriced[after.number] = after

    def calls_of(self, job: BatchRecord) -> dict[int, PaidCall]:
        """The calls of a job that have not ended, by their numbers in it."""
        first = self.jobs[job.batch].first
        return {n: self.open[first + n] for n in range(len(job.calls)) if first + n in self.open}

    def open_jobs(self, stage: str) -> list[BatchRecord]:
        """The jobs of a stage that still hold open calls, oldest first."""
        jobs = (job for job in self.jobs.values() if job.state != "closed" and job.stage == stage)
        return [job for job in jobs if self.calls_of(job)]

    def job_event(self, raw: Mapping[str, Any]) -> BatchRecord:
        """Take a line about a batch job."""
        mark = _text(raw["job"])
        if raw["event"] == "planned":
            self.jobs[mark] = BatchRecord(mark, _text(raw["stage"]), _text(raw["asked"]), float(raw["when"]))
        elif mark not in self.jobs:
            raise ValueError(f"batch {quoted(mark)} was never planned")
        else:
            self.jobs[mark] = self.jobs[mark].after_event(raw)
        return self.jobs[mark]

    def read(self, record: Mapping[str, Any], where: str) -> PaidCall | None:
        """Add one line of `calls.jsonl`; returns the call whose end it is.

        Raises:
            DataError: it cannot follow the lines before it, or a field of it is wrong; starts with `where`.
        """
        try:
            if "reserved" in record:
                call = read_record(PaidCall, record if "id" in record else {**record, "id": ""}, where)
                if call.number != self.last + 1:
                    raise ValueError(f"call {call.number} cannot follow call {self.last}")
                self.reserved(call)
            elif "job" in record:
                self.job_event(record)
            elif "call" in record:
                end = read_record(_End, record, where)
                if "priced" in record:
                    self.priced(end.call, end.priced)
                    return None
                if (open_call := self.open.get(end.call)) is None:
                    raise ValueError(f"call {end.call} is not open")
                about: dict[str, Any] = {name: getattr(end, name) for name in ("usage", "usd", "request_id", "reason")}
                self.settled(ended := replace(open_call, billing=_COST[end.cost], **about))
                return ended
        except KeyError as error:
            raise DataError(f"{where}: not a line of a call store: {error.args[0]} is missing") from error
        except (ValueError, TypeError) as error:
            raise DataError(f"{where}: not a line of a call store: {error}") from error
        return None


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{quoted(value)} is no text")
    return value
