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
from typing import Literal

from h2htalk.distributions import wilson_interval

Verdict = Literal["win", "tie", "lose"]  # of the first of two answers
Order = Literal["ab", "ba"]
ORDERS: tuple[Order, ...] = ("ab", "ba")
# From this entropy on people decide in any case: of six verdicts at least two differ from the others.
HIGH_ENTROPY = 0.65
NO_SCORE = "no finite score"


@dataclass(frozen=True, slots=True)
class EvidenceSample:
    """One comparison. `order`: which answer came first, `ab` or `ba`; the scores are mapped back to the answers.

    A sample without two finite scores is unscored, and `status` says why (`malformed_output`, `refusal`, `no finite
    score`).
    """

    order: Order
    score_a: float | None
    score_b: float | None
    status: str = "scored"

    def __post_init__(self) -> None:
        if self.status == "scored" and not self.scored:
            object.__setattr__(self, "status", NO_SCORE)

    @property
    def scored(self) -> bool:
        return all(score is not None and math.isfinite(score) for score in (self.score_a, self.score_b))


@dataclass(frozen=True, slots=True)
class Calibration:
    """The result of the samples of one pair.

    Attributes:
        verdict: of answer a against b; None where unscored.
        score_a, score_b: CS of each; None where unscored.
        bpde: in nats, 0 to ln 3; None where unscored.
        conflict: whether the verdicts of the two orders differ.
        prefers: in a conflict the position that wins in both orders (`first`, `second`), else None.
        status: `scored`, or why not.
    """

    verdict: Verdict | None
    score_a: float | None
    score_b: float | None
    bpde: float | None
    conflict: bool
    prefers: Literal["first", "second"] | None
    status: str = "scored"

    @property
    def scored(self) -> bool:
        return self.verdict is not None

    @property
    def gap(self) -> float:
        """|CS_a - CS_b|; 0 where unscored."""
        return abs((self.score_a or 0.0) - (self.score_b or 0.0))


def calibrate(samples: Sequence[EvidenceSample], *, margin: float = 0.0, minimum: int = 2) -> Calibration:
    """The calibrated comparison of one pair of answers (MEC, BPC, BPDE).

    Exchanging the two answers mirrors the verdict and the scores and changes nothing else. The order of samples does
    not matter.

    Args:
        samples: of both orders, with unscored ones.
        margin: scores that differ by at most this, compared exactly, are a tie.
        minimum: scored samples that each order needs (all where there are fewer).
    """
    exact = Fraction(str(margin))
    means: dict[Order, tuple[Fraction, Fraction]] = {}
    for order in ORDERS:
        asked = [sample for sample in samples if sample.order == order]
        scored = [sample for sample in asked if sample.scored]
        if scored and len(scored) >= min(minimum, len(asked)):
            means[order] = (_mean(s.score_a for s in scored), _mean(s.score_b for s in scored))
    if len(means) < len(ORDERS):
        reasons = Counter(sample.status for sample in samples if not sample.scored)
        why = min(reasons, key=lambda name: (-reasons[name], name)) if reasons else "too few samples"
        return Calibration(None, None, None, None, False, None, f"unscored: {why}")
    mean_a, mean_b = (sum((means[order][side] for order in ORDERS), Fraction(0)) / 2 for side in (0, 1))
    ab, ba = (_verdict(*means[order], exact) for order in ORDERS)
    return Calibration(
        verdict=_verdict(mean_a, mean_b, exact),
        score_a=float(mean_a),
        score_b=float(mean_b),
        bpde=entropy(_verdict(_exact(s.score_a), _exact(s.score_b), exact) for s in samples if s.scored),
        conflict=ab != ba,
        prefers="first" if (ab, ba) == ("win", "lose") else "second" if (ab, ba) == ("lose", "win") else None,
    )


def _exact(score: float | None) -> Fraction:
    assert score is not None
    return Fraction(str(score))


def _mean(scores: Iterable[float | None]) -> Fraction:
    """The exact mean of decimal scores, which does not depend on their order, unlike that of floats."""
    exact = [_exact(score) for score in scores]
    return sum(exact, Fraction(0)) / len(exact)


def _verdict(a: Fraction, b: Fraction, margin: Fraction) -> Verdict:
    if abs(a - b) <= margin:
        return "tie"
    return "win" if a > b else "lose"


def entropy(verdicts: Iterable[Verdict]) -> float:
    """BPDE of verdicts, in nats: 0 where all agree, ln 3 where each is a third.

    For six verdicts there are seven values: 0, .4506, .6365, .6931, .8676, 1.0114, 1.0986.
    """
    counts = Counter(verdicts)
    total = sum(counts.values())
    shares = sorted(count / total for count in counts.values())
    return abs(sum(-share * math.log(share) for share in shares))


