"""A candidate: a scenario that may enter a release, with all references proposed for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from h2htalk.data.dialogue import read_mapping
from h2htalk.data.scenario import Scenario
from h2htalk.errors import DataError

ORIGINAL = "original"
ANSWER = "answer:"
MODEL = "model:"


@dataclass(frozen=True, slots=True)
class Reference:
    """A proposed reply: its text, and its origin.

    `origin`: `original` (the dialogue itself), `answer:DIALOGUE` (another dialogue with the same question), or
    `model:NAME`. `provenance`: the dialogue, source and licence of an answer.
    """

    text: str
    origin: str = ORIGINAL
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, raw: object, where: str) -> Reference:
        if not isinstance(raw, Mapping) or not all(isinstance(raw.get(key), str) for key in ("text", "origin")):
            raise DataError(f"{where}: a reference must be an object with text and origin")
        return cls(raw["text"], raw["origin"], read_mapping(raw, "provenance", where))

    def to_dict(self) -> dict[str, Any]:
        record: dict[str, Any] = {"text": self.text, "origin": self.origin}
        return record | ({"provenance": dict(self.provenance)} if self.provenance else {})


@dataclass(frozen=True, slots=True)
class Candidate:
    """A scenario whose reference is the first of `references`; `review`: the result of the review stage."""

    scenario: Scenario
    references: tuple[Reference, ...]
    review: Mapping[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return self.scenario.id

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], where: str = "candidate") -> Candidate:
        """Read and validate a record.

        Raises:
            DataError: the candidate or its scenario is wrong; the message starts with `where`.
        """
        scenario, references = raw.get("scenario"), raw.get("references")
        if not isinstance(scenario, Mapping) or not isinstance(references, list) or not references:
            raise DataError(f"{where}: a candidate must hold a scenario and a list of references")
        read = Scenario.from_dict(scenario, where)
        where = f"{where}: {read.id}"
        if raw.get("id") != read.id:
            raise DataError(f"{where}: the candidate's id is not its scenario's")
        proposed = tuple(Reference.from_dict(r, f"{where}: reference {n}") for n, r in enumerate(references, 1))
        if read.references != (proposed[0].text,):
            raise DataError(f"{where}: the scenario's reference is not the first of the candidate's")
        return cls(read, proposed, read_mapping(raw, "review", where))

    def to_dict(self) -> dict[str, Any]:
        """The record. `provenance` repeats the scenario's, for `erase` and `explain`."""
        record: dict[str, Any] = {
            "id": self.id,
            "scenario": self.scenario.to_dict(),
            "references": [reference.to_dict() for reference in self.references],
            "provenance": dict(self.scenario.provenance),
        }
        return record | {"review": dict(self.review)} if self.review else record
