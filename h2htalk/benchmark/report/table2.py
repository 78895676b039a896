"""Table 2: its columns, notes, how cells are formatted, and its rows from a run, its baselines or the paper."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from itertools import groupby
from statistics import stdev
from typing import Any, Literal

from h2htalk.benchmark.metrics.composite import THRESHOLD
from h2htalk.benchmark.statistics.table2_averages import Cell, Row
from h2htalk.benchmark.summary import JudgeFigures, ScoreRows, Summary
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.scenario import COMPLEXITIES, INTERACTIONS, RISKS
from h2htalk.data.signature import HUMAN
from h2htalk.data.subtasks import DIMENSIONS, SUBTASKS
from h2htalk.errors import DataError, counted, listed
from h2htalk.text.contracts.contract import RULES
from h2htalk.text.escaping import printable
from h2htalk.text.tables import Table


def value_text(cell: Cell | None, none: str = "-") -> str:
    """Format the value with two decimals, as in the paper's tables."""
    return none if cell is None or cell.value is None else f"{cell.value:.2f}"


def percent_text(cell: Cell | None, none: str = "-") -> str:
    """Format the value as a whole percentage."""
    return none if cell is None or cell.value is None else f"{cell.value:.0f} %"


def half_width(cell: Cell | None) -> float | None:
    """Return half the width of the 95 % interval; None where there is no interval."""
    if cell is None or cell.low is None or cell.high is None:
        return None
    return (cell.high - cell.low) / 2


def half_width_text(cell: Cell | None) -> str:
    """Format `±1.0`, at most five characters (no decimals from ±10 on); empty where there is no interval."""
    half = half_width(cell)
    if half is None:
        return ""
    return f"±{half:.1f}" if half < 9.95 else f"±{half:.0f}"


def with_half_width(cell: Cell | None) -> str:
    """Format `40.00 ±1.0`, or the value alone."""
    return f"{value_text(cell)} {half_width_text(cell)}".rstrip()


def interval_text(cell: Cell | None) -> str:
    """Format `39.00 – 41.00`; empty where there is no interval."""
    if cell is None or cell.low is None or cell.high is None:
        return ""
    return f"{cell.low:.2f} – {cell.high:.2f}"


def items_text(cell: Cell | None, none: str = "-") -> str:
    """Format the items scored and the items in all: `1,880/1,882`."""
    return none if cell is None else f"{cell.n:,}/{cell.total:,}"


def count_text(count: float) -> str:
    """Format a count that may include fractions of an item: `2`, `1,882`, `2.5`."""
    return f"{count:,.0f}" if float(count).is_integer() else f"{count:,.1f}"


# --- Columns and notes -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Column:
    """A figure of Table 2. `key` is a subtask, `<dimension>_avg` or `overall`; `group` is the heading above."""

    key: str
    heading: str
    group: str
    is_average: bool = False

    @property
    def title(self) -> str:
        """The heading of a table without groups of columns."""
        return f"{self.group} avg." if self.is_average and self.group else self.heading


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
    """Return the row of the summary's main measure, of the model or of a baseline."""
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
        titles = listed([SUBTASKS[name].title for name in missing], len(SUBTASKS))
        found.append(
            Note(f"No overall: it needs all subtasks, and {titles} {'is' if len(missing) == 1 else 'are'} missing.")
        )
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


def answer_tables(summary: Summary) -> list[Table]:
    """Return what kinds of replies came, and the contract rules that they break."""
    counts, samples = summary.counts, max(1, summary.counts.samples)
    kinds = [(name, getattr(counts, name)) for name in ("empty", "truncated", "refused")]
    kinds += [(f"unscored ({r}): {counts.failure_messages.get(r, '')}", n) for r, n in most_first(counts.failures)]
    broken = [(rule, n, f"{100 * n / samples:.1f} %", RULES.get(rule)) for rule, n in most_first(summary.violations)]
    header = ("broken contract rules", "n", "share", "")
    return [Table("", (f"of {counts.samples:,} replies", "n"), kinds), *([Table("", header, broken)] * bool(broken))]


