"""A scored study."""

from __future__ import annotations

from dataclasses import dataclass

from h2htalk.benchmark.studies.observations import Observation
from h2htalk.benchmark.studies.point_answers import AnsweredReply
from h2htalk.benchmark.studies.study_folder import Study


@dataclass(frozen=True, slots=True)
class StudyResult:
    """A scored study: its observations, and every reply of the running conversations with what is known of it.

    `failed`: calls without an answer, of the model and the judge; the same command repeats those. `incomplete`: there
    are such calls, or replies of the judge that could not be read.
    """

    study: Study
    observations: tuple[Observation, ...]
    replies: tuple[AnsweredReply, ...]
    failed: int
    judge: str

    @property
    def incomplete(self) -> bool:
        return self.failed > 0 or any(one.unread for one in self.replies)
