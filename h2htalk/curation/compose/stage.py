"""Compose: dialogues become candidate scenarios of the eleven subtasks, with their references.

Without a model, what can be cut from a dialogue: its history up to a user's turn, with the reply that was given where
that keeps the contract (`compose_cutting`). With one, every dialogue is asked for what else it carries, and every
scenario that is proposed for as many references as the settings say (`compose_writing`). What breaks is left out and
counted: a scenario without any reference as a rejection, a reference of several as a mark of its candidate.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from h2htalk.chat.engines import parse_model
from h2htalk.curation.candidates import ORIGINAL, Candidate, Reference
from h2htalk.curation.compose.drafts import (
    Draft,
    Found,
    Refused,
    broken_rules,
    drawn,
    merge,
    named_drafts,
    scenario_of,
)
from h2htalk.curation.compose.extraction import CUTTABLE, Cuts, cut
from h2htalk.curation.compose.generation import TEMPLATES, Composer, proposals_name, reference_name
from h2htalk.curation.compose.reply_schemas import read_proposals, unread
from h2htalk.curation.model_calls.model_identity import model_identity
from h2htalk.curation.model_calls.prompts import Prompts
from h2htalk.curation.model_calls.stored_calls import Answers, Asking, AskSettings
from h2htalk.curation.outcomes import Kept, Outcome, Outcomes, PartRule, Record, Rejected
from h2htalk.curation.pipeline import Opener, Stage
from h2htalk.curation.settings import ComposeSettings, CurateSpec
from h2htalk.curation.workspace import Workspace
from h2htalk.data.dialogue import Dialogue
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.persona import Persona, bundled_personas
from h2htalk.data.responses import Failure
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError, DataError, quoted
from h2htalk.text.contracts.memory_blocks import is_null_memory

VERSION = 3  # 2: other answers to the same question become references; 3: models by the name of the manifest
NULL_CLASS = "null_class"
# Before the reason, where a candidate has other references than the one that broke.
LOST = "reference:"


def make_stage(spec: CurateSpec, workspace: Workspace, key: bytes) -> Stage:
    """The stage `compose` of a curation; `key` makes the fences of its prompts.

    Raises:
        ConfigError: an unknown persona, subtask or model, or subtasks that no dialogue gives without a model.
    """
    settings = spec.compose
    wanted = _wanted(settings)
    personas = _personas(settings)
    if settings.model:
        parse_model(settings.model)
    made: dict[str, Any] = {
        "model": model_identity(settings.model),
        "personas": list(personas),
        "persona_texts": _fingerprint([persona.to_dict() for persona in personas.values()]),
        "subtasks": list(wanted),
        "references": settings.references,
        "seed": spec.seed,
    }
    if settings.model:
        prompts = Prompts.load(spec.prompts)
        names = [f"{language}/{name}" for language in LANGUAGES for name in TEMPLATES]
        made["prompts"] = prompts.fingerprint(*names)
    arguments = (settings, spec.seed, spec.prompts, spec.prices, str(workspace.stage("compose").path), key)
    return Stage("compose", VERSION, made, Opener(open_rule, arguments), alone=bool(settings.model))


def open_rule(
    settings: ComposeSettings, seed: int, prompts: str, prices: str, folder: str, key: bytes
) -> PartRule:
    """The stage's rule over a part of dialogues; with a model, its calls are stored in `folder`, the stage's."""
    wanted, personas = _wanted(settings), _personas(settings)
    if not settings.model:
        return _Rule(wanted, personas, seed, settings.references)
    templates = Prompts.load(prompts)
    composer = Composer(settings.model, wanted, settings.references, seed, templates, key)
    asked = AskSettings(settings.model, settings.max_cost, settings.batch, prices)
    asking = Asking(asked, Path(folder), "compose")
    return _Rule(wanted, personas, seed, settings.references, composer, asking)


def _wanted(settings: ComposeSettings) -> tuple[str, ...]:
    for name in settings.subtasks:
        if name not in SUBTASKS:
            raise ConfigError(
                f"compose.subtasks: no subtask {quoted(name)}; choose from {', '.join(SUBTASKS)}"
            )
    wanted = tuple(name for name in SUBTASKS if not settings.subtasks or name in settings.subtasks)
    if not settings.model and not set(wanted) & set(CUTTABLE):
        raise ConfigError(
            f"compose.subtasks: {', '.join(wanted)} cannot be cut from a dialogue; name who writes them in "
            "compose.model, such as anthropic:claude-sonnet-5"
        )
    return wanted


def _personas(settings: ComposeSettings) -> Mapping[str, Persona]:
    known = bundled_personas()
    for name in settings.personas:
        if name not in known:
            raise ConfigError(f"compose.personas: no persona {quoted(name)}; choose from {', '.join(known)}")
    if not settings.personas:
        raise ConfigError(f"compose.personas is empty; choose from {', '.join(known)}")
    return {name: known[name] for name in sorted(set(settings.personas))}


def _fingerprint(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


# --- The rule ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Work:
    """A dialogue at work: who its companion is, what it gives, and what was refused so far."""

    dialogue: Dialogue
    persona: Persona
    cuts: Cuts
    drafts: tuple[tuple[str, Draft], ...] = ()  # the candidate's id and what it is made of
    refused: tuple[Rejected, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class _Rule:
    wanted: tuple[str, ...]
    personas: Mapping[str, Persona]
    seed: int
    references: int
    composer: Composer | None = None
    asking: Asking | None = None

    def __call__(self, records: Sequence[Record], part: str) -> Sequence[Outcomes]:
        """The candidates of every dialogue of a part, in order: one call a dialogue, then one a reference."""
        started = [self._start(record) for record in records]
        works = [work for work in started if isinstance(work, _Work)]
        proposed = self._ask_for_proposals(works, part)
        planned = {work.dialogue.id: self._plan(work, proposed) for work in works}
        written = self._ask_for_references(list(planned.values()), part)
        return [
            self._finish(planned[work.dialogue.id], written) if isinstance(work, _Work) else [work]
            for work in started
        ]

    def close(self) -> None:
        """Give back the model and its ledger."""
        if self.asking is not None:
            self.asking.close()

    def _start(self, record: Record) -> _Work | Rejected:
        try:
            dialogue = Dialogue.from_dict(record)
        except DataError as error:
            return Rejected(str(record.get("id", "")), "unreadable", {"error": str(error)})
        able = [persona for persona in self.personas.values() if dialogue.language in persona.names]
        if not able:
            return Rejected(dialogue.id, "persona", {"language": dialogue.language}, record)
        persona = able[int.from_bytes(drawn(0, dialogue.id, "persona")[:4], "big") % len(able)]
        return _Work(dialogue, persona, cut(dialogue, persona, self.wanted, self.seed))

    def _ask_for_proposals(self, works: Sequence[_Work], part: str) -> Answers:
        if self.composer is None or self.asking is None:
            return {}
        return self.asking.ask(
            [self.composer.proposals(work.dialogue, work.persona, work.cuts.drafts) for work in works], part
        )

    def _plan(self, work: _Work, proposed: Answers) -> _Work:
        """The drafts of a dialogue: its cuts, those that a model rewrites, and what it proposes besides."""
        drafts = list(work.cuts.drafts)
        refused: list[Rejected] = []
        if self.composer is not None:
            read = read_proposals(proposed[proposals_name(work.dialogue.id), 0])
            if isinstance(read, Failure):
                name = f"{work.dialogue.id}:proposals"
                refused.append(_refused(work, name, "unwritten", detail=unread(read)))
                read = ()
            for number, proposal in enumerate(read, 1):
                try:
                    merge(drafts, self.composer.draft(proposal, work.dialogue, work.persona))
                except Refused as why:
                    name = f"{work.dialogue.id}:proposal-{number}"
                    refused.append(_refused(work, name, why.reason, detail=why.detail))
        return replace(work, drafts=tuple(named_drafts(work.dialogue.id, drafts)), refused=tuple(refused))

    def _ask_for_references(self, works: Sequence[_Work], part: str) -> Answers:
        if self.composer is None or self.asking is None:
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
        return self.asking.ask(requests, part) if requests else {}

    def _finish(self, work: _Work, written: Answers) -> Outcomes:
        """The candidates that have a reference; where none has, one rejection of the dialogue that names them all."""
        outcomes: list[Outcome] = [self._candidate(work, name, draft, written) for name, draft in work.drafts]
        kept = [outcome for outcome in outcomes if isinstance(outcome, Kept)]
        lost = [*(o for o in outcomes if isinstance(o, Rejected)), *work.refused]
        if kept:
            return [*kept, *lost]
        record = work.dialogue.to_dict()
        if not lost:
            return [Rejected(work.dialogue.id, work.cuts.reason, work.cuts.evidence, record)]
        told = [{"id": one.id, "reason": one.reason, **one.evidence} for one in lost]
        return [Rejected(work.dialogue.id, lost[0].reason, {"lost": told}, record)]

    def _candidate(self, work: _Work, name: str, draft: Draft, written: Answers) -> Outcome:
        found = self._references(work, name, draft, written)
        if not found.texts:
            first = found.told()[0]
            return _refused(work, name, first["reason"], lost=found.told())
        references = tuple(found.texts.values())
        scenario = scenario_of(draft, work.dialogue, work.persona, name, references[0].text)
        lost = [LOST + reason for reason in found.written_reasons()]
        tags = (draft.subtask, *_marks(work.dialogue, draft, references), *lost)
        audit = {"lost": found.told()} if found.lost else None
        return Kept(Candidate(scenario, references).to_dict(), tags, audit)

    def _references(self, work: _Work, name: str, draft: Draft, written: Answers) -> Found:
        """Every reference that keeps the contract: the original first, then other answers to the same question, as many
        as a model writes of them, then a model's in their order."""
        found = Found()
        scenario = scenario_of(draft, work.dialogue, work.persona, name)
        if draft.original is not None:
            if broken := broken_rules(draft.original, scenario, work.persona):
                found.lose(ORIGINAL, f"contract:{broken[0].rule}", broken[0].detail)
            else:
                found.take(Reference(draft.original))
        others = 0
        for answer in draft.alternatives:
            if others == self.references:
                break
            if broken := broken_rules(answer.text, scenario, work.persona):
                found.lose(answer.origin, f"contract:{broken[0].rule}", broken[0].detail)
            else:
                others += answer.text not in found.texts
                found.take(answer)
        if self.composer is None:
            return found
        origin = self.composer.origin
        if draft.fixed is not None:
            found.take(Reference(draft.fixed, origin))
        for sample in range(self.composer.references if draft.written else 0):
            reply = written[reference_name(name), sample]
            try:
                text = self.composer.written(reply, scenario, work.persona, sample)
                found.take(Reference(text, origin))
            except Refused as why:
                found.lose(origin, why.reason, why.detail)
        return found


def _marks(dialogue: Dialogue, draft: Draft, references: Sequence[Reference]) -> list[str]:
    """What a summary counts besides the subtask: the null class, a crisis, what safety could not decide."""
    marks = []
    if draft.subtask == "recollection_synthesis" and is_null_memory(references[0].text, dialogue.language):
        marks.append(NULL_CLASS)
    if draft.tags.risk != "none":
        marks.append("crisis")
    safety = dialogue.metadata.get("safety")
    if isinstance(safety, Mapping) and safety.get("action") == "review":
        marks.append("review")
    return marks


def _refused(work: _Work, record_id: str, reason: str, **evidence: object) -> Rejected:
    """A rejection that says whose it was, as `erase` and `explain` look for it."""
    provenance = {**work.dialogue.provenance, "dialogue": work.dialogue.id}
    return Rejected(record_id, reason, evidence, {"id": record_id, "provenance": provenance})
