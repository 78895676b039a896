"""The tables of the study of safety with and without SAP (Table 3 of the paper), and of logged chats."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from h2htalk.benchmark.estimate_text import format_figure, format_percent
from h2htalk.benchmark.observations import figure_of, select, trend
from h2htalk.benchmark.statistics.averages import rate_interval
from h2htalk.benchmark.statistics.estimates import Estimate
from h2htalk.benchmark.studies.points.observe import LINGUISTIC
from h2htalk.benchmark.studies.report.study_tables import (
    Column,
    Rows,
    TestColumn,
    by_arm,
    cell_of,
    describe_test,
    difference_table,
    percent_with_counts,
    point_table,
    raters_cell,
    rows_with,
    scored_of_total,
    table_of,
)
from h2htalk.benchmark.studies.report.table_words import NAMES, WORDS
from h2htalk.text.tables import NONE, Table


def _with_raters(heading: str, figure: str, show: Callable[[Estimate], str]) -> list[Column]:
    """Return the column of a figure, and beside it who answered."""
    return [Column(heading, cell_of(figure, show)), Column("by", raters_cell(figure))]


def _musts_met(rows: Rows) -> str:
    """Return the share of must points that are true."""
    return percent_with_counts(figure_of(select(rows, "must.")))


def _turns_scored(rows: Rows) -> str:
    return scored_of_total(select(rows, "violation"))


OVER_REFUSAL = Column("over-refusal", cell_of("over_refusal", percent_with_counts))
SAFETY = [
    *_with_raters("safety perception", "perception", partial(format_figure, digits=2)),
    *_with_raters("violation response rate", "violation", percent_with_counts),
    Column("did what it had to", _musts_met),
    OVER_REFUSAL,
    Column("turns scored", _turns_scored),
]


def embedder_of(rows: Rows, figure: str) -> str:
    """Return what a heading says of an embedder that is not the paper's."""
    embedder = figure_of(select(rows, figure)).answered_by
    return f" by {embedder}" if embedder else ""


def sap_tables(rows: Rows, arms: Sequence[str]) -> Iterator[Table]:
    """Yield the tables of the study of safety."""
    names = dict(NAMES)
    for figure in LINGUISTIC:
        names[figure] += embedder_of(rows, figure)
    show = partial(format_figure, factor=100)
    columns = [Column(names[figure], cell_of(figure, show)) for figure in LINGUISTIC]
    notes = []
    if select(rows, "bleu_4") and not select(rows, "ss"):
        notes.append(WORDS["no_embedder"])
    table = table_of("table3", by_arm(rows, arms), [*columns, *SAFETY], notes)
    yield replace(table, rows=(*table.rows, *_paper_rows()))
    compared = (*LINGUISTIC, "perception", "violation", "over_refusal")
    headings = {figure: names[figure] for figure in compared}
    yield from difference_table(rows, arms, "sap", headings, "cases")
    yield point_table("high_risk_points", rows, arms, "high_risk")
    yield point_table("look_alikes", rows, arms, "look_alike")
    yield from _safety_by("language", rows, arms, SAFETY)
    yield from _turn_tables(rows, arms)


def _paper_rows() -> Iterator[tuple[str, ...]]:
    """Yield the rows of the paper's Table 3, whose rates get an interval."""
    turns = WORDS["paper"]["turns"]
    for name, (*means, rate) in WORDS["paper"]["rows"].items():
        low, high = rate_interval(rate * turns, turns)
        violation = Estimate(rate, low, high, turns, turns)
        yield (name, *means, "people", format_percent(violation), "people", NONE, NONE, NONE)


def _turn_tables(rows: Rows, arms: Sequence[str]) -> Iterator[Table]:
    """Yield violations and safety perception by turn, with the change a turn."""
    note = describe_test("Change a turn: slope within a case", "cases")
    tests = [TestColumn("change a turn", trend)]
    for figure, show in (("violation", format_percent), ("perception", format_figure)):
        rows_of_figure = select(rows, figure)
        turns = sorted({row.turn for row in rows_of_figure})
        columns = [Column(f"turn {turn}", cell_of(turn, show, "turn")) for turn in turns]
        groups = by_arm(rows_of_figure, arms)
        if rows_of_figure:
            yield table_of(f"turns_{figure}", groups, columns, [note], tests)


def _safety_by(
    field: str, rows: Rows, arms: Sequence[str], columns: Sequence[Column]
) -> Iterator[Table]:
    """Yield the safety of each value of a field of observations, where there are several."""
    values = sorted({str(getattr(row, field)) for row in rows})
    if len(values) < 2:
        return
    groups = {}
    for title, rows_of_arm in by_arm(rows, arms).items():
        for value in values:
            name = value.replace("_", " ")
            groups[f"{title}, {name}"] = rows_with(rows_of_arm, field, value)
    yield table_of("safety_by", groups, columns, field=field)


def log_tables(rows: Rows, arms: Sequence[str]) -> Iterator[Table]:
    """Yield the tables of logged chats."""
    columns = [column for column in SAFETY if column != OVER_REFUSAL]  # no chat is known harmless
    yield table_of("logs", by_arm(rows, arms), columns)
    yield point_table("log_points", rows, arms, "high_risk")
    yield from _safety_by("kind", rows, arms, columns)
    yield from _safety_by("language", rows, arms, columns)
