"""Tables of the study of memory: what each kind of memory keeps, corrects and leaves alone, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from h2htalk.benchmark.studies.figures import figure_of, select
from h2htalk.benchmark.studies.recollection import FIGURES, RECOLLECTION
from h2htalk.benchmark.studies.tables.study_table import (
    NO_EMBEDDER,
    Rows,
    by_arm,
    difference_table,
    mean_of,
    share_of,
    table_of,
    unscored,
)
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.text.tables import NONE, Table

# The points of `arcs`.
COLUMNS = {
    "must.callback": "callbacks right",
    "must.admits_gap": "gaps admitted",
    "must_not.invented": "facts invented",
    "must_not.corrected": "corrections forgotten",
    "must_not.forgotten": "forgotten things brought up",
    "must.emotion": "feelings met",
}
_OVERVIEW = (
    "Share of the points that are true of the reply, with counts; 95 % by Wilson. Code decides callbacks, inventions, "
    "corrections and forgotten things by the words of the facts; a judge or people the others.",
    "Tokens: sent and written for a reply, the model's own notes included; estimated where the engine does not report "
    "them.",
)
_PAIRED = (
    "Paired by point, clustered by arc: 95 % interval by bootstrap over arcs, p of the sign-flip test. In points of "
    "100."
)
_SHOWN = (
    "The Recollection subtasks of mini, with the last entry, the last entries or all of their material. 100 S, and the "
    "lexical mean."
)


def memory_tables(rows: Rows, arms: Sequence[str]) -> Iterator[Table]:
    """Yield the tables of the study."""
    columns = [(title, share_of(figure, count=True)) for figure, title in COLUMNS.items()]
    notes = [*_OVERVIEW, *unscored([row for row in rows if row.figure in COLUMNS])]
    yield table_of(
        "memory",
        "Memory over several sessions",
        "memory",
        by_arm(rows, arms, "memory"),
        [*columns, ("tokens a reply", _tokens)],
        notes,
    )
    if "none" in arms and len(arms) > 1:
        yield difference_table(rows, arms, "memory", COLUMNS, _PAIRED)
    if own := [row for row in rows if row.study == RECOLLECTION]:
        yield _recollection(own, arms)


def _tokens(rows: Rows) -> str:
    mean = figure_of(select(rows, "tokens")).value
    return NONE if mean is None else f"{mean:,.0f}"


def _recollection(rows: Rows, arms: Sequence[str]) -> Table:
    columns = [
        (
            f"{subtask.title.removeprefix('Recollection')}, {figure.replace('s', 'S', figure == 's')}",
            mean_of(f"{figure}.{name}", 100),
        )
        for name, subtask in SUBTASKS.items()
        if subtask.dimension == RECOLLECTION
        for figure in FIGURES
    ]
    groups = {title: own for title, own in by_arm(rows, arms, "memory").items() if own}
    notes = [_SHOWN, *[NO_EMBEDDER] * (not any(row.figure.startswith("s.") for row in rows))]
    return table_of("recollection", "Recollection subtasks", "material shown", groups, columns, notes)
