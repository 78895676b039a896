"""The totals of paid calls, as summaries, tables and `h2htalk costs` show them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any

from h2htalk.chat.costs.prices import add, money_text

_NOTHING = Decimal(0)


@dataclass(slots=True)
class Totals:
    """The totals of a stage's calls. Every attempt is a call; dollars are exact, and None where unknown.

    `unmetered` of the paid calls came without a count of tokens. `usd_paid` is for replies that were counted,
    `usd_possible` the most for possibly paid and unmetered calls, `usd_open` for those that have not ended (a running
    batch). `prices`: the date of the prices of the last calls; empty where their price is unknown.
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


def sum_totals(stages: Iterable[Totals]) -> Totals:
    """Add the totals of several stages; `prices` lists each date among them."""
    totals = list(stages)
    values: dict[str, Any] = {item.name: [getattr(one, item.name) for one in totals] for item in fields(Totals)}
    prices = ", ".join(sorted({*values.pop("prices")} - {""}))
    for name, parts in values.items():
        values[name] = add(*parts) if name.startswith("usd_") else sum(parts)
    return Totals(**values, prices=prices)
