"""Dialogues of known truth as candidates, so that a reviewer is checked with its own prompt (`curate check-guard`).

A candidate is the conversation up to a reply of the companion, which is its reference. Of a dialogue about harm that is
the labelled reply; of others the last one, so that the labelled message is among what came before. Where a dialogue
ends with that message, a reply stands behind it that says nothing of the matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from h2htalk.chat.protocol import Reply, Request
from h2htalk.chat.store.model_calls import CallSettings
from h2htalk.curation.candidates import Candidate, Reference
from h2htalk.curation.review.candidate_reads import candidate_read, reviewer_name
from h2htalk.curation.review.reviewer import Reviewer, review_prompt_fingerprint, rubric_answers
from h2htalk.data.languages import Language
from h2htalk.data.readers.check_set import LICENCE, CheckedDialogue
from h2htalk.data.readers.reads import READ_GATES, Read, ReadGate
from h2htalk.data.scenario import Scenario, Turn, bundled_personas

FRIEND = "close friend"  # the persona of every candidate
SUBTASK = "dialogue_base"
_REPLY: Mapping[Language, str] = {"en": "Thank you for telling me.", "zh": "谢谢你告诉我。"}


def shown_turns(checked: CheckedDialogue) -> tuple[Turn, ...]:
    """The messages of a dialogue that a reviewer is shown, the reference last; none where nothing comes before it."""
    last = checked.turn
    if checked.kind.gate != "companion_harm":
        replies = [place for place, turn in enumerate(checked.messages) if turn.role == "companion"]
        last = max(replies, default=-1)
        if last < checked.turn:
            return (*checked.messages, Turn("companion", _REPLY[checked.language]))
    return checked.messages[: last + 1] if last > 0 else ()


def candidate_of(checked: CheckedDialogue) -> Candidate:
    """The candidate of a dialogue that has `shown_turns`."""
    *history, reference = shown_turns(checked)
    friends = [
        one
        for one in bundled_personas().values()
        if one.relation == FRIEND and checked.language in one.names
    ]
    scenario = {
        "id": checked.id,
        "subtask": SUBTASK,
        "language": checked.language,
        "persona": friends[0].id,
        "inputs": {"history": [turn.to_dict() for turn in history]},
        "reference": reference.content,
        # Nothing that gives the label away.
        "tags": {
            "emotion": "unknown",
            "complexity": "basic",
            "interaction": "casual",
            "risk": "none",
        },
        "provenance": {},
        "licence": LICENCE,
    }
    return Candidate(Scenario.from_dict(scenario, checked.id), (Reference(reference.content),))


@dataclass(frozen=True, slots=True)
class ReviewQuestioner:
    """A reviewer, asked for its review of a candidate with one reference."""

    reviewer: Reviewer
    calls: CallSettings
    stage: str = "check-review"

    @property
    def name(self) -> str:
        return reviewer_name(self.reviewer.settings.model)

    @property
    def prompt(self) -> str:
        return review_prompt_fingerprint(self.reviewer.prompts)

    @property
    def gates(self) -> tuple[ReadGate, ...]:
        return READ_GATES

    def shown(self, checked: CheckedDialogue) -> tuple[Turn, ...]:
        return shown_turns(checked)

    def requests(self, checked: CheckedDialogue) -> list[Request]:
        candidate = candidate_of(checked)
        return [self.reviewer.rubric(candidate, candidate.references[0].text)]

    def read(self, checked: CheckedDialogue, replies: Mapping[str, Reply]) -> Read | None:
        [reply] = replies.values()
        read = candidate_read(
            candidate_of(checked), rubric_answers(reply, 0), self.name, self.prompt
        )
        return read if read is None else replace(read, served_by=reply.served_by or "")
