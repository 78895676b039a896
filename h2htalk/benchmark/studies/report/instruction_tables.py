"""The tables and the axes of the study of instruction following (Fig. 7 of the paper)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

from h2htalk.benchmark.observations import (
    BUNDLED,
    HINT,
    blindness,
    equally_demanding,
    figure_of,
    select,
    trend,
)
from h2htalk.benchmark.statistics.estimates import Estimate
from h2htalk.benchmark.studies.points.point_answers import TRIVIAL_ARMS
from h2htalk.benchmark.studies.report.raters_tables import answered_by
from h2htalk.benchmark.studies.report.study_tables import (
    Column,
    Groups,
    Rows,
    TestColumn,
    by_arm,
    cell_of,
    describe_test,
    percent_with_counts,
    point_table,
    rows_with,
    scored_of_total,
    table_of,
)
from h2htalk.benchmark.studies.report.table_words import NAMES, worded_table
from h2htalk.text.tables import Table

INSTRUCTION_FIGURES = ("points", "need_met", "type_named")
DEGREES = ("command", "request", "hint", "subtle hint")
KINDS = ("implicit_help", "ambiguous", "context_aware")  # of Fig. 7, in its order
_CHANGE = "Change a degree: slope within a family of cases"


def instruction_tables(rows: Rows, arms: Sequence[str]) -> Iterator[Table]:
    """Yield the tables of the study; it has one arm, beside the trivial answers."""
    of_study = [row for row in rows if row.figure in INSTRUCTION_FIGURES]
    answered = [row for row in of_study if row.arm not in TRIVIAL_ARMS]
    trivial = by_arm(rows, [arm for arm in TRIVIAL_ARMS if arm in arms])
    everything = {"all": answered}
    languages = _groups_of(answered, "language")
    columns = [Column(NAMES[figure], cell_of(figure)) for figure in INSTRUCTION_FIGURES]
    counts = []
    for figure in INSTRUCTION_FIGURES:
        values = select(answered, figure)
        if values:
            counts.append(f"{NAMES[figure].lower()} {scored_of_total(values)}")
    kinds = _groups_of(answered, "kind") | everything | trivial
    yield table_of("kinds", kinds, columns, scored=", ".join(counts))
    equal_families = equally_demanding(rows)
    yield _degree_table(answered, trivial, equal_families)
    yield _blindness_table(answered, everything | languages, trivial)
    groups = languages | everything | trivial
    yield table_of("instruction_languages", groups, columns)
    yield point_table("instruction_points", rows, arms, "instructions")


def _degree_table(answered: Rows, trivial: Groups, equal_families: set[str]) -> Table:
    """Return the figures by degree of explicitness, of families with equal musts first."""

    def with_equal_musts(rows: Rows, figure: str) -> Rows:
        return [row for row in select(rows, figure) if row.cluster in equal_families]

    groups = {}
    for figure in ("need_met", "points"):
        groups[f"{NAMES[figure]}, equal musts"] = with_equal_musts(answered, figure)
    for title, rows in trivial.items():
        groups[f"Need met, equal musts, {title}"] = with_equal_musts(rows, "need_met")
    for figure in INSTRUCTION_FIGURES:
        groups[f"{NAMES[figure]}, all families"] = select(answered, figure)
    columns = []
    for degree in sorted({row.degree for row in answered}):
        name = DEGREES[degree] if degree < len(DEGREES) else f"degree {degree}"
        columns.append(Column(name, cell_of(degree, field="degree")))
    families = {row.cluster for row in answered}
    equal = len(equal_families & families)
    notes = [describe_test(_CHANGE, "families")]
    tests = [TestColumn("change a degree", partial(trend, by="degree"))]
    return table_of("degrees", groups, columns, notes, tests, equal=equal, families=len(families))


def _blindness_table(answered: Rows, groups: Groups, trivial: Groups) -> Table:
    """Return how often a need is missed that is only hinted at; trivial answers have no interval."""
    lines = []
    for title, rows in {**groups, **trivial}.items():
        missed = blindness(select(rows, "need_met"))
        if title in trivial:
            missed = replace(missed, answered_by=BUNDLED)
        lines.append((title, percent_with_counts(missed), f"{missed.n:,} of {missed.total:,}"))
    raters = answered_by(select(answered, "need_met"))
    return worded_table("blindness", lines, notes=raters)


def _groups_of(rows: Rows, field: str) -> dict[str, Rows]:
    """Return observations by a field of their case, the kinds of Fig. 7 first."""
    values = {str(getattr(row, field)) for row in rows}
    names = [name for name in KINDS if name in values]
    names += sorted(values.difference(KINDS))
    return {name.replace("_", " "): rows_with(rows, field, name) for name in names}


def radar_axes(rows: Rows) -> dict[str, Estimate]:
    """Return the axes of Fig. 7: points met by kind of case, as commands and requests, and as hints."""
    axes = {}
    points = [row for row in select(rows, "points") if row.arm not in TRIVIAL_ARMS]
    for kind, wording in product(KINDS, ("explicit", "hinted")):
        is_hinted = wording == "hinted"
        rows_of_kind = rows_with(points, "kind", kind)
        rows_of_axis = [row for row in rows_of_kind if (row.degree >= HINT) == is_hinted]
        axes[f"{kind.replace('_', ' ')}, {wording}"] = figure_of(rows_of_axis)
    return axes
