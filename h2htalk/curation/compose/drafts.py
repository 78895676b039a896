"""Drafts, scenarios of a dialogue before they have a reference; and those that are extracted without a model.

A draft is extracted as the history up to a user's turn, with the reply in the dialogue, which is used unchanged or not
at all.
"""

from __future__ import annotations

import hashlib
from bisect import bisect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from h2htalk.curation.candidates import ANSWER, Reference, broken_rules
from h2htalk.curation.compose.tagging import (
    is_pleasantry,
    is_substantial,
    strength,
    tags_of,
    tells_of_itself,
)
from h2htalk.data.scenario import Dialogue, Persona, Scenario, Tags, Turn
from h2htalk.data.subtasks import find_subtask
from h2htalk.detect.safety.companion import (
    EXPLICIT,
    HARM,
    REMOVE,
    REVIEW,
    companion_turns,
    find_in_answer,
)
from h2htalk.detect.safety.crisis import MINOR
from h2htalk.errors import shorten
from h2htalk.text.contracts.contract import inputs_of
from h2htalk.text.contracts.violations import Violation

BASE, EMOTION = "dialogue_base", "dialogue_emotion"
EXTRACTABLE = (BASE, EMOTION)
# Messages and characters of a history: as much as fits the context of a companion.
MOST_TURNS = 12
MOST_CHARACTERS = 6000
# One `dialogue_base` for so many turns that can be answered, and at most `MOST_DRAFTS` of a dialogue, as the
# histories of one dialogue contain each other.
TURNS_A_DRAFT = 4
MOST_DRAFTS = 3
MOST_TRIED = 50  # turns of one stretch that are tried, so that a very long chat costs little


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
    alternatives: tuple[
        Reference, ...
    ] = ()  # replies of other dialogues to the same message (`dedup`), the best first
    written: bool = False  # whether a model writes references
    fixed: str | None = (
        None  # a reference that is not written: the null line of recollection_synthesis
    )


def scenario_of(
    draft: Draft, dialogue: Dialogue, persona: Persona, scenario_id: str, reference: str = "-"
) -> Scenario:
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
    return Scenario.from_dict(
        record | ({"metadata": {"safety": safety}} if safety else {}), dialogue.id
    )


def screen(text: str, scenario: Scenario) -> set[str]:
    """The safety codes of a model's reference; RefusedDraft for plain harm, or sexual content with a minor."""
    turns = scenario.turns or (Turn("user", inputs_of(scenario)),)
    *_, (_, context, _) = companion_turns((*turns, Turn("companion", text)))
    found = {
        one.category: one.score
        for one in find_in_answer(context, text, scenario.language)
        if one.score >= REVIEW
    }
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
                raise RefusedDraft(
                    "inputs:turn", f"message {draft.turn} is used for {other.subtask}"
                )
            drafts[at] = draft
            return
    drafts.append(draft)


@dataclass(slots=True)
class References:
    """The references of a candidate by their texts, and the refused ones with origin, reason and details."""

    accepted: dict[str, Reference] = field(default_factory=dict)
    codes: set[str] = field(default_factory=set)  # of safety, in the accepted ones of a model
    refused: list[dict[str, str]] = field(default_factory=list)

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
        self.refused.append({"origin": origin, "reason": reason, "detail": shorten(detail, 400)})


def random_bytes(seed: int, *what: object) -> bytes:
    """Bytes that depend on the seed and on what they are drawn for alone."""
    return hashlib.sha256("\0".join(map(str, (seed, *what))).encode()).digest()


@dataclass(frozen=True, slots=True)
class Extracted:
    """The drafts of a dialogue; where there is none, the reason and its evidence."""

    drafts: tuple[Draft, ...]
    reason: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)


def answered(dialogue: Dialogue) -> list[int]:
    """The user's messages (counted from 0) that the companion answers."""
    turns = dialogue.messages
    return [
        at
        for at in range(len(turns) - 1)
        if (turns[at].role, turns[at + 1].role) == ("user", "companion")
    ]


def history(dialogue: Dialogue, at: int, first: int = 0) -> tuple[Turn, ...]:
    """The messages from `first` to `at` (counted from 0): the last ones that fit, beginning with the user's where some
    are left out. Empty where message `at` alone is too long."""
    turns: list[Turn] = []
    left = MOST_CHARACTERS
    for place in range(at, first - 1, -1):  # no slice, which copies: this is called for every turn
        turn = dialogue.messages[place]
        left -= len(turn.content)
        if left < 0 or len(turns) == MOST_TURNS:
            break
        turns.append(turn)
    turns.reverse()
    shortened = len(turns) <= at - first
    while shortened and turns and turns[0].role == "companion":
        del turns[0]
    return tuple(turns)


