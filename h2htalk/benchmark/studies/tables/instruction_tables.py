"""Tables of the study of instruction following (Fig. 7): rubric points by kind and degree, slope, blindness."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from h2htalk.benchmark.studies.figures import Figure, blindness, figure_of, select, trend
from h2htalk.benchmark.studies.observations import Observation
from h2htalk.benchmark.studies.tables.study_table import (
    NAMES,
    Cell,
    Rows,
    cell_of,
    percent,
    point_table,
    share_of,
    shift,
    table_of,
)
from h2htalk.text.tables import Table

FIGURES = ("points", "need_met", "type_named")
DEGREES = ("command", "request", "hint", "subtle hint")
KINDS = ("implicit_help", "ambiguous", "context_aware")
_FIGURES = (
    "Points met: mean share of a case's points. Need met: its points of the request itself. Request type named: the "
    "model's own answer to the question which of the types the user means."
)
_SLOPE = (
    "Change a degree: slope within a family of cases; 95 % interval by bootstrap over families, p of the sign-flip "
    "test."
)
_BLIND = (
    "Of the needs that are met where they are commanded, the share missed where they are only hinted at (the highest "
    "degree)."
)


def instruction_tables(rows: Rows, arms: Sequence[str]) -> Iterator[Table]:
    """Yield the tables of the study; it has one arm."""
    own = [row for row in rows if row.figure in FIGURES]
    columns = [(NAMES[figure], share_of(figure)) for figure in FIGURES]
    kinds, languages = groups_of(own, "kind"), groups_of(own, "language")
    title = "Instruction following by kind of case (Fig. 7)"
    yield table_of("kinds", title, "kind", kinds | {"all": own}, columns, (_scored(own), _FIGURES))
    yield _by_degree(own)
    blind: list[tuple[str, Cell]] = [
        ("implicit-need blindness", lambda rows: percent(blindness(select(rows, "need_met")), count=True)),
        ("families met as a command", lambda rows: _of(blindness(select(rows, "need_met")))),
    ]
    yield table_of("blindness", "Implicit-need blindness", "cases", {"all": own} | languages, blind, [_BLIND])
    yield table_of("languages", "By language", "language", languages | {"all": own}, columns)
    points = "Points of the cases: share of replies of which each is true"
    yield point_table(rows, arms, "instructions", "points", points)


def groups_of(rows: Rows, field: str) -> dict[str, list[Observation]]:
    """Observations by a field of their case, the kinds of Fig. 7 first."""
    names = sorted({str(getattr(row, field)) for row in rows})
    names.sort(key=lambda name: KINDS.index(name) if name in KINDS else len(KINDS))
    return {name.replace("_", " "): [row for row in rows if getattr(row, field) == name] for name in names}


def _scored(rows: Rows) -> str:
    found = {figure: figure_of(select(rows, figure)) for figure in FIGURES}
    listed = (f"{NAMES[name].lower()} {_of(one)}" for name, one in found.items() if one.total)
    return f"Scored: {', '.join(listed)}."


def _of(figure: Figure) -> str:
    return f"{figure.n:,} of {figure.total:,}"


def _by_degree(rows: Rows) -> Table:
    names = {k: DEGREES[k] if k < len(DEGREES) else f"degree {k}" for k in sorted({row.degree for row in rows})}
    columns = [(name, cell_of("degree", k, percent)) for k, name in names.items()]
    columns.append(("change a degree", lambda rows: shift(trend(rows, lambda row: float(row.degree)))))
    groups = {NAMES[figure]: select(rows, figure) for figure in FIGURES}
    return table_of("degrees", "By degree of explicitness", "figure", groups, columns, [_SLOPE])


def radar_axes(rows: Rows) -> dict[str, float | None]:
    """The axes of Fig. 7: points met by kind of case, as commands and requests, and as hints."""
    axes: dict[str, float | None] = {}
    for kind in KINDS:
        for name, degrees in (("explicit", (0, 1)), ("hinted", (2, 3))):
            own = [row for row in select(rows, "points", kind=kind) if row.degree in degrees]
            axes[f"{kind.replace('_', ' ')}, {name}"] = figure_of(own).value
    return axes
