"""Make a table of groups of observations: a row for each group, a column for each figure or test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, product
from typing import NamedTuple

from h2htalk.benchmark.estimate_text import format_difference, format_percent
from h2htalk.benchmark.observations import BUNDLED, Observation, figure_of, select, tied_in
from h2htalk.benchmark.paired_observations import difference, pair
from h2htalk.benchmark.prompts.sap import PRINCIPLES
from h2htalk.benchmark.statistics.estimates import Estimate
from h2htalk.benchmark.statistics.paired_tests import MIN_CLUSTERS, PairedResult, holm
from h2htalk.benchmark.studies.points.point_answers import TRIVIAL_ARMS
from h2htalk.benchmark.studies.report.raters_tables import answered_by
from h2htalk.benchmark.studies.report.table_words import NAMES, TIES, WORDS, worded_table
from h2htalk.errors import counted
from h2htalk.text.tables import NONE, Table

POINT_KINDS = ("must.", "must_not.")
PERCENTAGE_POINTS = (100.0, 1)  # the factor and the digits of a difference
DIFFERENCES = {"perception": (1.0, 2)}  # the same of figures that are no shares
percent_with_counts = partial(format_percent, count=True)
Rows = Sequence[Observation]
Groups = Mapping[str, Rows]
Cell = Callable[[Rows], str]
Test = Callable[[Rows], PairedResult | None]


class Column(NamedTuple):
    """A column of figures: its heading, and what makes the text of a group of observations."""

    heading: str
    cell: Cell


class TestColumn(NamedTuple):
    """A column of tests; `figure`: the figure that is tested, where it is not that of the group."""

    heading: str
    test: Test
    figure: str = ""


def table_of(
    key: str,
    groups: Groups,
    columns: Sequence[Column],
    notes: Iterable[str] = (),
    tests: Sequence[TestColumn] = (),
    **values: object,
) -> Table:
    """Return a row for each group of observations, and a cell for each column, with the words of `tables.KEY`.

    The p values of `tests` are adjusted together.
    """
    test_texts = _test_texts(groups, tests)
    lines = []
    for group, rows in groups.items():
        cells = [column.cell(rows) for column in columns]
        cells += [test_texts.get((group, column.heading), NONE) for column in tests]
        lines.append((group, *cells))
    shown_rows = list(chain.from_iterable(groups.values()))
    raters = answered_by(shown_rows)
    if tied_in(shown_rows):
        raters.insert(0, TIES)
    headings = [column.heading for column in columns]
    headings += [column.heading for column in tests]
    return worded_table(key, lines, headings, (*notes, *raters), **values)


def _test_texts(groups: Groups, tests: Sequence[TestColumn]) -> dict[tuple[str, str], str]:
    """Return the text of each test by group and heading; trivial answers are not tested."""
    results: dict[tuple[str, str], PairedResult] = {}
    units: dict[tuple[str, str], tuple[float, int]] = {}
    for (group, rows), column in product(groups.items(), tests):
        is_trivial = any(row.arm in TRIVIAL_ARMS for row in rows)
        result = None if is_trivial else column.test(rows)
        if result is not None:
            key = (group, column.heading)
            results[key] = result
            units[key] = DIFFERENCES.get(column.figure or rows[0].figure, PERCENTAGE_POINTS)
    adjusted = holm({key: result.p() for key, result in results.items()})
    return {
        key: format_difference(result, adjusted[key], *units[key])
        for key, result in results.items()
    }


def rows_with(rows: Rows, field: str, value: object) -> list[Observation]:
    """Return the observations with a value of a field."""
    return [row for row in rows if getattr(row, field) == value]


def cell_of(
    value: object, show: Callable[[Estimate], str] = format_percent, field: str = "figure"
) -> Cell:
    """Return a cell that shows the figure of the observations with a value of a field."""
    return lambda rows: show(figure_of(rows_with(rows, field, value)))


def raters_cell(figure: str) -> Cell:
    """Return a cell that names who answered a figure."""
    return lambda rows: figure_of(select(rows, figure)).answered_by or NONE


def describe_test(what: str, cluster: str) -> str:
    """Return the note that says how the differences or slopes of a table are tested."""
    return str(WORDS["test"].format(what=what, cluster=cluster, least=MIN_CLUSTERS))


def difference_table(
    rows: Rows, arms: Sequence[str], study: str, figures: Mapping[str, str], cluster: str
) -> Iterator[Table]:
    """Yield the differences of figures (by name, with their headings) from the arm `none`, paired by place."""
    compared = [arm for arm in arms if arm not in ("none", *TRIVIAL_ARMS)]
    if "none" not in arms or not compared:
        return
    groups = by_arm(rows, compared, study)
    unlike = 0
    tests = []
    for figure, heading in figures.items():
        rows_of_none = select(rows, figure, "none")
        test = partial(_difference_from, rows_of_none, figure)
        tests.append(TestColumn(heading, test, figure))
        for rows_of_arm in groups.values():
            unlike += len(pair(rows_of_none, select(rows_of_arm, figure)).unlike)
    paired = "Paired by place, clustered by case, in points of 100 but for safety perception"
    notes = [describe_test(paired, cluster)]
    if unlike:
        notes.append(WORDS["unlike"].format(pairs=counted(unlike, "pair")))
    yield table_of("differences", groups, (), notes, tests, arm=title_of("none", study))


def _difference_from(
    reference: Sequence[Observation], figure: str, rows: Rows
) -> PairedResult | None:
    return difference(reference, select(rows, figure))


def point_table(key: str, rows: Rows, arms: Sequence[str], study: str) -> Table:
    """Return the share of replies of which each kind of point is true, by arm."""
    points = [row for row in rows if row.study == study and row.figure.startswith(POINT_KINDS)]
    figures = sorted({row.figure for row in points})
    groups = {name_of(figure): select(points, figure) for figure in figures}
    columns = [Column(title_of(arm), cell_of(arm, percent_with_counts, "arm")) for arm in arms]
    columns.append(Column("by", _raters_of_models))
    return table_of(key, groups, columns, unscored_notes(points))


def _raters_of_models(rows: Rows) -> str:
    """Name who answered about replies of models."""
    return figure_of([row for row in rows if row.by != BUNDLED]).answered_by or NONE


def unscored_notes(rows: Rows) -> list[str]:
    """Return a note of how many values are missing, and why; nothing where all are there."""
    reasons = Counter(row.unscored for row in rows if row.value is None)
    if not reasons:
        return []
    numbers = ", ".join(f"{reason} {number:,}" for reason, number in sorted(reasons.items()))
    return [f"Unscored, and never counted as passed: {numbers}."]


def by_arm(rows: Rows, arms: Iterable[str], study: str = "sap") -> dict[str, Rows]:
    """Return the observations of each arm by its title."""
    return {title_of(arm, study): rows_with(rows, "arm", arm) for arm in arms}


def title_of(arm: str, study: str = "sap") -> str:
    """Return what tables call an arm of a study."""
    name = arm.removeprefix("no-").replace("-", "_")
    if name in PRINCIPLES:
        return f"SAP without {PRINCIPLES[name].lower()}"
    if (arm, study) == ("none", "memory"):
        return "without memory"
    return str(WORDS["arms"].get(arm, arm))


def name_of(figure: str) -> str:
    """Return what tables call a figure; `must_not.give_means` is `must not: give means`."""
    if figure.startswith(POINT_KINDS):
        return figure.replace(".", ": ", 1).replace("_", " ")
    return NAMES.get(figure, figure)


def scored_of_total(rows: Rows) -> str:
    """Return how many values of a figure are scored, as `140 of 150`."""
    figure = figure_of(rows)
    return f"{figure.n:,} of {figure.total:,}"
