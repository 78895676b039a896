"""The tables of the study of memory over several sessions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from h2htalk.benchmark.estimate_text import format_figure
from h2htalk.benchmark.statistics.estimates import Estimate
from h2htalk.benchmark.studies.conversations import RECOLLECTION
from h2htalk.benchmark.studies.points.observe import RECOLLECTION_FIGURES
from h2htalk.benchmark.studies.report.safety_tables import embedder_of
from h2htalk.benchmark.studies.report.study_tables import (
    Column,
    Rows,
    by_arm,
    cell_of,
    difference_table,
    percent_with_counts,
    rows_with,
    table_of,
    unscored_notes,
)
from h2htalk.benchmark.studies.report.table_words import WORDS
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.text.tables import NONE, Table

COLUMNS: Mapping[str, str] = WORDS["memory_points"]  # the points of `arcs`


def memory_tables(rows: Rows, arms: Sequence[str]) -> Iterator[Table]:
    """Yield the tables of the study."""
    columns = [
        Column(title, cell_of(figure, percent_with_counts)) for figure, title in COLUMNS.items()
    ]
    columns.append(Column("tokens a reply", cell_of("tokens", _tokens_text)))
    notes = unscored_notes([row for row in rows if row.figure in COLUMNS])
    yield table_of("memory", by_arm(rows, arms, "memory"), columns, notes)
    yield from difference_table(rows, arms, "memory", COLUMNS, "arcs")
    recollection = rows_with(rows, "study", RECOLLECTION)
    if recollection:
        yield _recollection_table(recollection, arms)


def _tokens_text(tokens: Estimate) -> str:
    return NONE if tokens.value is None else f"{tokens.value:,.0f}"


def _recollection_table(rows: Rows, arms: Sequence[str]) -> Table:
    """Return S and the lexical mean of the Recollection subtasks by the material that an arm shows."""
    show = partial(format_figure, factor=100)
    columns = []
    for name, subtask in SUBTASKS.items():
        if subtask.dimension != RECOLLECTION:
            continue
        for figure, label in zip(RECOLLECTION_FIGURES, ("S", "lexical"), strict=True):
            figure_of_subtask = f"{figure}.{name}"
            heading = f"{subtask.title.removeprefix('Recollection')}, {label}"
            heading += embedder_of(rows, figure_of_subtask)
            columns.append(Column(heading, cell_of(figure_of_subtask, show)))
    by_title = by_arm(rows, arms, "memory").items()
    groups = {title: rows_of_arm for title, rows_of_arm in by_title if rows_of_arm}
    notes = []
    if not any(row.figure.startswith("s.") for row in rows):
        notes.append(WORDS["no_embedder"])
    return table_of("recollection", groups, columns, notes)
