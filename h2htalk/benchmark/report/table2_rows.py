"""Rows of Table 2: from a run, one of its baselines, or the paper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from h2htalk.benchmark.report.table2_layout import (
    ALL_COLUMNS,
    cell_at,
    has_levels,
    languages_of,
    main_row,
    parts_of,
)
from h2htalk.benchmark.statistics.table2_averages import Cell
from h2htalk.benchmark.summary import ScoreRows, Summary
from h2htalk.data.subtasks import SUBTASKS

Source = Literal["run", "human", "baseline", "paper"]


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row, from a run (of a model, or of people's replies), one of its baselines, or the paper.

    `cells` by column key (`table2_layout.ALL_COLUMNS`), each on the 0-100 scale; an unknown figure is absent. A cell
    of the paper has no counts (n = total = 0). `part` names the items of the row where a run has two rows
    (`table2_layout.parts_of`), `languages` their languages. Runs with equal `protocol` fingerprints may be compared.
    `group` is the row's heading; `marks` holds places 1 to 3 by column key. `judged` is False while a level I-III
    cell has no judge's rating. `private`: items are not scored because their references are private.
    `variant` names other figures of the same run: `unjudged` (levels as 100 S) or `corrected` (levels alone, by
    people's labels); such rows are never ranked.
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
    part: str = ""
    group: str = ""
    marks: Mapping[str, int] = field(default_factory=dict)
    private: bool = False
    variant: str = ""

    @property
    def name(self) -> str:
        """The row's name: the model, and which of its items or figures, such as `m (zh, lexical mean)`."""
        described = ", ".join(filter(None, (self.part, self.variant)))
        return f"{self.model} ({described})" if described else self.model

    def value(self, key: str) -> float | None:
        """Return the figure of a column, None where there is none."""
        cell = self.cells.get(key)
        return None if cell is None else cell.value


def table_rows(summary: Summary) -> list[TableRow]:
    """Return all rows of a run: the model and its baselines, then the same for items without S where there are any."""
    return [
        row
        for name, part in parts_of(summary).items()
        for row in (*_model_rows(part, name), *(table_row(part, baseline, name) for baseline in part.baselines))
    ]


def model_rows(summary: Summary) -> list[TableRow]:
    """Return the run's row, or its two rows where the settings ask for S in some languages only; each is followed by
    its variants."""
    return [row for row in table_rows(summary) if row.source != "baseline"]


def variant_rows(part: Summary, name: str = "") -> list[TableRow]:
    """Return the other figures of a judged run."""
    rows = part.rows
    if rows.judged is None:
        return []
    corrected = {key: cell for key, cell in (part.judging.corrected if part.judging else {}).items() if key in SUBTASKS}
    unjudged = replace(part, judged=False, judging=None, main=replace(part.main, rows=replace(rows, judged=None)))
    own = [replace(table_row(unjudged, None, name), variant="unjudged")]
    return own if not corrected else [replace(own[0], cells=corrected, judged=True, variant="corrected"), *own]


def _model_rows(part: Summary, name: str) -> list[TableRow]:
    return [table_row(part, None, name), *variant_rows(part, name)]


def table_row(part: Summary, baseline: str | None = None, name: str = "") -> TableRow:
    """Return the row of a run's model, or of one of its baselines by name, over the items that have the main measure.

    `name` names these items (`table2_layout.parts_of`).
    """
    rows = part.rows if baseline is None else part.baselines[baseline]
    row = main_row(part, rows)
    return TableRow(
        model=part.model if baseline is None else baseline,
        source="baseline" if baseline else "human" if part.signature.human else "run",
        cells=_cells(part, rows),
        measure=part.measure,
        split=part.split,
        languages=languages_of(part),
        protocol=part.signature.fingerprint,
        complete=all(cell.n == cell.total for cell in row.cells.values())
        and (baseline is not None or not part.incomplete),
        comparable=part.s_comparable,
        judged=part.judged or not has_levels(row),
        part=name,
        private=part.counts.private > 0,
    )


def _cells(part: Summary, rows: ScoreRows) -> dict[str, Cell]:
    row = main_row(part, rows)
    return {c.key: cell for c in ALL_COLUMNS if (cell := cell_at(row, c.key)) is not None}
