"""One batch job, as the lines of its journal tell it. Lines are read strictly: a damaged one is named."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from h2htalk.data.run import SampleKey
from h2htalk.errors import DataError, quoted

# planned: never sent. sending: sent perhaps. submitted: runs, or ended and waits to be collected.
State = Literal["planned", "sending", "submitted", "closed"]
_MARK = re.compile(r"[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """One batch job, as far as it came.

    Attributes:
        batch: its mark.
        group: the mark under which its calls are booked: jobs that are made together are booked together.
        model: `BACKEND:MODEL`.
        calls: the samples that each of its calls asks for; a call's place is its number.
        when: Unix time of the last thing that was sent.
        file: OpenAI's id of the uploaded requests.
        after: the provider's newest job before this one was sent, where it can be recognised by its place only.
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
        """What people call it."""
        return self.job or f"{self.batch} (without an id yet)"

    def custom_id(self, number: int) -> str:
        """The name of a call in the job."""
        return f"{self.batch}-{number}"

    def number(self, custom_id: str) -> int | None:
        """Which call a result belongs to; None: to none of this job."""
        batch, _, digits = custom_id.partition("-")
        if batch != self.batch or not (digits.isascii() and digits.isdigit()) or len(digits) > 9:
            return None
        return int(digits) if int(digits) < len(self.calls) and str(int(digits)) == digits else None


def fold(records: dict[str, BatchRecord], raw: Mapping[str, Any], where: str) -> BatchRecord:
    """Take one line of the journal; raises DataError for one that cannot stand there."""
    event, batch = raw.get("event"), raw.get("batch")
    try:
        if not isinstance(batch, str) or not _MARK.fullmatch(batch):
            raise ValueError(f"batch is {quoted(batch)}")
        if event == "submitting":
            if batch in records:
                raise ValueError(f"batch {batch} stands there twice")
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
    calls = tuple(
        tuple((_word(item_id), _whole(sample)) for item_id, sample in items) for items in raw["calls"]
    )
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
