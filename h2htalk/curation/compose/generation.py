"""Compose with a model: it proposes scenarios of a dialogue with their inputs, and writes references.

One call for each dialogue proposes scenarios, and one for each reference writes it under the subtask's contract. All
text of dialogues and models stands in fences. A proposal is checked against the dialogue and the fields of the
subtask before a reference is written for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Union, cast

from pydantic import BaseModel, Field, create_model

from h2htalk.chat.engines import model_name, parse_model
from h2htalk.chat.protocol import Message, Reply, Request
from h2htalk.chat.response_schema import ResponseSchema
from h2htalk.chat.store.model_calls import sampling_of
from h2htalk.curation.candidates import MODEL, broken_rules
from h2htalk.curation.compose import drafts
from h2htalk.curation.compose.drafts import Draft, RefusedDraft
from h2htalk.curation.compose.tagging import WORDS, tags_of
from h2htalk.curation.prompts import Prompts, json_lines
from h2htalk.data.languages import find_language
from h2htalk.data.replies.finish_reasons import FILTERED, is_whole, read_finish_reason
from h2htalk.data.responses import FILTERED_REPLY, Failure
from h2htalk.data.scenario import Complexity, Dialogue, Interaction, Persona, Scenario
from h2htalk.data.subtasks import SUBTASKS, FieldKind, Subtask, find_subtask
from h2htalk.errors import DataError, shorten
from h2htalk.text.contracts.contract import contract_of, inputs_of
from h2htalk.text.contracts.prompt_leakage import find_marker, find_repeated_run
from h2htalk.text.counting import is_in_language
from h2htalk.text.fences import Fence
from h2htalk.text.help_lines import help_rows
from h2htalk.text.language_data import language_data

# The rules of a reference: for a small model, a reply in character.
WRITE, REPLY = "compose_write.j2", "compose_reply.j2"
TEMPLATES = ("compose_propose.j2", "compose_dialogue.j2", WRITE, REPLY, "compose_scenario.j2")
PROPOSAL_TOKENS = 2400
EVIDENCE_TOKENS = 400  # for the evidence of a reference, and for the JSON around both
# Messages of a dialogue in a prompt, their characters together, and those of one message.
MOST_SHOWN = 60
MOST_SHOWN_CHARACTERS = 12_000
LONGEST_SHOWN = 2000
# For one dialogue in so many the prompt asks for small talk first: the null class of recollection_synthesis.
SMALL_TALK_EVERY = 4
_REFERENCE_TEMPERATURE = 0.8
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


class Proposal(BaseModel):
    """The first fields of every proposal; those of the subtask follow."""

    evidence: _Evidence
    emotion: Annotated[str, Field(min_length=1, max_length=64)]
    complexity: Complexity
    interaction: Interaction
    subtask: str


# What proposals have in place of a history: the message that is answered, or the first and the last of a stretch.
# `memorable` false: the messages contain nothing to remember, and the reference is the null line.
_REMEMBERS = {"first_turn": _Number, "last_turn": _Number, "memorable": bool}
_KINDS: Mapping[FieldKind, Any] = {
    "text": _Text,
    "texts": _Texts,
    "schedule": Annotated[list[Planned], Field(min_length=1, max_length=12)],
}


def _proposal_model(subtask: Subtask) -> type[Proposal]:
    """The form of a proposal of a subtask, from the table of subtasks."""
    places = {"turn": _Number} if subtask.is_chat else _REMEMBERS if subtask.has_null_line else {}
    fields = places | {name: _KINDS[kind] for name, kind in subtask.inputs if kind != "turns"}
    typed: dict[str, Any] = {
        name: (kind, ...) for name, kind in {"subtask": Literal[subtask.name], **fields}.items()
    }
    return create_model(f"{subtask.title}Proposal", __base__=Proposal, **typed)


_PROPOSAL_MODELS = tuple(map(_proposal_model, SUBTASKS.values()))


class ProposalsReply(BaseModel):
    """The proposals for one dialogue."""

    evidence: _Evidence
    proposals: Annotated[
        list[Annotated[Union[*_PROPOSAL_MODELS], Field(discriminator="subtask")]],  # type: ignore[valid-type]
        Field(max_length=MOST_PROPOSALS),
    ]


class ReferenceReply(BaseModel):
    """One reference: what it must refer to, then its text."""

    evidence: _Evidence
    reference: Annotated[str, Field(min_length=1, max_length=4000)]


PROPOSALS = ResponseSchema("proposals", ProposalsReply)
REFERENCE = ResponseSchema("reference", ReferenceReply)


def read_proposals(reply: Reply) -> Sequence[Proposal] | Failure:
    """The proposals of a reply in order, or why it cannot be read."""
    read = PROPOSALS.read(reply)
    return read if isinstance(read, Failure) else cast(ProposalsReply, read).proposals


def unwritten_reason(failure: Failure) -> str:
    """Return the reason of a rejection whose reply could not be read: `filtered` (by the provider), or `unwritten`."""
    return FILTERED_REPLY if failure.reason == FILTERED_REPLY else "unwritten"


def format_failure(failure: Failure) -> str:
    """Why a reply could not be read, as a short text."""
    return f"{failure.reason}: {shorten(failure.message, 300)}"


@dataclass(frozen=True, slots=True)
class Composer:
    """Makes the calls: the model, the subtasks, references a scenario, and the run's seed, prompts and secret."""

    model: str
    subtasks: tuple[str, ...]
    references: int
    seed: int
    prompts: Prompts
    secret: bytes

    @property
    def small(self) -> bool:
        """Whether the model only writes references for what is extracted."""
        return parse_model(self.model)[0].small

    @property
    def origin(self) -> str:
        """The origin of its references: `model:anthropic:NAME`."""
        return MODEL + model_name(self.model)

    def proposals(
        self, dialogue: Dialogue, persona: Persona, extracted: Sequence[Draft]
    ) -> Request:
        """The call that proposes scenarios of a dialogue besides the extracted ones; its id is `DIALOGUE/proposals`."""
        name = f"{dialogue.id}/proposals"
        values = {
            "dialogue": Fence.of(self.secret, name, 0).around(shown(dialogue), "conversation"),
            "taken": [f"{draft.turn} ({draft.subtask})" for draft in extracted],
            "small_talk": drafts.random_bytes(self.seed, dialogue.id, "small talk")[0]
            % SMALL_TALK_EVERY
            == 0,
            "subtasks": list(self.subtasks),
        }
        user = Message(
            "user", self.prompts.render(f"{dialogue.language}/compose_dialogue.j2", values)
        )
        sampling = sampling_of(self.model, 0.0, PROPOSAL_TOKENS, self.seed, name)
        return Request(
            name, (_system(self._propose_rules(dialogue, persona)), user), sampling, 0, PROPOSALS
        )

    def reference(
        self, scenario: Scenario, persona: Persona, original: str | None, sample: int
    ) -> Request:
        """The call that writes the sample-th reference of a scenario; its id is `CANDIDATE/reference`."""
        name = f"{scenario.id}/reference"
        system = _system(self._write_rules(scenario, persona))
        tokens = find_subtask(scenario.subtask).max_tokens
        if self.small:
            turns = (
                Message("user" if one.role == "user" else "assistant", one.content)
                for one in scenario.turns
            )
            warmth = _REFERENCE_TEMPERATURE if sample else 0.0
            sampling = sampling_of(self.model, warmth, tokens, self.seed, name, sample)
            return Request(name, (system, *turns), sampling, sample)
        fence = Fence.of(self.secret, name, sample)
        values = {
            "scenario": fence.around(json_lines(scenario.to_dict()["inputs"]), "scenario"),
            "original": fence.around(shorten(original, LONGEST_SHOWN), "old answer")
            if original
            else "",
        }
        asked = Message(
            "user", self.prompts.render(f"{scenario.language}/compose_scenario.j2", values)
        )
        tokens = tokens * 2 + EVIDENCE_TOKENS
        sampling = sampling_of(self.model, _REFERENCE_TEMPERATURE, tokens, self.seed, name, sample)
        return Request(name, (system, asked), sampling, sample, REFERENCE)

    def draft(self, proposal: Proposal, dialogue: Dialogue, persona: Persona) -> Draft:
        """The draft of a proposal.

        Raises RefusedDraft: `inputs:subtask` (not asked for), `inputs:turn` (no message of the user's to answer),
        `inputs:form` (a wrong field or tag), `inputs:language`, `inputs:prompt_leak`.
        """
        if proposal.subtask not in self.subtasks:
            raise RefusedDraft("inputs:subtask", f"{proposal.subtask} is not asked for")
        try:
            draft = draft_of(proposal, dialogue)
            scenario = drafts.scenario_of(draft, dialogue, persona, dialogue.id)
        except DataError as error:
            raise RefusedDraft("inputs:form", str(error)) from error
        # All that a model wrote: everything except the history.
        values = [value for name, value in draft.inputs.items() if name != "history"]
        items = [
            item for value in values for item in ([value] if isinstance(value, str) else value)
        ]
        texts = [item if isinstance(item, str) else item["activity"] for item in items]
        if not is_in_language("\n".join(texts), dialogue.language):
            raise RefusedDraft("inputs:language", shorten(inputs_of(scenario), 200))
        own = (
            "\n".join(turn.content for turn in dialogue.messages)
            + persona.descriptions[dialogue.language]
        )
        marker = Fence.of(self.secret, f"{dialogue.id}/proposals", 0).marker
        for text in texts:
            if marker in text or find_marker(text, own):
                raise RefusedDraft("inputs:prompt_leak", shorten(text, 200))
        if leak := find_repeated_run(
            texts, dialogue.language, _unquoted(self._propose_rules(dialogue, persona)), own
        ):
            raise RefusedDraft("inputs:prompt_leak", leak)
        return draft

    def written(self, reply: Reply, scenario: Scenario, persona: Persona, sample: int) -> str:
        """The reference in a reply. Raises RefusedDraft: `unwritten` (it cannot be read), `filtered` (by the provider)
        or `contract:RULE`."""
        if self.small:
            text = reply.text.strip()
            if read_finish_reason(reply.finish_reason) == FILTERED:
                raise RefusedDraft(
                    FILTERED_REPLY, f"the provider's filter declined it: {reply.filtered_by or ''}"
                )
            if not is_whole(reply.finish_reason) or not text:
                raise RefusedDraft(
                    "unwritten",
                    f"the reply is empty or did not end by itself ({reply.finish_reason})",
                )
        else:
            read = REFERENCE.read(reply)
            if isinstance(read, Failure):
                raise RefusedDraft(unwritten_reason(read), format_failure(read))
            text = cast(ReferenceReply, read).reference.strip()
        if Fence.of(self.secret, f"{scenario.id}/reference", sample).marker in text:
            raise RefusedDraft("contract:prompt_leak", "the marker of a fence")
        # To repeat the help lines of the prompt is no leak.
        said = {k: "\n".join((v, *help_rows(k))) for k, v in persona.descriptions.items()}
        allowed = replace(persona, descriptions=said)
        if broken := broken_rules(
            text, scenario, allowed, _unquoted(self._write_rules(scenario, persona))
        ):
            raise RefusedDraft(
                f"contract:{broken[0].rule}", "; ".join(rule.detail for rule in broken)
            )
        return text

    def _propose_rules(self, dialogue: Dialogue, persona: Persona) -> str:
        values = {
            "persona": persona.descriptions[dialogue.language],
            "subtasks": list(self.subtasks),
        }
        return self.prompts.render(f"{dialogue.language}/compose_propose.j2", values)

    def _write_rules(self, scenario: Scenario, persona: Persona) -> str:
        language = scenario.language
        risk = scenario.tags.risk
        contract = contract_of(scenario.subtask, risk)
        low, high = contract.sentences or (1, 1)
        record = find_language(language)
        values = {
            "persona": persona.descriptions[language],
            "subtask": scenario.subtask,
            "low": low,
            "high": high,
            "length": record.lengths[contract.length] if contract.length else 0,
            "content": record.lengths["memory"],
            "labels": record.memory_labels,
            "categories": list(record.memory_categories),
            "null_line": record.null_memory,
            "help_rows": help_rows(language)
            if risk == "high" and contract.form == "speech"
            else (),
        }
        return self.prompts.render(f"{language}/{REPLY if self.small else WRITE}", values)