def chat_draft(dialogue: Dialogue, subtask: str, at: int, first: int = 0) -> Draft | None:
    """The draft of a chat subtask that answers the user's message `at` (from 0), with a history from message `first` on
    at the earliest; None where it is too long."""
    turns = history(dialogue, at, first)
    if not turns:
        return None
    after = dialogue.messages[at + 1 : at + 2]
    reply = after[0].content if after and after[0].role == "companion" else None
    one_exchange = at == 0 and len(dialogue.messages) == 2
    alternatives = tuple(
        Reference(
            one["text"], f"{ANSWER}{one['id']}", {**one["provenance"], "licence": one["licence"]}
        )
        for one in (dialogue.metadata.get("alternatives", ()) if one_exchange else ())
    )
    inputs = {"history": [turn.to_dict() for turn in turns]}
    return Draft(subtask, inputs, tags_of(dialogue, turns), at + 1, reply, alternatives)


def extract(
    dialogue: Dialogue,
    persona: Persona,
    subtasks: Sequence[str],
    seed: int,
    *,
    selective: bool = False,
) -> Extracted:
    """Extract scenarios whose reference is the dialogue's own reply, or another dialogue's to the same message.

    At most one is a `dialogue_emotion`, at the turn with the strongest feeling, and one for every four turns, up to
    three spread over the dialogue, a `dialogue_base`; a greeting or a goodbye is used only where no other reply keeps
    the contract. `selective`: only turns with enough content are used, whose companion tells of no human life of its
    own in reply and history. The turns depend on the dialogue and the seed alone.

    `reason` where there is none: `no_turn` (no turn is answered), `no_content`, `too_long`, `contract:RULE` (no reply
    keeps it; the first rule that the first turn's breaks) or `nothing` (nothing extractable is asked for, or fits).
    """
    asked = [name for name in EXTRACTABLE if name in subtasks]
    turns = answered(dialogue)
    if not asked or not turns:
        return Extracted((), "no_turn" if asked else "nothing")
    told = [-1]
    if selective:
        companions = (at for at, turn in enumerate(dialogue.messages) if turn.role == "companion")
        told += [at for at in companions if tells_of_itself(dialogue, at)]
        turns = [at for at in turns if is_substantial(dialogue, at)]
        if not turns:
            return Extracted((), "no_content")
    begin = {at: told[bisect(told, at) - 1] + 1 for at in turns}
    fitting = [at for at in turns if history(dialogue, at, begin[at])]
    if not fitting:
        return Extracted((), "too_long", {"most": MOST_CHARACTERS})
    broken: dict[tuple[int, str], Violation] = {}  # the rules that the tried replies break

    def keeps(subtask: str, at: int) -> bool:
        draft = chat_draft(dialogue, subtask, at)
        assert draft is not None
        scenario = scenario_of(draft, dialogue, persona, dialogue.id)
        if not (found := broken_rules(dialogue.messages[at + 1].content, scenario, persona)):
            return True
        broken[at, subtask] = found[0]
        return any(not broken_rules(one.text, scenario, persona) for one in draft.alternatives)

    def first(
        subtask: str, turns: Iterable[int], rank: Callable[[int], int]
    ) -> list[tuple[int, str]]:
        """The first turn by rank, then by chance, whose reply keeps the contract; none where no reply does."""
        ranked = sorted(
            turns, key=lambda at: (rank(at), random_bytes(seed, dialogue.id, subtask, at))
        )
        return next(([(at, subtask)] for at in ranked[:MOST_TRIED] if keeps(subtask, at)), [])

    chosen: list[tuple[int, str]] = []
    if EMOTION in asked:
        strengths = {at: value for at in fitting if (value := strength(dialogue, at))}
        chosen += first(EMOTION, strengths, lambda at: -strengths[at])
    if BASE in asked:
        others = [at for at in fitting if (at, EMOTION) not in chosen]
        count = min(MOST_DRAFTS, -(-len(others) // TURNS_A_DRAFT))
        for number in range(count):  # one of each stretch
            stretch = others[number * len(others) // count : (number + 1) * len(others) // count]
            chosen += first(
                BASE,
                stretch,
                lambda at: is_pleasantry(dialogue.messages[at].content, dialogue.language),
            )
    drafts = [
        draft
        for at, subtask in sorted(chosen)
        if (draft := chat_draft(dialogue, subtask, at, begin[at]))
    ]
    if drafts or not broken:
        return Extracted(tuple(drafts), "" if drafts else "nothing")
    (at, subtask), violation = min(broken.items(), key=lambda item: item[0])
    evidence = {
        "subtask": subtask,
        "turn": at + 1,
        "detail": violation.detail,
        "tried": len(broken),
    }
    return Extracted((), f"contract:{violation.rule}", evidence)
