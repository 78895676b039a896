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
    lines: list[str] = []
    for value in scenario.inputs.values():
        if isinstance(value, str):
            lines.append(value)
        else:
            lines += map(_line, value)
    return "\n".join(lines)


def _line(entry: str | ScheduleEntry | Turn) -> str:
    if isinstance(entry, ScheduleEntry):
        return f"{entry.time} {entry.activity}"
    return entry.content if isinstance(entry, Turn) else entry


def side_texts(scenarios: Iterable[Scenario]) -> list[SideText]:
    """Return the instruction and the responses of each scenario, in the scenarios' order."""
    texts: list[SideText] = []
    for s in scenarios:
        groups = (s.id, s.subtask, s.language, s.tags.emotion)
        texts.append(SideText(*groups, "instruction", instruction_text(s)))
        for reference in s.references:
            texts.append(SideText(*groups, "response", reference))
    return texts
