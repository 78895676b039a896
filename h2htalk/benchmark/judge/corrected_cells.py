"""The corrected cells of a run, as calibration leaves them for its tables: `judgements/calibration.json`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from h2htalk.benchmark.judge.judgements import judgements_folder
from h2htalk.benchmark.judge.ratings import AnswerRating, Judging
from h2htalk.benchmark.statistics.table2_averages import Cell
from h2htalk.data.files import json_line, read_sealed, write_sealed
from h2htalk.data.responses import SampleKey
from h2htalk.errors import DataError

ALL_LEVELS = "levels"  # beside the names of the subtasks
_AGAIN = "run `h2htalk judge calibrate` again"


@dataclass(frozen=True, slots=True)
class CorrectedCells:
    """J corrected by people's labels.

    Attributes:
        ratings: the hash of judges and ratings that were corrected (`hash_of`).
        correction: the estimator and the number of labels, or why there is no cell.
        cells: `levels` or a level's subtask -> 20 J; n of `total` items were labelled.
        calibration: everything that calibration found, for readers of the file.
    """

    ratings: str
    correction: str
    cells: Mapping[str, Cell] = field(default_factory=dict)
    calibration: Mapping[str, Any] = field(default_factory=dict)


def hash_of(judging: Judging, ratings: Mapping[SampleKey, AnswerRating]) -> str:
    """The hash of judges and their ratings of a run, people's ratings left out."""
    listed = [[*key, *one.judges] for key, one in sorted(ratings.items(), key=lambda pair: pair[0])]
    return hashlib.sha256(json_line([judging.judges, judging.judgements, listed]).encode()).hexdigest()


def corrected_cells_path(run: Path) -> Path:
    """Return where a run's corrected cells lie."""
    return judgements_folder(run) / "calibration.json"


def write_corrected_cells(run: Path, found: CorrectedCells) -> None:
    """Store the corrected cells of a run."""
    write_sealed(corrected_cells_path(run), asdict(found))


def read_corrected_cells(run: Path, judging: Judging, ratings: Mapping[SampleKey, AnswerRating]) -> CorrectedCells:
    """Read the corrected cells of a run; of a run without them, or with others' ratings by now, there are none.

    Raises:
        DataError: the file was edited or is of another version.
    """
    path = corrected_cells_path(run)
    try:
        found = TypeAdapter(CorrectedCells).validate_python(read_sealed(path, _AGAIN))
    except FileNotFoundError:
        return CorrectedCells("", "")
    except ValidationError as error:
        raise DataError(f"{path}: {error.errors()[0]['msg']}; {_AGAIN}") from error
    return found if found.ratings == hash_of(judging, ratings) else CorrectedCells("", f"of other judgements: {_AGAIN}")
