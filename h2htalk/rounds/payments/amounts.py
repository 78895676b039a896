"""The arithmetic of payments: what a round owes an annotator, what the platform pays of it, and what is to be listed.

For each annotator, in the currency of the round, all amounts decimal numbers with two places:

* `owed`: completed and skipped items x `minutes` x `hourly` / 60, in all rounds of answers together.
* `reward`: what the study on the platform (Prolific) pays by itself. It pays a submission that is approved. So a reward
  counts for whom the platform calls approved, and for whom the round has listed for approval (`prolific_done.csv`),
  since the manager approves the listed ones. It counts for nobody else: not for a submission that was returned, timed
  out, rejected or screened out, whatever was listed before, nor for somebody who answered only a part of their items.
* `listed`: what earlier lists of bonuses hold. Each list is sent once, so that this is paid.
* `due` = owed - reward - listed, or 0 where that is less: what the next list holds.
* `excess` = reward + listed - owed, or 0 where that is less: what the platform and the lists pay above what is owed.

There is one rule of rounding: an amount that is not a whole number of cents is rounded once, half up, after everything
was multiplied. Sums of rounded amounts are not rounded again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

ZERO = Decimal("0.00")
_CENT = Decimal("0.01")
# What Prolific calls a submission that it pays, and submissions that it does not pay.
PAID = ("approved", "partially approved")
UNPAID = ("returned", "timed out", "rejected", "screened out")


@dataclass(frozen=True, slots=True)
class Amounts:
    """What an annotator is owed in all, what the platform pays by itself, and what earlier lists hold."""

    owed: Decimal
    reward: Decimal
    listed: Decimal

    @property
    def due(self) -> Decimal:
        """What the next list is to hold."""
        return max(ZERO, self.owed - self.reward - self.listed)

    @property
    def excess(self) -> Decimal:
        """What the reward and the lists pay above what is owed."""
        return max(ZERO, self.reward + self.listed - self.owed)


def round_amount(amount: Decimal | float | str) -> Decimal:
    """Round an amount to cents, half up; a float counts as the decimal number that is printed for it."""
    return Decimal(str(amount)).quantize(_CENT, ROUND_HALF_UP)


def amount_owed(items: int, minutes: float, hourly: float) -> Decimal:
    """Return the pay of a number of items, of `minutes` each."""
    # The division comes last: a sixtieth that was cut off and multiplied would round 1.245 to 1.24.
    return round_amount(Decimal(str(minutes)) * Decimal(str(hourly)) * items / 60)


def is_rewarded(status: str, is_listed_for_approval: bool) -> bool:
    """Return whether the platform pays the reward. `status`: what it calls the submission; empty where unknown."""
    if status in UNPAID:
        return False
    return is_listed_for_approval or status in PAID


def different_currencies(currencies: Iterable[str]) -> list[str]:
    """Return the currencies of amounts that cannot be added; empty if there is one. An empty one may be any."""
    known = sorted({currency for currency in currencies if currency})
    return known if len(known) > 1 else []
