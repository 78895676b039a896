"""The records of a candidate's review: a line of numbers, and the `review` of a kept candidate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from h2htalk.curation.candidates import Candidate
from h2htalk.curation.review.faireval import EvidenceSample, calibrate
from h2htalk.curation.review.review_outcome import ComparedPair, ReviewDecision, Rubric
from h2htalk.curation.review.reviewer import RubricReply
from h2htalk.data.responses import Failure


@dataclass(frozen=True, slots=True)
class Reviewed:
    """A candidate's comparisons and review, as numbers.

    `margin`: of ties, with which the comparisons were read; `not_compared`: the judge check refused the reviewer.
    """

    id: str
    pairs: tuple[ComparedPair, ...]
    chosen: int
    rubric: Rubric
    margin: float
    not_compared: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The replies, without what follows from them by arithmetic."""
        return {
            "id": self.id,
            **({"not_compared": True} if self.not_compared else {}),
            "chosen": self.chosen,
            "rubric": self.rubric.to_dict(),
            "pairs": [{"first": pair.first, "second": pair.second, "samples": _samples(pair)} for pair in self.pairs],
        }

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], margin: float) -> Reviewed:
        """Read `to_dict`; `margin` is the setting with which it was written."""
        pairs = []
        for pair in raw["pairs"]:
            samples = tuple(EvidenceSample(*sample) for sample in pair["samples"])
            pairs.append(ComparedPair(pair["first"], pair["second"], samples, calibrate(samples, margin=margin)))
        rubric, not_compared = Rubric(**raw["rubric"]), raw.get("not_compared", False)
        return cls(raw["id"], tuple(pairs), raw["chosen"], rubric, margin, not_compared)


def _samples(pair: ComparedPair) -> list[list[Any]]:
    return [[sample.order, sample.score_a, sample.score_b, sample.status] for sample in pair.samples]


def rubric_of(read: RubricReply | Failure) -> Rubric:
    """The review in a reply, or an unscored one."""
    if isinstance(read, Failure):
        return Rubric(unscored=read.reason)
    return Rubric(read.scores(), read.evidence(), read.fitting_subtask, read.revision, read.verdict)


def review_details(reviewed: Reviewed, decision: ReviewDecision) -> dict[str, Any]:
    """The `review` of a kept candidate: all numbers that another margin or share would need."""
    return {
        "status": decision.status,
        "reasons": list(decision.reasons),
        "rubric": reviewed.rubric.to_dict(),
        "chosen": reviewed.chosen,
        "margin": reviewed.margin,
        "pairs": [_pair_details(pair) for pair in reviewed.pairs],
    }


def _pair_details(pair: ComparedPair) -> dict[str, Any]:
    calibration = pair.calibration
    return {
        "first": pair.first,
        "second": pair.second,
        "status": calibration.status,
        "verdict": calibration.verdict,  # of the first of the two
        "score_first": calibration.score_a,
        "score_second": calibration.score_b,
        "bpde": None if calibration.bpde is None else round(calibration.bpde, 6),
        "conflict": calibration.conflict,
        "samples": _samples(pair),
    }


def with_reference_first(candidate: Candidate, chosen: int, review: Mapping[str, Any]) -> Candidate:
    """The candidate with the winning reference as its scenario's; the others follow in their order."""
    references = (
        candidate.references[chosen],
        *candidate.references[:chosen],
        *candidate.references[chosen + 1 :],
    )
    scenario = replace(candidate.scenario, references=(references[0].text,))
    return Candidate(scenario, references, review)