def slice_tables(summary: Summary) -> list[Table]:
    """Return the figures of each value of each tag that has several."""
    return [
        Table(
            "",
            (tag, "items", measure_name(summary)),
            [(v, items_text(c), with_half_width(c)) for v, c in cells.items()],
        )
        for tag, cells in ordered_slices(summary).items()
        if len(cells) > 1
    ]


def spread_lines(summary: Summary) -> list[str]:
    """Return a line on how much the headline figure differs between the answers to the same items, if any has two."""
    if not (figures := summary.by_sample):
        return []
    name = "Mean of items" if main_row(summary).overall.value is None else "Overall"
    shown = ", ".join(f"{figure:.2f}" for figure in figures)
    return [f"{name} by sample: {shown} (standard deviation {stdev(figures):.2f})"]


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


# --- By subtask --------------------------------------------------------------------------------------------------

_MEANS = {"overall": "Overall", "items_mean": "Mean of items", "plain_mean": "Mean of cells"}


def subtask_table(summary: Summary, wide: bool = True) -> tuple[Table, list[str]]:
    """Return the figures by subtask with those of the baselines, and the key of each row, empty of headings.

    Narrow tables have half of each interval, others its ends. A baseline ends with `!` where the model is not above it.
    """
    measures = ["S", "Lexical" if wide else "Lex."] if summary.measure == "s" else ["Lexical mean"]
    if summary.rows.judged:
        measures.insert(0, "S and J")
    baselines = [name if wide else name.replace("-", "-\n") for name in map(printable, summary.baselines)]
    header = ["Subtask", "Items", *measures, "Contract" if wide else "Con-\ntract", *baselines]
    groups: dict[str, dict[str, str]] = {
        d: {n: SUBTASKS[n].column for n in subtasks_at_hand(summary) if SUBTASKS[n].dimension == d} for d in DIMENSIONS
    }
    groups["averages"] = {f"{d}_avg": d.title() for d in DIMENSIONS if groups[d]} | _MEANS
    rows, keys = list[Sequence[str]](), list[str]()
    for title, labels in groups.items():
        if labels:
            rows += [
                [title.title(), *[""] * (len(header) - 1)],
                *(_line(summary, *one, wide) for one in labels.items()),
            ]
            keys += ["", *labels]
    return Table("", header, rows), keys


def _line(summary: Summary, key: str, label: str, wide: bool) -> list[str]:
    rows, cell = summary.rows, cell_at(main_row(summary), key)
    # As wide for each, so that values align.
    ends = "" if cell is None or cell.low is None else f"[{cell.low:5.2f}, {cell.high:5.2f}]"
    value = f"{value_text(cell)} {ends:<15}" if wide else f"{value_text(cell)}{half_width_text(cell):>5}"
    lexical = [value_text(cell_at(rows.lexical, key))] * (summary.measure == "s")
    unjudged = [value_text(cell_at(rows.s, key))] * (rows.judged is not None)
    baselines = [
        value_text(cell_at(main_row(summary, own), key)) + "! "[key not in summary.reached[name]]
        for name, own in summary.baselines.items()
    ]
    return [
        f" {label}",
        items_text(cell),
        value,
        *unjudged,
        *lexical,
        percent_text(cell_at(rows.compliance, key)),
        *baselines,
    ]


# --- Judges ------------------------------------------------------------------------------------------------------


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


# --- Rows --------------------------------------------------------------------------------------------------------


Source = Literal["run", "human", "baseline", "paper"]
SIGNS = ("", "¹", "²", "³")  # of the places in a group


