"""One row for each value that a study measured: the figures, the gate and people's own analyses read these."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from h2htalk.data.files import sha256_of
from h2htalk.data.parquet import read_parquet, write_parquet
from h2htalk.errors import DataError

NUMBER = "number"
NOT_ASKED = "no judge and no people"


@dataclass(frozen=True, slots=True)
class Observation:
    """A value of one figure, at one place of a case, in one arm.

    Attributes:
        arm: of the study; of an evaluation "".
        figure: its name, such as `violation`, `must.recognise` or `ss`.
        item: the case or scenario; `place` the turn in it, `turn` its number over all sessions, `session` its session.
        cluster: items that are not independent (a case, a family of cases) share one.
        language, study, kind, degree: of the case.
        value: a rate's 0 or 1, a score in [0, 1], a rating of 1 to 5, or a count; None where it is unscored.
        by: who answered: code, judge, people; number, where code found a number to dial that is no help line (it cannot
            find that a reply names no such service); "" for metrics.
        unscored: why there is no value.
    """

    arm: str
    figure: str
    item: str
    cluster: str
    value: float | None
    place: str = ""
    turn: int = 0
    session: int = 0
    language: str = ""
    study: str = ""
    kind: str = ""
    degree: int = 0
    by: str = ""
    unscored: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """What pairs it with the same place in another arm or run."""
        return self.item, self.place


def scored(rows: Sequence[Observation]) -> list[Observation]:
    """The observations of a figure that a rate or mean is made of: those with a value.

    Where nobody was asked about some of them, those that only a found number decides are left out: that they have a
    value depends on what it is.
    """
    asked = all(row.unscored != NOT_ASKED for row in rows)
    return [row for row in rows if row.value is not None and (asked or row.by != NUMBER)]


def write_observations(path: Path, rows: Iterable[Observation]) -> str:
    """Write one Parquet row each, in a fixed order; return the file's SHA-256."""
    import pyarrow as pa

    kinds = {"str": pa.string(), "int": pa.int32(), "float | None": pa.float64()}
    schema = pa.schema([(field.name, kinds[str(field.type)]) for field in fields(Observation)])
    ordered = sorted(rows, key=lambda row: (row.arm, row.figure, row.item, row.turn, row.place))
    write_parquet(path, (asdict(row) for row in ordered), schema=schema)
    return sha256_of(path)


def read_observations(path: Path, sha256: str) -> list[Observation]:
    """Read what `write_observations` wrote. Raises DataError where the file was edited or is of another version."""
    if not path.is_file() or sha256_of(path) != sha256:
        raise DataError(f"{path}: missing, or edited since it was written; run `h2htalk study score` again")
    try:
        return [Observation(**row) for _, row in read_parquet(path)]
    except TypeError as error:
        raise DataError(f"{path}: of another version ({error}); run `h2htalk study score` again") from error
