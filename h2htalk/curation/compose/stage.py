"""Compose: make candidate scenarios of the eleven subtasks, with their references, from dialogues.

Without a model, the result is a preview: scenarios are extracted from a dialogue, its history up to a user's turn with
the reply in the dialogue where that keeps the contract (`extraction`). A small model (`Engine.small`) also writes
references for these. With another model, a call for each dialogue proposes further scenarios, and as many references
as the settings say are written for each (`generation`). Whatever breaks a rule is left out and counted: a scenario
without any reference as a rejection, one of several references as a tag of its candidate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from h2htalk.chat.engines import model_identity, parse_model
from h2htalk.chat.protocol import Request
from h2htalk.chat.store.model_calls import CallSettings, ModelCalls, Replies
from h2htalk.curation.candidates import Candidate, Reference
from h2htalk.curation.compose.drafts import (
    Draft,
    References,
    RefusedDraft,
    add_draft,
    named_drafts,
    random_bytes,
    scenario_of,
    screen,
)
from h2htalk.curation.compose.extraction import (
    BASE,
    EXTRACTABLE,
    MOST_DRAFTS,
    Extracted,
    answered,
    chat_draft,
    extract,
    history,
)
from h2htalk.curation.compose.generation import TEMPLATES, Composer, proposals_name, reference_name
from h2htalk.curation.compose.reply_schemas import format_failure, read_proposals
from h2htalk.curation.outcomes import Kept, Outcome, Outcomes, PartRule, Record, Rejected, read_dialogue
from h2htalk.curation.prompts.templates import Prompts, fingerprint
from h2htalk.curation.run import RuleFactory, StageRun
from h2htalk.curation.settings import CurateSpec
from h2htalk.curation.stage_folder import StageFolder
from h2htalk.curation.stages import ComposeSettings
from h2htalk.curation.workspace import Workspace
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.responses import Failure
from h2htalk.data.scenario import Dialogue, Persona, Scenario, bundled_personas
from h2htalk.data.subtasks import SUBTASKS, find_subtask
from h2htalk.errors import ConfigError, quoted
from h2htalk.text.contracts.memory_blocks import is_null_memory

# 2: replies of other dialogues become references; 3: models are named without a path; 4: previews; 5: screened
VERSION = 5
NULL_CLASS = "null_class"
PREVIEW = (
    "a preview: without compose.model, candidates are parts of dialogues, of two subtasks, with the reply that "
    'somebody once gave; name a model to compose a benchmark (model = "embedded" costs nothing)'
)
# Proposals for a dialogue that the prompt allows.
PROPOSED = 4
# Before the reason in a tag, where a candidate has other references than the refused one.
REFUSED = "reference:"


def make_stage(spec: CurateSpec, workspace: Workspace, key: bytes) -> StageRun:
    """The stage as a specification sets it; `key` makes the fences of its prompts.

    Raises:
        ConfigError: an unknown persona, subtask or model, or only subtasks that require a model and no model.
    """
    settings = spec.section(ComposeSettings)
    subtasks, personas = _subtasks(settings), _personas(settings)
    values: dict[str, Any] = {
        "model": model_identity(settings.model),
        "personas": list(personas),
        "persona_texts": fingerprint([persona.to_dict() for persona in personas.values()]),
        "subtasks": list(subtasks),
        "references": settings.references,
        "seed": spec.seed,
    }
    calls: tuple[CallSettings, ...] = ()
    if settings.model:
        names = [f"{language}/{name}" for language in LANGUAGES for name in TEMPLATES]
        values["prompts"] = Prompts.load(spec.prompts).fingerprint(*names)
        schema = not parse_model(settings.model)[0].small
        calls = (CallSettings(settings.model, settings.max_cost, settings.batch, spec.prices, schema=schema),)
    preview = not settings.model
    arguments = (settings, spec.seed, spec.prompts, calls, str(workspace.stage("compose").path), key)
    return StageRun(
        "compose",
        VERSION,
        values,
        RuleFactory(open_rule, arguments),
        calls,
        prepare=_note_preview if preview else None,
        messages=(f"compose: {PREVIEW}",) if preview else (),
    )


def _note_preview(folder: StageFolder) -> None:
    folder.add_note("preview", {"message": PREVIEW})


def open_rule(
    settings: ComposeSettings,
    seed: int,
    prompts: str,
    calls: tuple[CallSettings, ...],
    folder: str,
    key: bytes,
) -> PartRule:
    """The rule for a part of dialogues; with a model, its replies are stored in `folder`, the stage's."""
    subtasks, personas = _subtasks(settings), _personas(settings)
    if not calls:
        return _Rule(subtasks, personas, seed, settings.references)
    composer = Composer(settings.model, subtasks, settings.references, seed, Prompts.load(prompts), key)
    stored = ModelCalls(calls[0], Path(folder), "compose")
    return _Rule(subtasks, personas, seed, settings.references, composer, stored)


