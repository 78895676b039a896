"""A stage's folder: parts of kept and rejected records, each part whole or not there.

kept/part-00000.jsonl        records that went on, in the order they were read
rejected/part-00000.jsonl    {"id", "stage", "reason", "evidence"} and, where it may lie around, the record
audit/part-00000.jsonl       {"id", ...}: what was done to a record, or where it came from
parts/part-00000.json        the part's counts; written last, so a part without it was interrupted and is made again
stage.json                   what the stage was made with
remarks.json                 what the stage found out about itself as a whole, where it did: {name: {"told", ...}}
summary.json                 the counts of all parts together, and the remarks
calls/ costs/ batches/       what was paid for (`asking`): stays when the stage is removed to be made again
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from h2htalk.curation.outcomes import Kept, Outcome, Outcomes, Record, Rejected
from h2htalk.data.files import read_json_object, read_jsonl, remove_file, write_json, write_jsonl
from h2htalk.errors import DataError

KEPT, REJECTED, AUDIT, MARKS = "kept", "rejected", "audit", "parts"
NUMBERS = ("read", "kept", "rejected", "written", "dropped")
# What a stage paid for: answers are found again by their prompts, whatever its settings.
PAID = ("calls", "costs", "batches")


def part_name(number: int) -> str:
    """`part-00042`: names of parts sort in their order."""
    return f"part-{number:05}"


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of the records that a stage read.

    `kept + rejected == read`, always: a record is kept when anything of it goes on. `written` counts lines that go on
    (a dialogue may give several candidates), `dropped` what was rejected of records that were kept.
    """

    read: int = 0
    kept: int = 0
    rejected: int = 0
    written: int = 0
    dropped: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)
    tags: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, outcomes: Sequence[Outcomes]) -> Counts:
        """The counts of a part."""
        reasons: Counter[str] = Counter()
        tags: Counter[str] = Counter()
        kept = written = dropped = 0
        for found in outcomes:
            going_on = [outcome for outcome in found if isinstance(outcome, Kept)]
            kept += bool(going_on)
            written += len(going_on)
            dropped += len(found) - len(going_on) if going_on else 0
            tags.update(tag for outcome in going_on for tag in outcome.tags)
            reasons.update(outcome.reason for outcome in found if not isinstance(outcome, Kept))
        return cls(
            len(outcomes), kept, len(outcomes) - kept, written, dropped, _sorted(reasons), _sorted(tags)
        )

    @classmethod
    def total(cls, counts: Iterable[Counts]) -> Counts:
        """The sum."""
        parts = list(counts)
        reasons: Counter[str] = Counter()
        tags: Counter[str] = Counter()
        for part in parts:
            reasons.update(part.reasons)
            tags.update(part.tags)
        read, kept, rejected, written, dropped = (
            sum(getattr(part, name) for part in parts) for name in NUMBERS
        )
        return cls(read, kept, rejected, written, dropped, _sorted(reasons), _sorted(tags))

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in NUMBERS} | {
            "reasons": dict(self.reasons),
            "tags": dict(self.tags),
        }

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], where: str) -> Counts:
        """Raises DataError where it is none; starts with `where`."""
        numbers = [raw.get(name) for name in NUMBERS]
        tables = [raw.get("reasons"), raw.get("tags")]
        whole = all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in numbers)
        if not whole or not all(isinstance(table, Mapping) for table in tables):
            raise DataError(f"{where}: not the counts of a stage; make the stage again with --again")
        return cls(*numbers, *tables)  # type: ignore[arg-type]


