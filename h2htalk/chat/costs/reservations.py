"""Reservations of paid calls, their settlements and totals; `cost_log` reads them, `ledger` writes them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from decimal import ROUND_CEILING, ROUND_HALF_UP, Decimal
from typing import Any

from h2htalk.chat.calls import Billing, Bound
from h2htalk.data.responses import SampleKey, Usage

_NOTHING = Decimal(0)


@dataclass(frozen=True, slots=True)
class Reservation:
    """One reserved call: its number in the cost log, and the most that it can cost (None: unknown)."""

    number: int
    items: tuple[SampleKey, ...]
    bound: Bound
    worst: Decimal | None
    batch: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return its line in the cost log."""
        record: dict[str, Any] = {
            "event": "sent",
            "call": self.number,
            "items": [list(item) for item in self.items],
            "bound": [self.bound.input_tokens, self.bound.output_tokens],
            "usd": money_text(self.worst),
        }
        if self.batch is not None:
            record["batch"] = self.batch
        return record


@dataclass(frozen=True, slots=True)
class Settlement:
    """How a call ended.

    `usd`: of a paid call, None where price or usage are unknown. `reason`: of a call that was free or possibly paid.
    """

    reservation: Reservation
    billing: Billing
    usage: Usage | None = None
    usd: Decimal | None = None
    request_id: str | None = None
    reason: str = ""

    @property
    def unmetered(self) -> bool:
        """Whether the reply came without a count of its tokens: it cost its worst case at most."""
        usage = self.usage
        return self.billing == "paid" and (usage is None or usage.input_tokens is None or usage.output_tokens is None)

    def to_dict(self) -> dict[str, Any]:
        """Return its line in the cost log."""
        record: dict[str, Any] = {"event": self.billing, "call": self.reservation.number}
        if self.billing != "paid":
            return record | {"reason": self.reason}
        if self.usage is not None:
            record["usage"] = self.usage.to_dict()
        record["usd"] = money_text(self.usd)
        return record if self.request_id is None else record | {"request_id": self.request_id}


@dataclass(frozen=True, slots=True)
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

    def to_dict(self) -> dict[str, Any]:
        """As summaries and JSON have it; dollars as decimal text, null where unknown."""
        values = ((item.name, getattr(self, item.name)) for item in fields(self))
        return {name: money_text(v) if isinstance(v, Decimal) else v for name, v in values}


def add(*dollars: Decimal | None) -> Decimal | None:
    """Return a sum, None as soon as one part is unknown."""
    total = _NOTHING
    for amount in dollars:
        if amount is None:
            return None
        total += amount
    return total


def sum_totals(stages: Iterable[Totals]) -> Totals:
    """Add the totals of several stages; `prices` lists each date among them."""
    stages = list(stages)
    sums: dict[str, Any] = {}
    for name in (item.name for item in fields(Totals)):
        values = [getattr(stage, name) for stage in stages]
        if name == "prices":
            sums[name] = ", ".join(sorted({*values} - {""}))
        else:
            sums[name] = add(*values) if name.startswith("usd_") else sum(values)
    return Totals(**sums)


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
