"""What a model writes: which scenarios a dialogue gives, with their inputs, and references to them.

Two calls: one a dialogue, which proposes, and one a reference, written under the subtask's contract. Everything that a
dialogue or a model wrote stands in a fence. What a model proposes is held against the dialogue and the subtask's fields
before anything is written to it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from h2htalk.chat.protocol import Message, Reply, Request
from h2htalk.curation.candidates import MODEL
from h2htalk.curation.compose.drafts import Draft, Refused, broken_rules, drawn, scenario_of
from h2htalk.curation.compose.extraction import chat_draft, history
from h2htalk.curation.compose.reply_schemas import (
    PROPOSALS,
    REFERENCE,
    AnyProposal,
    ChatProposal,
    ScheduleProposal,
    SynthesisProposal,
    read_reference,
    unread,
)
from h2htalk.curation.compose.tagging import tags_of
from h2htalk.curation.model_calls.model_identity import model_name
from h2htalk.curation.model_calls.prompts import Fence, Prompts
from h2htalk.curation.model_calls.stored_calls import sampling_of
from h2htalk.data.dialogue import Dialogue
from h2htalk.data.help_lines import help_rows, help_text
from h2htalk.data.languages import find_language
from h2htalk.data.persona import Persona
from h2htalk.data.responses import Failure
from h2htalk.data.scenario import Scenario
from h2htalk.data.subtasks import find_subtask
from h2htalk.errors import DataError, shorten
from h2htalk.text.contracts.contract import contract_of, inputs_of
from h2htalk.text.contracts.prompt_leakage import find_marker, find_repeated_run
from h2htalk.text.counting import is_in_language

TEMPLATES = ("compose_propose.j2", "compose_dialogue.j2", "compose_write.j2", "compose_scenario.j2")
PROPOSAL_TOKENS = 2400
# Beside the reference itself: its evidence, and what JSON takes around it.
EVIDENCE_TOKENS = 400
# Messages of a dialogue that a model sees, their characters together, and those of one message.
MOST_SHOWN = 60
MOST_SHOWN_CHARACTERS = 12_000
LONGEST_SHOWN = 2000
# One dialogue in so many is first searched for small talk: the null class of recollection_synthesis.
SMALL_TALK_EVERY = 4
_REFERENCE_TEMPERATURE = 0.8


@dataclass(frozen=True, slots=True)
class Composer:
    """Who is asked, and how: the model's name, the subtasks wanted, the run's seed, prompts and secret."""

    model: str
    subtasks: tuple[str, ...]
    references: int
    seed: int
    prompts: Prompts
    secret: bytes

    @property
    def origin(self) -> str:
        """Who wrote, as references say it: `model:anthropic:NAME`, by the name that manifests use too."""
        return MODEL + model_name(self.model)

    def proposals(self, dialogue: Dialogue, persona: Persona, cuts: Sequence[Draft]) -> Request:
        """The call that proposes scenarios of a dialogue; `cuts` are those it gives already. Its id is
        `DIALOGUE/proposals`."""
        name = proposals_name(dialogue.id)
        values = {
            "dialogue": self._fence(name).around(shown(dialogue), "conversation"),
            "taken": [f"{draft.turn} ({draft.subtask})" for draft in cuts],
            "small_talk": self._seeks_small_talk(dialogue),
            "subtasks": list(self.subtasks),
        }
        system = self._propose_rules(dialogue, persona)
        user = self.prompts.render(f"{dialogue.language}/compose_dialogue.j2", values)
        return self._request(name, 0, (system, user), 0.0, PROPOSAL_TOKENS, proposing=True)

    def reference(self, scenario: Scenario, persona: Persona, original: str | None, sample: int) -> Request:
        """The call that writes the sample-th reference to a scenario. Its id is `CANDIDATE/reference`."""
        name = reference_name(scenario.id)
        fence = self._fence(name, sample)
        values = {
            "scenario": fence.around(material(scenario), "scenario"),
            "original": fence.around(shorten(original, LONGEST_SHOWN), "old answer") if original else "",
        }
        user = self.prompts.render(f"{scenario.language}/compose_scenario.j2", values)
        tokens = find_subtask(scenario.subtask).max_tokens * 2 + EVIDENCE_TOKENS
        system = self._write_rules(scenario, persona)
        return self._request(name, sample, (system, user), _REFERENCE_TEMPERATURE, tokens, proposing=False)

    def draft(self, proposal: AnyProposal, dialogue: Dialogue, persona: Persona) -> Draft:
        """The draft that a proposal makes.

        Raises:
            Refused: `inputs:subtask` (not asked for), `inputs:turn` (no message of the user's to answer),
                `inputs:form` (a field or tag is not what it must be), `inputs:language`, `inputs:prompt_leak`.
        """
        if proposal.subtask not in self.subtasks:
            raise Refused("inputs:subtask", f"{proposal.subtask} is not asked for")
        try:
            found = draft_of(proposal, dialogue)
            scenario = scenario_of(found, dialogue, persona, dialogue.id)
        except DataError as error:
            raise Refused("inputs:form", str(error)) from error
        texts = [*written_inputs(found)]
        if not is_in_language("\n".join(texts), dialogue.language):
            raise Refused("inputs:language", shorten(inputs_of(scenario), 200))
        rules = self._propose_rules(dialogue, persona)
        own = "\n".join(turn.content for turn in dialogue.messages) + persona.descriptions[dialogue.language]
        marker = self._fence(proposals_name(dialogue.id)).marker
        for text in texts:
            if marker in text or find_marker(text, own):
                raise Refused("inputs:prompt_leak", shorten(text, 200))
        if leak := find_repeated_run(texts, dialogue.language, _unquoted(rules), own):
            raise Refused("inputs:prompt_leak", leak)
        return found

    def written(self, reply: Reply, scenario: Scenario, persona: Persona, sample: int) -> str:
        """The reference that a reply holds.

        Raises:
            Refused: `unwritten` (no whole reply of its form) or `contract:RULE` (it breaks the subtask's contract).
        """
        text = read_reference(reply)
        if isinstance(text, Failure):
            raise Refused("unwritten", unread(text))
        if self._fence(reference_name(scenario.id), sample).marker in text:
            raise Refused("contract:prompt_leak", "the marker of a fence")
        rules = self._write_rules(scenario, persona)
        # To name help in the prompt's words is no leak.
        allowed = replace(
            persona, descriptions={k: f"{v}\n{help_text(k)}" for k, v in persona.descriptions.items()}
        )
        broken = broken_rules(text, scenario, allowed, _unquoted(rules))
        if broken:
            raise Refused(f"contract:{broken[0].rule}", "; ".join(found.detail for found in broken))
        return text

    def _propose_rules(self, dialogue: Dialogue, persona: Persona) -> str:
        values = {"persona": persona.descriptions[dialogue.language], "subtasks": list(self.subtasks)}
        return self.prompts.render(f"{dialogue.language}/compose_propose.j2", values)

    def _write_rules(self, scenario: Scenario, persona: Persona) -> str:
        language, risk = scenario.language, scenario.tags.risk
        contract = contract_of(scenario.subtask, risk)
        low, high = contract.sentences or (1, 1)
        record = find_language(language)
        in_danger = risk == "high" and contract.form == "speech"
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
            "help_rows": help_rows(language) if in_danger else (),
        }
        return self.prompts.render(f"{language}/compose_write.j2", values)

    def _seeks_small_talk(self, dialogue: Dialogue) -> bool:
        return drawn(self.seed, dialogue.id, "small talk")[0] % SMALL_TALK_EVERY == 0

    def _fence(self, name: str, sample: int = 0) -> Fence:
        return Fence.of(self.secret, name, sample)

    def _request(
        self,
        name: str,
        sample: int,
        said: tuple[str, str],
        temperature: float,
        tokens: int,
        *,
        proposing: bool,
    ) -> Request:
        sampling = sampling_of(self.model, temperature, tokens, self.seed, name, sample)
        rules, asked = said
        # The rules are the same for many: engines that cache prefixes read them once.
        messages = (Message("system", rules, shared=len(rules)), Message("user", asked))
        return Request(name, messages, sampling, sample, PROPOSALS if proposing else REFERENCE)


def _unquoted(rules: str) -> str:
    """The rules as text that must not come back. What a prompt offers in quotation marks may be said; but here the
    example stands in them, and whoever repeats it has written nothing."""
    return rules.replace("\\n", "\n").replace('"', " ")


def proposals_name(dialogue_id: str) -> str:
    return f"{dialogue_id}/proposals"


def reference_name(candidate_id: str) -> str:
    return f"{candidate_id}/reference"


# --- What a model is shown --------------------------------------------------------------------------------------


def shown(dialogue: Dialogue) -> str:
    """The dialogue with its messages numbered from 1: the first that fit, and how many are left out. Lines of a
    message after its first are indented, so that none looks like another message."""
    names = {"user": "User", "companion": "Companion"} if dialogue.language == "en" else _NAMES_ZH
    lines: list[str] = []
    room = MOST_SHOWN_CHARACTERS
    for number, turn in enumerate(dialogue.messages[:MOST_SHOWN], 1):
        text = shorten(turn.content, LONGEST_SHOWN)
        room -= len(text)
        if room < 0 and lines:
            break
        indented = "\n  ".join(text.splitlines())
        lines.append(f"[{number}] {names[turn.role]}: {indented}")
    left = len(dialogue.messages) - len(lines)
    return "\n".join(lines + ([f"[... {left}]"] if left else []))


_NAMES_ZH: Mapping[str, str] = {"user": "用户", "companion": "陪伴者"}


def material(scenario: Scenario) -> str:
    """A scenario's inputs, one a line, as JSON."""
    inputs: Mapping[str, Any] = scenario.to_dict()["inputs"]
    return "\n".join(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in inputs.items())


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
    null = None if proposal.memorable else find_language(dialogue.language).null_memory
    inputs = {"history": [turn.to_dict() for turn in turns]}
    return Draft(proposal.subtask, inputs, tags_of(dialogue, turns), last + 1, fixed=null)


def written_inputs(draft: Draft) -> Iterator[str]:
    """The texts of a draft that a model wrote: all but the conversation."""
    for name, value in draft.inputs.items():
        if name == "history":
            continue
        for item in [value] if isinstance(value, str) else value:
            yield item if isinstance(item, str) else item["activity"]