# --- Several references ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ComparedPair:
    """Two references of a candidate, by their places (from 0), and the result of their comparison."""

    first: int
    second: int
    samples: tuple[EvidenceSample, ...]
    calibration: Calibration


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
        return round(_average(wins[at], 0.5), 9), round(_average(points[at], 0.0), 9), -at

    return max(range(references), key=rank)


def _average(values: Sequence[float], otherwise: float) -> float:
    return math.fsum(values) / len(values) if values else otherwise


# --- Which comparisons people decide ----------------------------------------------------------------------------


def escalate(
    items: Mapping[str, Calibration], *, share: float = 0.0, high: float = HIGH_ENTROPY
) -> dict[str, tuple[str, ...]]:
    """The items that people decide, with the reasons: `unscored`, `conflict`, `entropy`.

    `entropy`: the `share` with the highest BPDE (of equals the one with the smaller |CS_a - CS_b|, then by id), and
    all from `high` on; never an item whose samples all agree, so there may be fewer.

    Args:
        items: calibrations by id, in any order.
        share: of the items, 0 to 1; their number is rounded to the nearest.
        high: from this BPDE on people decide in any case.
    """
    divided = [name for name, item in items.items() if item.scored and (item.bpde or 0.0) > 0]
    ranked = sorted(divided, key=lambda name: (-(items[name].bpde or 0.0), items[name].gap, name))
    entropic = set(ranked[: _number(share, len(items))])
    reasons: dict[str, tuple[str, ...]] = {}
    for name, item in sorted(items.items()):
        in_doubt = name in entropic or (item.bpde or 0.0) >= high
        holding = {"unscored": not item.scored, "conflict": item.conflict, "entropy": in_doubt}
        reasons[name] = tuple(reason for reason, holds in holding.items() if holds)
    return {name: why for name, why in reasons.items() if why}


def audit_slice(ids: Iterable[str], share: float, seed: int = 0) -> list[str]:
    """A random share of ids, which depends on the ids and the seed alone; rounded to the nearest.

    People check it too, so that items of which the judge is sure are checked.
    """
    ranked = sorted(ids, key=lambda name: hashlib.sha256(f"{seed}\0{name}".encode()).digest())
    return sorted(ranked[: _number(share, len(ranked))])


def _number(share: float, of: int) -> int:
    return min(of, math.floor(Fraction(str(share)) * of + Fraction(1, 2)))


# --- Whether a judge may be used -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JudgeCheck:
    """A judge on gold items: its accuracy (a tie counts half) with a 95 % interval, and whether it is accepted.

    `reason` is empty where it is accepted. The entropy of a judge below chance is useless: it is sure where it is
    wrong, so its errors stay when people decide its doubtful items.
    """

    accuracy: float
    low: float
    high: float
    n: int
    accepted: bool
    reason: str = ""


def check_judge(
    verdicts: Mapping[str, Verdict | None], gold: Mapping[str, Verdict], *, chance: float = 0.5
) -> JudgeCheck:
    """Whether a judge's verdicts may be used, by its accuracy on items with known answers.

    A judge is refused at or below `chance`, and where its interval includes it (too few gold items to tell). Where gold
    has ties, a judge that calls everything a tie is above `chance` without knowing anything: then its accuracy replaces
    `chance`. An unscored verdict (None) counts half.

    Args:
        verdicts: of the judge, by item.
        gold: the true verdicts, `win`, `lose` or `tie`, of the same items or fewer.
        chance: accuracy of a judge that knows nothing.

    Raises:
        ValueError: there is no gold item, or one without a verdict.
    """
    if not gold or gold.keys() - verdicts.keys():
        raise ValueError("there must be a gold item, and every gold item needs the judge's verdict")
    scored = [(verdict, truth) for name, truth in gold.items() if (verdict := verdicts[name]) is not None]
    value = (_right(scored) + (len(gold) - len(scored)) / 2) / len(gold)
    least = max(chance, accuracy([("tie", truth) for truth in gold.values()]))
    low, high = (min(1.0, max(0.0, end)) for end in wilson_interval(value, len(gold)))  # rounding errors
    reason = ""
    if value <= least:
        reason = f"at or below chance ({value:.3f} of {least:.3g})"
    elif low <= least:
        reason = f"not shown to be above chance ({low:.3f} to {high:.3f}); use more gold items than {len(gold)}"
    return JudgeCheck(value, low, high, len(gold), not reason, reason)


def accuracy(pairs: Sequence[tuple[Verdict, Verdict]]) -> float:
    """Share of `(verdict, gold)` that agree, 0 to 1; a tie where gold has none, or the reverse, counts half."""
    return _right(pairs) / len(pairs)


def _right(pairs: Sequence[tuple[Verdict, Verdict]]) -> float:
    half = sum((verdict == "tie") != (gold == "tie") for verdict, gold in pairs)
    return sum(verdict == gold for verdict, gold in pairs) + half / 2
