"""What a comparison of two runs says beside its figures: who answered the values, and what is not in them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

from h2htalk.benchmark.compare.scored_items import ScoredItem, ScoredItems
from h2htalk.benchmark.estimate_text import format_interval
from h2htalk.benchmark.paired_observations import is_comparable
from h2htalk.benchmark.raters import describe_raters


def is_alike(first: ScoredItem, second: ScoredItem) -> bool:
    """Whether one kind of rater gave both values of an item, as far as is known; so where one of them is missing."""
    if first.observation is None or second.observation is None:
        return True
    if not first.values or not second.values:
        return True
    return is_comparable(first.observation, second.observation)


def unlike_note(compared: int, total: int) -> str:
    """Say how many values are left out, because different kinds of raters gave them."""
    return (
        f"{total - compared:,} of {total:,} values are not compared: people answered them in one run, and a judge or "
        "code in the other; let one kind of rater answer both runs"
    )


def rater_notes(a: ScoredItems, b: ScoredItems) -> tuple[list[str], bool]:
    """Say who answered the values of studies; and whether each judge among them passed its planted replies."""
    notes = list[str]()
    is_checked = True
    for side, run in (("A", a), ("B", b)):
        if run.raters is not None:
            notes.append(f"{side}: answered by {describe_raters(run.raters)}")
            is_checked = is_checked and run.raters.is_checked
    if not is_checked:
        notes.insert(
            0, "a judge that has not shown that it reads proves nothing, so nothing is tested"
        )
    return notes, is_checked


def corrected_notes(a: ScoredItems, b: ScoredItems) -> Iterator[str]:
    """Say what the difference of levels I to III is by people's labels, where both runs have them."""
    means = []
    halves = []
    for run in (a, b):
        if run.corrected is None or run.corrected.interval is None:
            return
        low, high = run.corrected.interval
        halves.append((high - low) / 2)
        means.append(run.corrected.value or 0.0)
    # Judges may err otherwise on one model than on the other. Labels of the two are taken as independent.
    half = math.hypot(*halves)
    mean_a, mean_b = means
    difference = mean_b - mean_a
    limits = (difference - half, difference + half)
    interval = format_interval(limits, "+.2f", separator=", ", frame="[{}]")
    yield (
        f"levels I to III corrected by people's labels: A {mean_a:.2f}, B {mean_b:.2f}, B - A {difference:+.2f} "
        f"{interval}; the table above is by the judge alone"
    )


def count_items(run: ScoredItems, paired: int) -> dict[str, Any]:
    """Count the items of a run by what became of them; `paired`: how many are compared."""
    items = run.items.values()
    failed = sum(item.failed for item in items)
    scored = sum(bool(item.values) for item in items)
    answered = len(items) - failed
    reasons = Counter(item.unscored for item in items if item.unscored)
    return {
        "asked": len(items),
        "answered": answered,
        "failed": failed,
        "unscored": answered - scored,
        "unpaired": scored - paired,
        "reasons": dict(reasons.most_common()),
    }
