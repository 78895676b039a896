"""Who has read an item, what for, and what they found.

A `Read` is one reading of one item by one reader: a guard (`guard:MODEL`), the reviewer (`review:MODEL`) or the people
of a round (`people:ROUND`). Words and classifiers never read. It covers passages, which it names by their hashes
(`passages.py`), so that a reading of a dialogue covers whatever was made of its messages, and nothing that a model
wrote since. What it found stays with the words, whoever says them and after what.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from h2htalk.data.files import json_line
from h2htalk.data.records import Id, Text, adapter, read_record, strict_record

# The gates of a release that ask who has read an item; each reading names those that it was asked for.
ReadGate = Literal["companion_harm", "explicit_content", "minors", "crisis_care", "personal_data"]
READ_GATES: tuple[ReadGate, ...] = get_args(ReadGate)
# The gate on dialogues that give somebody away, which exists where a release sets `risk`; a model reads for it alone.
REIDENTIFICATION: Literal["reidentification"] = "reidentification"
# The gates that are not tested where something is unread.
TestedGate = Literal[ReadGate, "reidentification"]
TESTED_GATES: tuple[TestedGate, ...] = (*READ_GATES, REIDENTIFICATION)
ReaderKind = Literal["guard", "review", "people"]

READS = "reads.jsonl"  # of a release


@strict_record
class ReadFinding:
    """What a reader found for a gate.

    Attributes:
        gate: what it is about. A danger to a life is `crisis_care`, a user under 18 `minors`.
        what: in the reader's words, which no release holds (`curation/release/readings.py`: `published`).
        text: the hash of the passage's text (`text_hash`); empty for the item as a whole.
        unsure: whether the reader could not tell.
        severity: of harm by the companion, 0 to 3 (`curation/reading/question.py`).
    """

    gate: ReadGate
    what: str = ""
    text: str = ""
    unsure: bool = False
    severity: Annotated[int, Field(ge=0, le=3)] = 0


@strict_record
class Read:
    """One reading of one item.

    Attributes:
        item: the id of a dialogue, a candidate or a released item.
        reader: `guard:MODEL`, `review:MODEL` or `people:ROUND`.
        date: the day on which the reader answered (ISO 8601).
        gates: what the reader was asked for, in the order of `READ_GATES`.
        passages: the hashes of the passages that it read whole (`SpokenPassage.hash`), sorted.
        findings: what it found; none where it found nothing.
        prompt: the fingerprint of the question, which its certificate must share; empty for people.
        served_by: digests of what served the model (`chat/served_model.py`), which its certificate must share, too.
        people: how many people answered, of those who count as readers; 0 for a model.
        known_by: the hashes of the texts (`text_hash`; empty for the item as a whole) by which people who know the user
            could recognise them, as the reader says. It is a mark, and no finding for a gate.
    """

    item: Id
    reader: Text
    date: Text
    gates: tuple[ReadGate, ...]
    passages: tuple[str, ...]
    findings: tuple[ReadFinding, ...] = ()
    prompt: str = ""
    served_by: str = ""
    people: Annotated[int, Field(ge=0)] = 0
    known_by: tuple[str, ...] = ()

    @property
    def kind(self) -> ReaderKind:
        """Whether a guard, the reviewer or people read it."""
        return kind_of_reader(self.reader)

    def to_dict(self) -> dict[str, Any]:
        """The record without empty fields; `read_read` reads it back."""
        return adapter(Read).dump_python(self, mode="json", exclude_defaults=True)  # type: ignore[no-any-return]


def kind_of_reader(reader: str) -> ReaderKind:
    """The kind of a reader by its name. Raises ValueError for a name that no reader has."""
    kind = reader.partition(":")[0]
    if kind not in get_args(ReaderKind):
        raise ValueError(f"{reader!r}: a reader is guard:MODEL, review:MODEL or people:ROUND")
    return kind  # type: ignore[return-value]


def read_read(raw: object, where: str) -> Read:
    """Read a stored reading. Raises DataError, which starts with `where`."""
    return read_record(Read, raw, where)


def reads_as_lines(reads: Iterable[Read]) -> list[str]:
    """The lines of `reads.jsonl`, sorted by item, reader and date."""
    ordered = sorted(reads, key=lambda read: (read.item, read.reader, read.date))
    return [json_line(read.to_dict()) for read in ordered]