def expected_requests(spec: CurateSpec, dialogues: Sequence[Dialogue]) -> Iterator[Request]:
    """The calls for these dialogues, for an estimate: as many proposals as the prompt allows, each with references."""
    rule = _estimating_rule(spec)
    composer = rule.composer
    if composer is None:
        return
    for work in _started(rule, dialogues):
        drafts = expected_drafts(rule, work)
        if not composer.small:
            yield composer.proposals(work.dialogue, work.persona, work.extracted.drafts)
            drafts = drafts[-PROPOSED:]
        for draft in drafts:
            scenario = scenario_of(draft, work.dialogue, work.persona, work.dialogue.id)
            for sample in range(rule.references):
                yield composer.reference(scenario, work.persona, draft.original, sample)


def expected_candidates(spec: CurateSpec, dialogues: Sequence[Dialogue]) -> Iterator[Candidate]:
    """The candidates of these dialogues, for an estimate: as many as there may be, each with all references."""
    rule = _estimating_rule(spec)
    for work in _started(rule, dialogues):
        for draft in expected_drafts(rule, work):
            text = draft.original or "-"
            scenario = scenario_of(draft, work.dialogue, work.persona, work.dialogue.id, text)
            yield Candidate(scenario, (Reference(text),) * (1 + (rule.references if rule.composer else 0)))


def expected_drafts(rule: _Rule, work: _Work) -> Sequence[Draft]:
    """What is extracted from a dialogue; with a model that proposes, as many drafts of one turn as there may be."""
    if rule.composer is None or rule.composer.small:
        return work.extracted.drafts
    dialogue = work.dialogue
    draft = next((chat_draft(dialogue, BASE, at) for at in reversed(answered(dialogue)) if history(dialogue, at)), None)
    return [draft] * (MOST_DRAFTS + 1 + PROPOSED) if draft else []


def _estimating_rule(spec: CurateSpec) -> _Rule:
    """The rule without stored calls."""
    settings = spec.section(ComposeSettings)
    subtasks, prompts = _subtasks(settings), Prompts.load(spec.prompts)
    composer = (
        Composer(settings.model, subtasks, settings.references, spec.seed, prompts, b"") if settings.model else None
    )
    return _Rule(subtasks, _personas(settings), spec.seed, settings.references, composer)


def _started(rule: _Rule, dialogues: Sequence[Dialogue]) -> Iterator[_Work]:
    started = (rule.start(dialogue.to_dict()) for dialogue in dialogues)
    return (work for work in started if isinstance(work, _Work))


def _subtasks(settings: ComposeSettings) -> tuple[str, ...]:
    for name in settings.subtasks:
        if name not in SUBTASKS:
            raise ConfigError(f"compose.subtasks: no subtask {quoted(name)}; choose from {', '.join(SUBTASKS)}")
    names = tuple(name for name in SUBTASKS if not settings.subtasks or name in settings.subtasks)
    if not settings.model and not set(names) & set(EXTRACTABLE):
        raise ConfigError(
            f"compose.subtasks: {', '.join(names)} cannot be extracted from a dialogue; name a model that writes them "
            "in compose.model, such as anthropic:claude-sonnet-5"
        )
    return names


