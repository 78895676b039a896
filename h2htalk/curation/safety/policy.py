"""Apply what a guard said to the decision that words and classifiers made on a dialogue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from h2htalk.curation.assessment import DOUBTS, HARD, Action, Assessment, Risk
from h2htalk.curation.reading.guards import Verdict
from h2htalk.curation.reading.question import MessageFinding
from h2htalk.data.scenario import Dialogue
from h2htalk.detect.safety.companion import EXPLICIT, HARM, LAYER
from h2htalk.detect.safety.crisis import MINOR, POSSIBLE, TAGS
from h2htalk.detect.safety.evidence import Evidence
from h2htalk.detect.safety.lexicons import MINORS

PERSONAL = "personal_data"  # that a guard found left
# The tags of the dangers that a guard found. Those of the words name sorts of a crisis; a reader names any danger.
DANGERS: Mapping[str, str] = {
    "own_now": "crisis.danger",
    "own_past": "crisis.past",
    "other_now": "crisis.third_party",
    "other_past": "crisis.third_party",
}
GRAVEST = 3  # the severity of harm by a companion that removes a dialogue


def apply_verdict(
    assessment: Assessment, verdict: Verdict, unread: Sequence[Evidence] = ()
) -> Assessment:
    """Apply a guard's verdict to an undecided assessment; `unread`: evidence in texts that the guard was not sent.

    `unsafe` removes for the guard's categories, but a crisis is kept and tagged; `safe` keeps a dialogue with its tags,
    unless there is hard or unread evidence; other verdicts are for review.
    """
    codes = set(verdict.categories.values())
    reasons = set(assessment.reasons)
    kept = assessment.explicit == "tag" and not (codes | reasons) & {MINOR, MINORS}
    tagged = {EXPLICIT} & (codes | reasons) if kept else set()
    only_tagged = bool(codes) and codes <= tagged
    codes = codes - tagged
    reasons = reasons - tagged
    tags = {code for code in reasons if code.startswith("disclosure.") or code == MINOR}

    def decision(action: Action, codes: set[str], risk: Risk = "none") -> Assessment:
        return replace(assessment, action=action, reasons=tuple(sorted(codes | tagged)), risk=risk)

    if crisis := {code for code in codes | reasons if code.startswith(TAGS)}:
        risk = assessment.risk if assessment.risk != "none" else "elevated"
        harm = any(one.layer == LAYER for one in assessment.evidence)
        doubted = verdict.safety == "unsafe" and not only_tagged and harm
        return decision(
            "review" if doubted or assessment.action == "review" else "keep_tag",
            crisis | reasons,
            risk,
        )
    if verdict.safety == "unsafe" and codes:
        in_doubt = any(one.category in DOUBTS for one in assessment.evidence)
        in_doubt |= MINOR in reasons and not any(
            one.layer == LAYER for one in assessment.evidence
        )  # a report
        return decision("review" if in_doubt else "remove", codes | reasons)
    if only_tagged and reasons == tags:
        return decision("keep_tag", tags)
    open_families = {*HARD, *(one.category.partition(".")[0] for one in unread)}
    if verdict.safety == "safe" and open_families.isdisjoint(
        part for code in reasons - tags for part in (code, code.partition(".")[0])
    ):
        return decision("keep_tag" if tags | tagged else "keep", tags)
    return decision("review", reasons, assessment.risk)


def apply_findings(
    dialogue: Dialogue, assessment: Assessment, findings: Sequence[MessageFinding]
) -> Assessment:
    """Apply what a guard found at the messages of a dialogue that is kept.

    A danger and a user under 18 are tags. Harm by the companion, explicit content (`Assessment.explicit`), and personal
    data are for review; the gravest harm and the companion's explicit content remove, but not where there may be a
    crisis. Explicit content by the companion to somebody under 18 removes in any case. What is in doubt is for review:
    harm, and a danger, which is a possible crisis.
    """
    codes = set(assessment.reasons) | _tags_of(findings)
    is_minor = MINOR in codes
    hard: set[str] = set()
    plain: set[str] = set()
    doubtful: set[str] = set()
    for finding in findings:
        by_companion = dialogue.messages[finding.turn].role == "companion"
        is_sure = by_companion and not finding.unsure
        if finding.harm_in_doubt:
            doubtful.add(HARM)
        elif finding.harmful:
            (plain if is_sure and finding.severity >= GRAVEST else doubtful).add(HARM)
        if finding.explicit and is_minor:
            doubtful |= {EXPLICIT, MINORS}
            if is_sure:
                hard.add(MINORS)
        elif finding.explicit and assessment.explicit == "tag":
            codes.add(EXPLICIT)
        elif finding.explicit:
            (plain if is_sure else doubtful).add(EXPLICIT)
        if finding.danger_in_doubt:
            doubtful.add(POSSIBLE)
        if finding.personal_data:
            doubtful.add(PERSONAL)
    reasons = codes | plain | doubtful
    may_be_crisis = any(code.startswith(TAGS) for code in reasons)
    may_be_crisis |= any(one.category in DOUBTS for one in assessment.evidence)
    action = assessment.action
    if hard or (plain and not may_be_crisis):
        action = "remove"
    elif plain or doubtful:
        action = "review"
    elif reasons and action == "keep":
        action = "keep_tag"
    risk = _risk_of(assessment.risk, findings)
    return replace(assessment, action=action, reasons=tuple(sorted(reasons)), risk=risk)


def _tags_of(findings: Sequence[MessageFinding]) -> set[str]:
    """The tags of what a guard found: whose danger and when, and that the user is under 18."""
    tags = {DANGERS[finding.danger] for finding in findings if finding.danger in DANGERS}
    if any(finding.under_18 for finding in findings):
        tags.add(MINOR)
    return tags


def _risk_of(known: Risk, findings: Sequence[MessageFinding]) -> Risk:
    """The risk by what a guard found: high for a danger of the user's now that the words or another message confirm."""
    present = [
        finding for finding in findings if finding.danger == "own_now" and not finding.unsure
    ]
    if known == "high" or (present and (known != "none" or len(present) > 1)):
        return "high"
    may_be = any(finding.danger in DANGERS or finding.danger_in_doubt for finding in findings)
    return "elevated" if may_be else known
