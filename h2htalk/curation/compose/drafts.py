"""A draft: a scenario of a dialogue while it has no reference yet, and the references that are found for it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from h2htalk.curation.candidates import MODEL, Reference
from h2htalk.data.dialogue import Dialogue
from h2htalk.data.persona import Persona
from h2htalk.data.scenario import Scenario, Tags
from h2htalk.data.subtasks import find_subtask
from h2htalk.errors import shorten
from h2htalk.text.contracts.contract import check_scenario
from h2htalk.text.contracts.violations import Violation

_NOT_YET = "-"  # a scenario's reference while there is none; never kept


class Refused(Exception):
    """A proposal or a reference that is not taken: the reason to count by, and what was found."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = reason, detail


@dataclass(frozen=True, slots=True)
class Draft:
    """A scenario without its reference.

    Attributes:
        inputs: the fields of its subtask, as JSON holds them.
        turn: the message that is answered (or ends the history), counted from 1; None where it has none.
        original: the reply that was given in the dialogue, whether it keeps the contract or not.
        alternatives: replies that others gave to the same message (`reply_folding`), the best first.
        written: a model writes references.
        fixed: a reference that needs no writing: the null line of recollection_synthesis.
    """

    subtask: str
    inputs: Mapping[str, Any]
    tags: Tags
    turn: int | None = None
    original: str | None = None
    alternatives: tuple[Reference, ...] = ()
    written: bool = False
    fixed: str | None = None


def scenario_of(
    draft: Draft, dialogue: Dialogue, persona: Persona, scenario_id: str, reference: str = _NOT_YET
) -> Scenario:
    """The draft as a scenario of its dialogue: provenance, licence and what safety said go with it.

    Raises:
        DataError: the inputs are not those of the subtask.
    """
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
        "tags": draft.tags.to_dict(),
        "provenance": provenance,
        "licence": dialogue.licence,
    }
    return Scenario.from_dict(record | ({"metadata": {"safety": safety}} if safety else {}), dialogue.id)


def broken_rules(
    text: str, scenario: Scenario, persona: Persona, prompt: str | None = None
) -> tuple[Violation, ...]:
    """What a reply breaks of its contract; `prompt` is what its writer was told, None for the dialogue's own."""
    description = persona.descriptions[scenario.language]
    return check_scenario(text, scenario, tuple(persona.names.values()), prompt, description)


def merge(drafts: list[Draft], draft: Draft) -> None:
    """Add a draft; one that answers the message of a cut, for the same subtask, has that cut rewritten.

    Raises:
        Refused: `inputs:turn`: the message is taken for another subtask, or was proposed twice.
    """
    if find_subtask(draft.subtask).is_chat:
        for at, other in enumerate(drafts):
            if find_subtask(other.subtask).is_chat and other.turn == draft.turn:
                if other.written or other.subtask != draft.subtask:
                    raise Refused("inputs:turn", f"message {draft.turn} is taken for {other.subtask}")
                drafts[at] = draft
                return
    drafts.append(draft)


def named_drafts(dialogue_id: str, drafts: Sequence[Draft]) -> list[tuple[str, Draft]]:
    """Ids: `DIALOGUE:subtask`, the second of a subtask `DIALOGUE:subtask:2`."""
    seen: Counter[str] = Counter()
    found = []
    for draft in drafts:
        seen[draft.subtask] += 1
        number = f":{seen[draft.subtask]}" if seen[draft.subtask] > 1 else ""
        found.append((f"{dialogue_id}:{draft.subtask}{number}", draft))
    return found


@dataclass(slots=True)
class Found:
    """A candidate's references by their texts, and of those that were lost who wrote them, why, and details."""

    texts: dict[str, Reference] = field(default_factory=dict)
    lost: list[tuple[str, str, str]] = field(default_factory=list)

    def take(self, reference: Reference) -> None:
        """Add one; a text that is there already is lost as `same`."""
        if reference.text in self.texts:
            self.lose(reference.origin, "same", reference.text)
        else:
            self.texts[reference.text] = reference

    def lose(self, origin: str, reason: str, detail: str) -> None:
        self.lost.append((origin, reason, shorten(detail, 400)))

    def written_reasons(self) -> list[str]:
        """Why references by a model were lost, each reason once."""
        return sorted({reason for origin, reason, _ in self.lost if origin.startswith(MODEL)})

    def told(self) -> list[dict[str, str]]:
        """As audits and evidence hold them, those of a model first: they were to stand in for the original."""
        ordered = sorted(self.lost, key=lambda one: not one[0].startswith(MODEL))
        return [{"origin": origin, "reason": reason, "detail": detail} for origin, reason, detail in ordered]


def drawn(seed: int, *said: object) -> bytes:
    """A draw that depends on the seed and what is drawn for alone."""
    return hashlib.sha256("\0".join(map(str, (seed, *said))).encode()).digest()
