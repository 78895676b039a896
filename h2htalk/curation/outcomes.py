"""What a stage's rule says of one record: it goes on, or it is rejected with a reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from h2htalk.data.dialogue import Dialogue
from h2htalk.errors import DataError

Record = Mapping[str, Any]  # a JSON object with an `id`


@dataclass(frozen=True, slots=True)
class Kept:
    """A record that goes on to the next stage.

    `tags` are counted in the stage's summary (`review`, `crisis`, `needs_people`): short words, no text. The record
    itself must say the same, for stages to come. `audit` is what was done to it, never the text that it was done to.
    """

    record: Record
    tags: tuple[str, ...] = ()
    audit: Record | None = None


@dataclass(frozen=True, slots=True)
class Rejected:
    """A record that goes no further: a reason to count by, and the evidence for it.

    `record` is the text, where it may lie around; None where it must not (raw personal data, an apparent minor in a
    sexual setting): then the id and the reason are all that is kept. `audit` as in `Kept`.
    """

    id: str
    reason: str
    evidence: Record = field(default_factory=dict)
    record: Record | None = None
    audit: Record | None = None

    def to_dict(self, stage: str) -> dict[str, Any]:
        line: dict[str, Any] = {
            "id": self.id,
            "stage": stage,
            "reason": self.reason,
            "evidence": dict(self.evidence),
        }
        return line if self.record is None else line | {"record": dict(self.record)}


Outcome = Kept | Rejected
# Of one record; several where one becomes several (a dialogue's candidates). Never none.
Outcomes = Sequence[Outcome]
RecordRule = Callable[[Record], Outcomes]
DialogueRule = Callable[[Dialogue], Outcomes]
# The outcomes of each record of a part, in order; `part` names it (`part-00003`). One that holds a model has a `close`,
# which is called when the last part is done or given up.
PartRule = Callable[[Sequence[Record], str], Sequence[Outcomes]]


def each(rule: RecordRule) -> PartRule:
    """A rule of one record as a rule of a part."""
    return lambda records, part: [rule(record) for record in records]


def each_dialogue(rule: DialogueRule) -> PartRule:
    """A rule of one dialogue as a rule of a part. A record that is no dialogue is rejected as `unreadable`."""

    def of_record(record: Record) -> Outcomes:
        try:
            dialogue = Dialogue.from_dict(record)
        except DataError as error:
            return [Rejected(str(record.get("id", "")), "unreadable", {"error": str(error)})]
        return rule(dialogue)

    return each(of_record)


def own_ids(record: Record) -> frozenset[str]:
    """Whose words a record holds: its own id, its dialogue's, its person's."""
    provenance = record.get("provenance")
    found = [record.get("id")]
    if isinstance(provenance, Mapping):
        found += [provenance.get("dialogue"), provenance.get("person")]
    return frozenset(item for item in found if isinstance(item, str))


def source_ids(record: Record) -> frozenset[str]:
    """Every id by which a record can be asked for: `own_ids`, and the near copies that it stands for."""
    provenance = record.get("provenance")
    merged = provenance.get("merged") if isinstance(provenance, Mapping) else None
    return own_ids(record) | frozenset(
        item for item in (merged if isinstance(merged, list) else ()) if isinstance(item, str)
    )


def dialogue_of(record: Record) -> str:
    """The id of the dialogue that a record (or a rejected line) came from; its own where it is one."""
    held = record.get("record", record)
    provenance = held.get("provenance") if isinstance(held, Mapping) else None
    dialogue = provenance.get("dialogue") if isinstance(provenance, Mapping) else None
    # A rejected candidate whose text was not kept says by its id whose it was: `DIALOGUE:subtask`.
    return dialogue if isinstance(dialogue, str) else str(record["id"]).split(":", 1)[0]
