"""The safety stage: layers give evidence on a dialogue, one policy decides, a guard model may decide doubtful cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from h2htalk.chat.engines import model_identity
from h2htalk.chat.store.model_calls import CallSettings
from h2htalk.curation.outcomes import Kept, Outcome, Outcomes, PartRule, Record, Rejected, each_dialogue, read_dialogue
from h2htalk.curation.run import RuleFactory, StageRun
from h2htalk.curation.safety import companion, crisis, political
from h2htalk.curation.safety.content_rules import READ, find_unusable_content
from h2htalk.curation.safety.evidence import Evidence
from h2htalk.curation.safety.guard_model import Guard, Verdict, is_moderation, was_sent
from h2htalk.curation.safety.insults import (
    INSULTS,
    MASKED,
    OFFENSIVE,
    find_contempt,
    find_report,
    offence,
    without_insults,
)
from h2htalk.curation.safety.lexicons import find_listed, without_everyday
from h2htalk.curation.safety.ngram_classifier import load_classifier
from h2htalk.curation.safety.policy import Assessment, Explicit, Thresholds, apply_verdict, decide_safety
from h2htalk.curation.settings import CurateSpec
from h2htalk.curation.stages import SafetySettings
from h2htalk.curation.workspace import Workspace
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.scenario import Dialogue, Turn
from h2htalk.text.language_data import language_data

VERSION = 4
Terms = Mapping[Language, frozenset[str]]


def assess(dialogue: Dialogue, terms: frozenset[str] = frozenset(), explicit: Explicit = "remove") -> Assessment:
    """Decide on a dialogue: keep it, keep it with tags, keep it for a person to decide, or remove it.

    Args:
        dialogue: of any length; linear in its text.
        terms: politically sensitive terms of the user's own, folded (`political.read_terms`).
        explicit: whether a companion's sexual content between adults removes the dialogue or tags it.

    Returns:
        The decision with its evidence; it depends on this dialogue alone.
    """
    language = dialogue.language
    classifier = load_classifier(OFFENSIVE, language)
    low, high = classifier.low(), classifier.high()
    turns = [replace(turn, content=_shortened(turn.content)) for turn in dialogue.messages]
    evidence: list[Evidence] = []
    offending = {}
    for at, turn in enumerate(turns):
        text, seeker = turn.content, turn.role == "user"
        listed = find_listed(text, language)
        score = offence(without_everyday(text, language), language)
        found = [*listed, political.find_political(text, language, terms, seeker)]
        if score >= low:
            found.append(Evidence("classifier", "offensive", score))
        if score >= low or any(one.category.startswith("offensive.") for one in listed):
            offending[at] = listed
        if seeker:
            found += _find_crisis(text, language, listed, score >= low)
        evidence += [one.of_turn(at) for one in found if one is not None]
    # Whom an insult is for matters only where there is one.
    if offending:
        evidence += _find_targets(turns, offending, language)
    evidence += crisis.find_in_context(turns, language)
    evidence += companion.find_companion(turns, language)
    evidence += find_unusable_content(dialogue)
    settled = language_data(INSULTS, language)
    return decide_safety(dialogue, evidence, Thresholds(low, high, settled["single"], settled["masked"]), explicit)


def _find_crisis(text: str, language: Language, listed: Sequence[Evidence], offensive: bool) -> list[Evidence]:
    """The evidence of a crisis in a message of the seeker's, also in what it says besides insults."""
    found = crisis.find_crisis(text, language)
    if any(one.category.startswith("crisis.") for one in found):
        return found
    rest = without_insults(text, language, listed, offensive)
    if rest and (beside := crisis.find_crisis(rest, language)):
        return [*found, *(replace(one, start=0, end=0) for one in beside if one.category != crisis.MINOR)]
    # Of an offensive message only what is not offensive can be a faint sign.
    part = rest if offensive else text
    possible = crisis.find_possible_crisis(part, language, len(part) / max(1, len(text)))
    return [*found, possible] if possible else found


def _find_targets(
    turns: Sequence[Turn], offending: Mapping[int, Sequence[Evidence]], language: Language
) -> list[Evidence]:
    """Whom the insults of these turns are for: a group, or the seeker, who reports them in any turn."""
    groups = [
        (at, one) for at, listed in offending.items() for one in find_contempt(turns[at].content, language, listed)
    ]
    reports = [(at, find_report(turn.content, language)) for at, turn in enumerate(turns) if turn.role == "user"]
    return [one.of_turn(at) for at, one in (*groups, *reports) if one is not None]


def _shortened(text: str) -> str:
    """The part of a message that the layers read: the start and the end of one of megabytes."""
    return text if len(text) <= READ else f"{text[: READ // 2]}\n{text[-READ // 2 :]}"


