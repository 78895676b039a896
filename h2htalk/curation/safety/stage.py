"""The safety stage: every layer looks at a dialogue, one policy decides, a guard model may settle the undecided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from h2htalk.curation.model_calls.model_identity import model_identity
from h2htalk.curation.outcomes import Kept, Outcome, Outcomes, PartRule, Record, Rejected, each_dialogue
from h2htalk.curation.pipeline import Opener, Stage
from h2htalk.curation.safety import content_rules, crisis, lexicons, political
from h2htalk.curation.safety.evidence import Evidence
from h2htalk.curation.safety.guard_model import Guard, Verdict
from h2htalk.curation.safety.insults import OFFENSIVE, beside_insults, names_group, offence, report
from h2htalk.curation.safety.ngram_classifier import load
from h2htalk.curation.safety.policy import HARD, Assessment, Thresholds, decide, settle
from h2htalk.curation.settings import CurateSpec
from h2htalk.curation.workspace import Workspace
from h2htalk.data.dialogue import Dialogue, Turn
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.errors import DataError

__all__ = ["Assessment", "assess", "make_stage"]

VERSION = 1
# Where a dialogue is one message, from here on the classifier removes: where precision on COLD dev is still 0.94, and
# for English `high`, which has no set to choose by.
SINGLE = {"zh": 0.6}
# Characters of one message that the layers read: its start and its end. Nobody writes more by hand, and a message of
# megabytes must not cost a minute.
READ = 20_000


def assess(dialogue: Dialogue, terms: frozenset[str] = frozenset()) -> Assessment:
    """What becomes of a dialogue: kept, kept with tags, kept for a person's look, or removed.

    Args:
        dialogue: of any length; linear in its text.
        terms: politically sensitive terms of the user's own, folded (`political.read_terms`).

    Returns:
        The decision with its evidence; the same for the same dialogue, whatever else is assessed.
    """
    language = dialogue.language
    classifier = load(OFFENSIVE, language)
    low, high = classifier.low(), classifier.high()
    read = [replace(turn, content=_read(turn.content)) for turn in dialogue.messages]
    spoken = sum(turn.role == "user" for turn in read)
    seen: list[Evidence] = []
    offending = []
    for at, turn in enumerate(read):
        listed = lexicons.evidence(turn.content, language)
        # Of the rubbish that is taken out, nothing is said against anybody.
        score = offence(lexicons.without_everyday(turn.content, language), language)
        found = [*listed, political.find(turn.content, language, terms, turn.role == "user")]
        if score >= low:
            offending.append(at)
            found.append(Evidence("classifier", "offensive", score))
        if turn.role == "user":
            told = crisis.find(turn.content, language, spoken)
            if told is None and (rest := beside_insults(turn.content, language, listed, score >= low)):
                told = crisis.find_beside(rest, len(turn.content), language, spoken)
            found.append(told)
        seen += [one.of_turn(at) for one in found if one is not None]
    # What tells whom an insult is for matters only beside one.
    if offending:
        seen += _targets(read, offending, language)
    seen += content_rules.look(dialogue)
    return decide(dialogue, seen, Thresholds(low, high, SINGLE.get(language, high)))


def _targets(read: Sequence[Turn], offending: Sequence[int], language: Language) -> list[Evidence]:
    """What tells whom the insults of these turns are for: a group, or the seeker who reports them (in any turn)."""
    groups = [(at, names_group(read[at].content, language)) for at in offending]
    reports = [(at, report(turn.content, language)) for at, turn in enumerate(read) if turn.role == "user"]
    return [one.of_turn(at) for at, one in (*groups, *reports) if one is not None]


def _read(text: str) -> str:
    """A message as the layers read it: a giant one's start and end."""
    return text if len(text) <= READ else f"{text[: READ // 2]}\n{text[-READ // 2 :]}"


# --- The stage ---------------------------------------------------------------------------------------------------


