"""From scores to accept, revise, reject or *needs people*: what becomes of a candidate. Rules and arithmetic alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from h2htalk.curation.review.faireval import Calibration, EvidenceSample

Status = Literal["accept", "revise", "reject", "needs_people"]
# A criterion at this score or below rejects; below the next one it cannot be accepted.
REJECTING = 1
ACCEPTABLE = 3
# Of somebody in crisis: an answer whose safety is below this is for people to judge, whatever else it scored.
SAFE_IN_CRISIS = 4


@dataclass(frozen=True, slots=True)
class Rubric:
    """A review as numbers: criterion -> 1 to 5, the evidence for each, the task that fits, what to change.

    An unscored one has no scores, and `unscored` says why.
    """

    scores: Mapping[str, int] = field(default_factory=dict)
    evidence: Mapping[str, str] = field(default_factory=dict)
    fitting_subtask: str = ""
    revision: str = ""
    verdict: str = ""
    unscored: str = ""

    @property
    def mean(self) -> float:
        """Of the criteria, 1 to 5; 0 where unscored."""
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

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Rubric:
        return cls(**raw)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two references of a candidate, by their places (from 0), and what their comparison came to."""

    first: int
    second: int
    samples: tuple[EvidenceSample, ...]
    calibration: Calibration


@dataclass(frozen=True, slots=True)
class Decision:
    """A candidate's status and every reason for it."""

    status: Status
    reasons: tuple[str, ...]


def choose_reference(pairs: Sequence[Pair], references: int) -> int:
    """Which reference won: the largest share of its comparisons (a tie counts half), then the highest mean score, then
    the first.

    A comparison that is unscored or in which the orders conflict says nothing; people decide it. A reference of which
    nothing is said has won half.
    """
    wins: list[list[float]] = [[] for _ in range(references)]
    points: list[list[float]] = [[] for _ in range(references)]
    for pair in pairs:
        found = pair.calibration
        if not found.scored or found.conflict:
            continue
        share = {"win": 1.0, "tie": 0.5, "lose": 0.0}[found.verdict or "tie"]
        wins[pair.first].append(share)
        wins[pair.second].append(1 - share)
        points[pair.first].append(found.score_a or 0.0)
        points[pair.second].append(found.score_b or 0.0)

    def rank(at: int) -> tuple[float, float, int]:
        # Rounded: sums of the same scores in another order must not tell two references apart.
        return round(_mean(wins[at], 0.5), 9), round(_mean(points[at], 0.0), 9), -at

    return max(range(references), key=rank)


def _mean(values: Sequence[float], otherwise: float) -> float:
    return math.fsum(values) / len(values) if values else otherwise


def decide(
    rubric: Rubric, subtask: str, *, people: Sequence[str] = (), crisis: bool = False, accept: float = 4.0
) -> Decision:
    """The outcome of one candidate.

    In this order: an unscored review, or anything that hands the candidate to people, is for people; then a criterion
    at 1 rejects; a verdict that its own scores contradict is for people; a verdict of reject rejects; another subtask
    that fits better is to be revised; a mean of `accept` with nothing below 3 and nothing to change is accepted; the
    rest is to be revised. Of somebody in crisis people decide where safety is below 4, and whatever would be rejected.

    Args:
        rubric: the review.
        subtask: what the candidate claims to be.
        people: why comparisons or the audit hand it to people (`faireval.hand_off`).
        crisis: whether the scenario is tagged as a person in crisis.
        accept: the least mean of the criteria, 1 to 5.

    Returns:
        The status and its reasons; of a rejection the first of the lowest criteria, or `verdict`.
    """
    if rubric.unscored:
        return Decision("needs_people", (f"unscored:{rubric.unscored}", *people))
    if people:
        return Decision("needs_people", tuple(people))
    if crisis and rubric.scores["safety"] < SAFE_IN_CRISIS:
        return Decision("needs_people", ("crisis:safety",))
    found = _by_scores(rubric, subtask, accept)
    # Nobody in crisis is sent away by a machine alone, whichever rule it was.
    return Decision("needs_people", ("crisis:rejected",)) if crisis and found.status == "reject" else found


def _by_scores(rubric: Rubric, subtask: str, accept: float) -> Decision:
    lowest = min(rubric.scores.values())
    if lowest <= REJECTING:
        return Decision("reject", (next(name for name, score in rubric.scores.items() if score == lowest),))
    if _contradicts(rubric, lowest):
        return Decision("needs_people", ("contradiction",))
    if rubric.verdict == "reject":
        return Decision("reject", ("verdict",))
    if rubric.fitting_subtask != subtask:
        return Decision("revise", (f"subtask:{rubric.fitting_subtask}",))
    if rubric.verdict == "accept" and lowest >= ACCEPTABLE and rubric.mean >= accept:
        if rubric.revision.strip():
            return Decision("revise", ("revision",))
        return Decision("accept", ())
    return Decision(
        "revise", tuple(name for name, score in rubric.scores.items() if score < accept) or ("verdict",)
    )


def _contradicts(rubric: Rubric, lowest: int) -> bool:
    """A verdict against its own scores: rejected with nothing wrong, or accepted with something broken."""
    if rubric.verdict == "reject":
        return lowest >= ACCEPTABLE
    return rubric.verdict == "accept" and lowest < ACCEPTABLE
