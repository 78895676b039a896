"""The guard of the safety stage: which dialogues it reads, and what its reading changes.

What a guard says it was not sure of, or was not asked about, stays for people. It adds tags and takes none away that
the words gave: a warning that costs nothing is not withdrawn on one model's word.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from h2htalk.chat.engines import ChatOptions
from h2htalk.chat.protocol import Reply, Request
from h2htalk.chat.served_model import served_by
from h2htalk.chat.store.model_calls import CallSettings, ModelCalls
from h2htalk.curation.assessment import Assessment
from h2htalk.curation.prompts import Prompts
from h2htalk.curation.reading.guards import (
    LONGEST,
    GuardForm,
    GuardReader,
    GuardReading,
    Verdict,
    guard_form,
    guard_prompt_fingerprint,
    guard_request,
    refuse_weak_guard,
)
from h2htalk.curation.reading.question import PlainQuestion
from h2htalk.curation.safety.policy import apply_findings, apply_verdict
from h2htalk.curation.stages import CurateSpec, SafetySettings
from h2htalk.data.scenario import Dialogue
from h2htalk.detect.safety import companion, crisis, lexicons
from h2htalk.detect.safety.evidence import Evidence

Scope = Literal["all", "doubtful"]
# What the plain question asks about, by the first part of a code: it clears nothing else.
_ASKED = frozenset({"companion", "sexual", "crisis"})


@dataclass(frozen=True, slots=True)
class Guard:
    """A guard as a specification sets it."""

    calls: CallSettings
    reader: GuardReader
    scope: Scope

    @classmethod
    def of(cls, spec: CurateSpec, key: bytes) -> Guard | None:
        """The guard that a specification names; None without one. Raises ConfigError for one that is too weak."""
        settings = spec.section(SafetySettings)
        if not settings.guard:
            return None
        refuse_weak_guard(settings.guard)
        form = guard_form(settings.guard, settings.guard_form)
        scope = settings.guard_scope or "all"
        calls = CallSettings(
            model=settings.guard,
            max_cost=settings.max_cost,
            batch=settings.batch,
            prices=spec.prices,
            schema=form == "question",
            options=ChatOptions(engine_options=settings.engine_options),
            option="safety.engine_options",
            served_by=served_by(settings.guard, settings.engine_options),
        )
        question = PlainQuestion(
            model=settings.guard, seed=spec.seed, prompts=Prompts.load(spec.prompts), secret=key
        )
        last_only = scope == "doubtful" and form != "question"
        return cls(calls=calls, reader=GuardReader(form, question, last_only), scope=scope)

    def signature(self) -> dict[str, Any]:
        """What the stage's settings say of it beside its model; nothing where it is asked as earlier versions did."""
        form = self.reader.form
        if self.reader.last_only:
            values: dict[str, Any] = {}
        else:
            values = {
                "guard_scope": self.scope,
                "guard_form": form,
                "guard_prompt": guard_prompt_fingerprint(form, self.reader.question.prompts),
            }
        if form == "question":
            values["seed"] = self.reader.question.seed
        if self.calls.options.engine_options:
            values["engine_options"] = dict(self.calls.options.engine_options)
        return values

    def reads(self, assessment: Assessment) -> bool:
        """Whether it is asked about a dialogue that the words assessed so.

        It is not asked about what the words remove, as nobody will read that; but in a form of its own about what they
        would remove for politics alone, which it may bring back.
        """
        if self.scope == "doubtful" or assessment.remove:
            return is_undecided(assessment, self.reader.form)
        return True


def is_undecided(assessment: Assessment, form: GuardForm) -> bool:
    """Whether the words leave it to a guard: on review, on faint signs of harm or of a crisis.

    A guard in a form of its own, which has a category for it, also decides on removal for politics alone.
    """
    if assessment.reasons == (lexicons.POLITICAL,) and form != "question":
        return True
    faint = any(
        one.layer == companion.LAYER or one.category == crisis.POSSIBLE
        for one in assessment.evidence
    )
    return not assessment.remove and (faint or assessment.action == "review")


class GuardCalls:
    """Asks a guard about the dialogues of a part, each distinct text once. Close it."""

    def __init__(self, guard: Guard, folder: Path) -> None:
        self._guard = guard
        self.reader = guard.reader
        self._calls = ModelCalls(guard.calls, folder, "safety", once=True, sampled_too=True)

    def read(
        self, dialogues: Iterable[Dialogue], assessed: Mapping[str, Assessment], part: str
    ) -> dict[str, GuardReading]:
        """Its readings by dialogue. Raises IncompleteError where calls failed after their retries."""
        reader = self.reader
        asked: list[tuple[Dialogue, list[Request]]] = []
        for dialogue in dialogues:
            if self._guard.reads(assessed[dialogue.id]):
                asked.append((dialogue, reader.requests(dialogue)))
        replies = self._calls.ask([request for _, requests in asked for request in requests], part)
        readings: dict[str, GuardReading] = {}
        for dialogue, requests in asked:
            own: dict[str, Reply] = {
                request.id: replies[request.id, request.sample] for request in requests
            }
            readings[dialogue.id] = reader.read(dialogue, own)
        return readings

    def close(self) -> None:
        """Release the model."""
        self._calls.close()


def apply_reading(
    dialogue: Dialogue, assessment: Assessment, guarded: GuardReading, reader: GuardReader
) -> tuple[Assessment, list[Evidence]]:
    """What a dialogue's assessment becomes by a guard's reading, and the evidence that this leaves open."""
    verdict = _verdict(guarded)
    unanswered = _unanswered(dialogue, assessment.evidence, guarded, reader)
    is_cleared = verdict is not None and verdict.safety == "safe"
    open_evidence = unanswered if is_cleared else list(assessment.evidence)
    if verdict is not None and is_undecided(assessment, reader.form):
        assessment = apply_verdict(assessment, verdict, unanswered)
    if not reader.last_only and not assessment.remove:
        assessment = apply_findings(dialogue, assessment, guarded.reading.findings)
    return assessment, open_evidence


def _verdict(guarded: GuardReading) -> Verdict | None:
    """The verdict of a form of its own; of the plain question whether it found nothing; None where findings decide."""
    if guarded.verdict is not None:
        return guarded.verdict
    if guarded.reading.unread:
        return Verdict("undecided")
    if any(finding.counts for finding in guarded.reading.findings):
        return None
    return Verdict("safe")


def _unanswered(
    dialogue: Dialogue, evidence: Sequence[Evidence], guarded: GuardReading, reader: GuardReader
) -> list[Evidence]:
    """The evidence that a guard's reading says nothing about: in texts that it has not read, or of other questions."""
    if reader.last_only:
        return [one for one in evidence if not _was_sent(dialogue, one)]
    unread = guarded.reading.unread
    left: list[Evidence] = []
    for one in evidence:
        is_unread = bool(unread) if one.turn < 0 else one.turn in unread
        is_asked = reader.form != "question" or one.category.partition(".")[0] in _ASKED
        if is_unread or not is_asked:
            left.append(one)
    return left


def _was_sent(dialogue: Dialogue, evidence: Evidence) -> bool:
    """Whether the request about the end of a dialogue holds all that evidence is about: its span, or its message."""
    texts = [turn.content for turn in dialogue.messages]
    first = len(texts) - len(guard_request(dialogue).messages)
    about: Collection[int] = range(len(texts)) if evidence.turn < 0 else (evidence.turn,)
    return all(at >= first and (evidence.end or len(texts[at])) <= LONGEST for at in about)
