"""FairEval: compare two answers k times in both orders, choose what people decide, and check a judge on gold items.

Wang et al., *Large Language Models are not Fair Evaluators* (arXiv 2305.17926, ACL 2024). This module is arithmetic
alone and imports no client.

S_R^i is the score of answer R in sample i of the order (a, b), and S'_R^i the one of the order (b, a), mapped back:

    CS_R = ( mean_i S_R^i + mean_i S'_R^i ) / 2                      multiple evidence, balanced positions (MEC, BPC)
    BPDE = - sum over er in {win, tie, lose} of p_er ln p_er         balanced position diversity entropy, in nats
    p_er = share of the 2k samples whose own verdict is er

The paper averages over all samples. Here each order is averaged first, which is the same where no sample is unscored,
and fair to both positions where one is.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import fmean
from typing import Literal

from h2htalk.distributions import wilson_interval

Verdict = Literal["win", "tie", "lose"]  # of the first of two answers
Order = Literal["ab", "ba"]
ORDERS: tuple[Order, ...] = ("ab", "ba")
HIGH_ENTROPY = 0.65  # from it on people decide in any case: of six verdicts at least two differ from the others


@dataclass(frozen=True, slots=True)
class EvidenceSample:
    """One comparison, whose scores are mapped back to the answers; without both it is unscored."""

    order: Order  # which answer came first
    score_a: float | None
    score_b: float | None
    status: str = "scored"  # or why not: `malformed_output`, `refusal`

    @property
    def scored(self) -> bool:
        return self.score_a is not None and self.score_b is not None


@dataclass(frozen=True, slots=True)
class Calibration:
    """The result of the samples of one pair; verdict, scores and entropy are None where it is unscored."""

    verdict: Verdict | None  # of answer a against b
    score_a: float | None  # CS of each
    score_b: float | None
    bpde: float | None  # in nats, 0 to ln 3
    conflict: bool  # whether the verdicts of the two orders differ
    status: str = "scored"  # or why not
    prefers: Literal["first", "second"] | None = (
        None  # in a conflict the position that wins in both orders
    )

    @property
    def scored(self) -> bool:
        return self.verdict is not None

    @property
    def gap(self) -> float:
        """|CS_a - CS_b|; 0 where unscored."""
        return abs((self.score_a or 0.0) - (self.score_b or 0.0))


def calibrate(samples: Sequence[EvidenceSample], *, margin: float = 0.0) -> Calibration:
    """The calibrated comparison of one pair of answers (MEC, BPC, BPDE), whatever the order of its samples.

    Exchanging the two answers mirrors the verdict and the scores and changes nothing else. `margin`: scores that differ
    by at most this, compared exactly, are a tie. Each order needs two scored samples, or one where there is one.
    """
    exact = Fraction(str(margin))
    means: dict[Order, tuple[Fraction, Fraction]] = {}
    for order in ORDERS:
        asked = [sample for sample in samples if sample.order == order]
        scored = [_exact(sample) for sample in asked if sample.scored]
        if scored and len(scored) >= min(2, len(asked)):
            # Exact means of decimal scores do not depend on their order, unlike those of floats.
            mean_a, mean_b = (
                sum(side, Fraction(0)) / len(scored) for side in zip(*scored, strict=True)
            )
            means[order] = mean_a, mean_b
    if len(means) < len(ORDERS):
        reasons = Counter(sample.status for sample in samples if not sample.scored)
        why = (
            min(reasons, key=lambda name: (-reasons[name], name)) if reasons else "too few samples"
        )
        return Calibration(None, None, None, None, False, f"unscored: {why}")
    mean_a, mean_b = (sum(side, Fraction(0)) / 2 for side in zip(*means.values(), strict=True))
    ab, ba = (_verdict(*means[order], exact) for order in ORDERS)
    return Calibration(
        verdict=_verdict(mean_a, mean_b, exact),
        score_a=float(mean_a),
        score_b=float(mean_b),
        bpde=entropy(_verdict(*_exact(sample), exact) for sample in samples if sample.scored),
        conflict=ab != ba,
        prefers="first"
        if (ab, ba) == ("win", "lose")
        else "second"
        if (ab, ba) == ("lose", "win")
        else None,
    )


def _exact(sample: EvidenceSample) -> tuple[Fraction, Fraction]:
    return Fraction(str(sample.score_a)), Fraction(str(sample.score_b))


def _verdict(a: Fraction, b: Fraction, margin: Fraction) -> Verdict:
    if abs(a - b) <= margin:
        return "tie"
    return "win" if a > b else "lose"


def entropy(verdicts: Iterable[Verdict]) -> float:
    """BPDE of verdicts, in nats: 0 where all agree, ln 3 where each is a third; of six it has one of seven values."""
    counts = Counter(verdicts)
    total = sum(counts.values())
    shares = sorted(count / total for count in counts.values())
    return abs(sum(-share * math.log(share) for share in shares))


@dataclass(frozen=True, slots=True)
class ComparedPair:
    """Two references of a candidate, by their places (from 0), and the result of their comparison."""

    first: int
    second: int
    samples: tuple[EvidenceSample, ...]
    calibration: Calibration


def choose_reference(pairs: Sequence[ComparedPair], references: int) -> int:
    """The place of the winner: by share of won comparisons (a tie counts half), then by mean score, then the first.

    An unscored comparison, or one whose orders conflict, is not counted; a reference without any has won half.
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
        return round(fmean(wins[at] or [0.5]), 9), round(fmean(points[at] or [0.0]), 9), -at

    return max(range(references), key=rank)


