"""From what a model proposes of a dialogue to drafts: which messages a proposal means, and what it wrote itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from h2htalk.curation.compose.drafts import Draft, Refused
from h2htalk.curation.compose.extraction import chat_draft, history
from h2htalk.curation.compose.reply_schemas import (
    AnyProposal,
    ChatProposal,
    ScheduleProposal,
    SynthesisProposal,
)
from h2htalk.curation.compose.tagging import tags_of
from h2htalk.data.dialogue import Dialogue
from h2htalk.data.subtasks import NULL_MEMORY, find_subtask


def draft_of(proposal: AnyProposal, dialogue: Dialogue) -> Draft:
    """The draft that a proposal makes, before anything is held against a subtask's fields.

    Raises:
        Refused: `inputs:turn`: no message of the user's to answer, or none to remember.
        DataError: a tag is not what it must be.
    """
    said = proposal.model_dump()
    if isinstance(proposal, ChatProposal | ScheduleProposal):
        found = _answering(proposal.subtask, proposal.turn, dialogue)
        turns = history(dialogue, proposal.turn - 1)
    elif isinstance(proposal, SynthesisProposal):
        found = _remembering(proposal, dialogue)
        turns = dialogue.messages
    else:
        found = Draft(proposal.subtask, {}, tags_of(dialogue, dialogue.messages, said))
        turns = dialogue.messages
    fields = {name: said[name] for name, _ in find_subtask(proposal.subtask).inputs if name in said}
    written = found.fixed is None
    tags = tags_of(dialogue, turns, said)
    return replace(found, inputs={**found.inputs, **fields}, tags=tags, written=written)


def _answering(subtask: str, turn: int, dialogue: Dialogue) -> Draft:
    """The draft that answers a message, counted from 1; the last one, which nobody answered, may be it too."""
    at = turn - 1
    if at >= len(dialogue.messages) or dialogue.messages[at].role != "user":
        raise Refused("inputs:turn", f"message {turn} is none of the user's")
    draft = chat_draft(dialogue, subtask, at)
    if draft is None:
        raise Refused("inputs:turn", f"message {turn} is too long")
    return draft


def _remembering(proposal: SynthesisProposal, dialogue: Dialogue) -> Draft:
    first, last = proposal.first_turn - 1, proposal.last_turn - 1
    inside = first <= last < len(dialogue.messages)
    turns = history(dialogue, last, first) if inside else ()
    if not any(turn.role == "user" for turn in turns):
        raise Refused(
            "inputs:turn", f"messages {first + 1} to {last + 1} hold nothing of the user's that fits"
        )
    null = None if proposal.memorable else NULL_MEMORY[dialogue.language]
    inputs = {"history": [turn.to_dict() for turn in turns]}
    return Draft(proposal.subtask, inputs, tags_of(dialogue, turns), last + 1, fixed=null)


def written_inputs(draft: Draft) -> Iterator[str]:
    """The texts of a draft that a model wrote: all but the conversation."""
    for name, value in draft.inputs.items():
        if name == "history":
            continue
        for item in [value] if isinstance(value, str) else value:
            yield item if isinstance(item, str) else item["activity"]
