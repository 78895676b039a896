"""What of a bundle was confirmed, what differs, and what was not computed again."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Verification:
    """What of a bundle was confirmed on which split, what differs, and what was not verified.

    `part` says which items the bundle holds; they alone are verified. `edition` is not empty where the items are those
    of an earlier version of a bundled split; it then names the version and what was corrected since. `unchecked` is
    what was not computed again. `claims` are what no bundle can show, and no computation confirms.
    """

    split: str
    part: str
    edition: str = ""
    claims: list[str] = field(default_factory=list)
    matches: list[str] = field(default_factory=list)
    differs: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)

    def compare(
        self, name: str, pairs: Iterable[tuple[Any, Any]], tolerance: float = TOLERANCE
    ) -> None:
        """Compare pairs of our value and the bundle's, and note the result under `matches` or `differs`."""
        distances = [_distance(ours, theirs) for ours, theirs in pairs]
        largest = max(distances, default=0.0)
        if largest <= TOLERANCE:
            self.matches.append(name)
        elif largest <= tolerance:
            self.matches.append(f"{name}, but for the last digits ({largest:.0e})")
        else:
            differing = sum(distance > tolerance for distance in distances)
            size = "" if math.isinf(largest) else f", by up to {largest:.3g}"
            self.differs.append(f"{name}: {differing:,} of {len(distances):,} values{size}")


def _distance(ours: Any, theirs: Any) -> float:
    """How far two values are apart. It is infinite where they are not equal and one of them is no number."""
    if ours == theirs:
        return 0.0
    try:
        distance = abs(ours - theirs)
        return distance if math.isfinite(distance) else math.inf
    except (TypeError, OverflowError):
        # A value is no number, or is one with hundreds of digits.
        return math.inf
