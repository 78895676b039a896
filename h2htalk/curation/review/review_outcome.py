"""Decide from scores whether a candidate is accepted, revised, rejected or needs people. Arithmetic alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from h2htalk.curation.review.faireval import Calibration, EvidenceSample

Status = Literal["accept", "revise", "reject", "needs_people"]
# A criterion at this score or below rejects; with one below the next score a candidate cannot be accepted.
REJECTING = 1
ACCEPTABLE = 3
# In a crisis people decide on an answer whose safety is below this score.
SAFE_IN_CRISIS = 4


@dataclass(frozen=True, slots=True)
class Rubric:
    """A review: criterion -> 1 to 5, the evidence for each, the subtask that fits, what to change.

    An unscored review has no scores, and `unscored` says why.
    """

    scores: Mapping[str, int] = field(default_factory=dict)
    evidence: Mapping[str, str] = field(default_factory=dict)
    fitting_subtask: str = ""
    revision: str = ""
    verdict: str = ""
    unscored: str = ""

    @property
    def mean(self) -> float:
        """The mean of the criteria, 1 to 5; 0 where unscored."""
        return sum(self.scores.values()) / len(self.scores) if self.scores else 0.0

    def to_dict(self) -> dict[str, Any]:
        if self.unscored:
            return {"unscored": self.unscored}
        return {
            "scores": dict(self.scores),
            "evidence": dict(self.evidence),
            "fitting_subtask": self.fitting_subtask,
            "revision": self.revision,
            "verdict": self.verdict,
        }


@dataclass(frozen=True, slots=True)
class ComparedPair:
    """Two references of a candidate, by their places (from 0), and the result of their comparison."""

    first: int
    second: int
    samples: tuple[EvidenceSample, ...]
    calibration: Calibration


@dataclass(frozen=True, slots=True)
class ReviewDecision:
    """A candidate's status and every reason for it."""

    status: Status
    reasons: tuple[str, ...]


def choose_reference(pairs: Sequence[ComparedPair], references: int) -> int:
    """The place of the winner: by the share of won comparisons (a tie counts half), then by the mean score, then the
    first.

    An unscored comparison, or one whose orders conflict, is left to people and not counted. A reference without a
    counted comparison has won half.
    """
    wins: list[list[float]] = [[] for _ in range(references)]
    points: list[list[float]] = [[] for _ in range(references)]
    for pair in pairs:
        calibration = pair.calibration
        if not calibration.scored or calibration.conflict:
            continue
        share = {"win": 1.0, "tie": 0.5, "lose": 0.0}[calibration.verdict or "tie"]
        wins[pair.first].append(share)
        wins[pair.second].append(1 - share)
        points[pair.first].append(calibration.score_a or 0.0)
        points[pair.second].append(calibration.score_b or 0.0)

    def rank(at: int) -> tuple[float, float, int]:
        # Rounded: sums of the same scores in another order must be equal.
        return round(_mean(wins[at], 0.5), 9), round(_mean(points[at], 0.0), 9), -at

    return max(range(references), key=rank)


def _mean(values: Sequence[float], otherwise: float) -> float:
    return math.fsum(values) / len(values) if values else otherwise


def decide_review(
    rubric: Rubric, subtask: str, *, people: Sequence[str] = (), crisis: bool = False, accept: float = 4.0
) -> ReviewDecision:
    """The outcome of one candidate.

    In this order: people decide an unscored review and whatever is handed to them; a criterion at 1 rejects; people
        decide
    where the verdict contradicts the scores; a verdict of reject rejects; a candidate of another subtask is revised;
    one with a mean of `accept`, nothing below 3 and nothing to change is accepted; the others are revised. In a
    crisis people decide where safety is below 4, and instead of any rejection.

    Args:
        rubric: the review.
        subtask: of the candidate.
        people: reasons from comparisons, judge check and audit to hand it to people (`faireval.escalate`).
        crisis: whether the scenario is tagged as a person in crisis.
        accept: the least mean of the criteria, 1 to 5.

    Returns:
        The status and its reasons; for a rejection the first of the lowest criteria, or `verdict`.
    """
    if rubric.unscored:
        return ReviewDecision("needs_people", (f"unscored:{rubric.unscored}", *people))
    if people:
        return ReviewDecision("needs_people", tuple(people))
    if crisis and rubric.scores["safety"] < SAFE_IN_CRISIS:
        return ReviewDecision("needs_people", ("crisis:safety",))
    decision = _decide_by_scores(rubric, subtask, accept)
    if crisis and decision.status == "reject":
        return ReviewDecision("needs_people", ("crisis:rejected",))
    return decision


def _decide_by_scores(rubric: Rubric, subtask: str, accept: float) -> ReviewDecision:
    lowest = min(rubric.scores.values())
    if lowest <= REJECTING:
        return ReviewDecision("reject", (next(name for name, score in rubric.scores.items() if score == lowest),))
    if _contradicts(rubric, lowest):
        return ReviewDecision("needs_people", ("contradiction",))
    if rubric.verdict == "reject":
        return ReviewDecision("reject", ("verdict",))
    if rubric.fitting_subtask != subtask:
        return ReviewDecision("revise", (f"subtask:{rubric.fitting_subtask}",))
    if rubric.verdict == "accept" and lowest >= ACCEPTABLE and rubric.mean >= accept:
        if rubric.revision.strip():
            return ReviewDecision("revise", ("revision",))
        return ReviewDecision("accept", ())
    return ReviewDecision(
        "revise", tuple(name for name, score in rubric.scores.items() if score < accept) or ("verdict",)
    )


def _contradicts(rubric: Rubric, lowest: int) -> bool:
    """Whether a verdict contradicts its scores: a reject without a low score, or an accept with one."""
    if rubric.verdict == "reject":
        return lowest >= ACCEPTABLE
    return rubric.verdict == "accept" and lowest < ACCEPTABLE
