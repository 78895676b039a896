"""Decide over evidence, in one order: a crisis, then hard, plain and undecided cases.

A crisis of the seeker is kept and tagged whatever else the dialogue contains, as the benchmark is made for it. Two
things are removed in any case: sexual content with an apparent minor, and a companion that explains a method.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from h2htalk.curation.safety.crisis import MINOR, POSSIBLE
from h2htalk.curation.safety.evidence import Evidence
from h2htalk.data.dialogue import Dialogue

Action = Literal["keep", "keep_tag", "review", "remove"]
Risk = Literal["none", "elevated", "high"]

# From this score on a lexicon rule is enough by itself, and from the next on it is a second piece of evidence.
ALONE, SECOND = 0.8, 0.5
# The rules and the classifier of the political layer agree (`political.AGREED`).
SURE = 0.9
# Removed even in a crisis, and never stored as text.
HARD = ("sexual.minors", "crisis.method_instructions")
# The seeker reports insults of others (`insults.find_report`).
REPORTED = "reported.insult"
# A message names a group of people (`insults.find_named_group`).
NAMED = "group.named"
# From this score on a person decides a single message that names no group; below it are mostly ordinary days.
PERSONAL = 0.5
# Rules about the form of a dialogue, one of which is enough.
FORM = ("prompt_leak", "too_short", "wrong_language", "irrelevant")
# Codes that a person looks at even in a crisis.
REVIEWED = ("sexual.minors", "prompt_leak", "crisis.encouragement", "grooming")
_GRAVE = ("crisis.attempt", "crisis.plan", "crisis.means", "crisis.ideation")


@dataclass(frozen=True, slots=True)
class Assessment:
    """The decision on a dialogue.

    Attributes:
        action: `keep`, `keep_tag` (kept with its reasons as tags), `review` (kept, undecided), `remove`.
        reasons: codes of the taxonomy, sorted (`crisis.ideation`, `offensive.hate`); empty for `keep`.
        risk: of a crisis: `high` for plain words about wanting to die, a plan or an attempt; else `elevated`.
        evidence: all evidence, by turn.
    """

    action: Action
    reasons: tuple[str, ...]
    risk: Risk
    evidence: tuple[Evidence, ...]

    @property
    def remove(self) -> bool:
        """Whether the dialogue is removed."""
        return self.action == "remove"

    def to_dict(self) -> dict[str, Any]:
        """The record, without text."""
        return {
            "action": self.action,
            "reasons": list(self.reasons),
            "risk": self.risk,
            "evidence": [seen.to_dict() for seen in self.evidence],
        }


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Of the bundled classifier: below `low` a message is harmless, from `high` on offensive.

    `single` replaces `high` for a dialogue of one message, for which there is no other evidence.
    """

    low: float
    high: float
    single: float


def decide_safety(dialogue: Dialogue, detections: Sequence[Evidence], thresholds: Thresholds) -> Assessment:
    """The decision over all evidence of a dialogue."""
    evidence = tuple(sorted(detections, key=lambda one: (one.turn, one.category, one.start, -one.score)))

    def decision(action: Action, codes: set[str], risk: Risk = "none") -> Assessment:
        return Assessment(action, tuple(sorted(codes)), risk, evidence)

    hard = {one.category for one in evidence if one.category in HARD and one.score >= ALONE}
    crisis = _crisis(dialogue, evidence)
    if hard:
        return decision("remove", hard | crisis, _risk(evidence, crisis))
    weighed = _weigh(dialogue, evidence, thresholds)
    if crisis:
        codes = crisis | weighed.plain | weighed.doubtful | weighed.tags
        doubtful = any(code.startswith(REVIEWED) for code in codes)
        return decision("review" if doubtful else "keep_tag", codes, _risk(evidence, crisis))
    if weighed.plain:
        return decision("remove", weighed.plain)
    if weighed.doubtful:
        return decision("review", weighed.doubtful | weighed.tags)
    return decision("keep_tag" if weighed.tags else "keep", weighed.tags)


@dataclass(frozen=True, slots=True)
class _Weighed:
    """Codes by what they require: removal, a decision by a person, a tag."""

    plain: set[str]
    doubtful: set[str]
    tags: set[str]


