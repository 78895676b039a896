"""FairEval: two answers compared k times in both orders, which comparisons people decide, and who may judge.

Wang et al., *Large Language Models are not Fair Evaluators* (arXiv 2305.17926, ACL 2024). Arithmetic alone: no client
is imported here, and everything can be computed from a table.

With S_R^i the score that sample i gives answer R in the order (a, b), and S'_R^i in the order (b, a), mapped back:

    CS_R = ( mean_i S_R^i + mean_i S'_R^i ) / 2                      multiple evidence, balanced positions
    BPDE = - sum over er in {win, tie, lose} of p_er ln p_er         balanced position diversity entropy, in nats
    p_er = share of the 2k samples whose own verdict is er

The paper averages over all samples; here each order is averaged first, which is the same where no sample is lost and
fair to both positions where one is.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

Verdict = Literal["win", "tie", "lose"]  # of the first of two answers
Order = Literal["ab", "ba"]
ORDERS: tuple[Order, ...] = ("ab", "ba")
# From this entropy on people decide, wherever the cut falls: of six verdicts at least two differ from the others.
HIGH_ENTROPY = 0.65
NO_SCORE = "no finite score"


@dataclass(frozen=True, slots=True)
class EvidenceSample:
    """One comparison. `order`: which answer stood first, `ab` or `ba`; the scores are the answers' own, mapped back.

    A sample without two finite scores is unscored; `status` then says why (`malformed_output`, `refusal`, and where
    nobody said it, `no finite score`).
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
    """What the samples of one pair come to.

    Attributes:
        verdict: of answer a against b; None where unscored.
        score_a, score_b: CS of each; None where unscored.
        bpde: in nats, 0 to ln 3; None where unscored.
        conflict: the verdict of the mean changes when the answers are swapped.
        prefers: in a conflict, the position that wins in both orders (`first`, `second`); else None.
        valid: scored samples by order, `ab` and `ba`.
        status: `scored`, or why not.
    """

    verdict: Verdict | None
    score_a: float | None
    score_b: float | None
    bpde: float | None
    conflict: bool
    prefers: Literal["first", "second"] | None
    valid: tuple[int, int]
    status: str = "scored"

    @property
    def scored(self) -> bool:
        return self.verdict is not None

    @property
    def gap(self) -> float:
        """|CS_a - CS_b|; 0 where unscored."""
        return abs((self.score_a or 0.0) - (self.score_b or 0.0))


def calibrate(samples: Sequence[EvidenceSample], *, margin: float = 0.0, minimum: int = 2) -> Calibration:
    """The calibrated comparison of one pair of answers.

    Exchanging the two answers mirrors the verdict and the scores and changes nothing else; so does no reordering.

    Args:
        samples: of both orders, unscored ones included.
        margin: answers whose scores differ by at most this are a tie, in the samples' points; compared exactly.
        minimum: scored samples that each order needs (where fewer were asked for, all of them).
    """
    exact = Fraction(str(margin))
    means: dict[Order, tuple[Fraction, Fraction]] = {}
    valid = []
    for order in ORDERS:
        asked = [sample for sample in samples if sample.order == order]
        scored = [sample for sample in asked if sample.scored]
        valid.append(len(scored))
        if scored and len(scored) >= min(minimum, len(asked)):
            means[order] = (_mean(s.score_a for s in scored), _mean(s.score_b for s in scored))
    counts = (valid[0], valid[1])
    if len(means) < len(ORDERS):
        reasons = Counter(sample.status for sample in samples if not sample.scored)
        why = min(reasons, key=lambda name: (-reasons[name], name)) if reasons else "too few samples"
        return Calibration(None, None, None, None, False, None, counts, f"unscored: {why}")
    mean_a, mean_b = (sum((means[order][side] for order in ORDERS), Fraction(0)) / 2 for side in (0, 1))
    ab, ba = (_verdict(*means[order], exact) for order in ORDERS)
    return Calibration(
        verdict=_verdict(mean_a, mean_b, exact),
        score_a=float(mean_a),
        score_b=float(mean_b),
        bpde=entropy(_verdict(_exact(s.score_a), _exact(s.score_b), exact) for s in samples if s.scored),
        conflict=ab != ba,
        prefers=_preferred(ab, ba),
        valid=counts,
    )


def _exact(score: float | None) -> Fraction:
    assert score is not None
    return Fraction(str(score))


def _mean(scores: Iterable[float | None]) -> Fraction:
    """As written: three samples 8.1, 7.9, 8.2 have one mean in whatever order, which floats have not."""
    found = [_exact(score) for score in scores]
    return sum(found, Fraction(0)) / len(found)


def _verdict(a: Fraction, b: Fraction, margin: Fraction) -> Verdict:
    if abs(a - b) <= margin:
        return "tie"
    return "win" if a > b else "lose"


def _preferred(ab: Verdict, ba: Verdict) -> Literal["first", "second"] | None:
    if (ab, ba) == ("win", "lose"):
        return "first"
    return "second" if (ab, ba) == ("lose", "win") else None


