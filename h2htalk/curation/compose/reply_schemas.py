"""The replies of a composer: proposals of scenarios, and one reference.

Both are JSON with the evidence first, read strictly (`chat.response_schema`). An empty list of proposals is a valid
reply: the dialogue gives a model nothing to write.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, cast

from pydantic import BaseModel, Field

from h2htalk.chat.protocol import Reply
from h2htalk.chat.response_schema import ResponseSchema
from h2htalk.data.responses import Failure
from h2htalk.data.scenario import Complexity, Interaction
from h2htalk.errors import shorten

# The prompt asks for four at most; a few more are no reason to refuse them all.
MOST_PROPOSALS = 11
_Evidence = Annotated[str, Field(min_length=1, max_length=4000)]
_Text = Annotated[str, Field(min_length=1, max_length=2000)]
_Texts = Annotated[list[_Text], Field(min_length=1, max_length=12)]
_Number = Annotated[int, Field(ge=1, le=1_000_000)]


class Planned(BaseModel):
    """An entry of the companion's day; the time is checked with the scenario."""

    time: Annotated[str, Field(min_length=1, max_length=16)]
    activity: Annotated[str, Field(min_length=1, max_length=400)]


_Plans = Annotated[list[Planned], Field(min_length=1, max_length=12)]


class Proposal(BaseModel):
    """The first fields of every proposal; the subtask and its fields follow."""

    evidence: _Evidence
    emotion: Annotated[str, Field(min_length=1, max_length=64)]
    complexity: Complexity
    interaction: Interaction


class ChatProposal(Proposal):
    subtask: Literal["dialogue_base", "dialogue_emotion"]
    turn: _Number


class ScheduleProposal(Proposal):
    subtask: Literal["dialogue_schedule"]
    turn: _Number
    today_schedule: _Plans
    current_activity: _Text


class SynthesisProposal(Proposal):
    """`memorable` false: the messages contain nothing to remember, and the reference is the null line."""

    subtask: Literal["recollection_synthesis"]
    first_turn: _Number
    last_turn: _Number
    memorable: bool


class MemoriesProposal(Proposal):
    subtask: Literal["recollection_refinement", "recollection_initialization"]
    memories: _Texts


class BasicProposal(Proposal):
    subtask: Literal["itinerary_basic"]
    hobbies: _Texts
    memories: _Texts


class MiddleProposal(Proposal):
    subtask: Literal["itinerary_middle"]
    day_overview: _Text


class AdvancedProposal(Proposal):
    subtask: Literal["itinerary_advanced"]
    itinerary: _Plans
    arrangement: _Text


class ResponseProposal(Proposal):
    subtask: Literal["itinerary_response"]
    current_activity: _Text
    user_message: _Text


class InitializationProposal(Proposal):
    subtask: Literal["itinerary_initialization"]
    itinerary: _Plans
    memories: _Texts


AnyProposal = (
    ChatProposal
    | ScheduleProposal
    | SynthesisProposal
    | MemoriesProposal
    | BasicProposal
    | MiddleProposal
    | AdvancedProposal
    | ResponseProposal
    | InitializationProposal
)


class ProposalsReply(BaseModel):
    """The proposals for one dialogue."""

    evidence: _Evidence
    proposals: Annotated[list[Annotated[AnyProposal, Field(discriminator="subtask")]], Field(max_length=MOST_PROPOSALS)]


class ReferenceReply(BaseModel):
    """One reference: what it must refer to, then its text."""

    evidence: _Evidence
    reference: Annotated[str, Field(min_length=1, max_length=4000)]


PROPOSALS = ResponseSchema("proposals", ProposalsReply)
REFERENCE = ResponseSchema("reference", ReferenceReply)


def read_proposals(reply: Reply) -> Sequence[AnyProposal] | Failure:
    """The proposals of a reply in order, or why it cannot be read."""
    read = PROPOSALS.read(reply)
    return read if isinstance(read, Failure) else cast(ProposalsReply, read).proposals


def read_reference(reply: Reply) -> str | Failure:
    """The reference of a reply without outer white space, or why it cannot be read."""
    read = REFERENCE.read(reply)
    return read if isinstance(read, Failure) else cast(ReferenceReply, read).reference.strip()


def format_failure(failure: Failure) -> str:
    """Why a reply could not be read, as a short text."""
    return f"{failure.reason}: {shorten(failure.message, 300)}"