# --- The stage ---------------------------------------------------------------------------------------------------


def make_stage(spec: CurateSpec, workspace: Workspace, key: bytes) -> StageRun:
    """The stage as a specification sets it; `key` is not used.

    Raises:
        ConfigError: the guard or the list of terms cannot be used.
    """
    settings = spec.section(SafetySettings)
    terms = _read_terms(settings.sensitive)
    values = {
        "guard": model_identity(settings.guard),
        "terms": sorted(set().union(*terms.values())),
        "models": {
            language: [
                load_classifier(folder, language).manifest["texts_sha256"][:12]
                for folder in (OFFENSIVE, MASKED, crisis.DATA, *crisis.KIND_FOLDERS, political.DATA)
            ]
            + [companion.load_companion(language).manifest["texts_sha256"][:12]]
            for language in LANGUAGES
        },
        "explicit": settings.explicit,
    }
    guard = None
    if settings.guard:
        limit = None if is_moderation(settings.guard) else settings.max_cost
        guard = CallSettings(settings.guard, limit, prices=spec.prices)
    arguments = (guard, settings.sensitive, settings.explicit, str(workspace.stage("safety").path))
    return StageRun("safety", VERSION, values, RuleFactory(open_rule, arguments), calls=(guard,) if guard else ())


def _read_terms(path: str) -> Terms:
    return {language: political.read_terms(path, language) for language in LANGUAGES}


def open_rule(guard: CallSettings | None, sensitive: str, explicit: Explicit, folder: str) -> PartRule:
    """The rule of the stage, with or without a guard, whose replies are stored in `folder`."""
    terms = _read_terms(sensitive)
    if guard is None:
        return each_dialogue(lambda dialogue: [outcome(dialogue, assess(dialogue, terms[dialogue.language], explicit))])
    return _GuardedRule(Guard(guard, Path(folder)), terms, explicit)


@dataclass(frozen=True, slots=True, eq=False)
class _GuardedRule:
    """The rule with a guard."""

    guard: Guard
    terms: Terms
    explicit: Explicit

    def __call__(self, records: Sequence[Record], part: str) -> Sequence[Outcomes]:
        read = [read_dialogue(record) for record in records]
        dialogues = [one for one in read if isinstance(one, Dialogue)]
        assessed = {d.id: assess(d, self.terms[d.language], self.explicit) for d in dialogues}
        verdicts = self.guard.ask([d for d in dialogues if _is_undecided(assessed[d.id])], part)
        return [
            [one if isinstance(one, Rejected) else outcome(one, assessed[one.id], verdicts.get(one.id))] for one in read
        ]

    def close(self) -> None:
        """Release the guard."""
        self.guard.close()


def _is_undecided(assessment: Assessment) -> bool:
    """Whether the guard decides: on dialogues for review, on those removed for politics alone, and on faint harm."""
    faint = not assessment.remove and any(one.layer == companion.LAYER for one in assessment.evidence)
    return faint or assessment.action == "review" or assessment.reasons == ("political.sensitive",)


def outcome(dialogue: Dialogue, assessment: Assessment, verdict: Verdict | None = None) -> Outcome:
    """A kept dialogue with `metadata.safety`, or a rejection by its first reason with all evidence.

    Args:
        dialogue: the one that was assessed.
        assessment: of the layers. Where it is `hard`, only the id and the reason are stored.
        verdict: of the guard, which is applied to the assessment.
    """
    guard: dict[str, Any] = {}
    if verdict is not None:
        unread = [one for one in assessment.evidence if not was_sent(dialogue, one)]
        assessment = apply_verdict(assessment, verdict.safety, verdict.categories, unread)
        guard = {"guard": {"safety": verdict.safety, "categories": list(verdict.categories)}}
    details = {**assessment.to_dict(), **guard}
    reasons = assessment.reasons
    if assessment.remove:
        if assessment.hard:
            return Rejected(dialogue.id, assessment.hard, {"reasons": list(reasons)})
        return Rejected(dialogue.id, reasons[0], details, dialogue.to_dict())
    noted: dict[str, Any] = {"action": assessment.action, "tags": list(reasons), "risk": assessment.risk}
    possible = any(one.category == crisis.POSSIBLE for one in assessment.evidence)
    if possible:
        noted["possible_crisis"] = True
    kept = replace(dialogue, metadata={**dialogue.metadata, "safety": noted})
    tags = ["review"] if assessment.action == "review" else []
    tags += ["crisis"] if any(code.startswith(crisis.TAGS) for code in reasons) else []
    tags += ["possible_crisis"] if possible and "crisis" not in tags else []
    return Kept(kept.to_dict(), (*tags, *reasons), details if assessment.evidence else None)
