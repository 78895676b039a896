"""What can be cut from a dialogue without a model: the history up to a user's turn, with the reply that was given.

A reply is taken as it stands or not at all: where it breaks the subtask's contract, another turn is taken, and where
all of them do, the dialogue gives nothing of that subtask.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from h2htalk.curation.candidates import ANSWER, Reference
from h2htalk.curation.compose.drafts import Draft, broken_rules, drawn, scenario_of
from h2htalk.curation.compose.tagging import is_pleasantry, strength, tags_of
from h2htalk.data.dialogue import Dialogue, Turn
from h2htalk.data.persona import Persona
from h2htalk.text.contracts.violations import Violation

BASE, EMOTION = "dialogue_base", "dialogue_emotion"
CUTTABLE = (BASE, EMOTION)
# Messages of a history, and its characters: as much as a companion's context holds.
MOST_TURNS = 12
MOST_CHARACTERS = 6000
# One cut of `dialogue_base` for so many turns that can be answered, and never more than `MOST_CUTS` of a dialogue:
# histories of one dialogue hold each other.
TURNS_A_CUT = 4
MOST_CUTS = 3
# Turns of one stretch that are tried: a chat of years must not cost a minute.
MOST_TRIED = 50


@dataclass(frozen=True, slots=True)
class Cuts:
    """What a dialogue gives without a model. `reason` says why it is nothing; `evidence` goes with it."""

    drafts: tuple[Draft, ...]
    reason: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)


def answered(dialogue: Dialogue) -> list[int]:
    """The user's messages (counted from 0) that the companion answers."""
    turns = dialogue.messages
    return [
        at for at in range(len(turns) - 1) if (turns[at].role, turns[at + 1].role) == ("user", "companion")
    ]


def history(dialogue: Dialogue, at: int, first: int = 0) -> tuple[Turn, ...]:
    """The messages from `first` up to `at` (counted from 0): the last that fit, beginning with the user's where some
    are left out. Empty where message `at` alone is too long."""
    turns: list[Turn] = []
    room = MOST_CHARACTERS
    for place in range(at, first - 1, -1):  # no slice, which copies: this is asked for every turn
        turn = dialogue.messages[place]
        room -= len(turn.content)
        if room < 0 or len(turns) == MOST_TURNS:
            break
        turns.append(turn)
    turns.reverse()
    cut_off = len(turns) <= at - first
    while cut_off and turns and turns[0].role == "companion":
        del turns[0]
    return tuple(turns)


def chat_draft(dialogue: Dialogue, subtask: str, at: int) -> Draft | None:
    """The draft of a chat subtask that answers message `at` (a user's, counted from 0); None where it is too long."""
    turns = history(dialogue, at)
    if not turns:
        return None
    after = dialogue.messages[at + 1 : at + 2]
    answered_here = at == 0 and len(dialogue.messages) == 2
    return Draft(
        subtask,
        {"history": [turn.to_dict() for turn in turns]},
        tags_of(dialogue, turns),
        at + 1,
        after[0].content if after and after[0].role == "companion" else None,
        alternatives(dialogue) if answered_here else (),
    )


def alternatives(dialogue: Dialogue) -> tuple[Reference, ...]:
    """What others replied to the one message of a dialogue, the best first (`reply_folding`)."""
    found = []
    for answer in dialogue.metadata.get("alternatives", ()):
        licensed = {**answer["provenance"], "licence": answer["licence"]}
        found.append(Reference(answer["text"], f"{ANSWER}{answer['id']}", licensed))
    return tuple(found)


def cut(dialogue: Dialogue, persona: Persona, subtasks: Sequence[str], seed: int) -> Cuts:
    """Scenarios whose reference is the dialogue's own reply, or another one's to the same message.

    At most one of `dialogue_emotion`, at the turn that shows most feeling, and one of `dialogue_base` for every four
    turns, up to three, spread over the dialogue; a greeting or a goodbye only where nothing else is answered as the
    contract wants it.

    Which turns is a function of the dialogue and the seed. `reason` of nothing: `no_turn` (no turn is answered),
    `too_long`, `contract:RULE` (no reply keeps it; RULE is the first that the first turn's breaks) or `nothing` (no
    subtask that can be cut is asked for, or none fits).
    """
    wanted = [name for name in CUTTABLE if name in subtasks]
    turns = answered(dialogue)
    if not wanted or not turns:
        return Cuts((), "no_turn" if wanted else "nothing")
    readable = [at for at in turns if history(dialogue, at)]
    if not readable:
        return Cuts((), "too_long", {"most": MOST_CHARACTERS})
    tried = _Tried(dialogue, persona, seed)
    taken: list[tuple[int, str]] = []
    if EMOTION in wanted:
        shown = {at: power for at in readable if (power := strength(dialogue, at))}
        ranked = sorted(shown, key=lambda at: (-shown[at], tried.draw(EMOTION, at)))
        taken += [(at, EMOTION) for at in tried.first(EMOTION, ranked)]
    if BASE in wanted:
        left = [at for at in readable if (at, EMOTION) not in taken]
        for stretch in _stretches(left):
            ranked = sorted(stretch, key=lambda at: (tried.is_pleasantry(at), tried.draw(BASE, at)))
            taken += [(at, BASE) for at in tried.first(BASE, ranked)]
    drafts = [draft for at, subtask in sorted(taken) if (draft := chat_draft(dialogue, subtask, at))]
    if drafts:
        return Cuts(tuple(drafts))
    if not tried.broken:
        return Cuts((), "nothing")
    (subtask, at), violation = min(tried.broken.items(), key=lambda item: (item[0][1], item[0][0]))
    evidence = {"subtask": subtask, "turn": at + 1, "detail": violation.detail, "tried": len(tried.broken)}
    return Cuts((), f"contract:{violation.rule}", evidence)


def _stretches(turns: Sequence[int]) -> Iterator[Sequence[int]]:
    """The turns in as many stretches as there are cuts, so that cuts lie apart."""
    count = min(MOST_CUTS, 1 + (len(turns) - 1) // TURNS_A_CUT) if turns else 0
    for number in range(count):
        yield turns[number * len(turns) // count : (number + 1) * len(turns) // count]


@dataclass(slots=True)
class _Tried:
    """The turns of a dialogue whose replies were held against a contract."""

    dialogue: Dialogue
    persona: Persona
    seed: int
    broken: dict[tuple[str, int], Violation] = field(default_factory=dict)

    def first(self, subtask: str, ranked: Sequence[int]) -> list[int]:
        """The first of the turns whose reply keeps the contract; none where no reply does."""
        return next(([at] for at in ranked[:MOST_TRIED] if self.keeps(subtask, at)), [])

    def keeps(self, subtask: str, at: int) -> bool:
        draft = chat_draft(self.dialogue, subtask, at)
        assert draft is not None
        assert draft.original is not None
        scenario = scenario_of(draft, self.dialogue, self.persona, self.dialogue.id)
        found = broken_rules(draft.original, scenario, self.persona)
        if not found:
            return True
        self.broken[subtask, at] = found[0]
        return any(not broken_rules(one.text, scenario, self.persona) for one in draft.alternatives)

    def is_pleasantry(self, at: int) -> bool:
        return is_pleasantry(self.dialogue.messages[at].content, self.dialogue.language)

    def draw(self, subtask: str, at: int) -> bytes:
        return drawn(self.seed, self.dialogue.id, subtask, at)