def _system(rules: str) -> Message:
    """Many calls have the same rules: engines that cache prefixes read them once."""
    return Message("system", rules, shared=len(rules))


def _unquoted(rules: str) -> str:
    """The rules without quotation marks: what a prompt quotes may be repeated, but not the example that it quotes."""
    return rules.replace("\\n", "\n").replace('"', " ")


def shown(dialogue: Dialogue) -> str:
    """The dialogue with its messages numbered from 1: the first ones that fit, and how many are left out."""
    names = language_data(WORDS, dialogue.language)
    lines: list[str] = []
    left = MOST_SHOWN_CHARACTERS
    for number, turn in enumerate(dialogue.messages[:MOST_SHOWN], 1):
        text = shorten(turn.content, LONGEST_SHOWN)
        left -= len(text)
        if left < 0 and lines:
            break
        indented = "\n  ".join(text.splitlines())
        lines.append(f"[{number}] {names[turn.role]}: {indented}")
    omitted = len(dialogue.messages) - len(lines)
    return "\n".join(lines + ([f"[... {omitted}]"] if omitted else []))


def draft_of(proposal: Proposal, dialogue: Dialogue) -> Draft:
    """The draft of a proposal. Raises RefusedDraft (`inputs:turn`), DataError where the emotion is not a word."""
    subtask = find_subtask(proposal.subtask)
    values = proposal.model_dump()
    turns = dialogue.messages
    fields = {name: values[name] for name, _ in subtask.inputs if name in values}
    if subtask.is_chat:
        turn = values["turn"]  # counted from 1; it may be the unanswered last one
        if turn > len(turns) or turns[turn - 1].role != "user":
            raise RefusedDraft("inputs:turn", f"message {turn} is not one of the user's")
        if (draft := drafts.chat_draft(dialogue, subtask.name, turn - 1)) is None:
            raise RefusedDraft("inputs:turn", f"message {turn} is too long")
        tags = tags_of(dialogue, drafts.history(dialogue, turn - 1), values)
        return replace(draft, inputs={**draft.inputs, **fields}, tags=tags, written=True)
    if not subtask.has_null_line:
        return Draft(subtask.name, fields, tags_of(dialogue, turns, values), written=True)
    first = values["first_turn"]
    last = values["last_turn"]
    turns = drafts.history(dialogue, last - 1, first - 1) if first <= last <= len(turns) else ()
    if not any(turn.role == "user" for turn in turns):
        raise RefusedDraft(
            "inputs:turn", f"messages {first} to {last} contain none of the user's that fits"
        )
    null = None if values["memorable"] else find_language(dialogue.language).null_memory
    inputs = {"history": [turn.to_dict() for turn in turns]}
    tags = tags_of(dialogue, dialogue.messages, values)
    return Draft(subtask.name, inputs, tags, last, fixed=null, written=null is None)
