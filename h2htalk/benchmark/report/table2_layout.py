"""The columns of Table 2, shared by every report, and where a row stores each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import stdev

from h2htalk.benchmark.report.number_format import count_text, items_text, with_half_width
from h2htalk.benchmark.statistics.table2_averages import Cell, Row
from h2htalk.benchmark.summary import ScoreRows, Summary
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.scenario import COMPLEXITIES, INTERACTIONS, RISKS
from h2htalk.data.signature import HUMAN
from h2htalk.data.subtasks import DIMENSIONS, SUBTASKS
from h2htalk.errors import DataError, counted
from h2htalk.text.tables import Table


@dataclass(frozen=True, slots=True)
class Column:
    """A figure of Table 2. `key` is a subtask, `<dimension>_avg` or `overall`; `group` is the heading above."""

    key: str
    heading: str
    group: str
    is_average: bool = False


def _columns() -> tuple[Column, ...]:
    columns: list[Column] = []
    for dimension in DIMENSIONS:
        group = dimension.title()
        columns += [Column(s.name, s.column, group) for s in SUBTASKS.values() if s.dimension == dimension]
        columns.append(Column(f"{dimension}_avg", "Avg.", group, True))
    return (*columns, Column("overall", "Overall", "", True))


# Eleven cells, three averages and the overall, in the paper's order.
COLUMNS = _columns()
# Two more overall means, which the paper does not print: over the items and over the cells that the split has.
OTHER_MEANS = (Column("items_mean", "Items", "", True), Column("plain_mean", "Cells", "", True))
ALL_COLUMNS = (*COLUMNS, *OTHER_MEANS)


UNJUDGED = "Unjudged: Itinerary Basic, Middle and Advanced (levels I-III) include no judge's rating."
JUDGED = (
    "Itinerary Basic, Middle and Advanced (levels I-III) are 20 J (Eq. 3); the unjudged 100 S stands apart. "
    "Baselines are unjudged."
)
NOT_SCORED = "not scored: references are private"


@dataclass(frozen=True, slots=True)
class Note:
    """A note that a reader needs to interpret a table. `loud` notes come first, in a warning colour."""

    text: str
    loud: bool = False


def cell_at(row: Row | None, key: str) -> Cell | None:
    """Return the cell of a column's key, or of `items_mean` or `plain_mean`; None where the row has none."""
    if row is None:
        return None
    if key in ("overall", "items_mean", "plain_mean"):
        return {"overall": row.overall, "items_mean": row.items_mean, "plain_mean": row.plain_mean}[key]
    if key.endswith("_avg"):
        return row.dimensions.get(key.removesuffix("_avg"))
    return row.cells.get(key)


def main_row(summary: Summary, rows: ScoreRows | None = None) -> Row:
    """Return the row of the summary's main measure, of the model or of a baseline.

    Raises:
        DataError: the summary has no row for its measure.
    """
    row = (rows or summary.rows).row(summary.measure)
    if row is None:
        raise DataError(f"{summary.model}: the summary has no row for {summary.measure}; run `h2htalk score` again")
    return row


def measure_name(summary: Summary) -> str:
    """Return the title of the main column."""
    if summary.rows.judged is not None:
        return "S and J"
    return "S" if summary.measure == "s" else "Lexical mean"


def subtasks_at_hand(summary: Summary) -> list[str]:
    """Return the subtasks of the run in Table 2's order; those without S are included by their lexical mean."""
    return [name for name in SUBTASKS if name in summary.rows.lexical.cells]


