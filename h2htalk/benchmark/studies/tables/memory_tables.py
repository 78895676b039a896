"""Tables of the study of memory: what each kind of memory keeps, corrects and leaves alone, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from h2htalk.benchmark.studies.figures import Figure, difference, figure_of, select
from h2htalk.benchmark.studies.observations import Observation
from h2htalk.benchmark.studies.recollection import FIGURES as TEXT_FIGURES
from h2htalk.benchmark.studies.tables.study_table import NONE, StudyTable, percent, score, shift
from h2htalk.data.subtasks import SUBTASKS

TITLES = {
    "none": "no memory",
    "window": "sliding window",
    "explicit": "explicit memory",
    "whole": "whole history",
    "app": "the application",
}
# Points of `arcs`: their title, and whether the share is turned round so that more is better.
COLUMNS = {
    "must.callback": ("callbacks right", False),
    "must.admits_gap": ("gaps admitted", False),
    "must_not.invented": ("facts invented", False),
    "must_not.corrected": ("corrections forgotten", False),
    "must_not.forgotten": ("forgotten things brought up", False),
    "must.emotion": ("feelings met", False),
}


def memory_tables(rows: Sequence[Observation], arms: Sequence[str]) -> Iterator[StudyTable]:
    """Yield the tables of the study."""
    yield _overview(rows, arms)
    if "none" in arms and len(arms) > 1:
        yield _differences(rows, arms)
    if any(row.study == "recollection" for row in rows):
        yield _recollection(rows, arms)


def _overview(rows: Sequence[Observation], arms: Sequence[str]) -> StudyTable:
    lines = []
    for arm in arms:
        cells = [_cell(select(rows, figure, arm)) for figure in COLUMNS]
        tokens = select(rows, "tokens", arm)
        lines.append((TITLES[arm], *cells, f"{figure_of(tokens).value or 0:,.0f}" if tokens else NONE))
    header = ("memory", *(title for title, _ in COLUMNS.values()), "tokens a reply")
    open_ = sum(row.value is None for row in rows if row.figure in COLUMNS)
    notes = [
        "Share of the points that are true of the reply, with counts; 95 % by Wilson. Code decides callbacks, "
        "inventions, corrections and forgotten things by the words of the facts; a judge or people the others.",
        "Tokens: sent and written for a reply, the model's own notes included; estimated where the engine does "
        "not report them.",
    ]
    if open_:
        notes.append(f"Unscored points, never counted as passed: {open_:,}.")
    return StudyTable("memory", "Memory over several sessions", header, tuple(lines), tuple(notes))


def _cell(rows: Sequence[Observation]) -> str:
    return percent(figure_of(rows), count=True) if rows else NONE


def _differences(rows: Sequence[Observation], arms: Sequence[str]) -> StudyTable:
    lines = [
        (
            TITLES[arm],
            *(shift(difference(select(rows, figure, "none"), select(rows, figure, arm))) for figure in COLUMNS),
        )
        for arm in arms
        if arm != "none"
    ]
    header = ("memory", *(title for title, _ in COLUMNS.values()))
    notes = (
        "Paired by point, clustered by arc: 95 % interval by bootstrap over arcs, p of the sign-flip test. In "
        "points of 100.",
    )
    return StudyTable("differences", "Difference from the arm without memory", header, tuple(lines), notes)


def _recollection(rows: Sequence[Observation], arms: Sequence[str]) -> StudyTable:
    names = [name for name, subtask in SUBTASKS.items() if subtask.dimension == "recollection"]
    lines = []
    for arm in arms:
        own = [row for row in rows if row.study == "recollection" and row.arm == arm]
        if own:
            cells = [_text(own, f"{figure}.{name}") for name in names for figure in TEXT_FIGURES]
            lines.append((TITLES[arm], *cells))
    header = (
        "material shown",
        *(f"{SUBTASKS[n].title.removeprefix('Recollection')}, {f}" for n in names for f in ("S", "lexical")),
    )
    notes = (
        "The Recollection subtasks of mini, with the last entry, the last entries or all of their material. 100 "
        "S, and the lexical mean.",
    )
    return StudyTable("recollection", "Recollection subtasks", header, tuple(lines), notes)


def _text(rows: Sequence[Observation], figure: str) -> str:
    own = select(rows, figure)
    found = figure_of(own) if own else Figure(None, None, None, None, 0, 0)
    return score(found, 100)
