"""Read the cost log: which calls were sent, how each ended, and the totals.

A cost log is a JSONL file. A call is written before it is sent and again when its outcome is known:

    {"event": "opened", "stage": "generate", "model": "openai:gpt-4o", "prices": "2026-11-20", "limit": "5"}
    {"event": "sent", "call": 1, "items": [["item-1", 0]], "bound": [1200, 256], "usd": "0.00556"}
    {"event": "paid", "call": 1, "usage": {"input_tokens": 311, ...}, "usd": "0.0012", "request_id": "req_1"}
    {"event": "free", "call": 2, "reason": "rate_limited"}
    {"event": "possibly_paid", "call": 3, "reason": "timeout"}

`usd` of `sent` is the worst case of the call, of `paid` what it cost; null where the price was unknown. A call in a
batch names its `batch`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, cast, get_args

from h2htalk.chat.calls import Billing, Bound
from h2htalk.chat.costs.prices import Price
from h2htalk.chat.costs.reservations import Reservation, Settlement, Totals, add
from h2htalk.data.files import read_jsonl
from h2htalk.data.responses import Usage
from h2htalk.errors import DataError, quoted

_NOTHING = Decimal(0)
_MONEY = re.compile(r"[0-9]{1,12}(\.[0-9]+)?")  # plain digits, as `money_text` writes them
_TOKENS = ("input_tokens", "cache_read_tokens", "output_tokens")


@dataclass(slots=True)
class RunningTotals:
    """Sums of a cost log, the same whether its calls are made now or read again.

    `price` is for calls whose price was unknown when they were reserved; known amounts stay as recorded.
    """

    price: Price | None = None
    model: str = ""
    stage: str = ""
    prices: str = ""
    last: int = 0
    open: dict[int, Reservation] = field(default_factory=dict)
    _counts: Counter[str] = field(default_factory=Counter)
    _paid: Decimal | None = _NOTHING
    _possible: Decimal | None = _NOTHING
    _open: Decimal = _NOTHING  # of those whose worst case is known
    _unknown_open: int = 0

    def totals(self) -> Totals:
        """Return the totals of all calls so far."""
        return Totals(
            calls=self.last,
            open=len(self.open),
            usd_paid=self._paid,
            usd_possible=self._possible,
            usd_open=self._usd_open,
            prices=self.prices,
            **self._counts,
        )

    @property
    def committed(self) -> Decimal | None:
        """See `Totals.usd_committed`."""
        return add(self._paid, self._possible, self._usd_open)

    @property
    def _usd_open(self) -> Decimal | None:
        return None if self._unknown_open else self._open

    def opened(self, stage: str, model: str, prices: str) -> None:
        """Record what the calls to come are for, and the date of the prices they are reserved under."""
        self.stage, self.model, self.prices = stage, model, prices

    def sent(self, reservation: Reservation) -> None:
        """Add a reserved call."""
        self.last = reservation.number
        self.open[reservation.number] = reservation
        self._unknown_open += reservation.worst is None
        self._open += reservation.worst or 0

    def settled(self, end: Settlement) -> None:
        """Settle an open call. Raises KeyError for a call that is not open."""
        reservation = self.open.pop(end.reservation.number)
        self._unknown_open -= reservation.worst is None
        self._open -= reservation.worst or 0
        self._counts[end.billing] += 1
        if end.billing == "possibly_paid" or end.unmetered:
            self._possible = add(self._possible, reservation.worst)
        elif end.billing == "paid":
            self._paid = add(self._paid, end.usd)
        if end.unmetered:
            self._counts["unmetered"] += 1
        for name in _TOKENS if end.usage is not None else ():
            self._counts[name] += getattr(end.usage, name) or 0

    def read(self, record: Mapping[str, Any], where: str) -> Settlement | None:
        """Add one line of a cost log; returns the settlement where the line holds one.

        Raises:
            DataError: it is no such line, or cannot follow the lines before it; starts with `where`.
        """
        event = record.get("event")
        try:
            if event == "opened":
                texts = [record[key] for key in ("stage", "model", "prices")]
                if not all(isinstance(text, str) for text in texts):
                    raise ValueError("stage, model and prices must be text")
                self.opened(*texts)
            elif event == "sent":
                self.sent(self._read_reservation(record))
            elif event in get_args(Billing):
                end = self._read_end(record, cast(Billing, event), where)
                self.settled(end)
                return end
            else:
                raise ValueError(f"event is {quoted(event)}")
        except KeyError as error:
            raise DataError(f"{where}: not a line of a cost journal: {error.args[0]} is missing") from error
        except (ValueError, TypeError) as error:
            raise DataError(f"{where}: not a line of a cost journal: {error}") from error
        return None

    def _read_reservation(self, record: Mapping[str, Any]) -> Reservation:
        number = _whole(record["call"])
        if number != self.last + 1:
            raise ValueError(f"call {number} cannot follow call {self.last}")
        items = tuple((_word(item_id), _whole(sample)) for item_id, sample in record["items"])
        bound = Bound(*map(_whole, record["bound"]))
        worst, batch = _money(record["usd"]), record.get("batch")
        if worst is None and self.price is not None:
            worst = self.price.worst(bound.input_tokens, bound.output_tokens, batch is not None)
        return Reservation(number, items, bound, worst, None if batch is None else _word(batch))

    def _read_end(self, record: Mapping[str, Any], billing: Billing, where: str) -> Settlement:
        reservation = self.open.get(_whole(record["call"]))
        if reservation is None:
            raise ValueError(f"call {record['call']} is not open")
        if billing != "paid":
            return Settlement(reservation, billing, reason=_word(record["reason"]))
        usage = Usage.from_dict(record["usage"], where) if "usage" in record else None
        usd, request_id = _money(record["usd"]), record.get("request_id")
        if usd is None and usage is not None and self.price is not None:
            usd = self.price.cost(usage, reservation.batch is not None)
        return Settlement(reservation, billing, usage, usd, None if request_id is None else _word(request_id))


def read_cost_log(path: Path, account: RunningTotals) -> Iterator[Settlement]:
    """Stream the settlements of a cost log while adding it to `totals`; open calls are in `totals.open`.

    A last line that a kill cut is left out. Nothing is written and no lock is needed.

    Raises:
        DataError: a damaged line; names file and line.
    """
    for where, record in read_jsonl(path, torn_tail=True):
        end = account.read(record, where)
        if end is not None:
            yield end


def _money(value: object) -> Decimal | None:
    if value is None:
        return None
    if not _MONEY.fullmatch(_word(value)):
        raise ValueError(f"{quoted(value)} is no amount of money")
    return Decimal(_word(value))


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{quoted(value)} is no whole number")
    return value


def _word(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{quoted(value)} is no text")
    return value
