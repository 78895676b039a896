"""How good a judge is: accuracy and kappa against known answers, and whether its verdicts may be used at all."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["win", "tie", "lose"]  # of the first of two answers
VERDICTS: tuple[Verdict, ...] = ("win", "tie", "lose")


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


def kappa(pairs: Sequence[tuple[Verdict, Verdict]]) -> float:
    """Cohen's kappa of `(verdict, gold)` over win, tie and lose: 1 agrees always, 0 as often as chance would."""
    n = len(pairs)
    observed = sum(verdict == gold for verdict, gold in pairs) / n
    given, true = Counter(verdict for verdict, _ in pairs), Counter(gold for _, gold in pairs)
    expected = sum(given[name] * true[name] for name in VERDICTS) / n**2
    return 1.0 if expected == 1 else (observed - expected) / (1 - expected)


def _wilson(share: float, n: int, z: float = 1.96) -> tuple[float, float]:
    middle = share + z * z / (2 * n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)