def _personas(settings: ComposeSettings) -> Mapping[str, Persona]:
    known = bundled_personas()
    for name in settings.personas:
        if name not in known:
            raise ConfigError(f"compose.personas: no persona {quoted(name)}; choose from {', '.join(known)}")
    if not settings.personas:
        raise ConfigError(f"compose.personas is empty; choose from {', '.join(known)}")
    return {name: known[name] for name in sorted(set(settings.personas))}


# --- The rule ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Work:
    """A dialogue in progress: its companion, its drafts with their ids, and the refused proposals."""

    dialogue: Dialogue
    persona: Persona
    extracted: Extracted
    drafts: tuple[tuple[str, Draft], ...] = ()
    refused: tuple[Rejected, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class _Rule:
    """Makes the candidates of a part of dialogues, with or without a model."""

    subtasks: tuple[str, ...]
    personas: Mapping[str, Persona]
    seed: int
    references: int
    composer: Composer | None = None
    calls: ModelCalls | None = None

    def __call__(self, records: Sequence[Record], part: str) -> Sequence[Outcomes]:
        """The candidates of every dialogue of a part, in order."""
        started = [self.start(record) for record in records]
        works = [work for work in started if isinstance(work, _Work)]
        proposals: Replies = {}
        if self.composer is not None and self.calls is not None and not self.composer.small:
            requests = [self.composer.proposals(work.dialogue, work.persona, work.extracted.drafts) for work in works]
            proposals = self.calls.ask(requests, part)
        planned = {work.dialogue.id: self._plan(work, proposals) for work in works}
        written = self._write_references(list(planned.values()), part)
        return [
            self._finish(planned[work.dialogue.id], written) if isinstance(work, _Work) else [work] for work in started
        ]

    def close(self) -> None:
        """Release the model and its store."""
        if self.calls is not None:
            self.calls.close()

    def start(self, record: Record) -> _Work | Rejected:
        """The persona of a dialogue, and what is extracted from it."""
        dialogue = read_dialogue(record)
        if isinstance(dialogue, Rejected):
            return dialogue
        able = [persona for persona in self.personas.values() if dialogue.language in persona.names]
        if not able:
            return Rejected(dialogue.id, "persona", {"language": dialogue.language}, record)
        persona = able[int.from_bytes(random_bytes(0, dialogue.id, "persona")[:4], "big") % len(able)]
        preview = self.composer is None or self.composer.small
        return _Work(dialogue, persona, extract(dialogue, persona, self.subtasks, self.seed, preview=preview))

    def _plan(self, work: _Work, proposals: Replies) -> _Work:
        """The drafts of a dialogue: the extracted ones, some of which a model rewrites, and further proposals."""
        drafts = list(work.extracted.drafts)
        refused: list[Rejected] = []
        if self.composer is not None and self.composer.small:
            drafts = [replace(draft, written=True) for draft in drafts]
        elif self.composer is not None:
            read = read_proposals(proposals[proposals_name(work.dialogue.id), 0])
            if isinstance(read, Failure):
                name = f"{work.dialogue.id}:proposals"
                refused.append(_rejected(work, name, "unwritten", detail=format_failure(read)))
                read = ()
            for number, proposal in enumerate(read, 1):
                try:
                    add_draft(drafts, self.composer.draft(proposal, work.dialogue, work.persona))
                except RefusedDraft as error:
                    name = f"{work.dialogue.id}:proposal-{number}"
                    refused.append(_rejected(work, name, error.reason, detail=error.detail))
        return replace(work, drafts=tuple(named_drafts(work.dialogue.id, drafts)), refused=tuple(refused))

    def _write_references(self, works: Sequence[_Work], part: str) -> Replies:
        if self.composer is None or self.calls is None:
            return {}
        requests = []
        for work in works:
            for name, draft in work.drafts:
                if draft.written:
                    scenario = scenario_of(draft, work.dialogue, work.persona, name)
                    requests += [
                        self.composer.reference(scenario, work.persona, draft.original, sample)
                        for sample in range(self.composer.references)
                    ]
        return self.calls.ask(requests, part) if requests else {}

    def _finish(self, work: _Work, written: Replies) -> Outcomes:
        """The candidates with a reference; where there is none, one rejection of the dialogue that lists all."""
        outcomes: list[Outcome] = [self._candidate(work, name, draft, written) for name, draft in work.drafts]
        kept = [outcome for outcome in outcomes if isinstance(outcome, Kept)]
        rejected = [*(o for o in outcomes if isinstance(o, Rejected)), *work.refused]
        if kept:
            return [*kept, *rejected]
        record = work.dialogue.to_dict()
        if not rejected:
            return [Rejected(work.dialogue.id, work.extracted.reason, work.extracted.evidence, record)]
        details = [{"id": one.id, "reason": one.reason, **one.evidence} for one in rejected]
        return [Rejected(work.dialogue.id, rejected[0].reason, {"refused": details}, record)]

    def _candidate(self, work: _Work, name: str, draft: Draft, written: Replies) -> Outcome:
        found = self._references(work, name, draft, written)
        records = found.refused_records()
        if not found.accepted:
            return _rejected(work, name, records[0]["reason"], refused=records)
        references = tuple(found.accepted.values())
        scenario = scenario_of(draft, work.dialogue, work.persona, name, references[0].text)
        if found.codes:
            noted = {"risk": "none", **scenario.metadata.get("safety", {}), "action": "review"}
            noted["tags"] = sorted(found.codes.union(noted.get("tags", ())))
            scenario = replace(scenario, metadata={**scenario.metadata, "safety": noted})
        if self.composer is None:
            scenario = replace(scenario, metadata={**scenario.metadata, "preview": True})
        refused = [REFUSED + reason for reason in found.model_reasons()]
        tags = (draft.subtask, *_tags(scenario, draft, references), *refused)
        return Kept(Candidate(scenario, references).to_dict(), tags, {"refused": records} if records else None)

    def _references(self, work: _Work, name: str, draft: Draft, written: Replies) -> References:
        """Every reference that keeps the contract: the original, then replies of other dialogues, at most as many as a
        model writes, then those of the model."""
        found = References()
        scenario = scenario_of(draft, work.dialogue, work.persona, name)
        if draft.original is not None:
            found.check_and_add(Reference(draft.original), scenario, work.persona)
        most = len(found.accepted) + self.references
        for answer in draft.alternatives:
            if len(found.accepted) == most:
                break
            found.check_and_add(answer, scenario, work.persona)
        if self.composer is None:
            return found
        origin = self.composer.origin
        if draft.fixed is not None:
            found.add(Reference(draft.fixed, origin))
        for sample in range(self.composer.references if draft.written else 0):
            reply = written[reference_name(name), sample]
            try:
                text = self.composer.written(reply, scenario, work.persona, sample)
                found.codes |= screen(text, scenario)
                found.add(Reference(text, origin))
            except RefusedDraft as error:
                found.refuse(origin, error.reason, error.detail)
        return found


def _tags(scenario: Scenario, draft: Draft, references: Sequence[Reference]) -> list[str]:
    """The tags of a candidate besides its subtask: the null class, a crisis, what safety did not decide."""
    tags = []
    if find_subtask(draft.subtask).has_null_line and is_null_memory(references[0].text, scenario.language):
        tags.append(NULL_CLASS)
    if draft.tags.risk != "none":
        tags.append("crisis")
    if scenario.metadata.get("safety", {}).get("action") == "review":
        tags.append("review")
    return tags


def _rejected(work: _Work, record_id: str, reason: str, **evidence: object) -> Rejected:
    """A rejection with the provenance of its dialogue, for `erase` and `explain`."""
    provenance = {**work.dialogue.provenance, "dialogue": work.dialogue.id}
    return Rejected(record_id, reason, evidence, {"id": record_id, "provenance": provenance})