def entropy(verdicts: Iterable[Verdict]) -> float:
    """BPDE of some verdicts, in nats: 0 where all agree, ln 3 where each is a third.

    Six verdicts give seven values: 0, .4506, .6365, .6931, .8676, 1.0114, 1.0986.
    """
    counts = Counter(verdicts)
    total = sum(counts.values())
    shares = sorted(count / total for count in counts.values())
    return abs(sum(-share * math.log(share) for share in shares))


# --- Which comparisons people decide ----------------------------------------------------------------------------


def hand_off(
    items: Mapping[str, Calibration],
    *,
    share: float = 0.2,
    audit: float = 0.05,
    seed: int = 0,
    high: float = HIGH_ENTROPY,
) -> dict[str, tuple[str, ...]]:
    """The items that people decide, and why: `unscored`, `conflict`, `entropy`, `audit`.

    `entropy`: the `share` with the highest BPDE (few values exist, so that the cut falls into a group of equals: the
    smaller |CS_a - CS_b| goes first, then the smaller id), and all from `high` on; never one whose samples all agree,
    so that there may be fewer than the share. `audit`: a random `audit` share of
    all items, those that nothing else speaks for included, so that what the judge is sure of is checked too.

    Args:
        items: calibrations by id; their order does not matter.
        share, audit: of the items, 0 to 1; their number is rounded to the nearest.
    """
    divided = [name for name, item in items.items() if item.scored and (item.bpde or 0.0) > 0]
    ranked = sorted(divided, key=lambda name: (-(items[name].bpde or 0.0), items[name].gap, name))
    entropic = set(ranked[: _number(share, len(items))])
    audited = set(audit_slice(items, audit, seed))
    reasons = {
        name: tuple(
            reason
            for reason, holds in (
                ("unscored", not item.scored),
                ("conflict", item.conflict),
                ("entropy", name in entropic or (item.bpde or 0.0) >= high),
                ("audit", name in audited),
            )
            if holds
        )
        for name, item in items.items()
    }
    return {name: found for name, found in sorted(reasons.items()) if found}


def audit_slice(ids: Iterable[str], share: float, seed: int = 0) -> list[str]:
    """A random share of some ids, the same for the same ids and seed in whatever order; rounded to the nearest."""
    ranked = sorted(ids, key=lambda name: hashlib.sha256(f"{seed}\0{name}".encode()).digest())
    return sorted(ranked[: _number(share, len(ranked))])


def _number(share: float, of: int) -> int:
    return min(of, math.floor(Fraction(str(share)) * of + Fraction(1, 2)))


# --- Whether a judge may be used -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Gate:
    """A judge on a gold slice: its accuracy (a tie counts half) with a 95 % interval, and whether it may judge.

    `reason` is empty where it is accepted. Below chance entropy is worse than a coin: such a judge is sure where it is
    wrong, and handing its doubts to people leaves its errors in.
    """

    accuracy: float
    low: float
    high: float
    n: int
    accepted: bool
    reason: str = ""


def gate(verdicts: Mapping[str, Verdict | None], gold: Mapping[str, Verdict], *, chance: float = 0.5) -> Gate:
    """Whether a judge's verdicts may be used, by its accuracy on items whose answer is known.

    Refused: a judge at or below `chance`, and one whose interval reaches down to it (too few gold items to tell).
    Where gold has ties, whoever calls everything a tie is above `chance` without knowing anything: then that judge's
    accuracy takes the place of `chance`. An unscored verdict (None) is neither right nor wrong and counts half.

    Args:
        verdicts: the judge's, by item.
        gold: the true ones, `win` or `lose` (or `tie`), of the same items or fewer.
        chance: accuracy of a judge that knows nothing.

    Raises:
        ValueError: no gold item, or one without a verdict.
    """
    if not gold or gold.keys() - verdicts.keys():
        raise ValueError("every gold item needs the judge's verdict, and there must be one at least")
    scored = [(verdict, truth) for name, truth in gold.items() if (verdict := verdicts[name]) is not None]
    value = (_right(scored) + (len(gold) - len(scored)) / 2) / len(gold)
    least = max(chance, accuracy([("tie", truth) for truth in gold.values()]))
    low, high = _wilson(value, len(gold))
    reason = ""
    if value <= least:
        reason = f"at or below chance ({value:.3f} of {least:.3g})"
    elif low <= least:
        reason = (
            f"not shown to be above chance ({low:.3f} to {high:.3f}); take more gold items than {len(gold)}"
        )
    return Gate(value, low, high, len(gold), not reason, reason)


def accuracy(pairs: Sequence[tuple[Verdict, Verdict]]) -> float:
    """Share of `(verdict, gold)` that agree, 0 to 1; a tie where gold has none, or the reverse, counts half."""
    return _right(pairs) / len(pairs)


def _right(pairs: Sequence[tuple[Verdict, Verdict]]) -> float:
    half = sum((verdict == "tie") != (gold == "tie") for verdict, gold in pairs)
    return sum(verdict == gold for verdict, gold in pairs) + half / 2


def _wilson(share: float, n: int, z: float = 1.96) -> tuple[float, float]:
    middle = share + z * z / (2 * n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)