def make_stage(spec: CurateSpec, workspace: Workspace, key: bytes) -> Stage:
    """The stage `safety` of a curation; `key` is not used: nothing of it is secret.

    Raises:
        ConfigError: the guard or the list of terms cannot be used.
    """
    settings = spec.safety
    for language in LANGUAGES:
        political.read_terms(settings.sensitive, language)
    made = {
        "guard": model_identity(settings.guard),
        "terms": sorted(political.read_terms(settings.sensitive, "zh")),
        "models": {
            language: [
                load(folder, language).manifest["texts_sha256"][:12]
                for folder in (OFFENSIVE, crisis.DATA, political.DATA)
            ]
            for language in LANGUAGES
        },
    }
    folder = str(workspace.stage("safety").path)
    arguments = (settings.guard, settings.sensitive, settings.max_cost, folder, spec.prices)
    return Stage("safety", VERSION, made, Opener(open_rule, arguments), alone=bool(settings.guard))


def open_rule(guard: str, sensitive: str, max_cost: float | None, folder: str, prices: str = "") -> PartRule:
    """The stage's rule: with a guard, of a part; without one, of a dialogue."""
    terms = {language: political.read_terms(sensitive, language) for language in LANGUAGES}
    if not guard:
        return each_dialogue(lambda dialogue: [outcome(dialogue, assess(dialogue, terms[dialogue.language]))])
    return _Guarded(Guard(guard, Path(folder), max_cost, prices), terms)


@dataclass(frozen=True, slots=True, eq=False)
class _Guarded:
    """The rule of a part with a guard."""

    guard: Guard
    terms: Mapping[Language, frozenset[str]]

    def __call__(self, records: Sequence[Record], part: str) -> Sequence[Outcomes]:
        read = [_dialogue(record) for record in records]
        found = {d.id: assess(d, self.terms[d.language]) for d in read if isinstance(d, Dialogue)}
        asked = [d for d in read if isinstance(d, Dialogue) and _undecided(found[d.id])]
        verdicts = self.guard.ask(asked, part)
        return [[_outcome_of(one, found, verdicts)] for one in read]

    def close(self) -> None:
        """Give back the guard."""
        self.guard.close()


def _dialogue(record: Record) -> Dialogue | Rejected:
    try:
        return Dialogue.from_dict(record)
    except DataError as error:
        return Rejected(str(record.get("id", "")), "unreadable", {"error": str(error)})


def _undecided(assessment: Assessment) -> bool:
    """Whether a guard is asked: what waits for a person, and what politics removed."""
    return assessment.action == "review" or assessment.reasons == ("political.sensitive",)


def _outcome_of(
    one: Dialogue | Rejected, found: dict[str, Assessment], verdicts: dict[str, Verdict]
) -> Outcome:
    if isinstance(one, Rejected):
        return one
    assessment, verdict = found[one.id], verdicts.get(one.id)
    if verdict is None:
        return outcome(one, assessment)
    return outcome(one, settle(assessment, verdict.safety, verdict.categories), verdict)


def outcome(dialogue: Dialogue, assessment: Assessment, verdict: Verdict | None = None) -> Outcome:
    """A kept dialogue with `metadata.safety`, or a rejection by its first reason with all the evidence.

    What is hard (an apparent minor in a sexual setting, a method) is rejected by id and reason only.
    """
    told: dict[str, Any] = assessment.to_dict()
    if verdict is not None:
        told["guard"] = {"safety": verdict.safety, "categories": list(verdict.categories)}
    if assessment.remove:
        hard = next((code for code in HARD if code in assessment.reasons), None)
        if hard is not None:
            return Rejected(dialogue.id, hard, {"reasons": told["reasons"]})
        return Rejected(dialogue.id, assessment.reasons[0], told, dialogue.to_dict())
    tags = _tags(assessment)
    noted = {"action": assessment.action, "tags": list(assessment.reasons), "risk": assessment.risk}
    kept = replace(dialogue, metadata={**dialogue.metadata, "safety": noted})
    return Kept(kept.to_dict(), tags, told if assessment.evidence else None)


def _tags(assessment: Assessment) -> tuple[str, ...]:
    """What the stage's summary counts: `review`, `crisis`, and each reason."""
    tags = ["review"] if assessment.action == "review" else []
    tags += ["crisis"] if any(code.startswith("crisis.") for code in assessment.reasons) else []
    return (*tags, *assessment.reasons)
