"""What a figure shows, in words, for those who do not see it: its ends and its largest values, not its axes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from h2htalk.analysis.comparison import Comparison
from h2htalk.analysis.lengths import LengthSummary
from h2htalk.analysis.texts import SIDES, Side

SAID = 5  # items that a text names


def most_frequent(counts: Iterable[tuple[str, int]]) -> str:
    """The first items, which are the most frequent, with their counts."""
    most = [f"{item} {count:,}" for item, count in islice(counts, SAID)]
    return f"Most frequent: {', '.join(most)}." if most else "There are none."


def medians(summaries: Sequence[LengthSummary], group: str, side_names: Mapping[Side, str]) -> str:
    """The ends of what a figure by group shows."""
    said = []
    for side in SIDES:
        rows = [s for s in summaries if (s.side, s.group, s.measure) == (side, group, "words") and s.n]
        if rows:
            least, most = min(rows, key=lambda s: s.median), max(rows, key=lambda s: s.median)
            ends = f"from {least.name} {least.median:,.0f} to {most.name} {most.median:,.0f}"
            said.append(f"Medians of the {side_names[side]} go {ends}.")
    return " ".join(said)


def clear_differences(compared: Comparison, a: str, b: str) -> str:
    """The surest of the clear differences, each way."""
    surest = sorted((row for row in compared.rows if row.clear), key=lambda row: (-abs(row.z), row.item))
    more = (
        (a, [row.item for row in surest if row.log_odds > 0][:SAID]),
        (b, [row.item for row in surest if row.log_odds < 0][:SAID]),
    )
    return "".join(f" More in {name}: {', '.join(items)}." for name, items in more if items)
