"""The records of a call store: a paid call, its settlement, a batch job. `call_store` writes and reads their lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import Field

from h2htalk.chat.prices import money_text, price_words
from h2htalk.chat.protocol import Billing, Bound
from h2htalk.data.responses import SampleKey, Usage
from h2htalk.errors import quoted

Dollars = Annotated[Decimal, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]


@dataclass(frozen=True, slots=True)
class PaidCall:
    """A call that may cost money: the most that it can cost, and how it ended.

    Attributes:
        id: id of its requests; empty once it was erased.
        bound, worst: the most that it can cost, in tokens and in dollars.
        prompts: the fingerprint of each sample's prompt.
        item: the item that it is about, where `id` names more.
        batch: the mark of its job.
        prices: the date of its prices.
        usage, usd: tokens and dollars of a paid call; None where they are unknown.
        reason: why a call gave no usable reply.
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
        if self.billing != "paid":
            return False
        usage = self.usage
        return usage is None or usage.input_tokens is None or usage.output_tokens is None

    @property
    def cost(self) -> tuple[str, Decimal | None]:
        """The sum of `Totals` that it belongs to, and the dollars: what was paid, else its worst case."""
        if self.billing == "free":
            return "usd_paid", Decimal(0)
        if self.billing == "open":
            return "usd_open", self.worst
        if self.billing == "paid" and not self.unmetered:
            return "usd_paid", self.usd
        return "usd_possible", self.worst

    @property
    def price_words(self) -> str:
        """What its answer says of a price that is not known; empty where the price is known, or no word says why."""
        if self.usage is None or self.cost[1] is not None:
            return ""
        words = price_words(self.usage, self.batch is not None)
        return ", ".join(words)

    def to_dict(self) -> dict[str, Any]:
        """Return its line before it is sent."""
        line = {"reserved": self.number, "stage": self.stage, "asked": self.model, **self.names}
        line["samples"] = self.samples
        line["bound"] = self.bound
        line["worst"] = money_text(self.worst)
        line["prompts"] = self.prompts
        if self.batch:
            line["batch"] = self.batch
        if self.prices:
            line["prices"] = self.prices
        return line


@dataclass(frozen=True, slots=True)
class Settlement:
    """A line that ends a call (its replies aside), or prices it later (`priced`)."""

    call: Annotated[int, Field(ge=1)]
    cost: Billing = "paid"
    usage: Usage | None = None
    usd: Dollars | None = None
    request_id: str | None = None
    reason: str = ""
    priced: Dollars | None = None

    def applied(self, call: PaidCall) -> PaidCall:
        """Return a call after this line about it. Raises ValueError where it cannot follow."""
        if self.priced is None:
            if call.billing != "open":
                raise ValueError(f"call {self.call} is not open")
            return replace(
                call,
                billing=self.cost,
                usage=self.usage,
                usd=self.usd,
                request_id=self.request_id,
                reason=self.reason,
            )
        name, dollars = call.cost
        if dollars is not None:
            raise ValueError(f"call {self.call} is not open")
        if name == "usd_paid":
            return replace(call, usd=self.priced)
        return replace(call, worst=self.priced)


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """The state of one batch job: `planned` (not sent), `sending` (possibly), `submitted` (not collected) or `closed`.

    Attributes:
        batch: its mark, 12 random hex digits, by which it is known before the provider gives it an id (`job`).
        when: Unix time of the last request that was sent.
        numbers: the numbers of its calls in the store, in their order in the job.
        file: OpenAI's id of the uploaded requests.
        after: the provider's newest job before this one.
    """

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
                when = float(line["when"])
                return replace(self, state="sending", when=when, after=line.get("after"))
            case "submitted":
                return replace(self, state="submitted", job=str(line["provider_id"]))
            case "collected" | "abandoned":
                return replace(self, state="closed")
        raise ValueError(f"event is {quoted(line['event'])}")