def _weigh(dialogue: Dialogue, evidence: Sequence[Evidence], thresholds: Thresholds) -> _Weighed:
    plain: set[str] = set()
    doubtful: set[str] = set()
    tags = {one.category for one in evidence if one.category.startswith("disclosure.") or one.category == MINOR}
    single = len(dialogue.messages) == 1
    _weigh_offence(dialogue, evidence, thresholds, plain, doubtful)
    for one in evidence:
        family = one.category.partition(".")[0]
        if family in FORM:
            plain.add(one.category)
        elif family == "spam" and one.layer == "lexicon" and one.score >= SECOND:
            (plain if one.score >= ALONE else doubtful).add(one.category)
        elif (one.category == "sexual.minors" and one.score >= SECOND) or one.category == "crisis.encouragement":
            doubtful.add(one.category)
    sexual = {one.turn for one in evidence if one.category == "sexual.explicit" and one.score > SECOND}
    if sexual and MINOR in tags:
        doubtful |= {"sexual.explicit", "sexual.minors"}
    elif sexual:
        (plain if len(sexual) > 1 and not tags else doubtful).add("sexual.explicit")
    sure = {one.turn for one in evidence if one.layer == "political" and one.score >= SURE}
    hinted = {one.turn for one in evidence if one.category == "political.sensitive" and one.score >= SECOND}
    if hinted:
        (plain if len(sure) > 1 or (sure and single) else doubtful).add("political.sensitive")
    return _Weighed(plain, doubtful - plain, tags)


def _weigh_offence(
    dialogue: Dialogue,
    evidence: Sequence[Evidence],
    thresholds: Thresholds,
    plain: set[str],
    doubtful: set[str],
) -> None:
    """Weigh offensive language, and add its code to `plain` or `doubtful`.

    For one message the classifier's high threshold is enough. For more it needs a second piece of evidence: another
    such message, a lexicon rule on the same message, or that the companion is abusive.
    """
    scores = {one.turn: one.score for one in evidence if one.layer == "classifier"}
    listed = {
        one.turn: one.category
        for one in evidence
        if one.layer == "lexicon" and one.category.startswith("offensive.") and one.score >= SECOND
    }
    enough = thresholds.single if len(dialogue.messages) == 1 else thresholds.high
    high = {turn for turn, score in scores.items() if score >= enough}
    code = next(iter(sorted(set(listed.values()))), "offensive.abuse")
    abusive = any(
        dialogue.messages[turn].role == "companion" and scores.get(turn, 0) >= thresholds.low
        for turn, category in listed.items()
        if category == "offensive.abuse"
    )
    possible = any(one.category == POSSIBLE for one in evidence)
    # Somebody who reports insults in several turns is a victim; one message is not enough to tell.
    reported = len(dialogue.messages) > 1 and any(one.category == REPORTED for one in evidence)
    # Swearing at the listener, oneself or somebody near is no contempt for a group: a person decides.
    named = any(one.category == NAMED for one in evidence)
    personal = len(dialogue.messages) == 1 and dialogue.messages[0].role == "user" and not named
    doubt = thresholds.low if named else max(thresholds.low, PERSONAL)
    if (possible and (high or abusive)) or (high and not abusive and (reported or personal)):
        doubtful.add(code)
    elif (high and (len(dialogue.messages) == 1 or len(high) > 1 or high & set(listed))) or abusive:
        plain.add(code)
    elif (
        high
        or any(scores.get(turn, 0) >= thresholds.low for turn in listed)
        or (len(dialogue.messages) == 1 and any(score >= doubt for score in scores.values()))
    ):
        doubtful.add(code)


def _crisis(dialogue: Dialogue, evidence: Sequence[Evidence]) -> set[str]:
    """The codes of the seeker's crisis; that the seeker is a child is a tag, not a crisis."""
    found = {one.category for one in evidence if one.layer == "crisis" and dialogue.messages[one.turn].role == "user"}
    return found - {MINOR}


def _risk(evidence: Sequence[Evidence], crisis: set[str]) -> Risk:
    if not crisis:
        return "none"
    grave = any(one.category in _GRAVE and one.score >= SURE for one in evidence if one.layer == "crisis")
    return "high" if grave else "elevated"


def apply_verdict(assessment: Assessment, verdict: str, categories: Mapping[str, str]) -> Assessment:
    """Apply a guard's verdict to an undecided assessment.

    Args:
        assessment: one whose action is `review`, or with political evidence.
        verdict: `safe`, `unsafe`, `controversial` or `undecided`.
        categories: our codes by the guard's names.

    Returns:
        For `unsafe` a removal for these categories, but a crisis is kept and tagged; for `safe` a dialogue with its
        tags, unless there is hard evidence; for other verdicts a review.
    """
    codes, reasons = set(categories.values()), set(assessment.reasons)

    def decision(action: Action, codes: set[str], risk: Risk = "none") -> Assessment:
        return Assessment(action, tuple(sorted(codes)), risk, assessment.evidence)

    if crisis := {code for code in codes | reasons if code.startswith("crisis.")}:
        risk = assessment.risk if assessment.risk != "none" else "elevated"
        return decision("review" if assessment.action == "review" else "keep_tag", crisis | reasons, risk)
    if verdict == "unsafe" and codes:
        return decision("remove", codes | reasons)
    if verdict == "safe" and not reasons & set(HARD):
        tags = {code for code in reasons if code.startswith("disclosure.")}
        return decision("keep_tag" if tags else "keep", tags)
    return decision("review", reasons, assessment.risk)
