"""One cost limit for all models of a stage, over every cost log in the stage's folder."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Self

from h2htalk.chat.calls import Bound
from h2htalk.chat.costs.cost_log import RunningTotals, read_cost_log
from h2htalk.chat.costs.ledger import CostLimitError, Ledger
from h2htalk.chat.costs.prices import Price, PriceList
from h2htalk.chat.costs.reservations import Reservation, add, dollars_text
from h2htalk.data.files import read_jsonl
from h2htalk.data.responses import SampleKey, Usage
from h2htalk.errors import ConfigError

# The items of a model's stored replies and their usage, in order of arrival.
StoredUsages = Callable[[], Iterable[tuple[SampleKey, Usage]]]


class StageLimit:
    """The US dollars that all calls of a stage may cost, of every model that it calls or has called, in all starts.

    Models of one stage share one object, so that each ledger sees what the others have committed.
    """

    def __init__(self, folder: Path, dollars: float | None, prices: PriceList) -> None:
        """`folder` holds the cost logs; nothing is read yet. `dollars` None: no limit."""
        self.dollars = None if dollars is None else Decimal(str(dollars))
        self._folder, self._prices = folder, prices
        self._ledgers: list[StageLedger] = []
        self._closed: Decimal | None = None

    def add(self, ledger: StageLedger) -> None:
        """Add a model, before any call is sent."""
        self._ledgers.append(ledger)

    def beside(self, ledger: StageLedger) -> Decimal | None:
        """The most that the calls of all other models can have cost; None where it is unknown.

        Raises:
            ConfigError: the price of an earlier model is unknown; names its cost log.
            DataError: a cost log is damaged.
        """
        if self._closed is None:
            self._closed = self._read_closed()
        others = (other.totals().usd_committed for other in self._ledgers if other is not ledger)
        return add(self._closed, *others)

    def _read_closed(self) -> Decimal:
        """The cost in logs that no current model writes: of models in earlier settings."""
        ours = {ledger.path for ledger in self._ledgers}
        total = Decimal(0)
        for path in sorted(self._folder.glob("*.jsonl")):
            if path in ours:
                continue
            account = RunningTotals(self._prices.find(model_in_log(path)))
            for _ in read_cost_log(path, account):
                pass
            if account.committed is None:
                raise ConfigError(f"max_cost: {path} holds calls whose price is unknown: add it to the file of prices")
            total += account.committed
        return total


class StageLedger(Ledger):
    """The ledger of one model of a stage, under the stage's limit."""

    def __init__(
        self,
        path: Path,
        *,
        model: str,
        price: Price | None,
        limit: StageLimit,
        stage: str,
        stored: StoredUsages,
    ) -> None:
        """As `Ledger`; `stored` is read where a kill left calls open. Raises ConfigError: a limit without a price."""
        if limit.dollars is not None and price is None:
            raise ConfigError(
                f"max_cost: the price of {model} is unknown: write it into a file, and name the file in `prices`"
            )
        super().__init__(path, model=model, price=price, limit=limit.dollars, stage=stage, stored=self._usage_of)
        self._all, self._rates, self._usages = limit, price, stored
        self._unsettled: dict[SampleKey, Usage] | None = None
        limit.add(self)

    def open(self) -> Self:
        super().open()
        self._unsettled = None  # only calls that were left open are looked up
        if self._all.dollars is not None:
            self._all.beside(self)
        return self

    def reserve_all(
        self, calls: Sequence[tuple[tuple[SampleKey, ...], Bound]], batch: str | None = None
    ) -> list[Reservation]:
        """As `Ledger.reserve_all`, with what the stage's other models leave of the limit. Raises CostLimitError."""
        self._require_within_limit([bound for _, bound in calls], batch is not None)
        return super().reserve_all(calls, batch)

    def fits(self, bound: Bound, batch: bool = False) -> bool:
        """Whether a call with this bound may be reserved now."""
        try:
            self._require_within_limit([bound], batch)
        except CostLimitError:
            return False
        return super().fits(bound, batch)

    def _require_within_limit(self, bounds: Sequence[Bound], batch: bool) -> None:
        limit, price = self._all.dollars, self._rates
        if limit is None or price is None:
            return
        needed = add(*(price.worst(bound.input_tokens, bound.output_tokens, batch) for bound in bounds))
        committed = add(self.totals().usd_committed, self._all.beside(self))
        if committed is None:
            raise CostLimitError("max_cost: the cost so far is unknown: the price of a reply is unknown")
        if needed is not None and committed + needed > limit:
            what = "this call" if len(bounds) == 1 else f"these {len(bounds):,} calls"
            raise CostLimitError(
                f"max_cost {limit:f}: all models of the stage have spent or reserved {dollars_text(committed, True)} "
                f"US dollars, and {what} may cost {dollars_text(needed, True)} more: raise it"
            )

    def _usage_of(self, key: SampleKey) -> Usage | None:
        """The usage of the stored reply of a call that a kill left unsettled; None where none is stored.

        A reply to another prompt of the same item may also be stored: a reply belongs to an open call only if the item
        has more stored replies than paid calls. Free and lost calls have no reply.
        """
        if self._unsettled is None:
            stored: dict[SampleKey, list[Usage]] = {}
            for item, usage in self._usages():
                stored.setdefault(item, []).append(usage)
            paid: Counter[SampleKey] = Counter()
            assert self.path is not None
            for end in read_cost_log(self.path, RunningTotals()):
                if end.billing == "paid":
                    paid.update(end.reservation.items)
            self._unsettled = {item: usages[-1] for item, usages in stored.items() if len(usages) > paid[item]}
        return self._unsettled.get(key)


def cost_log_path(folder: Path, stage: str, model: str) -> Path:
    """The cost log of a model: the stage's, or one of its own where the stage's belongs to another model."""
    path = folder / f"{stage}.jsonl"
    if model_in_log(path) in ("", model):
        return path
    return folder / f"{stage}-{hashlib.sha256(model.encode()).hexdigest()[:8]}.jsonl"


def model_in_log(path: Path) -> str:
    """The model whose calls a cost log holds; empty where there are none. Raises DataError."""
    if not path.exists():
        return ""
    models = (line.get("model") for _, line in read_jsonl(path, torn_tail=True))
    return next((name for name in models if isinstance(name, str) and name), "")
