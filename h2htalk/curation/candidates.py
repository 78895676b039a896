"""A candidate: a scenario that may enter a release, with all references proposed for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field

from h2htalk.data.readers.passages import SpokenPassage, item_passages
from h2htalk.data.records import Id, Open, read_record, strict_record
from h2htalk.data.scenario import Persona, Scenario, Turn
from h2htalk.rounds.item_sources import input_text
from h2htalk.text.contracts.contract import check_scenario
from h2htalk.text.contracts.violations import Violation

ORIGINAL = "original"
ANSWER = "answer:"
MODEL = "model:"


@strict_record
class Reference:
    """A proposed reply: its text, and its origin.

    `origin`: `original` (the dialogue itself), `answer:DIALOGUE` (another dialogue with the same question), or
    `model:NAME`. `provenance`: the dialogue, source and licence of an answer.
    """

    text: str
    origin: str = ORIGINAL
    provenance: Open = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        record: dict[str, Any] = {"text": self.text, "origin": self.origin}
        return record | ({"provenance": dict(self.provenance)} if self.provenance else {})


@strict_record
class _Line:
    """A candidate as a file holds it; `provenance` repeats the scenario's."""

    id: Id
    scenario: dict[str, Any]
    references: Annotated[tuple[Reference, ...], Field(min_length=1)]
    provenance: Open = field(default_factory=dict)
    review: Open = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A scenario whose reference is the first of `references`; `review`: the result of the review stage."""

    scenario: Scenario
    references: tuple[Reference, ...]
    review: Open = field(default_factory=dict)

    @property
    def id(self) -> str:
        return self.scenario.id

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], where: str = "candidate") -> Candidate:
        """Read and validate a record. Raises DataError, which starts with `where`."""
        line = read_record(_Line, raw, where)
        return cls(Scenario.from_dict(line.scenario, where), line.references, line.review)

    def to_dict(self) -> dict[str, Any]:
        """The record. `provenance` repeats the scenario's, for `erase` and `explain`."""
        record: dict[str, Any] = {
            "id": self.id,
            "scenario": self.scenario.to_dict(),
            "references": [reference.to_dict() for reference in self.references],
            "provenance": dict(self.scenario.provenance),
        }
        return record | {"review": dict(self.review)} if self.review else record


def input_passages(scenario: Scenario) -> dict[str, str]:
    """The inputs that are no conversation, without empty ones."""
    inputs = scenario.inputs.items()
    return {
        name: text for name, value in inputs if name != "history" and (text := input_text(value))
    }


def input_turns(scenario: Scenario) -> list[Turn]:
    """Every passage of the inputs: the conversation, then the other inputs as if the user said them."""
    return [*scenario.turns, *(Turn("user", text) for text in input_passages(scenario).values())]


def scenario_passages(scenario: Scenario, references: Iterable[str]) -> list[SpokenPassage]:
    """The passages of a scenario with these references, as readers have them: the inputs, then the references."""
    return item_passages(scenario.turns, input_passages(scenario).values(), references)


def broken_rules(
    text: str, scenario: Scenario, persona: Persona, prompt: str | None = None
) -> tuple[Violation, ...]:
    """The rules of its contract that a reply breaks; `prompt`: of its writer, None for a reply of a dialogue."""
    description = persona.descriptions.get(scenario.language, "")
    return check_scenario(text, scenario, tuple(persona.names.values()), prompt, description)
