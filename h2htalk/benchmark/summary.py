"""The summary of a run: rows, slices, baselines, counts and warnings, as in `summary.json`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from h2htalk.benchmark.metrics.metric_table import columns
from h2htalk.benchmark.metrics.null_class import NullClass
from h2htalk.benchmark.statistics.table2_averages import Cell, Row
from h2htalk.chat.costs.reservations import Totals
from h2htalk.data.files import read_json_object
from h2htalk.data.run_folder import SCORE_AGAIN
from h2htalk.data.signature import Signature
from h2htalk.data.subtasks import DIMENSIONS, SUBTASKS
from h2htalk.errors import DataError, quoted, shorten

if TYPE_CHECKING:
    from pydantic import TypeAdapter

# The two measures of a row: the composite S, or the mean of its six lexical parts.
Measure = Literal["s", "lexical"]


@dataclass(frozen=True, slots=True)
class RunCounts:
    """How many items and samples were scored.

    `erased` counts items that were asked and erased later; `items` leaves them out. `private` counts answered items
    whose references are private. `failures` counts unscored samples by reason, `failure_messages` holds the first
    message of each reason; `empty`, `truncated` and `refused` count replies.
    """

    items: int
    scored: int
    samples: int
    empty: int = 0
    truncated: int = 0
    refused: int = 0
    failures: Mapping[str, int] = field(default_factory=dict)
    failure_messages: Mapping[str, str] = field(default_factory=dict)
    private: int = 0
    erased: int = 0

    @property
    def unscored(self) -> int:
        """Items without a score that could have one."""
        return self.items - self.scored - self.private


@dataclass(frozen=True, slots=True)
class ScoreRows:
    """The rows of the model or of a baseline. `s` is None where no embedder was used."""

    s: Row | None
    lexical: Row
    compliance: Row
    null_class: NullClass | None

    def row(self, measure: Measure) -> Row | None:
        return self.s if measure == "s" else self.lexical

    def to_dict(self) -> dict[str, Any]:
        return {
            "s": None if self.s is None else self.s.to_dict(),
            "lexical": self.lexical.to_dict(),
            "compliance": self.compliance.to_dict(),
            "null_class": None if self.null_class is None else self.null_class.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class MeasureResults:
    """The figures of the items with the same measure: S, or the lexical mean where no embedder was used.

    `languages` are the items' own. `metrics` holds a cell for each metric of each subtask, `slices` one for each
    value of each tag. `reached` names for each baseline the figures (`figure_weights`) in which the model is not shown
    to be above it: the paired 95 % interval of the difference holds 0, or lies below.
    """

    languages: tuple[str, ...]
    rows: ScoreRows
    metrics: Mapping[str, Mapping[str, Cell]]
    slices: Mapping[str, Mapping[str, Cell]]
    baselines: Mapping[str, ScoreRows]
    reached: Mapping[str, tuple[str, ...]]

    def to_dict(self) -> dict[str, Any]:
        return {
            "languages": list(self.languages),
            "rows": self.rows.to_dict(),
            "metrics": _cells_to_dict(self.metrics),
            "slices": _cells_to_dict(self.slices),
            "baselines": {name: rows.to_dict() for name, rows in self.baselines.items()},
            "reached": {name: list(keys) for name, keys in self.reached.items()},
        }


def _cells_to_dict(cells: Mapping[str, Mapping[str, Cell]]) -> dict[str, Any]:
    return {key: {name: cell.to_dict() for name, cell in row.items()} for key, row in cells.items()}


@dataclass(frozen=True, slots=True)
class Summary:
    """Everything the tables show.

    `measure` is what the main row is made of: `s`, or `lexical` where no embedder was asked for. `main` holds the
    figures of the items that have that measure; `without_s` those of the items for which S was not asked for while
    others have it (an English embedder on a split in two languages), else None. `s_comparable` says whether S may
    stand beside the paper's (BGE-M3 only). `counts` and `violations` are of all items. `judged` is False while
    levels I-III have no judge's rating in them. `costs` holds what each stage paid; empty where no call cost anything.
    """

    model: str
    split: str
    signature: Signature
    package_version: str
    measure: Measure
    s_comparable: bool
    counts: RunCounts
    main: MeasureResults
    without_s: MeasureResults | None
    violations: Mapping[str, int]
    warnings: tuple[str, ...]
    judged: bool = False
    costs: Mapping[str, Totals] = field(default_factory=dict)

    @property
    def incomplete(self) -> bool:
        """Whether any item is unscored, private references apart: marked in every table, exit code 3."""
        return self.counts.unscored > 0

    @property
    def rows(self) -> ScoreRows:
        return self.main.rows

    @property
    def baselines(self) -> Mapping[str, ScoreRows]:
        return self.main.baselines

    @property
    def slices(self) -> Mapping[str, Mapping[str, Cell]]:
        return self.main.slices

    @property
    def metrics(self) -> Mapping[str, Mapping[str, Cell]]:
        return self.main.metrics

    def rest(self) -> Summary | None:
        """The items without S as a summary of their own, made of the lexical mean; None when there are none."""
        if self.without_s is None:
            return None
        return replace(self, measure="lexical", main=self.without_s, without_s=None)

    def to_dict(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "split": self.split,
            "signature": self.signature.to_dict(),
            "package_version": self.package_version,
            "measure": self.measure,
            "s_comparable": self.s_comparable,
            "incomplete": self.incomplete,
            "counts": asdict(self.counts),
            "main": self.main.to_dict(),
            "without_s": None if self.without_s is None else self.without_s.to_dict(),
            "violations": dict(self.violations),
            "warnings": list(self.warnings),
            "judged": self.judged,
            "costs": {stage: totals.to_dict() for stage, totals in self.costs.items()},
        }

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], where: str) -> Summary:
        """Read and check what `to_dict` wrote: the file may be of another version, edited or damaged.

        Raises:
            DataError: a field is missing, of the wrong kind, or holds what no run could give; starts with `where`.
        """
        from pydantic import ValidationError

        try:
            Signature.from_dict(raw.get("signature"), where)
            # As JSON, whose strict validation accepts a list for a tuple and a whole number for a float, nothing else.
            text = json.dumps(raw, allow_nan=False)
            summary = _adapter().validate_json(text, strict=True)
        except ValidationError as error:
            first = error.errors()[0]
            field_name = ".".join(map(str, first["loc"]))
            raise DataError(
                f"{where}: not a summary of this version: {shorten(field_name, 80)}: {first['msg']}; {SCORE_AGAIN}"
            ) from error
        except DataError as error:
            raise DataError(f"{error}; {SCORE_AGAIN}") from error
        except (ValueError, RecursionError) as error:
            raise DataError(f"{where}: not a summary: {error}; {SCORE_AGAIN}") from error
        problem = find_problem(summary)
        if problem:
            raise DataError(f"{where}: {problem}; {SCORE_AGAIN}")
        return summary


def find_problem(summary: Summary) -> str | None:
    """Describe the first impossible value, or return None: figures out of range, unknown subtasks or metrics."""
    counts = asdict(summary.counts)
    counts.pop("failure_messages")
    numbers = [*counts.pop("failures").values(), *counts.values(), *summary.violations.values()]
    if min(numbers) < 0 or summary.counts.unscored < 0:
        return "its counts are impossible"
    figures = [value for totals in summary.costs.values() for value in asdict(totals).values()]
    if any(value < 0 for value in figures if isinstance(value, int | Decimal)):
        return "its costs are impossible"
    parts = [(summary.main, summary.measure), (summary.without_s, "lexical")]
    found = (_find_in_part(part, measure) for part, measure in parts if part is not None)
    return next((problem for problem in found if problem), None)


def _find_in_part(part: MeasureResults, measure: str) -> str | None:
    row_sets = [part.rows, *part.baselines.values()]
    if measure == "s" and any(rows.s is None for rows in row_sets):
        return "its measure is s, and a row of s is missing"
    if part.reached.keys() != part.baselines.keys():
        return "its baselines are not those that the model was compared with"
    rows = [r for s in row_sets for r in (s.s, s.lexical, s.compliance) if r is not None]
    names = {
        "subtask": ([*part.metrics, *(name for row in rows for name in row.cells)], SUBTASKS),
        "dimension": ([name for row in rows for name in row.dimensions], DIMENSIONS),
        "metric": ([name for means in part.metrics.values() for name in means], columns()),
    }
    for what, (named, known) in names.items():
        unknown = [name for name in named if name not in known]
        if unknown:
            return f"{quoted(unknown[0])} is no {what}"
    cells = [cell for row in rows for cell in _cells_of(row)]
    cells += [cell for table in (part.metrics, part.slices) for row in table.values() for cell in row.values()]
    nulls = [rows.null_class for rows in row_sets if rows.null_class is not None]
    cells += [cell for null in nulls for cell in (null.precision, null.recall, null.f1)]
    wrong = [cell for cell in cells if not _is_possible(cell)]
    return f"a figure is impossible: {wrong[0].to_dict()}" if wrong else None


def _cells_of(row: Row) -> list[Cell]:
    return [*row.cells.values(), *row.dimensions.values(), row.overall, row.items_mean, row.plain_mean]


def _is_possible(cell: Cell) -> bool:
    """RunCounts that fit, and values on the 0-100 scale (a cosine may lie below zero) with an interval or without."""
    interval = [end for end in (cell.low, cell.high) if end is not None]
    values = interval if cell.value is None else [*interval, cell.value]
    whole = len(interval) in ((0, 2) if cell.value is not None else (0,))
    return 0 <= cell.n <= cell.total and whole and all(-100.001 <= value <= 100.001 for value in values)


def read_summary(path: Path) -> Summary:
    """A run's `summary.json`.

    Raises:
        DataError: it is missing or of another version (says what to do), or its folder is no run folder.
    """
    try:
        raw = read_json_object(path)
    except FileNotFoundError:
        if not os.path.exists(path.parent / "run.json"):
            raise DataError(f"{path.parent}: not a run folder: it holds no run.json") from None
        raise DataError(f"{path}: not there; run `h2htalk score {path.parent}` first") from None
    except DataError as error:
        raise DataError(f"{error}; {SCORE_AGAIN}") from error
    return Summary.from_dict(raw, str(path))


@cache
def _adapter() -> TypeAdapter[Summary]:
    from pydantic import TypeAdapter

    return TypeAdapter(Summary)