def _sorted(counts: Mapping[str, int]) -> dict[str, int]:
    """Most frequent first, then by name: the same counts are the same bytes."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


@dataclass(frozen=True, slots=True)
class StageFolder:
    """One stage's files."""

    path: Path

    def file(self, kind: str, part: str) -> Path:
        """Where a part's file of a kind lies: `kept`, `rejected`, `audit`."""
        return self.path / kind / f"{part}.jsonl"

    def mark(self, part: str) -> Path:
        return self.path / MARKS / f"{part}.json"

    def done(self, part: str) -> bool:
        """Whether a part is whole."""
        return self.mark(part).exists()

    def parts(self) -> list[str]:
        """The names of the whole parts, in order."""
        marks = (self.path / MARKS).glob("part-*.json")
        return sorted((path.stem for path in marks), key=lambda name: int(name[5:]))

    def write(self, part: str, outcomes: Sequence[Outcomes], stage: str) -> Counts:
        """Write a part; it counts when its mark is there, which is written last.

        Raises:
            DataError: it cannot be written.
        """
        flat = [outcome for found in outcomes for outcome in found]
        kept = [outcome for outcome in flat if isinstance(outcome, Kept)]
        write_jsonl(self.file(KEPT, part), (outcome.record for outcome in kept))
        rejected = (outcome.to_dict(stage) for outcome in flat if not isinstance(outcome, Kept))
        write_jsonl(self.file(REJECTED, part), rejected)
        audits = [
            {"id": o.record["id"] if isinstance(o, Kept) else o.id, **o.audit}
            for o in flat
            if o.audit is not None
        ]
        if audits:
            write_jsonl(self.file(AUDIT, part), audits)
        else:
            remove_file(self.file(AUDIT, part))
        counts = Counts.of(outcomes)
        marked = {str(outcome.record["id"]): list(outcome.tags) for outcome in kept if outcome.tags}
        write_json(self.mark(part), {**counts.to_dict(), "marked": marked})
        return counts

    def rewrite(
        self, part: str, stage: str, stays: Callable[[Record], bool], unit: Callable[[Record], str]
    ) -> None:
        """Write a part anew with those of its records that stay, counted as if the others had never come.

        `unit` names the record that the stage read, of one that it wrote.
        """
        tags = read_json_object(self.mark(part)).get("marked", {})
        audits = {record["id"]: record for record in self.part_records(part, AUDIT)}
        found: dict[str, list[Outcome]] = {}
        for record in filter(stays, self.part_records(part, KEPT)):
            name = str(record["id"])
            kept = Kept(record, tuple(tags.get(name, ())), audits.get(name))
            found.setdefault(unit(record), []).append(kept)
        for line in filter(stays, self.part_records(part, REJECTED)):
            name = str(line["id"])
            rejected = Rejected(name, line["reason"], line["evidence"], line.get("record"), audits.get(name))
            found.setdefault(unit(line), []).append(rejected)
        # As they were read: ids of one source end in their row.
        self.write(part, [found[name] for name in sorted(found, key=lambda name: (len(name), name))], stage)

    def counts(self, part: str) -> Counts:
        """The counts of a whole part; raises DataError."""
        path = self.mark(part)
        return Counts.from_dict(read_json_object(path), str(path))

    def remarks(self) -> dict[str, Any]:
        """What the stage found out about itself, by name; each with `told`, a sentence. Raises DataError."""
        try:
            return read_json_object(self.path / "remarks.json")
        except FileNotFoundError:
            return {}

    def remark(self, name: str, found: Mapping[str, Any]) -> None:
        """Write down what the stage found out about itself; it goes with the stage."""
        write_json(self.path / "remarks.json", {**self.remarks(), name: dict(found)})

    def total(self) -> Counts:
        """The counts of all whole parts."""
        return Counts.total(self.counts(part) for part in self.parts())

    def records(self, kind: str = KEPT) -> Iterator[Record]:
        """Every record of a kind, part by part; raises DataError for a broken line."""
        for part in self.parts():
            yield from self.part_records(part, kind)

    def part_records(self, part: str, kind: str = KEPT) -> Iterator[Record]:
        path = self.file(kind, part)
        if path.exists():
            yield from (record for _, record in read_jsonl(path))

    def handed_on(self, part: str) -> list[Record]:
        """What a whole part hands on to the next stage; raises DataError where that is not what was counted."""
        found, written = list(self.part_records(part)), self.counts(part).written
        if len(found) != written:
            raise DataError(
                f"{self.file(KEPT, part)}: has {len(found):,} lines, but {written:,} were written; put the file back "
                "as it was, or make its stage again with --again"
            )
        return found

    def sweep(self) -> None:
        """Remove what a kill left half written anywhere in the stage: text that no `erase` would find."""
        for path in self.path.rglob(".*"):
            if path.is_file():
                remove_file(path)

    def drop_unfinished(self) -> None:
        """Remove the files of parts without their mark: what a kill left, and the next run makes again."""
        self.sweep()
        for kind in (KEPT, REJECTED, AUDIT):
            for path in (self.path / kind).glob("part-*.jsonl"):
                if not self.done(path.stem):
                    remove_for_good(path)

    def drop(self, part: str) -> None:
        """Remove a part, its mark first: the next run makes it again. Raises DataError."""
        for path in (self.mark(part), *(self.file(kind, part) for kind in (KEPT, REJECTED, AUDIT))):
            remove_for_good(path)

    def clear(self) -> None:
        """Remove everything but what the stage was made with and what it paid for: the next run makes it again.

        Raises:
            DataError: something cannot be removed; names it.
        """
        first = ["summary.json", MARKS]
        others = sorted(path.name for path in self.path.glob("*"))
        for name in [*first, *(name for name in others if name not in (*first, "stage.json", *PAID))]:
            remove_for_good(self.path / name)

    def remove(self) -> None:
        """Remove the stage, but for what it paid for. Raises DataError as `clear`.

        `stage.json` goes last: what a kill leaves is an unfinished stage of the settings it was made with, and never
        parts that the next run takes for its own.
        """
        self.clear()
        remove_for_good(self.path / "stage.json")
        if self.path.is_dir() and not any(self.path.iterdir()):
            self.path.rmdir()


def require_no_links(place: Path) -> None:
    """See that a folder, if it is there, holds its files itself, and is none but itself.

    Raises:
        DataError: it, or something in there, is a symbolic link; names it. Nothing was changed.
    """
    for folder, folders, files in [("", [str(place)], []), *os.walk(place)]:
        for name in sorted((*folders, *files)):
            path = Path(folder, name)
            if path.is_symlink():
                raise DataError(
                    f"{path}: is a symbolic link, and what it leads to would outlive this; put the thing itself there "
                    f"(the whole workspace may lie elsewhere) and start the same command again"
                )


def remove_for_good(path: Path) -> None:
    """Remove a file or a folder if it is there; raises DataError where it stays, as it may hold texts."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise DataError(
            f"{error.filename or path}: cannot be removed: {error.strerror or error}; see to it and start the same "
            "command again"
        ) from error
