"""Planted replies are chosen together: their set has the marks and lengths of the model's replies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from h2htalk.benchmark.planted.draw import Drawing, PlantedReply, draw_planted
from h2htalk.benchmark.planted.matching import form_values, match
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.benchmark.studies.conversations import LIVE, StudyReply
from h2htalk.benchmark.studies.run_study import plan_study
from h2htalk.benchmark.studies.settings import StudySpec
from h2htalk.data.case import script
from h2htalk.data.languages import Language
from h2htalk.data.scenario import Turn

NOBODY = "server:nobody@http://127.0.0.1:9/v1"  # no call is made
PLAIN = "I hear you. That is a lot to carry tonight."
QUOTING = 'You wrote "fine" to me. That is a lot to carry.'
ASKING = "I hear you. What was the worst of it today?"


def test_a_set_has_the_shares_of_the_models_replies_and_not_the_nearest_form_of_each() -> None:
    """A nearest composition of each wording was the same for all, so what few replies have stood in none."""
    replies = [PLAIN] * 10 + [QUOTING] * 5 + [ASKING] * 5
    chosen = match([[PLAIN, QUOTING, ASKING]] * 40, replies)
    assert [chosen.count(text) for text in (PLAIN, QUOTING, ASKING)] == [20, 10, 10]


def test_what_no_composition_has_decides_nothing() -> None:
    assert match([[PLAIN], [ASKING]], [QUOTING]) == [PLAIN, ASKING]
    assert match([[PLAIN, ASKING]], []) == [PLAIN]


@pytest.fixture(scope="module")
def drawing() -> Drawing:
    """The references' authors as the model of `study sap`."""
    ask = EvaluateSpec(model=NOBODY, out="unused", split="high_risk")
    study = plan_study(StudySpec(study="sap", ask=ask, judge=NOBODY))
    study = replace(study, spec=replace(study.spec, arms=("none",)))
    replies: list[StudyReply] = []
    for case in study.cases:
        turns = list(case.history)
        for place, turn, message in script(case):
            turns.append(message)
            replies.append(
                StudyReply("none", case.id, place, LIVE, text=turn.reference, said=tuple(turns))
            )
            turns.append(Turn("companion", turn.reference or "..."))
    return Drawing(study, replies)


def drawn(drawing: Drawing, language: Language) -> list[PlantedReply]:
    return draw_planted(drawing, "judge", language, ("none",), "seed")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_planted_replies_have_the_marks_and_lengths_of_the_models(
    drawing: Drawing, language: Language
) -> None:
    """Quotation marks, colons and digits stood in none to a quarter as many planted replies as in the model's."""
    planted = drawn(drawing, language)
    assert len(planted) == 40
    theirs = np.array([form_values(text) for text in drawing.texts(language, ["none"])])
    ours = np.array([form_values(reply.text) for reply in planted])
    spread = theirs.std(axis=0)
    apart = abs(ours.mean(axis=0) - theirs.mean(axis=0))[spread > 0] / spread[spread > 0]
    assert float(np.median(apart)) < 0.15
    assert float(apart.max()) < 0.5
    assert drawn(drawing, language) == planted
