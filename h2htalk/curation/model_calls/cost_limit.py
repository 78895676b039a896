"""What the models of a stage may cost together: one limit over every journal of paid calls in the stage's folder."""

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

# The answers of a model that are stored: whose, and what each used, in the order in which they came.
StoredAnswers = Callable[[], Iterable[tuple[SampleKey, Usage]]]


class StageLimit:
    """US dollars that all calls of a stage may cost: of every model that it asks or ever asked, and of every start.

    Models that are asked in turn share one object; each of its ledgers sees what the others have committed.
    """

    def __init__(self, folder: Path, dollars: float | None, prices: PriceList) -> None:
        """`folder` holds the journals; nothing is read yet. `dollars` None: no limit."""
        self.dollars = None if dollars is None else Decimal(str(dollars))
        self._folder, self._prices = folder, prices
        self._ledgers: list[StageLedger] = []
        self._closed: Decimal | None = None

    def add(self, ledger: StageLedger) -> None:
        """A model is asked under this limit; to be told before any call goes out."""
        self._ledgers.append(ledger)

    def beside(self, ledger: StageLedger) -> Decimal | None:
        """The most that the calls of all other models can have cost; None where that is not known any more.

        Raises:
            ConfigError: an earlier model's calls cost what nobody knows; names the journal.
            DataError: a journal is damaged.
        """
        if self._closed is None:
            self._closed = self._read_closed()
        others = (other.totals().usd_committed for other in self._ledgers if other is not ledger)
        return add(self._closed, *others)

    def _read_closed(self) -> Decimal:
        """What journals hold that no model of now writes: another model's, asked by earlier settings."""
        ours = {ledger.path for ledger in self._ledgers}
        total = Decimal(0)
        for path in sorted(self._folder.glob("*.jsonl")):
            if path in ours:
                continue
            account = RunningTotals(self._prices.find(booked_model(path)))
            for _ in read_cost_log(path, account):
                pass
            if account.committed is None:
                raise ConfigError(
                    f"max_cost: {path} holds calls whose price is unknown: name it in the file of prices"
                )
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
        answers: StoredAnswers,
    ) -> None:
        """As `Ledger`; `answers` are read where a kill left calls open. Raises ConfigError: a limit without a price."""
        if limit.dollars is not None and price is None:
            raise ConfigError(
                f"max_cost: the price of {model} is unknown: name it in a file, and the file in `prices`"
            )
        super().__init__(
            path, model=model, price=price, limit=limit.dollars, stage=stage, stored=self._usage_of
        )
        self._all, self._rates, self._answers = limit, price, answers
        self._found: dict[SampleKey, Usage] | None = None
        limit.add(self)

    def open(self) -> Self:
        super().open()
        self._found = None  # only calls that were left open are looked up
        if self._all.dollars is not None:
            self._all.beside(self)
        return self

    def reserve_all(
        self, calls: Sequence[tuple[tuple[SampleKey, ...], Bound]], batch: str | None = None
    ) -> list[Reservation]:
        """As `Ledger.reserve_all`, under what the stage's other models leave of the limit. Raises CostLimitError."""
        self._require_room_for_all([bound for _, bound in calls], batch is not None)
        return super().reserve_all(calls, batch)

    def fits(self, bound: Bound, batch: bool = False) -> bool:
        """Whether a call of that worst case may be reserved now."""
        try:
            self._require_room_for_all([bound], batch)
        except CostLimitError:
            return False
        return super().fits(bound, batch)

    def _require_room_for_all(self, bounds: Sequence[Bound], batch: bool) -> None:
        limit, price = self._all.dollars, self._rates
        if limit is None or price is None:
            return
        needed = add(*(price.worst(bound.input_tokens, bound.output_tokens, batch) for bound in bounds))
        committed = add(self.totals().usd_committed, self._all.beside(self))
        if committed is None:
            raise CostLimitError(
                "max_cost: what was paid so far is unknown: an answer came at an unknown price"
            )
        if needed is not None and committed + needed > limit:
            what = "this call" if len(bounds) == 1 else f"these {len(bounds):,} calls"
            raise CostLimitError(
                f"max_cost {limit:f}: {dollars_text(committed, True)} US dollars are spent or reserved by all models "
                f"of the stage, and {what} may cost {dollars_text(needed, True)} more: raise it"
            )

    def _usage_of(self, key: SampleKey) -> Usage | None:
        """What the answer used that a kill kept from being settled; None where none is stored.

        An answer to other words of the same item may be stored since long: an open call's is one more than the calls
        of the item that were paid. Calls that were free or lost have left no answer.
        """
        if self._found is None:
            stored: dict[SampleKey, list[Usage]] = {}
            for item, usage in self._answers():
                stored.setdefault(item, []).append(usage)
            ended: Counter[SampleKey] = Counter()
            assert self.path is not None
            for end in read_cost_log(self.path, RunningTotals()):
                if end.billing == "paid":
                    ended.update(end.reservation.items)
            self._found = {item: usages[-1] for item, usages in stored.items() if len(usages) > ended[item]}
        return self._found.get(key)


def journal_path(folder: Path, stage: str, model: str) -> Path:
    """Where a model's paid calls are reserved: the stage's journal, or its own where that one is another model's."""
    path = folder / f"{stage}.jsonl"
    if booked_model(path) in ("", model):
        return path
    return folder / f"{stage}-{hashlib.sha256(model.encode()).hexdigest()[:8]}.jsonl"


def booked_model(path: Path) -> str:
    """The model whose calls a journal holds; empty where none was reserved. Raises DataError."""
    if not path.exists():
        return ""
    reserved = (line.get("model") for _, line in read_jsonl(path, torn_tail=True))
    return next((name for name in reserved if isinstance(name, str) and name), "")