def escalate(
    items: Mapping[str, Calibration], *, share: float = 0.0, high: float = HIGH_ENTROPY
) -> dict[str, tuple[str, ...]]:
    """The items (calibrations by id) that people decide, with the reasons: `unscored`, `conflict`, `entropy`.

    `entropy`: the `share` (0 to 1, rounded to the nearest number) with the highest BPDE, of equals the one with the
    smaller |CS_a - CS_b|, then by id, and all from `high` on; never an item whose samples all agree.
    """
    divided = [name for name, item in items.items() if item.scored and (item.bpde or 0.0) > 0]
    ranked = sorted(divided, key=lambda name: (-(items[name].bpde or 0.0), items[name].gap, name))
    entropic = set(ranked[: _number(share, len(items))])
    reasons: dict[str, tuple[str, ...]] = {}
    for name, item in sorted(items.items()):
        in_doubt = name in entropic or (item.bpde or 0.0) >= high
        holding = {"unscored": not item.scored, "conflict": item.conflict, "entropy": in_doubt}
        if why := tuple(reason for reason, holds in holding.items() if holds):
            reasons[name] = why
    return reasons


def audit_slice(ids: Iterable[str], share: float, seed: int = 0) -> list[str]:
    """A random share of ids, rounded to the nearest number, that people check although the judge is sure."""
    ranked = sorted(ids, key=lambda name: hashlib.sha256(f"{seed}\0{name}".encode()).digest())
    return sorted(ranked[: _number(share, len(ranked))])


def _number(share: float, of: int) -> int:
    return min(of, math.floor(Fraction(str(share)) * of + Fraction(1, 2)))


@dataclass(frozen=True, slots=True)
class JudgeCheck:
    """A judge on gold items: its accuracy (a tie counts half) with a 95 % interval, and why it is not accepted."""

    accuracy: float
    low: float
    high: float
    n: int
    accepted: bool
    reason: str = ""


def check_judge(verdicts: Mapping[str, Verdict | None], gold: Mapping[str, Verdict]) -> JudgeCheck:
    """Whether a judge's verdicts may be used: its accuracy on gold items must be shown to be above chance (0.5), or
    above that of calling everything a tie, where gold has ties. An unscored verdict (None) counts half.

    Raises ValueError where there is no gold item, or one without a verdict.
    """
    if not gold or gold.keys() - verdicts.keys():
        raise ValueError("there must be a gold item, and every gold item needs the judge's verdict")
    value = accuracy([(verdicts[name], truth) for name, truth in gold.items()])
    least = max(0.5, accuracy([("tie", truth) for truth in gold.values()]))
    low, high = wilson_interval(value, len(gold))
    reason = ""
    if value <= least:
        reason = f"at or below chance ({value:.3f} of {least:.3g})"
    elif low <= least:
        reason = f"not shown to be above chance ({low:.3f} to {high:.3f}); use more gold items than {len(gold)}"
    return JudgeCheck(value, low, high, len(gold), not reason, reason)


def accuracy(pairs: Sequence[tuple[Verdict | None, Verdict]]) -> float:
    """Share of `(verdict, gold)` that agree, 0 to 1; a tie where gold has none, the reverse, and None count half."""
    half = sum(verdict is None or (verdict == "tie") != (gold == "tie") for verdict, gold in pairs)
    return (sum(verdict == gold for verdict, gold in pairs) + half / 2) / len(pairs)
