"""Read the sealed summary and the observations of a scored study."""

from __future__ import annotations

from h2htalk.benchmark.studies.observations import Observation, read_observations
from h2htalk.benchmark.studies.study_folder import OBSERVATIONS, Study
from h2htalk.data.files import read_sealed
from h2htalk.errors import DataError

_AGAIN = "run `h2htalk study score` again"


def read_stored(study: Study) -> tuple[list[Observation], int, str]:
    """The observations of a study, the number of failed calls, and the judge's label.

    Raises:
        DataError: the study was never scored, or what was computed was edited since.
    """
    path = study.path / "summary.json"
    try:
        sealed = read_sealed(path, _AGAIN)
    except FileNotFoundError:
        raise DataError(f"{path}: not there: the study was not scored; {_AGAIN}") from None
    rows = read_observations(study.path / OBSERVATIONS, str(sealed.get("observations_sha256")))
    return rows, int(sealed.get("failed", 0)), str(sealed.get("judge", ""))
