"""The safety stage: layers give evidence on a dialogue, one policy decides, and a guard may read it all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from h2htalk.chat.engines import model_identity
from h2htalk.curation.assessment import Assessment, Explicit, Talk, assess
from h2htalk.curation.reading.guards import GuardReader, GuardReading
from h2htalk.curation.run import RuleFactory, StageRun
from h2htalk.curation.safety.guarding import Guard, GuardCalls, apply_reading
from h2htalk.curation.stage_folder import (
    Kept,
    Outcome,
    Outcomes,
    PartRule,
    Record,
    Rejected,
    StageFolder,
    read_dialogue,
)
from h2htalk.curation.stages import CurateSpec, SafetySettings
from h2htalk.curation.workspace import Workspace
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.scenario import CONTRADICTED, Dialogue
from h2htalk.detect import encoder as danger_encoder
from h2htalk.detect.hashed import load_classifier, load_joint
from h2htalk.detect.safety import companion, crisis, lexicons
from h2htalk.detect.safety.evidence import Evidence

VERSION = 8
Terms = Mapping[Language, frozenset[str]]


def make_stage(spec: CurateSpec, workspace: Workspace, key: bytes) -> StageRun:
    """The stage as a specification sets it; `key`: of the guard's fences. Raises ConfigError."""
    settings = spec.section(SafetySettings)
    models = {language: model_fingerprints(language) for language in LANGUAGES}
    values = {
        "guard": model_identity(settings.guard),
        "terms": sorted(set().union(*_read_terms(settings.sensitive).values())),
        "models": models,
        "explicit": settings.explicit,
    }
    guard = Guard.of(spec, key)
    if guard is not None:
        values |= guard.signature()
    if settings.talk != "companion":
        values |= {"talk": settings.talk}
    encoded = settings.dangers == "encoder"
    if encoded:
        values |= {"encoder": danger_encoder.identity()}
    folder = workspace.stage("safety")
    arguments = (
        guard,
        settings.sensitive,
        settings.explicit,
        str(folder.path),
        encoded,
        settings.talk,
    )
    return StageRun(
        "safety",
        VERSION,
        values,
        RuleFactory(open_rule, arguments),
        calls=(guard.calls,) if guard is not None else (),
        messages=_scope_message(settings, guard, folder),
        changed=_changed_scope(folder.settings(), values, settings) if guard is not None else "",
    )


def _scope_message(
    settings: SafetySettings, guard: Guard | None, folder: StageFolder
) -> tuple[str, ...]:
    """What a run says of the number of calls where a guard is named and how much it reads is not."""
    if guard is None or settings.guard_scope is not None or folder.finished:
        return ()
    each = "" if guard.reader.form == "question" else ", each message in a call of its own"
    return (
        f"safety: the guard reads every dialogue that is kept{each}; earlier versions asked it about the doubtful ones "
        'alone, 3 to 20 in 100. guard_scope = "doubtful" in [safety] does as they did; guard_scope = "all" says that '
        "you know. --dry-run shows the cost, max_cost limits it",
    )


def _changed_scope(
    before: Mapping[str, Any], values: Mapping[str, Any], settings: SafetySettings
) -> str:
    """Why the settings of a stage differ that an earlier version made with the same guard; empty for other reasons."""
    asks_otherwise = "guard_form" in values and "guard_form" not in before
    if _is_same_but_question(before, values):
        return (
            "safety: was made when the guard was asked other questions (guard_prompt; this version asks who could know "
            "the user, too). What it has read stands where it is, and counts for a release with the certificate of "
            "those questions; to have everything read again, make it and the stages after it again with --from-stage "
            "safety (--dry-run shows the cost), or name another workspace for what is new"
        )
    if not before.get("guard") or before["guard"] != values["guard"] or not asks_otherwise:
        return ""
    keep = [] if settings.guard_scope == "doubtful" else ['guard_scope = "doubtful"']
    if values["guard_form"] == "question":
        keep.append('guard_form = "qwen3guard" (or "llama_guard")')
    return (
        f"safety: was made when the guard was asked about doubtful dialogues alone, in a form of its own; to have all "
        f"read, make it and the stages after it again with --from-stage safety; {' and '.join(keep)} in [safety] "
        "asks it as before (a stage of earlier rules is made again in any case)"
    )


