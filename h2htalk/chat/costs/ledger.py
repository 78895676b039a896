"""The ledger of paid calls: each call is reserved before it is sent and settled when its outcome is known.

The order makes it safe. The worst case of a call is reserved on disk, the call is sent, its reply is stored among the
answers, and only then is the call settled. A call that a kill left open is therefore resolved from the answers: paid
where its reply is stored, else possibly paid at its worst case. The sum of what was paid, possibly paid and reserved
never exceeds the limit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from h2htalk.chat.calls import Bound, FailedCall
from h2htalk.chat.costs.cost_log import RunningTotals
from h2htalk.chat.costs.prices import Price
from h2htalk.chat.costs.reservations import Reservation, Settlement, Totals, add, dollars_text
from h2htalk.data.append_log import AppendLog
from h2htalk.data.responses import SampleKey, Usage
from h2htalk.errors import ConfigError, DataError

Stored = Callable[[SampleKey], Usage | None]
UNSETTLED = "interrupted"  # the reason of a call that a kill left open


class CostLimitError(ConfigError):
    """The worst case of a call would exceed the limit. It was not reserved and must not be sent."""


class Ledger:
    """The one writer of a cost log. Not for several threads at once.

    The cost log is opened, and created, by `open` or by the first other use; until then nothing is read or written.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        model: str,
        price: Price | None,
        limit: Decimal | None = None,
        stage: str = "generate",
        stored: Stored | None = None,
    ) -> None:
        """Nothing is touched yet.

        Args:
            path: the cost log; None keeps it in memory only.
            model: `ENGINE:MODEL`, as price files name it.
            price: None where it is unknown; calls are counted, and their dollars stay unknown.
            limit: US dollars that all calls of this cost log may cost, those of earlier starts included.
            stage: what the calls are for.
            stored: returns the usage of a stored answer, None where there is none; settles what a kill left open.

        Raises:
            ConfigError: a limit without a price.
        """
        if limit is not None and price is None:
            raise ConfigError(f"--max-cost: the price of {model} is unknown: name it in a file with --prices")
        self.path, self.model, self.stage = path, model, stage
        self._price, self._limit, self._stored = price, limit, stored
        self._books: RunningTotals | None = None
        self._log: AppendLog | None = None
        self._announced = False

    def open(self) -> Self:
        """Read the cost log and settle what a kill left open. Calling it twice does no harm.

        Raises:
            DataError: another process writes it, a line is damaged (named by file and line), or it is of another
                model.
            ConfigError: there is a limit, and calls of earlier starts whose price is unknown.
        """
        self._account  # noqa: B018 - opens
        return self

    @property
    def _account(self) -> RunningTotals:
        if self._books is None:
            self._open()
        assert self._books is not None
        return self._books

    def _open(self) -> None:
        books = RunningTotals(self._price)
        if self.path is not None:
            self._log = AppendLog(self.path, books.read)
        self._books = books
        try:
            if books.model not in ("", self.model):
                raise DataError(f"{self.path}: holds the calls of {books.model}, not of {self.model}")
            for reservation in [b for b in books.open.values() if b.batch is None]:
                self._resolve(reservation)
            if self._limit is not None and books.committed is None:
                raise ConfigError(
                    f"--max-cost: {self.path} holds calls whose price is unknown: name it in a file with --prices"
                )
        except BaseException:  # passed on: a journal that cannot be used must not stay locked
            self.close()
            raise

    def _resolve(self, reservation: Reservation) -> None:
        """Settle a call that a kill left open: paid where its reply is stored, else possibly paid."""
        found = [self._stored(item) for item in reservation.items] if self._stored is not None else []
        usages = [usage for usage in found if usage is not None]
        if not usages:
            self.possibly_paid(reservation, UNSETTLED)
        else:
            # Of several samples none holds the usage of the whole call.
            self.paid(reservation, usages[0] if len(reservation.items) == 1 else None)

    # --- Before a call ------------------------------------------------------------------------------------------

    def reserve(self, items: tuple[SampleKey, ...], bound: Bound, batch: str | None = None) -> Reservation:
        """Reserve one call at its worst case; the reservation is on disk when this returns.

        Args:
            items: the samples that it asks for.
            bound: the most tokens that it can be billed for.
            batch: the mark of the batch that it belongs to.

        Raises:
            CostLimitError: it might exceed the limit.
            DataError: it cannot be written; then it must not be sent.
        """
        return self.reserve_all([(items, bound)], batch)[0]

    def reserve_all(
        self, calls: Sequence[tuple[tuple[SampleKey, ...], Bound]], batch: str | None = None
    ) -> list[Reservation]:
        """Reserve calls together, each `(items, bound)`: all or none. See `reserve`."""
        account = self._account
        worst = [self._worst(bound, batch is not None) for _, bound in calls]
        self._require_room(worst)
        reservations = [
            Reservation(number, items, bound, dollars, batch)
            for number, ((items, bound), dollars) in enumerate(zip(calls, worst, strict=True), account.last + 1)
        ]
        if self._log is not None:
            records = [reservation.to_dict() for reservation in reservations]
            self._log.append_all(records if self._announced else [self._announcement(), *records])
        if not self._announced:
            account.opened(self.stage, self.model, self._prices)
            self._announced = True
        for reservation in reservations:
            account.sent(reservation)
        return reservations

    def fits(self, bound: Bound, batch: bool = False) -> bool:
        """Whether a call of that worst case may be reserved now."""
        try:
            self._require_room([self._worst(bound, batch)])
        except CostLimitError:
            return False
        return True

    def _worst(self, bound: Bound, batch: bool) -> Decimal | None:
        if self._price is None:
            return None
        return self._price.worst(bound.input_tokens, bound.output_tokens, batch)

    def _require_room(self, worst: Sequence[Decimal | None]) -> None:
        if self._limit is None:
            return
        needed, committed = add(*worst), self._account.committed
        what = "this call" if len(worst) == 1 else f"these {len(worst):,} calls"
        if needed is None:
            raise CostLimitError(
                f"--max-cost: what {what} can cost is unknown: name the price, for a batch with `batch` too, in a file "
                "with --prices"
            )
        if committed is None:
            raise CostLimitError("--max-cost: what was paid so far is unknown: an answer came at an unknown price")
        if committed + needed > self._limit:
            raise CostLimitError(
                f"--max-cost {self._limit:f}: {dollars_text(committed, True)} US dollars are spent or reserved, and "
                f"{what} may cost {dollars_text(needed, True)} more: raise it, or ask less with --limit"
            )

    @property
    def _prices(self) -> str:
        """The date of the prices that calls are reserved under."""
        return "" if self._price is None else self._price.date

    def _announcement(self) -> dict[str, Any]:
        """Return the record before the first call of a start: model, prices and limit of the calls that follow."""
        record = {"event": "opened", "stage": self.stage, "model": self.model, "prices": self._prices}
        return record if self._limit is None else record | {"limit": f"{self._limit:f}"}

    # --- After a call -------------------------------------------------------------------------------------------

    def paid(self, reservation: Reservation, usage: Usage | None, request_id: str | None = None) -> None:
        """Record that a reply arrived. Without a complete usage it counts as possibly paid, at its worst case."""
        usd = None
        if usage is not None and self._price is not None:
            usd = self._price.cost(usage, reservation.batch is not None)
        self._settle(Settlement(reservation, "paid", usage, usd, request_id))

    def free(self, reservation: Reservation, reason: str) -> None:
        """Record that the call was refused, or never sent: it costs nothing."""
        self._settle(Settlement(reservation, "free", reason=reason))

    def possibly_paid(self, reservation: Reservation, reason: str) -> None:
        """Record that no reply arrived: possibly paid, at its worst case."""
        self._settle(Settlement(reservation, "possibly_paid", reason=reason))

    def failed(self, reservation: Reservation, call: FailedCall) -> None:
        """Settle a call without a usable reply by its billing."""
        if call.billing == "paid":
            self.paid(reservation, call.usage, call.request_id)
        elif call.billing == "free":
            self.free(reservation, call.reason)
        else:
            self.possibly_paid(reservation, call.reason)

    def _settle(self, end: Settlement) -> None:
        account = self._account
        if end.reservation.number not in account.open:
            raise ValueError(f"call {end.reservation.number} is settled already")
        if self._log is not None:
            self._log.append(end.to_dict())
        account.settled(end)

    # --- Totals -------------------------------------------------------------------------------------------------

    @property
    def open_count(self) -> int:
        """Calls that are reserved and not settled."""
        return len(self._account.open)

    def open_reservations(self, batch: str | None = None) -> list[Reservation]:
        """The calls of a batch (None: all calls) that are not settled, in their order."""
        found = self._account.open.values()
        return [reservation for reservation in found if batch is None or reservation.batch == batch]

    def totals(self) -> Totals:
        """Return the totals of all calls of the cost log."""
        return self._account.totals()

    def close(self) -> None:
        """Release the cost log; open calls stay open in it. Calling it twice does no harm."""
        if self._log is not None:
            self._log.close()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