def rows_table(
    rows: Sequence[TableRow], title: str = "", columns: Sequence[Column] = (), decimals: int = 2, half: str = "beside"
) -> Table:
    """The rows of Table 2 under the titles of their groups, with half of each interval beside or below its figure.

    `half`: `beside`, `below` or empty. Without `columns` the paper's, and for others two more means and the items.
    """
    own, below = any(row.source != "paper" for row in rows), half == "below"
    columns, items = columns or (ALL_COLUMNS if own else COLUMNS), ["Items scored"] * own
    lines: list[Sequence[str | None]] = []
    for number, (group, members) in enumerate(groupby(rows, key=lambda row: row.group)):
        lines += [()] if number else []
        lines += [[group, *[""] * (len(columns) + own)]] if group else []
        for row in members:
            scored = [items_text(row.cells.get("items_mean")) if row.source != "paper" else None] * own
            figures = [row.text(column.key, decimals, half == "beside") for column in columns]
            lines.append([row.label if half == "beside" else row.name, *scored, *figures])
            if below and row.source != "paper":
                ends = (half_width_text(row.cells[one.key]) if one.key in row.cells else "" for one in columns)
                lines.append([row.cautions, "", *ends])
    notes = ["Scores in percent. Overall: weighted with Table 1's counts, needs all subtasks."]
    if own:
        notes.append("Items: mean of the scored items. Cells: plain mean of the cells.")
        notes.append("±: half the 95 % interval (Wilson's, with effective n and t).")
        notes += [UNJUDGED] * any(not row.judged for row in rows)
    if any(row.marks for row in rows):
        notes.append(f"{' '.join(SIGNS[1:])} first, second and third of a group.")
    groups = ["", *[""] * own, *(column.group for column in columns)] if below else ()
    return Table(title, ["", *items, *(c.heading if below else c.title for c in columns)], lines, notes, groups=groups)


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row, from a run (of a model, or of people's replies), one of its baselines, or the paper.

    `cells` by column key (`ALL_COLUMNS`), each on the 0-100 scale; an unknown figure is absent. A cell
    of the paper has no counts (n = total = 0). `languages` are those of the row's items. Runs with equal `protocol`
    fingerprints may be compared. `group` is the row's heading; `marks` holds places 1 to 3 by column key. `judged` is
    False while a level I-III cell has no judge's rating. `private`: items are not scored because their references are
    private. `variant` names other figures of the same run: `unjudged` (levels as 100 S) or `corrected` (levels alone,
    by people's labels); such rows are never ranked.
    """

    model: str
    source: Source
    cells: Mapping[str, Cell]
    measure: str = "s"
    split: str = ""
    languages: str = ""
    protocol: str = ""
    complete: bool = True
    comparable: bool = True
    judged: bool = True
    group: str = ""
    marks: Mapping[str, int] = field(default_factory=dict)
    private: bool = False
    variant: str = ""

    @property
    def name(self) -> str:
        """The row's name: the model, and which of its figures, such as `m (unjudged)`."""
        return f"{self.model} ({self.variant})" if self.variant else self.model

    @property
    def cautions(self) -> str:
        """What a reader must know of the figures, such as `[INCOMPLETE, unjudged]`; empty where there is nothing."""
        cautions = [] if self.complete else [NOT_SCORED if self.private else "INCOMPLETE"]
        if self.measure != "s":
            cautions.append("lexical mean, not S")
        elif not self.comparable:
            cautions.append("S not comparable")
        cautions += [] if self.judged else ["unjudged"]
        return f"[{', '.join(cautions)}]" if cautions else ""

    @property
    def label(self) -> str:
        """The name with the cautions."""
        return f"{self.name} {self.cautions}".rstrip()

    def value(self, key: str) -> float | None:
        """Return the figure of a column, None where there is none."""
        cell = self.cells.get(key)
        return None if cell is None else cell.value

    def text(self, key: str, decimals: int = 2, half: bool = False) -> str | None:
        """Return the figure of a column as text with the sign of its place and, if asked, half its interval."""
        if (value := self.value(key)) is None:
            return None
        return f"{value:.{decimals}f}{SIGNS[self.marks.get(key, 0)]} {half_width_text(self.cells[key]) * half}".rstrip()


def table_rows(summary: Summary) -> list[TableRow]:
    """Return all rows of a run: the model, its variants and its baselines."""
    return [*model_rows(summary), *(table_row(summary, baseline) for baseline in summary.baselines)]


def model_rows(summary: Summary) -> list[TableRow]:
    """Return the run's row, and the other figures of a judged run."""
    rows, judging = summary.rows, summary.judging
    if rows.judged is None:
        return [table_row(summary)]
    corrected = {key: cell for key, cell in (judging.corrected if judging else {}).items() if key in SUBTASKS}
    own = table_row(replace(summary, judged=False, judging=None, rows=replace(rows, judged=None)))
    variants = [replace(own, cells=corrected, judged=True, variant="corrected")] if corrected else []
    return [table_row(summary), *variants, replace(own, variant="unjudged")]


def table_row(summary: Summary, baseline: str | None = None) -> TableRow:
    """Return the row of a run's model, or of a baseline by name, over the items that have the main measure."""
    rows = summary.rows if baseline is None else summary.baselines[baseline]
    row = main_row(summary, rows)
    return TableRow(
        model=summary.model if baseline is None else baseline,
        source="baseline" if baseline else "human" if summary.signature.human else "run",
        cells={c.key: cell for c in ALL_COLUMNS if (cell := cell_at(row, c.key)) is not None},
        measure=summary.measure,
        split=summary.split,
        languages=summary.measured,
        protocol=summary.signature.fingerprint,
        complete=all(cell.n == cell.total for cell in row.cells.values())
        and (baseline is not None or not summary.incomplete),
        comparable=summary.s_comparable,
        judged=summary.judged or not has_levels(row),
        private=summary.counts.private > 0,
    )


# --- The paper's rows --------------------------------------------------------------------------------------------


# Rows whose recomputed overall differs by more are listed: 2 of the 37 readable rows.
CHECK_TOLERANCE = 0.15


def _paper_records() -> list[dict[str, str]]:
    source = files("h2htalk.data") / "bundled" / "paper_table2.csv"
    return list(csv.DictReader(source.read_text(encoding="utf-8").splitlines()))


def paper_rows() -> list[TableRow]:
    """Read the 37 readable rows of the paper's Table 2, in its order; `group` is the size class."""
    return [
        TableRow(
            model=record["model"],
            source="paper",
            cells={c.key: Cell(float(record[c.key]), None, None, 0, 0) for c in COLUMNS if c.key in record},
            split="paper",
            group=record["size_class"],
        )
        for record in _paper_records()
        if record["state"] == "clean"
    ]


def unreadable_rows() -> list[str]:
    """Return the names of the models whose figures in Table 2 cannot be read."""
    return [record["model"] for record in _paper_records() if record["state"] != "clean"]


def check_paper() -> list[dict[str, Any]]:
    """Recompute the averages (plain means) and the overall (Table-1-weighted mean) of each readable row.

    Differences are recomputed minus printed; a row `agrees` where all are within CHECK_TOLERANCE.
    """
    return [_checked(row) for row in paper_rows()]


def _checked(row: TableRow) -> dict[str, Any]:
    cells = {name: _printed(row, name) for name in SUBTASKS if name in row.cells}  # others are not the paper's
    overall = math.fsum(SUBTASKS[name].count * value for name, value in cells.items())
    overall /= math.fsum(SUBTASKS[name].count for name in cells)
    averages: dict[str, float] = {}
    for dimension in DIMENSIONS:
        parts = [cells[name] for name in cells if SUBTASKS[name].dimension == dimension]
        averages[dimension] = math.fsum(parts) / len(parts) - _printed(row, f"{dimension}_avg")
    printed = _printed(row, "overall")
    off = overall - printed
    agrees = all(abs(one) <= CHECK_TOLERANCE for one in (off, *averages.values()))
    made = {"model": row.model, "printed": printed, "recomputed": overall, "off": off}
    return {**made, "averages_off": averages, "agrees": agrees}


def _printed(row: TableRow, key: str) -> float:
    value = row.value(key)
    if value is None:
        raise DataError(f"paper_table2.csv: {row.model} has no {key}; install h2htalk again")
    return value
