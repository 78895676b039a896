"""Turn a scenario into two plain texts: the instruction (its inputs) and the responses (its references)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from h2htalk.data.languages import Language
from h2htalk.data.scenario import Scenario, ScheduleEntry, Turn

Side = Literal["instruction", "response"]
SIDES: tuple[Side, ...] = ("instruction", "response")


@dataclass(frozen=True, slots=True)
class SideText:
    """One side of one scenario, with what the tables group by."""

    scenario_id: str
    subtask: str
    language: Language
    emotion: str
    side: Side
    text: str


def instruction_text(scenario: Scenario) -> str:
    """Format a scenario's inputs, one turn, memory or schedule entry a line; without persona and template.

    Fields are in the subtask's order. A turn is its content without the role, a schedule entry is `HH:MM activity`.
    """
    values = ([value] if isinstance(value, str) else value for value in scenario.inputs.values())
    return "\n".join(_line(part) for value in values for part in value)


def _line(part: str | ScheduleEntry | Turn) -> str:
    if isinstance(part, ScheduleEntry):
        return f"{part.time} {part.activity}"
    return part.content if isinstance(part, Turn) else part


def side_texts(scenarios: Iterable[Scenario]) -> list[SideText]:
    """Return the instruction and the responses of each scenario, in the scenarios' order."""
    texts: list[SideText] = []
    for s in scenarios:
        about = (s.id, s.subtask, s.language, s.tags.emotion)
        texts.append(SideText(*about, "instruction", instruction_text(s)))
        texts += [SideText(*about, "response", reference) for reference in s.references]
    return texts
