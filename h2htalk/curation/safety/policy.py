"""From evidence to a decision: one table, one order. Crisis first; then what is hard, what is plain, what is undecided.

A crisis told by the seeker is kept and tagged whatever else stands in the dialogue: it is what the benchmark is for.
Two things it cannot save: sexual content with an apparent minor, and a companion that explains a method.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from h2htalk.curation.safety.evidence import Evidence
from h2htalk.data.dialogue import Dialogue

Action = Literal["keep", "keep_tag", "review", "remove"]
Risk = Literal["none", "elevated", "high"]

# From here on a lexicon's rule may stand alone; below it is a note (`safety_lexicons`).
ALONE = 0.8
# From here on a lexicon's rule is a second piece of evidence.
SECOND = 0.5
# Two rules of the political layer agree (`political.AGREED`).
SURE = 0.9
# Never saved by the veto, and never kept as text.
HARD = ("sexual.minors", "crisis.method_instructions")
# The seeker tells of insults that others spoke (`detached.report`).
REPORTED = "reported.insult"
# A message names a group of people (`detached.names_group`).
NAMED = "group.named"
# A single message that names no group is for a person from this score on: under it are mostly ordinary days.
PERSONAL = 0.5
# Rules about the form of a dialogue: one of them is enough.
FORM = ("prompt_leak", "too_short", "wrong_language", "irrelevant")
_GRAVE = ("crisis.attempt", "crisis.plan", "crisis.ideation")


@dataclass(frozen=True, slots=True)
class Assessment:
    """What becomes of a dialogue, and why.

    Attributes:
        action: `keep`, `keep_tag` (kept with its reasons as tags), `review` (kept, undecided), `remove`.
        remove: whether the action is `remove`.
        reasons: codes of the taxonomy, sorted (`crisis.ideation`, `offensive.hate`); empty for `keep`.
        risk: of a crisis: `high` where plain words tell of wanting to die, a plan or an attempt; else `elevated`.
        evidence: everything that was seen, by turn: of the reasons and beside them.
    """

    action: Action
    remove: bool
    reasons: tuple[str, ...]
    risk: Risk
    evidence: tuple[Evidence, ...]

    def to_dict(self) -> dict[str, Any]:
        """JSON for a record: places and scores, no text."""
        return {
            "action": self.action,
            "reasons": list(self.reasons),
            "risk": self.risk,
            "evidence": [seen.to_dict() for seen in self.evidence],
        }


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Of the bundled classifier: below `low` a message is harmless, from `high` on offensive.

    `single` stands for `high` where a dialogue is one message, which nothing else can speak for or against.
    """

    low: float
    high: float
    single: float


def decide(dialogue: Dialogue, seen: Sequence[Evidence], thresholds: Thresholds) -> Assessment:
    """The decision over all evidence of a dialogue."""
    evidence = tuple(sorted(seen, key=lambda one: (one.turn, one.category, one.start, -one.score)))
    hard = {one.category for one in evidence if one.category in HARD and one.score >= ALONE}
    crisis = _crisis(dialogue, evidence)
    if hard:
        return Assessment("remove", True, _codes(hard | crisis), _risk(evidence, crisis), evidence)
    weighed = _weigh(dialogue, evidence, thresholds)
    if crisis:
        doubtful = {
            code
            for code in weighed.doubtful | weighed.plain
            if code.startswith(("sexual.minors", "prompt_leak"))
        }
        doubtful |= {one.category for one in evidence if one.category == "crisis.encouragement"}
        action: Action = "review" if doubtful else "keep_tag"
        return Assessment(
            action, False, _codes(crisis | doubtful | weighed.tags), _risk(evidence, crisis), evidence
        )
    if weighed.plain:
        return Assessment("remove", True, _codes(weighed.plain), "none", evidence)
    if weighed.doubtful:
        return Assessment("review", False, _codes(weighed.doubtful | weighed.tags), "none", evidence)
    if weighed.tags:
        return Assessment("keep_tag", False, _codes(weighed.tags), "none", evidence)
    return Assessment("keep", False, (), "none", evidence)


@dataclass(frozen=True, slots=True)
class _Weighed:
    """Codes by what they ask for: removal, a person's look, a tag."""

    plain: set[str]
    doubtful: set[str]
    tags: set[str]


def _weigh(dialogue: Dialogue, evidence: Sequence[Evidence], thresholds: Thresholds) -> _Weighed:
    plain: set[str] = set()
    doubtful: set[str] = set()
    tags = {one.category for one in evidence if one.category.startswith("disclosure.")}
    single = len(dialogue.messages) == 1
    _weigh_offence(dialogue, evidence, thresholds, plain, doubtful)
    for one in evidence:
        family = one.category.partition(".")[0]
        if family in FORM:
            plain.add(one.category)
        elif family == "spam" and one.layer == "lexicon" and one.score >= SECOND:
            (plain if one.score >= ALONE else doubtful).add(one.category)
        elif (
            one.category == "sexual.minors" and one.score >= SECOND
        ) or one.category == "crisis.encouragement":
            doubtful.add(one.category)
    sexual = {one.turn for one in evidence if one.category == "sexual.explicit" and one.score > SECOND}
    if sexual:
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
    """On one message the classifier's high threshold is enough; on more it needs a second piece of evidence: another
    such message, a lexicon's rule on the same one, or that it is the companion who abuses."""
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
    possible = any(one.category == "crisis.possible" for one in evidence)
    # Who tells in several turns what was said to them is a victim; one message alone says too little of that.
    reported = len(dialogue.messages) > 1 and any(one.category == REPORTED for one in evidence)
    # Swearing at the listener, at oneself or at somebody near is no contempt for a group: a person looks at it.
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
    """What the seeker tells of a crisis."""
    return {
        one.category
        for one in evidence
        if one.layer == "crisis" and dialogue.messages[one.turn].role == "user"
    }


def _risk(evidence: Sequence[Evidence], crisis: set[str]) -> Risk:
    if not crisis:
        return "none"
    grave = any(one.category in _GRAVE and one.score >= SURE for one in evidence if one.layer == "crisis")
    return "high" if grave else "elevated"


def _codes(codes: set[str]) -> tuple[str, ...]:
    return tuple(sorted(codes))


def settle(assessment: Assessment, verdict: str, categories: Mapping[str, str]) -> Assessment:
    """What a guard's verdict makes of an undecided assessment.

    Args:
        assessment: one whose action is `review`, or that holds political evidence.
        verdict: `safe`, `unsafe`, `controversial` or `undecided`.
        categories: our codes by the guard's names.

    Returns:
        Unsafe: removed for its categories; but a crisis is kept and tagged. Controversial and undecided: review. Safe:
        kept with its tags, unless something hard was seen.
    """
    codes = set(categories.values())
    told = {code for code in codes | set(assessment.reasons) if code.startswith("crisis.")}
    if told:
        action: Action = "review" if assessment.action == "review" else "keep_tag"
        risk = assessment.risk if assessment.risk != "none" else "elevated"
        return Assessment(action, False, _codes(told | set(assessment.reasons)), risk, assessment.evidence)
    if verdict == "unsafe" and codes:
        return Assessment(
            "remove", True, _codes(codes | set(assessment.reasons)), "none", assessment.evidence
        )
    if verdict == "safe" and not any(code in HARD for code in assessment.reasons):
        tags = {code for code in assessment.reasons if code.startswith("disclosure.")}
        return Assessment("keep_tag" if tags else "keep", False, _codes(tags), "none", assessment.evidence)
    return Assessment("review", False, assessment.reasons, assessment.risk, assessment.evidence)
