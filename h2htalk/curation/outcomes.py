"""What a stage's rule returns for a record: it is kept, or rejected with a reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

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
        line: dict[str, Any] = {"id": self.id, "stage": stage, "reason": self.reason}
        line["evidence"] = dict(self.evidence)
        return line if self.record is None else line | {"record": dict(self.record)}


Outcome = Kept | Rejected
# Of one record; several where one record becomes several (the candidates of a dialogue). Never empty.
Outcomes = Sequence[Outcome]
RecordRule = Callable[[Record], Outcomes]
DialogueRule = Callable[[Dialogue], Outcomes]
# The outcomes of each record of a part, in order, with the part's name (`part-00003`). A rule that holds a model has a
# `close`, which is called after the last part or an error.
PartRule = Callable[[Sequence[Record], str], Sequence[Outcomes]]


def each(rule: RecordRule) -> PartRule:
    """Make a rule for a part of a rule for one record."""
    return lambda records, part: [rule(record) for record in records]


def each_dialogue(rule: DialogueRule) -> PartRule:
    """Make a rule for a part of a rule for one dialogue."""

    def of_record(record: Record) -> Outcomes:
        dialogue = read_dialogue(record)
        return [dialogue] if isinstance(dialogue, Rejected) else rule(dialogue)

    return each(of_record)


def read_dialogue(record: Record) -> Dialogue | Rejected:
    """The dialogue of a record; a record that is none is rejected as `unreadable`."""
    try:
        return Dialogue.from_dict(record)
    except DataError as error:
        return Rejected(str(record.get("id", "")), "unreadable", {"error": str(error)})
