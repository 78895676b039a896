"""The journal of batch jobs: each step of a job is recorded before it is made, so that no job is lost.

A job is identified by its mark, 12 random hex digits, before the provider gives it an id:

    {"event": "submitting", "batch": "3f0a...", "group": "3f0a...", "model": "openai:gpt-4o", "calls": [[["a", 0]]]}
    {"event": "uploaded", "batch": "3f0a...", "file": "file-9x"}           OpenAI only: the file of its requests
    {"event": "sending", "batch": "3f0a...", "worst_usd": "1.29", "after": "msgbatch_07"}
    {"event": "submitted", "batch": "3f0a...", "job": "batch_66b"}
    {"event": "ended", "batch": "3f0a...", "status": "completed"}
    {"event": "collected", "batch": "3f0a...", "succeeded": 460, ...}      or "abandoned", with a reason

Between `sending` and `submitted` the job may exist; before `sending` it does not.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from h2htalk.chat.costs.ledger import Ledger
from h2htalk.data.append_log import AppendLog
from h2htalk.data.files import read_jsonl, write_problem
from h2htalk.data.responses import SampleKey
from h2htalk.errors import DataError, quoted

# planned: not sent. sending: possibly sent. submitted: it runs, or has ended and is not collected.
State = Literal["planned", "sending", "submitted", "closed"]
_MARK = re.compile(r"[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """The state of one batch job.

    Attributes:
        batch: its mark.
        group: the mark under which its calls are reserved: jobs that are made together are reserved together.
        model: `ENGINE:MODEL`.
        calls: the samples that each of its calls asks for; the position of a call is its number.
        when: Unix time of the last request that was sent.
        file: OpenAI's id of the uploaded requests.
        after: the provider's newest job before this one, where a job is recognised by its position only.
        job: the provider's id.
    """

    batch: str
    group: str
    model: str
    calls: tuple[tuple[SampleKey, ...], ...]
    when: float
    state: State = "planned"
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

    def number(self, custom_id: str) -> int | None:
        """Return the number of the call that a result belongs to, None where it is not of this job."""
        batch, _, digits = custom_id.partition("-")
        if batch != self.batch or not (digits.isascii() and digits.isdigit()) or len(digits) > 9:
            return None
        return int(digits) if int(digits) < len(self.calls) and str(int(digits)) == digits else None


def apply_event(records: dict[str, BatchRecord], raw: Mapping[str, Any], where: str) -> BatchRecord:
    """Apply one line of the journal to the records. Raises DataError for a line that cannot follow."""
    event, batch = raw.get("event"), raw.get("batch")
    try:
        if not isinstance(batch, str) or not _MARK.fullmatch(batch):
            raise ValueError(f"batch is {quoted(batch)}")
        if event == "submitting":
            if batch in records:
                raise ValueError(f"batch {batch} is planned twice")
            record = _read_plan(raw, batch)
        elif batch not in records:
            raise ValueError(f"batch {batch} was never planned")
        else:
            record = _follow(records[batch], raw)
    except (KeyError, TypeError, ValueError) as error:
        said = f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)
        raise DataError(f"{where}: not a line of a batch journal: {said}") from error
    records[batch] = record
    return record


def _read_plan(raw: Mapping[str, Any], batch: str) -> BatchRecord:
    calls = tuple(tuple((_word(item_id), _whole(sample)) for item_id, sample in items) for items in raw["calls"])
    if not calls or not all(calls):
        raise ValueError("calls must hold the items of one call or more")
    return BatchRecord(batch, _word(raw["group"]), _word(raw["model"]), calls, _read_when(raw["when"]))


def _follow(record: BatchRecord, raw: Mapping[str, Any]) -> BatchRecord:
    event = raw["event"]
    if event == "uploaded":
        return replace(record, file=_word(raw["file"]))
    if event == "sending":
        after = raw.get("after")
        return replace(
            record,
            state="sending",
            when=_read_when(raw["when"]),
            after=None if after is None else _word(after),
        )
    if event == "submitted":
        return replace(record, state="submitted", job=_word(raw["job"]))
    if event == "ended":
        return record
    if event in ("collected", "abandoned"):
        return replace(record, state="closed")
    raise ValueError(f"event is {quoted(event)}")


def _read_when(value: object) -> float:
    return datetime.fromisoformat(_word(value)).timestamp()


def _word(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError(f"{quoted(value)} is no text")
    return value


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{quoted(value)} is no whole number")
    return value


UNSENT = "not sent"  # the reason of calls of a job that was only planned


@dataclass(frozen=True, slots=True)
class BatchFolder:
    """The folder of a journal of batch jobs. Reading it takes no lock and creates no file."""

    path: Path

    @property
    def journal(self) -> Path:
        """The file, which may not exist yet."""
        return self.path / "jobs.jsonl"

    def records(self) -> list[BatchRecord]:
        """All jobs, oldest first; none where there is no journal.

        Raises:
            DataError: a damaged line; names file and line.
        """
        found: dict[str, BatchRecord] = {}
        if self.journal.exists():
            for where, raw in read_jsonl(self.journal, torn_tail=True):
                apply_event(found, raw, where)
        return list(found.values())

    def open_jobs(self) -> list[BatchRecord]:
        """Return the jobs that may exist at the provider and are not collected. A run without batches would pay for
        their answers again."""
        return [record for record in self.records() if record.state in ("sending", "submitted")]

    def drop_unsent(self, ledger: Ledger) -> int:
        """Abandon jobs that were planned and never sent, so that their reservations are free again.

        Returns how many jobs these were.

        Raises:
            DataError: another process writes the journal, or a line of it is damaged.
        """
        if not any(record.state == "planned" for record in self.records()):
            return 0
        with BatchJournal(self) as journal:
            unsent = [record for record in journal.open_records() if record.state == "planned"]
            for record in unsent:
                free_calls(ledger, record, UNSENT)
                journal.note(record, "abandoned", reason=UNSENT)
        return len(unsent)


class BatchJournal:
    """The one writer of a batch folder."""

    def __init__(self, folder: BatchFolder) -> None:
        """Read the journal and take its lock.

        Raises:
            DataError: another process writes it, or a line is damaged (file and line are named).
        """
        self.folder = folder
        self._records: dict[str, BatchRecord] = {}
        self._log = AppendLog(folder.journal, lambda raw, where: apply_event(self._records, raw, where))

    def open_records(self) -> list[BatchRecord]:
        """Jobs that are neither collected nor abandoned, oldest first."""
        return [record for record in self._records.values() if record.state != "closed"]

    def jobs(self) -> frozenset[str]:
        """The provider's ids of all jobs that are known here."""
        return frozenset(record.job for record in self._records.values() if record.job is not None)

    def plan(self, model: str, jobs: Sequence[Sequence[tuple[SampleKey, ...]]], when: float) -> list[BatchRecord]:
        """Record jobs that are submitted together, each with the items of its calls."""
        marks = [secrets.token_hex(6) for _ in jobs]
        records = [
            BatchRecord(mark, marks[0], model, tuple(calls), when) for mark, calls in zip(marks, jobs, strict=True)
        ]
        for record in records:
            calls = [[list(item) for item in items] for items in record.calls]
            self._append(record.batch, "submitting", when, group=record.group, model=model, calls=calls)
        return records

    def note(self, record: BatchRecord, event: str, when: float | None = None, **details: Any) -> BatchRecord:
        """Record an event of a job; returns its new state."""
        return self._append(record.batch, event, when, **details)

    def _append(self, batch: str, event: str, when: float | None, **details: Any) -> BatchRecord:
        raw: dict[str, Any] = {"event": event, "batch": batch}
        if when is not None:
            raw["when"] = datetime.fromtimestamp(when, UTC).isoformat()
        raw |= {key: f"{value:f}" if isinstance(value, Decimal) else value for key, value in details.items()}
        self._log.append(raw)
        self._sync()
        return apply_event(self._records, raw, str(self.folder.journal))

    def _sync(self) -> None:
        """Flush the line to disk: lines are few, and each may record hours of paid calls."""
        try:
            with self.folder.journal.open("ab") as file:
                os.fsync(file.fileno())
        except OSError as error:
            raise DataError(f"{self.folder.journal}: {write_problem(error)}") from error

    def close(self) -> None:
        """Release the journal. Calling it twice does no harm."""
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def free_calls(ledger: Ledger, record: BatchRecord, reason: str, possibly_paid: bool = False) -> None:
    """Settle the open reservations of a job without results: free, or possibly paid."""
    calls = frozenset(record.calls)
    for reservation in ledger.open_reservations(record.group):
        if reservation.items in calls:
            (ledger.possibly_paid if possibly_paid else ledger.free)(reservation, reason)
