"""The costs of a run on a hosted model: prices, ledger and batch jobs, and their files in the run folder.

costs/STAGE.jsonl            every paid call of a stage, reserved before it is sent (`chat/costs/cost_log`)
batches/jobs.jsonl           the batch jobs (`chat/batch/job_journal`)

`evaluate` holds a `RunCosts` beside the writer; for engines that cost nothing it is empty. The readers at the end need
no lock and write nothing.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.chat.batch.job_journal import BatchFolder
from h2htalk.chat.chat_options import ChatOptions
from h2htalk.chat.costs.cost_log import RunningTotals, read_cost_log
from h2htalk.chat.costs.ledger import Ledger
from h2htalk.chat.costs.prices import Price, PriceList, load_prices
from h2htalk.chat.costs.reservations import Reservation, Settlement, Totals, dollars_text
from h2htalk.chat.engines import ENGINES
from h2htalk.data.responses import Response, SampleKey, Usage
from h2htalk.data.run_folder import Answers, RunWriter
from h2htalk.errors import ConfigError

GENERATE = "generate"
GIVEN_UP = "given_up"  # the reason of calls of a batch whose journal was removed


def costs_folder(run: Path) -> Path:
    """Return the folder of the cost logs, one for each stage."""
    return run / "costs"


def batch_folder(run: Path) -> BatchFolder:
    """Return the folder of the journal of batch jobs."""
    return BatchFolder(run / "batches")


def read_price(spec: EvaluateSpec) -> Price | None:
    """Return the model's price, None where it is unknown. Raises ConfigError where `max_cost` needs it."""
    prices = _prices(spec)
    return prices.find(spec.model) if spec.max_cost is None else prices.require(spec.model)


def suggest_price(spec: EvaluateSpec) -> str:
    """Suggest a model with a known price whose name resembles this one's."""
    return _prices(spec).suggest(spec.model)


def _prices(spec: EvaluateSpec) -> PriceList:
    return load_prices(Path(spec.prices) if spec.prices else None)


def cost_limit(spec: EvaluateSpec) -> Decimal | None:
    """Return `max_cost` as the decimal that was typed, not as the nearest binary fraction."""
    return None if spec.max_cost is None else Decimal(str(spec.max_cost))


def open_batch_items(spec: EvaluateSpec) -> frozenset[SampleKey]:
    """Return the samples of this run's open batch jobs.

    Raises:
        ConfigError: there are such jobs, and the specification uses no batches: they would be paid twice.
        DataError: the journal of jobs is damaged.
    """
    records = batch_folder(spec.out_path).open_jobs()
    if records and not spec.batch:
        names = ", ".join(record.label for record in records)
        plural = "s" if len(records) > 1 else ""
        raise ConfigError(f"{spec.out}: waits for batch job{plural} {names}: add --batch")
    return frozenset(item for record in records for items in record.calls for item in items)


