"""A candidate: a scenario that may enter a release, with every reference that was proposed for it."""

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
    """A proposed reply: its text, and who wrote it: `original` in the dialogue, `answer:DIALOGUE` in another one with
    the same question, `model:NAME`. `provenance` is of an answer alone: its dialogue, source and licence."""

    text: str
    origin: str = ORIGINAL
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, raw: object, where: str) -> Reference:
        if not isinstance(raw, Mapping) or not all(
            isinstance(raw.get(key), str) for key in ("text", "origin")
        ):
            raise DataError(f"{where}: a reference must be an object with text and origin")
        return cls(raw["text"], raw["origin"], read_mapping(raw, "provenance", where))

    def to_dict(self) -> dict[str, Any]:
        record: dict[str, Any] = {"text": self.text, "origin": self.origin}
        return record | ({"provenance": dict(self.provenance)} if self.provenance else {})


@dataclass(frozen=True, slots=True)
class Candidate:
    """A scenario whose own reference is the first of `references`. `review` is what the review stage found."""

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
            DataError: no candidate, or its scenario is none; starts with `where`.
        """
        scenario, references = raw.get("scenario"), raw.get("references")
        if not isinstance(scenario, Mapping) or not isinstance(references, list) or not references:
            raise DataError(f"{where}: a candidate must hold a scenario and a list of references")
        read = Scenario.from_dict(scenario, where)
        if raw.get("id") != read.id:
            raise DataError(f"{where}: the candidate's id is not its scenario's")
        found = tuple(
            Reference.from_dict(r, f"{where}: {read.id}: reference {n}") for n, r in enumerate(references, 1)
        )
        if found[0].text != read.reference:
            raise DataError(f"{where}: {read.id}: the scenario's reference is not the first one proposed")
        return cls(read, found, read_mapping(raw, "review", f"{where}: {read.id}"))

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it. `provenance` is the scenario's, where `erase` and `explain` look."""
        record: dict[str, Any] = {
            "id": self.id,
            "scenario": self.scenario.to_dict(),
            "references": [reference.to_dict() for reference in self.references],
            "provenance": dict(self.scenario.provenance),
        }
        return record | {"review": dict(self.review)} if self.review else record
