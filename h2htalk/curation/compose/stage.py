"""Compose: make candidate scenarios of the eleven subtasks, with their references, from dialogues.

Scenarios are extracted from a dialogue (`drafts`). A small model (`Engine.small`) writes references for these. Another
one also proposes scenarios, and writes as many references for each as the settings say (`generation`). Whatever breaks
a rule is left out and counted: a scenario without any reference as a rejection, a reference as a tag of its candidate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from h2htalk.chat.engines import ChatOptions, model_identity, parse_model
from h2htalk.chat.store.model_calls import CallSettings, ModelCalls, Replies
from h2htalk.curation.candidates import MODEL, Candidate, Reference
from h2htalk.curation.compose import drafts
from h2htalk.curation.compose.generation import (
    TEMPLATES,
    Composer,
    format_failure,
    read_proposals,
    unwritten_reason,
)
from h2htalk.curation.prompts import Prompts, fingerprint
from h2htalk.curation.run import RuleFactory, StageRun
from h2htalk.curation.stage_folder import (
    Kept,
    Outcome,
    Outcomes,
    PartRule,
    Record,
    Rejected,
    read_dialogue,
)
from h2htalk.curation.stages import ComposeSettings, CurateSpec
from h2htalk.curation.workspace import Workspace
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.responses import Failure
from h2htalk.data.scenario import Dialogue, Persona, bundled_personas
from h2htalk.data.subtasks import SUBTASKS, find_subtask
from h2htalk.errors import ConfigError, quoted
from h2htalk.text.contracts.memory_blocks import is_null_memory

VERSION = 7
REFUSED = "reference:"  # before the reason in a tag, where a candidate has other references than the refused one


def make_stage(spec: CurateSpec, workspace: Workspace, key: bytes) -> StageRun:
    """The stage as a specification sets it; `key` makes the fences of its prompts. Raises ConfigError without a model,
    for an unknown persona or subtask, and where a small model can write none of the subtasks."""
    settings = spec.section(ComposeSettings)
    if not settings.model:
        raise ConfigError(
            "compose.model is empty: name a model, such as anthropic:claude-sonnet-5, or embedded"
        )
    small = parse_model(settings.model)[0].small
    known = bundled_personas()
    for kind, named, choices in (
        ("persona", settings.personas, known),
        ("subtask", settings.subtasks, SUBTASKS),
    ):
        if unknown := [name for name in named if name not in choices]:
            raise ConfigError(
                f"compose.{kind}s: no {kind} {quoted(unknown[0])}; choose from {', '.join(choices)}"
            )
    if not settings.personas:
        raise ConfigError(f"compose.personas is empty; choose from {', '.join(known)}")
    personas = tuple(known[name] for name in sorted(set(settings.personas)))
    subtasks = tuple(
        name for name in SUBTASKS if not settings.subtasks or name in settings.subtasks
    )
    if small and not set(subtasks) & set(drafts.EXTRACTABLE):
        advice = "name a model that writes them in compose.model, such as anthropic:claude-sonnet-5"
        raise ConfigError(
            f"compose.subtasks: {', '.join(subtasks)} cannot be extracted from a dialogue; {advice}"
        )
    prompts = Prompts.load(spec.prompts)
    composer = Composer(settings.model, subtasks, settings.references, spec.seed, prompts, key)
    values: dict[str, Any] = {
        "model": model_identity(settings.model),
        "personas": [persona.id for persona in personas],
        "persona_texts": fingerprint([persona.to_dict() for persona in personas]),
        "subtasks": list(subtasks),
        "references": settings.references,
        "seed": spec.seed,
        "prompts": prompts.fingerprint(
            *(f"{language}/{name}" for language in LANGUAGES for name in TEMPLATES)
        ),
    }
    if settings.engine_options:  # without any, as earlier versions signed
        values["engine_options"] = dict(settings.engine_options)
    calls = CallSettings(
        model=settings.model,
        max_cost=settings.max_cost,
        batch=settings.batch,
        prices=spec.prices,
        schema=not small,
        options=ChatOptions(engine_options=settings.engine_options),
        option="compose.engine_options",
    )
    arguments = (personas, composer, calls, workspace.stage("compose").path)
    return StageRun("compose", VERSION, values, RuleFactory(open_rule, arguments), (calls,))


def open_rule(
    personas: tuple[Persona, ...], composer: Composer, calls: CallSettings, folder: Path
) -> PartRule:
    """The rule for a part of dialogues; replies are stored in `folder`, the stage's."""
    return _Rule(personas, composer, ModelCalls(calls, folder, "compose"))


