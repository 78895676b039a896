"""Votes for tests: public sets with gold labels, small tables, and strategies."""

from __future__ import annotations

import csv
from pathlib import Path

from hypothesis import strategies as st

from h2htalk.rounds.aggregation.votes import Vote


def public_votes(data: Path, name: str) -> tuple[list[Vote], dict[str, str]]:
    """Votes of a public set in the file's order, and gold labels by item."""
    columns = []
    for file in ("answer.csv", "truth.csv"):
        with (data / "crowd" / name / file).open(encoding="utf-8", newline="") as opened:
            columns.append(list(csv.reader(opened))[1:])
    return [Vote(*row) for row in columns[0]], dict(columns[1])


def votes_of(text: str) -> list[Vote]:
    """Votes of a table with annotators as columns and items as lines: `a b . a`; a dot for no vote."""
    rows = [line.split() for line in text.strip().splitlines()]
    return [
        Vote(f"item-{n:02}", f"annotator-{column:02}", label)
        for n, row in enumerate(rows)
        for column, label in enumerate(row)
        if label != "."
    ]


def counted(*rows: tuple[int, ...]) -> list[Vote]:
    """Votes with these numbers for each item and label."""
    lines = []
    for row in rows:
        lines.append(
            " ".join(str(label) for label, count in enumerate(row) for _ in range(count)) or "."
        )
    return votes_of("\n".join(lines))


@st.composite
def vote_lists(draw: st.DrawFn, labels: str = "abc", most: int = 60) -> list[Vote]:
    """Votes in any order, one for each annotator and item."""
    pairs = st.tuples(st.integers(0, 9), st.integers(0, 7))
    said = draw(st.dictionaries(pairs, st.sampled_from(labels), max_size=most))
    return [Vote(f"i{item}", f"v{annotator}", label) for (item, annotator), label in said.items()]
