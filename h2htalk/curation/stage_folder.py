"""What a stage's rule returns for a record, and the stage's folder: parts of kept and rejected records.

A part is complete or not there:

kept/part-00000.jsonl        records for the next stage, in the order in which they were read
rejected/part-00000.jsonl    {"id", "stage", "reason", "evidence"} and, where it may be stored, the record
audit/part-00000.jsonl       {"id", ...}: what was done to a record, or where it came from
parts/part-00000.json        the part's counts; written last: a part without it was interrupted and is made again
stage.json                   the settings of the stage
notes.json                   results about the stage as a whole: {name: {"message", ...}}
summary.json                 the counts of all parts together, and the notes
calls.jsonl                  the call store: kept when the stage is removed to be made again
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from h2htalk.curation.stage_records import (
    NOTES,
    SOURCES,
    PartMark,
    StageFile,
    read_checked,
    require_id,
)
from h2htalk.data.erasure.folder_kinds import remove_for_good
from h2htalk.data.files import read_jsonl, remove_file, remove_half_written, write_json, write_jsonl
from h2htalk.data.responses import CALLS
from h2htalk.data.scenario import Dialogue
from h2htalk.errors import DataError

Record = Mapping[str, Any]  # a JSON object with an `id`
# The reason of an item that holds the beginning of another one: counted apart, not as a rejected dialogue.
EARLIER_STATE = "earlier_state"


@dataclass(frozen=True, slots=True)
class Kept:
    """A record for the next stage.

    `tags` are counted in the stage's summary (`review`, `crisis`, `needs_people`): short words, no text; the record
    itself must hold the same, for later stages. `audit`: what was done to it, never the text that was changed.
    """

    record: Record
    tags: tuple[str, ...] = ()
    audit: Record | None = None

    @property
    def id(self) -> str:
        return str(self.record["id"])


@dataclass(frozen=True, slots=True)
class Rejected:
    """A record that is not passed on: a reason to count by, and the evidence for it.

    `record`: the text; None where it must not be stored (raw personal data, an apparent minor in a sexual setting).
    `audit` as in `Kept`.
    """

    id: str
    reason: str
    evidence: Record = field(default_factory=dict)
    record: Record | None = None
    audit: Record | None = None

    def to_dict(self, stage: str) -> dict[str, Any]:
        line = {
            "id": self.id,
            "stage": stage,
            "reason": self.reason,
            "evidence": dict(self.evidence),
        }
        return line if self.record is None else line | {"record": dict(self.record)}


Outcome = Kept | Rejected
# Of one record; several where one record becomes several (the candidates of a dialogue). Never empty.
Outcomes = Sequence[Outcome]
# The outcomes of each record of a part, in order, with the part's name (`part-00003`). A rule that holds a model has a
# `close`, which is called after the last part or an error.
PartRule = Callable[[Sequence[Record], str], Sequence[Outcomes]]


def each_dialogue(rule: Callable[[Dialogue], Outcomes]) -> PartRule:
    """Make a rule for a part of a rule for one dialogue."""

    def of_part(records: Sequence[Record], part: str) -> list[Outcomes]:
        return [
            [one] if isinstance(one, Rejected) else rule(one) for one in map(read_dialogue, records)
        ]

    return of_part


def read_dialogue(record: Record) -> Dialogue | Rejected:
    """The dialogue of a record; a record that is none is rejected as `unreadable`."""
    try:
        return Dialogue.from_dict(record)
    except DataError as error:
        return Rejected(str(record.get("id", "")), "unreadable", {"error": str(error)})


KEPT, REJECTED, AUDIT, MARKS = "kept", "rejected", "audit", "parts"
# The files that stages write, as in `remove_half_written`.
WRITTEN = (
    *(
        "stage.json",
        "notes.json",
        "summary.json",
        SOURCES,
        "known_items.jsonl",
        CALLS,
        "duplicates.jsonl",
        "escalated.jsonl",
    ),
    *(f"{kind}/part-*.jsonl" for kind in (KEPT, REJECTED, AUDIT, "reviews")),
    f"{MARKS}/part-*.json",
    # Of `dedup`, until it is finished.
    *("work/map/part-*.npz", "work/pairs-*.npy", "work/replies.jsonl"),
)
# Stored replies are found by their prompts, whatever the settings of the stage.
PAID = (CALLS, "calls.lock")


def part_name(number: int) -> str:
    """`part-00042`."""
    return f"part-{number:05}"


@dataclass(frozen=True, slots=True)
class RecordCounts:
    """The counts of the records that a stage read; always `kept + rejected + earlier == read`.

    A record is kept when any of its outcomes is. `written` counts kept outcomes (a dialogue may give several
    candidates), `dropped` the rejected outcomes of kept records, `earlier` the earlier states of conversations.
    """

    read: int = 0
    kept: int = 0
    rejected: int = 0
    written: int = 0
    dropped: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)
    tags: Mapping[str, int] = field(default_factory=dict)
    earlier: int = 0

    @classmethod
    def of(cls, outcomes: Sequence[Outcomes]) -> RecordCounts:
        """The counts of a part."""
        written = [
            sum(isinstance(outcome, Kept) for outcome in of_record) for of_record in outcomes
        ]
        dropped = sum(
            len(of_record) - n for of_record, n in zip(outcomes, written, strict=True) if n
        )
        flat = [outcome for of_record in outcomes for outcome in of_record]
        tags = count_values(
            tag for outcome in flat if isinstance(outcome, Kept) for tag in outcome.tags
        )
        reasons = Counter(outcome.reason for outcome in flat if isinstance(outcome, Rejected))
        earlier = reasons.pop(EARLIER_STATE, 0)
        kept = sum(map(bool, written))
        rejected = len(outcomes) - kept - earlier
        return cls(
            len(outcomes),
            kept,
            rejected,
            sum(written),
            dropped,
            count_values(reasons),
            tags,
            earlier,
        )

    @classmethod
    def total(cls, counts: Iterable[RecordCounts]) -> RecordCounts:
        """The sum."""
        numbers = Counter[str]()
        reasons = Counter[str]()
        tags = Counter[str]()
        for part in counts:
            numbers.update(
                {name: value for name, value in asdict(part).items() if isinstance(value, int)}
            )
            reasons.update(part.reasons)
            tags.update(part.tags)
        return cls(**numbers, reasons=count_values(reasons), tags=count_values(tags))


def count_values(values: Iterable[str] | Mapping[str, int]) -> dict[str, int]:
    """Value -> number, the most frequent first, then by name: the same counts give the same bytes."""
    return dict(sorted(Counter(values).items(), key=lambda pair: (-pair[1], pair[0])))


@dataclass(frozen=True, slots=True)
class StageFolder:
    """The files of one stage."""

    path: Path

    def file(self, kind: str, part: str) -> Path:
        """A part's file: of KEPT, REJECTED or AUDIT records."""
        return self.path / kind / f"{part}.jsonl"

    def mark(self, part: str) -> Path:
        """The file that makes a part complete."""
        return self.path / MARKS / f"{part}.json"

    @property
    def begun(self) -> bool:
        return (self.path / "stage.json").exists()

    @property
    def finished(self) -> bool:
        return (self.path / "summary.json").exists()

    def settings(self) -> dict[str, Any]:
        """The settings that its `stage.json` holds; none before it has begun. Raises DataError."""
        settings: dict[str, Any] = read_checked(
            StageFile, self.path / "stage.json", missing_ok=True
        ).get("settings", {})
        return settings

    def done(self, part: str) -> bool:
        return self.mark(part).exists()

    def parts(self) -> list[str]:
        """The names of the complete parts, in order."""
        return sorted(
            (path.stem for path in (self.path / MARKS).glob("part-*.json")),
            key=lambda name: int(name[5:]),
        )

    def write(self, part: str, outcomes: Sequence[Outcomes], stage: str) -> RecordCounts:
        """Write a part, its mark last. Raises DataError where it cannot be written."""
        flat = [outcome for of_record in outcomes for outcome in of_record]
        kept = [outcome for outcome in flat if isinstance(outcome, Kept)]
        write_jsonl(self.file(KEPT, part), (outcome.record for outcome in kept))
        rejected = (outcome.to_dict(stage) for outcome in flat if isinstance(outcome, Rejected))
        write_jsonl(self.file(REJECTED, part), rejected)
        if audits := [{"id": one.id, **one.audit} for one in flat if one.audit is not None]:
            write_jsonl(self.file(AUDIT, part), audits)
        else:
            remove_file(self.file(AUDIT, part))
        counts = RecordCounts.of(outcomes)
        tags = {outcome.id: list(outcome.tags) for outcome in kept if outcome.tags}
        write_json(self.mark(part), {**asdict(counts), "record_tags": tags})
        return counts

    def rewrite(
        self, part: str, stays: Callable[[Record], bool], input_id: Callable[[Record], str]
    ) -> None:
        """Write a part again with the records that stay, counted as if the others had never been read.

        `input_id`: the id of the record that the stage read for a record that it wrote.
        """
        tags = read_checked(PartMark, self.mark(part))["record_tags"]
        audits = {record["id"]: record for record in self.part_records(part, AUDIT)}
        outcomes: dict[str, list[Outcome]] = {}
        for record in filter(stays, self.part_records(part, KEPT)):
            kept = Kept(record, tuple(tags.get(record["id"], ())), audits.get(record["id"]))
            outcomes.setdefault(input_id(record), []).append(kept)
        for line in filter(stays, self.part_records(part, REJECTED)):
            what = (
                line["id"],
                line["reason"],
                line["evidence"],
                line.get("record"),
                audits.get(line["id"]),
            )
            outcomes.setdefault(input_id(line), []).append(Rejected(*what))
        # In the order of reading: the ids of a source end with their row.
        names = sorted(outcomes, key=lambda name: (len(name), name))
        self.write(part, [outcomes[name] for name in names], self.path.name)

    def counts(self, part: str) -> RecordCounts:
        """The counts of a complete part. Raises DataError."""
        counts = read_checked(PartMark, self.mark(part))
        counts.pop("record_tags")
        return RecordCounts(**counts)

    def notes(self) -> dict[str, Any]:
        """Results about the stage as a whole by name, each with a `message`. Raises DataError."""
        return read_checked(NOTES, self.path / "notes.json", missing_ok=True)

    def add_note(self, name: str, note: Mapping[str, Any]) -> None:
        """Store a result about the stage as a whole; it is removed with the stage."""
        write_json(self.path / "notes.json", {**self.notes(), name: dict(note)})

    def total(self) -> RecordCounts:
        """The counts of all complete parts."""
        return RecordCounts.total(self.counts(part) for part in self.parts())

    def finish(self) -> RecordCounts:
        """Write the summary of a stage whose parts are all there."""
        total = self.total()
        write_json(self.path / "summary.json", {**asdict(total), **self.notes()})
        return total

    def records(self, kind: str = KEPT) -> Iterator[Record]:
        """Every record of a kind, part by part; raises DataError for a broken line."""
        for part in self.parts():
            yield from self.part_records(part, kind)

    def part_records(self, part: str, kind: str = KEPT) -> Iterator[Record]:
        """The records of a part; none where it has no file of the kind."""
        path = self.file(kind, part)
        if path.exists():
            for where, record in read_jsonl(path):
                require_id(record, where)
                yield record

    def remove_half_written(self) -> None:
        """Remove what a kill left half written of the stage's files."""
        remove_half_written(self.path, WRITTEN)

    def remove_unfinished(self) -> None:
        """Remove the files of parts without a mark, which a kill left; the next run makes them again."""
        self.remove_half_written()
        for kind in (KEPT, REJECTED, AUDIT):
            for path in (self.path / kind).glob("part-*.jsonl"):
                if not self.done(path.stem):
                    remove_for_good(path)

    def clear(self) -> None:
        """Remove all but `stage.json` and what was paid for; the next run makes the stage again. Raises DataError."""
        others = sorted(path.name for path in self.path.glob("*"))
        for name in (
            "summary.json",
            MARKS,
            *(name for name in others if name not in ("stage.json", *PAID)),
        ):
            remove_for_good(self.path / name)

    def remove(self) -> None:
        """Remove the stage, except for what it paid for. Raises DataError.

        `stage.json` is removed last: a kill leaves an unfinished stage with its settings, and never parts that a run
        with other settings would take over.
        """
        self.clear()
        remove_for_good(self.path / "stage.json")
        remove_file(self.path)  # where it is empty