@dataclass(slots=True)
class _Work:
    """A dialogue in progress: its companion, its drafts with their ids, and the refused proposals."""

    dialogue: Dialogue
    persona: Persona
    extracted: drafts.Extracted
    drafts: dict[str, drafts.Draft] = field(default_factory=dict)
    refused: list[Rejected] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class _Rule:
    """Makes the candidates of a part of dialogues."""

    personas: tuple[Persona, ...]
    composer: Composer
    calls: ModelCalls

    def __call__(self, records: Sequence[Record], part: str) -> Sequence[Outcomes]:
        """The candidates of every dialogue of a part, in order."""
        started = [self._start(record) for record in records]
        works = [work for work in started if isinstance(work, _Work)]
        proposals: Replies = {}
        if not self.composer.small:
            requests = [
                self.composer.proposals(work.dialogue, work.persona, work.extracted.drafts)
                for work in works
            ]
            proposals = self.calls.ask(requests, part)
        requests = []
        for work in works:
            self._plan(work, proposals)
            for name, draft in work.drafts.items():
                scenario = drafts.scenario_of(draft, work.dialogue, work.persona, name)
                for sample in range(self.composer.references if draft.written else 0):
                    requests.append(
                        self.composer.reference(scenario, work.persona, draft.original, sample)
                    )
        written = self.calls.ask(requests, part)
        return [
            self._finish(work, written) if isinstance(work, _Work) else [work] for work in started
        ]

    def close(self) -> None:
        self.calls.close()

    def _start(self, record: Record) -> _Work | Rejected:
        """The persona of a dialogue, and what is extracted from it."""
        dialogue = read_dialogue(record)
        if isinstance(dialogue, Rejected):
            return dialogue
        able = [persona for persona in self.personas if dialogue.language in persona.names]
        if not able:
            return Rejected(dialogue.id, "persona", {"language": dialogue.language}, record)
        persona = able[
            int.from_bytes(drafts.random_bytes(0, dialogue.id, "persona")[:4], "big") % len(able)
        ]
        composer = self.composer
        extracted = drafts.extract(
            dialogue, persona, composer.subtasks, composer.seed, selective=composer.small
        )
        return _Work(dialogue, persona, extracted)

    def _plan(self, work: _Work, proposals: Replies) -> None:
        """Find the drafts of a dialogue: the extracted ones, some of which a model rewrites, and further proposals."""
        planned = list(work.extracted.drafts)
        name = work.dialogue.id
        if self.composer.small:
            planned = [replace(draft, written=True) for draft in planned]
        else:
            read = read_proposals(proposals[f"{name}/proposals", 0])
            if isinstance(read, Failure):
                reason = unwritten_reason(read)
                detail = format_failure(read)
                work.refused.append(_rejected(work, f"{name}:proposals", reason, detail=detail))
                read = ()
            for number, proposal in enumerate(read, 1):
                try:
                    drafts.add_draft(
                        planned, self.composer.draft(proposal, work.dialogue, work.persona)
                    )
                except drafts.RefusedDraft as error:
                    work.refused.append(
                        _rejected(
                            work, f"{name}:proposal-{number}", error.reason, detail=error.detail
                        )
                    )
        counts = Counter[str]()
        for draft in planned:
            counts[draft.subtask] += 1
            place = f":{counts[draft.subtask]}" if counts[draft.subtask] > 1 else ""
            work.drafts[f"{name}:{draft.subtask}{place}"] = draft

    def _finish(self, work: _Work, written: Replies) -> Outcomes:
        """The candidates with a reference; where there is none, one rejection of the dialogue that lists all."""
        outcomes: list[Outcome] = [
            self._candidate(work, name, draft, written) for name, draft in work.drafts.items()
        ]
        kept = [outcome for outcome in outcomes if isinstance(outcome, Kept)]
        rejected = [*(o for o in outcomes if isinstance(o, Rejected)), *work.refused]
        if kept:
            return [*kept, *rejected]
        record = work.dialogue.to_dict()
        if not rejected:
            return [
                Rejected(work.dialogue.id, work.extracted.reason, work.extracted.evidence, record)
            ]
        details = [{"id": one.id, "reason": one.reason, **one.evidence} for one in rejected]
        return [Rejected(work.dialogue.id, rejected[0].reason, {"refused": details}, record)]

    def _candidate(self, work: _Work, name: str, draft: drafts.Draft, written: Replies) -> Outcome:
        found = self._references(work, name, draft, written)
        # Those of a model, which should replace the original, first.
        records = sorted(found.refused, key=lambda one: not one["origin"].startswith(MODEL))
        if not found.accepted:
            # Without any record there was no reply in the dialogue, and none was to be written (`references = 0`).
            return _rejected(
                work, name, records[0]["reason"] if records else "no_reply", refused=records
            )
        references = tuple(found.accepted.values())
        scenario = drafts.scenario_of(draft, work.dialogue, work.persona, name, references[0].text)
        if found.codes:
            noted = {"risk": "none", **scenario.metadata.get("safety", {}), "action": "review"}
            noted["tags"] = sorted(found.codes.union(noted.get("tags", ())))
            scenario = replace(scenario, metadata={**scenario.metadata, "safety": noted})
        is_null = find_subtask(draft.subtask).has_null_line and is_null_memory(
            scenario.reference, scenario.language
        )
        holding = {
            draft.subtask: True,
            "null_class": is_null,
            "crisis": draft.tags.risk != "none",
            "review": scenario.metadata.get("safety", {}).get("action") == "review",
        }
        by_model = sorted(
            {REFUSED + one["reason"] for one in records if one["origin"].startswith(MODEL)}
        )
        tags = (*(tag for tag, holds in holding.items() if holds), *by_model)
        return Kept(
            Candidate(scenario, references).to_dict(),
            tags,
            {"refused": records} if records else None,
        )

    def _references(
        self, work: _Work, name: str, draft: drafts.Draft, written: Replies
    ) -> drafts.References:
        """Every reference that keeps the contract: the original, then replies of other dialogues, at most as many as a
        model writes, then those of the model."""
        found = drafts.References()
        scenario = drafts.scenario_of(draft, work.dialogue, work.persona, name)
        if draft.original is not None:
            found.check_and_add(Reference(draft.original), scenario, work.persona)
        most = len(found.accepted) + self.composer.references
        for answer in draft.alternatives:
            if len(found.accepted) == most:
                break
            found.check_and_add(answer, scenario, work.persona)
        origin = self.composer.origin
        if draft.fixed is not None:
            found.add(Reference(draft.fixed, origin))
        for sample in range(self.composer.references if draft.written else 0):
            reply = written[f"{name}/reference", sample]
            try:
                text = self.composer.written(reply, scenario, work.persona, sample)
                found.codes |= drafts.screen(text, scenario)
                found.add(Reference(text, origin))
            except drafts.RefusedDraft as error:
                found.refuse(origin, error.reason, error.detail)
        return found


def _rejected(work: _Work, record_id: str, reason: str, **evidence: object) -> Rejected:
    """A rejection with the provenance of its dialogue, for `erase` and `explain`."""
    provenance = {**work.dialogue.provenance, "dialogue": work.dialogue.id}
    return Rejected(record_id, reason, evidence, {"id": record_id, "provenance": provenance})
