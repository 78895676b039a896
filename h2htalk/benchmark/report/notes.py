"""What a reader needs beside a run's tables: notes on the figures, facts about its judges, spread over samples."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import stdev
from typing import NamedTuple

from h2htalk.benchmark.metrics.composite import THRESHOLD
from h2htalk.benchmark.report.table2 import (
    NOT_SCORED,
    UNJUDGED,
    half_width_text,
    has_levels,
    items_text,
    main_row,
    most_first,
    with_half_width,
)
from h2htalk.benchmark.statistics import Cell
from h2htalk.benchmark.summary import Summary
from h2htalk.data.signature import HUMAN
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import counted, listed

JUDGED = (
    "Itinerary Basic, Middle and Advanced (levels I-III) are 20 J (Eq. 3); the unjudged 100 S stands apart. "
    "Baselines are unjudged."
)


class Note(NamedTuple):
    """A note that a reader needs to interpret a table. `loud` notes have a warning colour."""

    text: str
    loud: bool = False


def notes(summary: Summary) -> Iterator[Note]:
    """Yield the notes on this summary's figures, most important first. Warnings are not included."""
    counts = summary.counts
    if summary.signature.human:
        yield Note("Replies written by people, not by a model.")
    if summary.incomplete:
        yield Note(f"INCOMPLETE: {_incomplete(summary)}", loud=True)
    if counts.private:
        whoever = "Whoever has them scores the stored answers with `h2htalk score RUN --references FILE`."
        yield Note(f"{NOT_SCORED.capitalize()} ({counted(counts.private, 'item')}). {whoever}", loud=True)
    if counts.erased:
        yield Note(f"{counted(counts.erased, 'item')} erased since: the figures leave them out.", loud=True)
    if summary.measure == "lexical":
        yield Note("S was not asked for: the figures are means of BLEU-1 to 4, ROUGE-1 and ROUGE-L.")
    elif not summary.s_comparable:
        embedder = summary.signature.protocol.get("embedder", "another embedder")
        yield Note(f"S is not comparable with the paper's: its SS comes from {embedder}, not from BGE-M3.", loud=True)
    if has_levels(summary.rows.lexical):
        yield Note(JUDGED if summary.judged else UNJUDGED)
    if missing := [SUBTASKS[name].title for name in SUBTASKS if name not in main_row(summary).cells]:
        are = "is" if len(missing) == 1 else "are"
        yield Note(f"No overall: it needs all subtasks, and {listed(missing, len(SUBTASKS))} {are} missing.")


def _incomplete(summary: Summary) -> str:
    """Describe how many items are unscored, and what to do, which depends on where the answers come from."""
    counts, judging = summary.counts, summary.judging
    if not counts.unscored and judging is not None:
        option = "" if judging.failed else " --repeat-unscored"
        failed = counted(judging.failed or sum(judging.unscored.values()), "answer is", "answers are")
        return f"{failed} not judged; run `h2htalk judge run{option}` with the same judges again."
    engine, missing = summary.signature.subject.get("engine"), min(counts.failures.get("missing", 0), counts.unscored)
    advice = "Start the same command again: it sends only those."
    if engine == "baseline":
        advice = "The baseline has no answer to those: use a split with more items for each subtask and language."
    elif engine in ("imported", HUMAN):
        ids = f"id{'s' if missing > 1 else ''}: import a complete one into a new folder."
        advice = f"The imported file has no answer to {missing:,} {ids}" if missing else "Score the run again."
    return f"{counts.unscored:,} of {counts.items:,} items are unscored; the figures leave them out. {advice}"


def spread_lines(summary: Summary) -> list[str]:
    """Return a line on how much the headline figure differs between the answers to the same items, if any has two."""
    if not (figures := summary.by_sample):
        return []
    name = "Mean of items" if main_row(summary).overall.value is None else "Overall"
    shown = ", ".join(f"{figure:.2f}" for figure in figures)
    return [f"{name} by sample: {shown} (standard deviation {stdev(figures):.2f})"]


def judge_facts(summary: Summary) -> Iterator[tuple[str, str]]:
    """Yield a name and a text for each fact about judges; none for a run that was never judged."""
    if (judging := summary.judging) is None:
        return
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
        by_j = f"by the judge's R, Eq. 4 (J < {THRESHOLD}) sends {sent:,} of {counted(judging.items, 'item')}"
        yield "to people", f"{by_j}, --human-trigger judge (R < {THRESHOLD}) {by_judge:,}"
    if judging.correction:
        names = {name: SUBTASKS[name].title if name in SUBTASKS else "levels I to III" for name in judging.corrected}
        means = ", ".join(f"{names[name]} {with_half_width(cell)}" for name, cell in judging.corrected.items())
        yield "20 J corrected by people's labels", f"{means}; {judging.correction}" if means else judging.correction
    if judging.disagreement is not None:
        yield "disagreement of judges", f"{judging.disagreement:.2f} of 5 on average, highest minus lowest"
    for point, cell in judging.points.items():
        share = "none" if cell.value is None else f"{cell.value:.1f} % {half_width_text(cell)}".rstrip()
        yield point, f"{share} of {counted(cell.n, 'item')}{_part(cell)}, by the judge"


def _part(cell: Cell) -> str:
    """Say how many items a figure rests on, where it is not all."""
    return "" if cell.n == cell.total else f" ({items_text(cell)} items)"
