"""A draft: a scenario of a dialogue before it has a reference, and the references that are collected for it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from h2htalk.curation.candidates import Reference
from h2htalk.curation.safety.companion import EXPLICIT, HARM, REMOVE, REVIEW, companion_turns, find_in_answer
from h2htalk.curation.safety.crisis import MINOR
from h2htalk.data.scenario import Dialogue, Persona, Scenario, Tags, Turn
from h2htalk.data.subtasks import find_subtask
from h2htalk.errors import shorten
from h2htalk.text.contracts.contract import check_scenario, inputs_of
from h2htalk.text.contracts.violations import Violation


class RefusedDraft(Exception):
    """A proposal or a reference that is refused: the reason to count by, and details."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = reason, detail


@dataclass(frozen=True, slots=True)
class Draft:
    """A scenario without its reference."""

    subtask: str
    inputs: Mapping[str, Any]
    tags: Tags
    turn: int | None = None  # the message that is answered or that ends the history, counted from 1
    original: str | None = None  # the reply in the dialogue, whether it keeps the contract or not
    alternatives: tuple[Reference, ...] = ()  # replies of other dialogues to the same message (`dedup`), the best first
    written: bool = False  # whether a model writes references
    fixed: str | None = None  # a reference that is not written: the null line of recollection_synthesis


def scenario_of(draft: Draft, dialogue: Dialogue, persona: Persona, scenario_id: str, reference: str = "-") -> Scenario:
    """The scenario of a draft, with a stand-in reference. Raises DataError for the inputs of another subtask."""
    provenance = {**dialogue.provenance, "dialogue": dialogue.id}
    if draft.turn is not None:
        provenance["turn"] = draft.turn
    safety = dialogue.metadata.get("safety")
    record = {
        "id": scenario_id,
        "subtask": draft.subtask,
        "language": dialogue.language,
        "persona": persona.id,
        "inputs": draft.inputs,
        "reference": reference,
        "tags": asdict(draft.tags),
        "provenance": provenance,
        "licence": dialogue.licence,
    }
    return Scenario.from_dict(record | ({"metadata": {"safety": safety}} if safety else {}), dialogue.id)


def broken_rules(text: str, scenario: Scenario, persona: Persona, prompt: str | None = None) -> tuple[Violation, ...]:
    """The rules of its contract that a reply breaks; `prompt`: of its writer, None for a reply of a dialogue."""
    description = persona.descriptions[scenario.language]
    return check_scenario(text, scenario, tuple(persona.names.values()), prompt, description)


def screen(text: str, scenario: Scenario) -> set[str]:
    """The safety codes of a model's reference; RefusedDraft for plain harm, or sexual content with a minor."""
    turns = scenario.turns or (Turn("user", inputs_of(scenario)),)
    *_, (_, context, _) = companion_turns((*turns, Turn("companion", text)))
    found = {one.category: one.score for one in find_in_answer(context, text, scenario.language) if one.score >= REVIEW}
    minor = MINOR in scenario.metadata.get("safety", {}).get("tags", ())
    for code in found:
        if found[code] >= REMOVE and (code == HARM or minor):
            raise RefusedDraft(f"safety:{code}", f"score {found[code]:.2f}")
    return {*found, "sexual.minors"} if minor and EXPLICIT in found else {*found}


def add_draft(drafts: list[Draft], draft: Draft) -> None:
    """Add a proposed draft; it replaces the extracted one of the same subtask and message. Raises RefusedDraft
    (`inputs:turn`) where the message is used for another subtask, or was proposed twice."""
    for at, other in enumerate(drafts if find_subtask(draft.subtask).is_chat else ()):
        if find_subtask(other.subtask).is_chat and other.turn == draft.turn:
            if other.written or other.subtask != draft.subtask:
                raise RefusedDraft("inputs:turn", f"message {draft.turn} is used for {other.subtask}")
            drafts[at] = draft
            return
    drafts.append(draft)


@dataclass(slots=True)
class References:
    """The references of a candidate by their texts, and the refused ones with origin, reason and details."""

    accepted: dict[str, Reference] = field(default_factory=dict)
    codes: set[str] = field(default_factory=set)  # of safety, in the accepted ones of a model
    refused: list[tuple[str, str, str]] = field(default_factory=list)

    def add(self, reference: Reference) -> None:
        """Add a reference; a text that is already there is refused as `same`."""
        if reference.text in self.accepted:
            self.refuse(reference.origin, "same", reference.text)
        else:
            self.accepted[reference.text] = reference

    def check_and_add(self, reference: Reference, scenario: Scenario, persona: Persona) -> None:
        """Add a reply of a dialogue if it keeps the contract."""
        if broken := broken_rules(reference.text, scenario, persona):
            self.refuse(reference.origin, f"contract:{broken[0].rule}", broken[0].detail)
        else:
            self.add(reference)

    def refuse(self, origin: str, reason: str, detail: str) -> None:
        self.refused.append((origin, reason, shorten(detail, 400)))


def random_bytes(seed: int, *what: object) -> bytes:
    """Bytes that depend on the seed and on what they are drawn for alone."""
    return hashlib.sha256("\0".join(map(str, (seed, *what))).encode()).digest()
