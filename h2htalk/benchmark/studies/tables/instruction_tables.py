"""Tables of the study of instruction following (Fig. 7): rubric points by kind and degree, slope, blindness."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from h2htalk.benchmark.studies.figures import blindness, by_number, figure_of, select, trend
from h2htalk.benchmark.studies.observations import Observation
from h2htalk.benchmark.studies.tables.sap_tables import NAMES, point_table
from h2htalk.benchmark.studies.tables.study_table import NONE, StudyTable, percent, scored, shift

FIGURES = ("points", "need_met", "type_named")
DEGREES = ("command", "request", "hint", "subtle hint")
KINDS = ("implicit_help", "ambiguous", "context_aware")


def instruction_tables(rows: Sequence[Observation], arms: Sequence[str]) -> Iterator[StudyTable]:
    """Yield the tables of the study; it has one arm."""
    yield _by_group(rows, "kinds", "Instruction following by kind of case (Fig. 7)", "kind")
    yield _by_degree(rows)
    yield _blindness(rows)
    yield _by_group(rows, "languages", "By language", "language")
    yield point_table(
        rows, arms, "instructions", "points", "Points of the cases: share of replies of which each is true"
    )


def _by_group(rows: Sequence[Observation], name: str, title: str, field: str) -> StudyTable:
    groups = sorted({getattr(row, field) for row in rows if row.figure in FIGURES})
    if field == "kind":
        groups.sort(key=lambda kind: KINDS.index(kind) if kind in KINDS else len(KINDS))
    lines = [
        (
            str(group).replace("_", " "),
            *(_cell([r for r in select(rows, f) if getattr(r, field) == group]) for f in FIGURES),
        )
        for group in groups
    ]
    lines.append(("all", *(_cell(select(rows, figure)) for figure in FIGURES)))
    everything = ", ".join(
        f"{NAMES[f].lower()} {scored(figure_of(select(rows, f)))}" for f in FIGURES if select(rows, f)
    )
    notes = (
        f"Scored: {everything}.",
        "Points met: mean share of a case's points. Need met: its points of the request itself. Request type "
        "named: the model's own answer to the question which of the types the user means.",
    )
    return StudyTable(name, title, (field, *(NAMES[figure] for figure in FIGURES)), tuple(lines), notes)


def _cell(rows: Sequence[Observation]) -> str:
    return percent(figure_of(rows)) if rows else NONE


def _by_degree(rows: Sequence[Observation]) -> StudyTable:
    lines = []
    numbers = sorted({row.degree for row in rows if row.figure in FIGURES})
    for figure in FIGURES:
        own = select(rows, figure)
        found = by_number(own, lambda row: row.degree)
        cells = [percent(found[number]) if number in found else NONE for number in numbers]
        lines.append((NAMES[figure], *cells, shift(trend(own, lambda row: float(row.degree)))))
    header = ("figure", *(DEGREES[k] if k < len(DEGREES) else f"degree {k}" for k in numbers), "change a degree")
    notes = (
        "Change a degree: slope within a family of cases; 95 % interval by bootstrap over families, p of the "
        "sign-flip test.",
    )
    return StudyTable("degrees", "By degree of explicitness", header, tuple(lines), notes)


def _blindness(rows: Sequence[Observation]) -> StudyTable:
    own = select(rows, "need_met")
    groups = {"all": own} | {
        language: select(own, "need_met", language=language) for language in sorted({row.language for row in own})
    }
    lines = []
    for name, chosen in groups.items():
        found = blindness(chosen)
        lines.append((name, percent(found, count=True), f"{found.n:,} of {found.total:,}"))
    notes = (
        "Of the needs that are met where they are commanded, the share missed where they are only hinted at (the "
        "highest degree).",
    )
    header = ("cases", "implicit-need blindness", "families met as a command")
    return StudyTable("blindness", "Implicit-need blindness", header, tuple(lines), notes)


def radar_axes(rows: Sequence[Observation]) -> dict[str, float | None]:
    """The axes of Fig. 7: points met by kind of case, as commands and requests, and as hints."""
    axes: dict[str, float | None] = {}
    for kind in KINDS:
        for name, degrees in (("explicit", (0, 1)), ("hinted", (2, 3))):
            own = [row for row in select(rows, "points", kind=kind) if row.degree in degrees]
            axes[f"{kind.replace('_', ' ')}, {name}"] = figure_of(own).value if own else None
    return axes