def most_first(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Sort names by descending count; equal counts by name."""
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))


_TAG_ORDERS: dict[str, Sequence[str]] = {
    "complexity": COMPLEXITIES,
    "interaction": INTERACTIONS,
    "risk": RISKS,
    "language": LANGUAGES,
}


def ordered_slices(summary: Summary) -> dict[str, dict[str, Cell]]:
    """Return the slices in the order of their tag's values; emotions by descending number of items."""
    ordered = {}
    for tag, cells in summary.slices.items():
        order = {value: place for place, value in enumerate(_TAG_ORDERS.get(tag, ()))}
        places = sorted(cells, key=lambda value: (order.get(value, len(order)), -cells[value].total, value))
        ordered[tag] = {value: cells[value] for value in places}
    return ordered


def has_levels(row: Row) -> bool:
    """Whether a row has any of the itinerary subtasks that a judge scores (levels I-III)."""
    return any(SUBTASKS[name].level for name in row.cells)


def notes(summary: Summary) -> list[Note]:
    """Return the notes on this summary's figures, most important first. Warnings are not included."""
    found: list[Note] = []
    if summary.signature.human:
        found.append(Note("Replies written by people, not by a model."))
    if summary.incomplete:
        found.append(Note(_incomplete(summary), loud=True))
    if private := summary.counts.private:
        whoever = "Whoever has them scores the stored answers with `h2htalk score RUN --references FILE`."
        found.append(Note(f"{NOT_SCORED.capitalize()} ({counted(private, 'item')}). {whoever}", loud=True))
    if erased := summary.counts.erased:
        found.append(Note(f"{counted(erased, 'item')} erased since: the figures leave them out.", loud=True))
    if summary.measure == "lexical":
        found.append(Note("S was not asked for: the figures are means of BLEU-1 to 4, ROUGE-1 and ROUGE-L."))
    elif not summary.s_comparable:
        embedder = summary.signature.protocol.get("embedder", "another embedder")
        found.append(
            Note(
                f"S is not comparable with the paper's: its SS comes from {embedder}, not from BGE-M3.",
                loud=True,
            )
        )
    if has_levels(summary.rows.lexical):
        found.append(Note(JUDGED if summary.judged else UNJUDGED))
    if missing := [name for name in SUBTASKS if name not in main_row(summary).cells]:
        found.append(Note(f"No overall: it needs all subtasks, and {_missing(missing)} missing."))
    return found


def null_class_table(summary: Summary) -> Table:
    """Return how often the model and its baselines say that there is nothing to remember, and are right."""
    rows = []
    for name, null in (
        (name, of.null_class) for name, of in {summary.model: summary.rows, **summary.baselines}.items()
    ):
        if null is not None:
            ratios = map(with_half_width, (null.precision, null.recall, null.f1))
            counts = map(count_text, (null.references, null.answers, null.hits))
            rows.append((name, items_text(null.f1), *ratios, *counts))
    header = ("nothing to remember", "items", "precision", "recall", "F1", "null references", "null answers", "both")
    return Table("", header, rows)


def spread_lines(summary: Summary) -> list[str]:
    """Return a line on how much the headline figure differs between the answers to the same items, if any has two."""
    if not (figures := summary.by_sample):
        return []
    name = "Mean of items" if main_row(summary).overall.value is None else "Overall"
    listed = ", ".join(f"{figure:.2f}" for figure in figures)
    return [f"{name} by sample: {listed} (standard deviation {stdev(figures):.2f})"]


def _incomplete(summary: Summary) -> str:
    """Describe how many items are unscored, and what to do, which depends on where the answers come from."""
    counts = summary.counts
    if not counts.unscored and summary.judging is not None:
        judging, option = summary.judging, "" if summary.judging.failed else " --repeat-unscored"
        failed = counted(judging.failed or sum(judging.unscored.values()), "answer is", "answers are")
        return f"INCOMPLETE: {failed} not judged; run `h2htalk judge run{option}` with the same judges again."
    engine = summary.signature.subject.get("engine")
    if engine in ("imported", HUMAN) and "missing" in counts.failures:
        missing = min(counts.failures["missing"], counts.unscored)
        advice = (
            f"The imported file has no answer to {missing:,} id{'s' if missing > 1 else ''}: import a complete one "
            "into a new folder."
        )
    elif engine in ("imported", HUMAN):
        advice = "Score the run again."
    elif engine == "baseline":
        advice = "The baseline has no answer to those: use a split with more items for each subtask and language."
    else:
        advice = "Start the same command again: it sends only those."
    left_out = f"{counts.unscored:,} of {counts.items:,} items are unscored; the figures leave them out."
    return f"INCOMPLETE: {left_out} {advice}"


def _missing(names: Sequence[str]) -> str:
    titles = [SUBTASKS[name].title for name in names]
    return f"{titles[0]} is" if len(titles) == 1 else f"{_listed(titles)} are"


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
