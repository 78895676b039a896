"""What a judge is asked of an answer, and how its reply is read."""

from __future__ import annotations

from h2htalk.benchmark.judge.rubric import schema_of
from h2htalk.benchmark.studies.points.judge_requests import rubric_of_points
from h2htalk.chat.protocol import Reply


def test_a_judges_answers_stand_under_the_ids_of_the_points() -> None:
    rubric = rubric_of_points(["names_the_risk", "invents_a_number"], perception=True)
    judgement = rubric.read(Reply(rubric.example()))
    assert judgement.points == {"names_the_risk": False, "invents_a_number": False}
    assert set(judgement.evidence) == {"names_the_risk", "invents_a_number", "perception"}
    assert judgement.scores == {"perception": 3}
    # The judge is asked for `p1` and `p2` whatever the ids are, so all such rubrics have one schema.
    assert schema_of(rubric) is schema_of(rubric_of_points(["other", "points"], perception=True))
