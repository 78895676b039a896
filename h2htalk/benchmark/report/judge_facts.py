"""What judges gave, as lines for the terminal and the page."""

from __future__ import annotations

from collections.abc import Iterator

from h2htalk.benchmark.metrics.composite import THRESHOLD
from h2htalk.benchmark.report.number_format import half_width_text, items_text, with_half_width
from h2htalk.benchmark.report.table2_layout import most_first
from h2htalk.benchmark.statistics.table2_averages import Cell
from h2htalk.benchmark.summary import JudgeFigures, Summary
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import counted


def judge_facts(summary: Summary) -> list[tuple[str, str]]:
    """Return a name and a text for each fact; empty for a run that was never judged."""
    return [] if summary.judging is None else list(_facts(summary.judging))


def _facts(judging: JudgeFigures) -> Iterator[tuple[str, str]]:
    each = counted(judging.judgements, "judgement")
    yield "judges", f"{', '.join(judging.judges)}; {each} of an answer by each; scope {judging.scope}"
    people = f", {judging.people:,} of them by people" if judging.people else ""
    reasons = ", ".join(f"{number:,} {reason}" for reason, number in most_first(judging.unscored))
    unscored = f"; unscored: {reasons}" if reasons else ""
    yield "rated", f"{judging.scored:,} of {counted(judging.total, 'answer')}{people}{unscored}"
    cells = judging.ratings.cells.items()
    yield "20 R", ", ".join(f"{SUBTASKS[name].title} {with_half_width(cell)}{_part(cell)}" for name, cell in cells)
    if judging.items:
        sent, by_judge = judging.queue["J"], judging.queue["judge"]
        yield (
            "to people",
            f"by the judge's R, Eq. 4 (J < {THRESHOLD}) sends {sent:,} of {counted(judging.items, 'item')}, "
            f"--human-trigger judge (R < {THRESHOLD}) {by_judge:,}",
        )
    if judging.correction:
        names = {name: SUBTASKS[name].title if name in SUBTASKS else "levels I to III" for name in judging.corrected}
        listed = ", ".join(f"{names[name]} {with_half_width(cell)}" for name, cell in judging.corrected.items())
        yield "20 J corrected by people's labels", f"{listed}; {judging.correction}" if listed else judging.correction
    if judging.disagreement is not None:
        yield "disagreement of judges", f"{judging.disagreement:.2f} of 5 on average, highest minus lowest"
    for point, cell in judging.points.items():
        share = "none" if cell.value is None else f"{cell.value:.1f} % {half_width_text(cell)}".rstrip()
        yield point, f"{share} of {counted(cell.n, 'item')}{_part(cell)}, by the judge"


def _part(cell: Cell) -> str:
    """Say how many items a figure rests on, where it is not all."""
    return "" if cell.n == cell.total else f" ({items_text(cell)} items)"