class RunCosts:
    """The ledger and batch jobs of one evaluation."""

    def __init__(self, spec: EvaluateSpec) -> None:
        """Look up the price; nothing in the run folder is read or made before `open`.

        Raises:
            ConfigError: the price file cannot be used, or `max_cost` is set and the price is unknown.
        """
        self._spec, self._batches = spec, batch_folder(spec.out_path)
        self._answers: Answers = {}
        self._folders = (costs_folder(spec.out_path), self._batches.path)
        self._new = False
        self._ledger: Ledger | None = None
        if (engine := ENGINES.get(spec.engine)) is not None and engine.hosted:
            self._ledger = Ledger(
                costs_folder(spec.out_path) / f"{GENERATE}.jsonl",
                model=spec.model,
                price=read_price(spec),
                limit=cost_limit(spec),
                stage=GENERATE,
                stored=self._stored,
            )

    def options(self) -> ChatOptions:
        """How the engine is to be run."""
        spec = self._spec
        return ChatOptions(
            concurrency=spec.concurrency,
            timeout=spec.timeout,
            attempts=spec.attempts,
            deadline=spec.deadline,
            engine_options=spec.engine_options,
            download=spec.download,
            ledger=self._ledger,
            batch=self._batches if spec.batch else None,
        )

    def open(self, writer: RunWriter) -> None:
        """Open the ledger beside the answers that are stored already.

        Raises:
            ConfigError: a batch job of this run is still open and the run is not to use batches, or earlier calls
                cost an unknown amount and there is a limit.
            DataError: the ledger is damaged, or another process writes it.
        """
        if self._ledger is None:
            return
        self._new = not any(folder.exists() for folder in self._folders)
        self._answers = writer.answers
        open_batch_items(self._spec)
        self._ledger.open()
        self._settle_given_up(self._ledger)
        if not self._spec.batch:
            self._batches.drop_unsent(self._ledger)

    def _settle_given_up(self, ledger: Ledger) -> None:
        """Settle the calls of jobs whose journal was removed as possibly paid: they are never collected. (The journal
        has a job before the ledger has its calls.)"""
        groups = {record.group for record in self._batches.records()}
        for reservation in ledger.open_reservations():
            if reservation.batch not in groups:
                ledger.possibly_paid(reservation, GIVEN_UP)

    def _stored(self, key: SampleKey) -> Usage | None:
        """For the ledger: what a stored answer used."""
        answer = self._answers.get(key)
        return answer.usage if isinstance(answer, Response) else None

    @property
    def unsettled(self) -> bool:
        """Whether batch jobs of an earlier start wait to be collected, even where no answer is missing."""
        if self._ledger is None or not self._spec.batch:
            return False
        return self._ledger.open_count > 0 or bool(self._batches.open_jobs())

    def spent(self) -> str:
        """Return the cost of all calls so far, for the progress line; empty for engines that cost nothing."""
        if self._ledger is None:
            return ""
        totals = self._ledger.totals()
        if totals.usd_paid is None or totals.usd_possible is None:
            return "price unknown"
        possible = "" if not totals.usd_possible else f" (+ {dollars_text(totals.usd_possible, True)} possibly)"
        return f"{dollars_text(totals.usd_paid)}{possible} US dollars"

    def close(self) -> None:
        """Release the ledger. Calling it twice does no harm."""
        if self._ledger is not None:
            self._ledger.close()

    def discard(self, writer: RunWriter) -> bool:
        """Remove the journals that this start made, unless an answer is stored, a call may have been paid, or a
        batch job may exist. Returns whether nothing of them is left, so that the run may be discarded too."""
        if self._ledger is None:
            return True
        self.close()
        begun = [folder for folder in self._folders if folder.exists()]
        if not begun:
            return True
        totals = read_costs(self._spec.out_path).get(GENERATE, Totals())
        owed = totals.paid or totals.possibly_paid or totals.open or self._batches.open_jobs()
        if not self._new or owed or writer.folder.shard.stat().st_size:
            return False
        for folder in begun:
            shutil.rmtree(folder, ignore_errors=True)
        return True


# --- Readers ----------------------------------------------------------------------------------------------------


def read_costs(run: Path) -> dict[str, Totals]:
    """Read the totals of each stage of a run; empty where no call cost anything.

    Raises:
        DataError: a damaged line; names file and line.
    """
    found = {}
    for path in _cost_logs(run):
        account = RunningTotals()
        for _ in read_cost_log(path, account):
            pass
        if account.last:
            found[path.stem] = account.totals()
    return found


def _cost_logs(run: Path) -> list[Path]:
    """The cost logs of generating, then those of judging."""
    return [*sorted(costs_folder(run).glob("*.jsonl")), *sorted((run / "judgements" / "costs").glob("*.jsonl"))]


def read_calls(run: Path) -> Iterator[tuple[str, Settlement | Reservation]]:
    """Every call of a run as `(stage, how it ended)`, those that have not ended last.

    Raises:
        DataError: a damaged line; names file and line.
    """
    for path in _cost_logs(run):
        account = RunningTotals()
        for end in read_cost_log(path, account):
            yield path.stem, end
        for reservation in account.open.values():
            yield path.stem, reservation