def _is_same_but_question(before: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    """Whether a stage was made with the same settings, but for the question to its guard."""
    different = {name for name in {*before, *values} if before.get(name) != values.get(name)}
    return different == {"guard_prompt"} and bool(before.get("guard_prompt"))


def model_fingerprints(language: Language) -> list[str]:
    """What the classifiers of a language learned from, a hash each."""
    folders = (lexicons.OFFENSIVE, lexicons.MASKED, lexicons.POLITICAL_DATA)
    manifests = [load_classifier(folder, language).manifest for folder in folders]
    manifests += [load_joint(folder, language).manifest for folder in (crisis.DATA, companion.DATA)]
    return [manifest["texts_sha256"][:12] for manifest in manifests]


def _read_terms(path: str) -> Terms:
    return {language: lexicons.read_terms(path, language) for language in LANGUAGES}


def open_rule(
    guard: Guard | None,
    sensitive: str,
    explicit: Explicit,
    folder: str,
    encoded: bool = False,
    talk: Talk = "companion",
) -> PartRule:
    """The rule of the stage, with or without an encoder and a guard, whose replies are stored in `folder`."""
    calls = GuardCalls(guard, Path(folder)) if guard is not None else None
    encoder = danger_encoder.load_encoder() if encoded else None
    return _Rule(
        guard=calls, terms=_read_terms(sensitive), explicit=explicit, encoder=encoder, talk=talk
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Rule:
    """The rule for a part of dialogues."""

    guard: GuardCalls | None
    terms: Terms
    explicit: Explicit
    encoder: crisis.Encoder | None
    talk: Talk

    def __call__(self, records: Sequence[Record], part: str) -> Sequence[Outcomes]:
        read = [read_dialogue(record) for record in records]
        dialogues = [one for one in read if isinstance(one, Dialogue)]
        assessed = {one.id: self.assess(one) for one in dialogues}
        readings = self.guard.read(dialogues, assessed, part) if self.guard is not None else {}
        outcomes: list[Outcomes] = []
        for dialogue in read:
            if isinstance(dialogue, Rejected):
                outcomes.append([dialogue])
                continue
            assessment = assessed[dialogue.id]
            reading = readings.get(dialogue.id)
            if self.guard is None or reading is None:
                outcomes.append([outcome(dialogue, assessment)])
            else:
                outcomes.append([guarded_outcome(dialogue, assessment, reading, self.guard.reader)])
        return outcomes

    def assess(self, dialogue: Dialogue) -> Assessment:
        """Decide by words, classifiers and the encoder."""
        terms = self.terms[dialogue.language]
        return assess(dialogue, terms, self.explicit, self.encoder, self.talk)

    def close(self) -> None:
        """Release the guard."""
        if self.guard is not None:
            self.guard.close()


def guarded_outcome(
    dialogue: Dialogue, assessment: Assessment, guarded: GuardReading, reader: GuardReader
) -> Outcome:
    """As `outcome`, after a guard has read the dialogue; its reading stands in the audit record, key `read`."""
    by_words = assessment
    assessment, left = apply_reading(dialogue, assessment, guarded, reader)
    contradicted = sorted(
        _noted_codes(by_words, by_words.evidence) - _noted_codes(assessment, left)
    )
    details: dict[str, Any] = {}
    if guarded.verdict is not None:
        verdict = guarded.verdict
        details["guard"] = {"safety": verdict.safety, "categories": list(verdict.categories)}
    decided = outcome(dialogue, assessment, left, details, contradicted)
    audit: dict[str, Any] = {}
    if guarded.read is not None:
        read = guarded.read
        if assessment.remove and assessment.hard:  # nothing is stored about such a text
            read = replace(read, findings=tuple(replace(one, what="") for one in read.findings))
        audit["read"] = read.to_dict()
    if guarded.reading.reasons:
        audit["not_read"] = list(guarded.reading.reasons)
    return replace(decided, audit={**(decided.audit or {}), **audit}) if audit else decided


def _noted_codes(assessment: Assessment, evidence: Sequence[Evidence]) -> set[str]:
    """What an assessment and its open evidence note of a dialogue: reasons, and doubts about a crisis."""
    doubts = {sign.category for sign in evidence} & {crisis.POSSIBLE, crisis.HINT}
    return set(assessment.reasons) | doubts


def outcome(
    dialogue: Dialogue,
    assessment: Assessment,
    left: Sequence[Evidence] | None = None,
    guard: Mapping[str, Any] | None = None,
    contradicted: Sequence[str] = (),
) -> Outcome:
    """A kept dialogue with `metadata.safety`, or a rejection by its first reason, without text where that is `hard`.

    `left`: the evidence that a guard left open; None for all. `guard`: what the guard said, for the details.
    `contradicted`: what the words noted and the guard's reading took back. It stays in the metadata, because a reading
    counts only with a certificate: until then a round takes it for a hint that nobody has read.
    """
    details: dict[str, Any] = dict(guard or {})
    details = details | assessment.to_dict()
    reasons = assessment.reasons
    if assessment.remove:
        if assessment.hard:
            return Rejected(dialogue.id, assessment.hard, {"reasons": list(reasons)})
        return Rejected(dialogue.id, reasons[0], details, dialogue.to_dict())
    noted: dict[str, Any] = {
        "action": assessment.action,
        "tags": list(reasons),
        "risk": assessment.risk,
    }
    seen = {one.category for one in (assessment.evidence if left is None else left)}
    possible, hint = (code in seen for code in (crisis.POSSIBLE, crisis.HINT))
    noted |= {"possible_crisis": True} if possible else {"crisis_hint": True} if hint else {}
    if contradicted:
        noted[CONTRADICTED] = list(contradicted)
    kept = replace(dialogue, metadata={**dialogue.metadata, "safety": noted})
    tags = ["review"] if assessment.action == "review" else []
    if any(code.startswith(crisis.TAGS) for code in reasons):
        tags.append("crisis")
    elif possible:
        tags.append("possible_crisis")
    if contradicted:
        tags.append(CONTRADICTED)
    return Kept(kept.to_dict(), (*tags, *reasons), details if assessment.evidence else None)
