"""A candidate's review as it is stored and told: numbers in a line, and what a kept record says of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from h2htalk.curation.candidates import Candidate
from h2htalk.curation.review.faireval import EvidenceSample, calibrate
from h2htalk.curation.review.review_outcome import Decision, Pair, Rubric
from h2htalk.curation.review.reviewer import RubricReply
from h2htalk.data.responses import Failure


@dataclass(frozen=True, slots=True)
class Reviewed:
    """A candidate's comparisons and review, as numbers.

    `margin`: of ties, with which the comparisons were read; `gated`: not compared, as the gate refused the reviewer.
    """

    id: str
    pairs: tuple[Pair, ...]
    chosen: int
    rubric: Rubric
    margin: float
    gated: bool = False

    def to_dict(self) -> dict[str, Any]:
        """What was answered, without what follows from it by arithmetic."""
        return {
            "id": self.id,
            **({"gated": True} if self.gated else {}),
            "chosen": self.chosen,
            "rubric": self.rubric.to_dict(),
            "pairs": [
                {"first": pair.first, "second": pair.second, "samples": _samples(pair)} for pair in self.pairs
            ],
        }

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], margin: float) -> Reviewed:
        """Read `to_dict`; `margin` is the setting under which it was written."""
        pairs = []
        for pair in raw["pairs"]:
            samples = tuple(EvidenceSample(*sample) for sample in pair["samples"])
            pairs.append(Pair(pair["first"], pair["second"], samples, calibrate(samples, margin=margin)))
        rubric = Rubric.from_dict(raw["rubric"])
        return cls(raw["id"], tuple(pairs), raw["chosen"], rubric, margin, raw.get("gated", False))


def _samples(pair: Pair) -> list[list[Any]]:
    return [[sample.order, sample.score_a, sample.score_b, sample.status] for sample in pair.samples]


def rubric_of(read: RubricReply | Failure) -> Rubric:
    """The review that a reply holds, or an unscored one."""
    if isinstance(read, Failure):
        return Rubric(unscored=read.reason)
    return Rubric(read.scores(), read.evidence(), read.fitting_subtask, read.revision, read.verdict)


def told(reviewed: Reviewed, decision: Decision) -> dict[str, Any]:
    """What a kept record says of its review: every number from which another margin or cut could be tried."""
    return {
        "status": decision.status,
        "reasons": list(decision.reasons),
        "rubric": reviewed.rubric.to_dict(),
        "chosen": reviewed.chosen,
        "margin": reviewed.margin,
        "pairs": [_told_pair(pair) for pair in reviewed.pairs],
    }


def _told_pair(pair: Pair) -> dict[str, Any]:
    found = pair.calibration
    return {
        "first": pair.first,
        "second": pair.second,
        "status": found.status,
        "verdict": found.verdict,  # of the first of the two
        "score_first": found.score_a,
        "score_second": found.score_b,
        "bpde": None if found.bpde is None else round(found.bpde, 6),
        "conflict": found.conflict,
        "samples": _samples(pair),
    }


def with_reference_first(candidate: Candidate, chosen: int, review: Mapping[str, Any]) -> Candidate:
    """The candidate with the reference that won as its scenario's own; the others follow in their order."""
    references = (
        candidate.references[chosen],
        *candidate.references[:chosen],
        *candidate.references[chosen + 1 :],
    )
    scenario = replace(candidate.scenario, reference=references[0].text)
    return Candidate(scenario, references, review)
