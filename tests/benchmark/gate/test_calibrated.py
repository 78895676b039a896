"""A policy that needs a calibrated judge tests nothing until people answered 100 points, and agree with the judge."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from h2htalk.benchmark.gate.gate import gate
from h2htalk.benchmark.gate.policy import read_policy
from h2htalk.benchmark.judge.judgements import PeopleRating, write_people_ratings
from h2htalk.benchmark.raters import PEOPLE
from h2htalk.benchmark.studies.judge_agreement import (
    JudgeAgreement,
    Pair,
    agreement_of,
    answered_pairs,
    calibration_doubts,
)
from h2htalk.benchmark.studies.report.study_result import StudyResult
from h2htalk.benchmark.studies.run_study import load_study, run_study, score_study
from h2htalk.errors import ConfigError
from support.command_line import h2htalk_here
from support.judges import careful, companion, serving
from support.studies import spec

LIMIT = '[[criteria]]\nfigure = "must_not.dismiss"\nmax = 0.5\n'
CALIBRATED = f'needs = "calibrated"\n{LIMIT}'


def policy(folder: Path, text: str = CALIBRATED) -> Path:
    path = folder / "gate.toml"
    path.write_text(text)
    return path


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study whose judge reads its planted replies."""
    path = tmp_path_factory.mktemp("calibrated") / "study"
    with serving(careful, companion) as server:
        run_study(
            spec(
                "sap", server.spec, path, arms=("sap",), judge=server.spec, limit=24, language="en"
            )
        )
    return path


def answer(
    path: Path, number: int, is_equal: Callable[[int], bool], aspect: str = ""
) -> StudyResult:
    """Let people answer so many points as the judge did, or as it did not; of `aspect` none."""
    result = load_study(path)
    write_people_ratings(result.study.folder, [])
    result = score_study(path)
    ratings: list[PeopleRating] = []
    for reply in result.replies:
        for point in reply.points:
            if (
                point.by != "judge"
                or point.true is None
                or point.point.aspect == aspect
                or len(ratings) == number
            ):
                continue
            same = is_equal(len(ratings))
            ratings.append(
                PeopleRating(
                    f"{reply.reply.id}:{point.point.id}", float(point.true == same), 2, "r"
                )
            )
    assert len(ratings) == number
    write_people_ratings(result.study.folder, ratings)
    return score_study(path)


def test_a_judge_is_calibrated_by_100_answers_of_people(study: Path, tmp_path: Path) -> None:
    """Without people a policy that needs calibration passed by the judge alone."""
    rules = policy(tmp_path)
    plain = gate(study, None, policy(tmp_path, LIMIT))
    assert plain.headline == "passed"
    none = gate(study, None, policy(tmp_path))
    assert none.headline == "not tested"
    assert (
        "people answered 0 of the 100 points that a calibrated judge needs"
        in none.verdicts[0].not_tested[0]
    )
    answer(study, 99, lambda _: True, aspect="dismiss")
    assert gate(study, None, rules).headline == "not tested"
    answer(study, 100, lambda _: True, aspect="dismiss")
    report = gate(study, None, rules)
    assert report.headline == "passed"
    record = tmp_path / "gate.json"
    done = h2htalk_here("gate", study, "--policy", rules, "--json", record)
    assert done.returncode == 0, done.stdout
    calibration = json.loads(record.read_text())["judge and people"]
    assert calibration == {
        "least kappa": 0.7,
        "languages": {"en": {"points": 100, "equal": 100, "kappa": 1.0}},
    }
    assert "英文 100 条中一致 100 条，kappa 1.00" in record.read_text()
    text = " ".join(done.stdout.split())
    assert "English: agree on 100 of 100 points, kappa 1.00" in text
    assert "needs 100 points, 20 in each language, and a kappa of 0.7" in text


def test_a_judge_that_people_contradict_is_not_calibrated(study: Path, tmp_path: Path) -> None:
    """Nine in ten equal answers are less than chance where the judge finds no fault: it missed all ten of people's."""
    result = answer(study, 100, lambda number: number % 10 > 0, aspect="dismiss")
    (pairs,) = answered_pairs(result.replies).values()
    assert agreement_of(pairs) == JudgeAgreement(points=100, equal=90, kappa=0.0)
    rules = policy(tmp_path)
    done = h2htalk_here("gate", study, "--policy", rules)
    assert done.returncode == 3, done.stdout
    assert (
        "the judge and people agree on 90 of 100 points, kappa 0.00, which is below 0.7"
        in " ".join(done.stdout.split())
    )


def test_what_people_answer_themselves_needs_no_judge(study: Path, tmp_path: Path) -> None:
    result = answer(study, 0, lambda _: True)
    ratings = []
    for reply in result.replies:
        for point in reply.points:
            if point.point.aspect == "dismiss":
                ratings.append(PeopleRating(f"{reply.reply.id}:{point.point.id}", 0.0, 2, "r"))
    write_people_ratings(result.study.folder, ratings)
    score_study(study)
    report = gate(study, None, policy(tmp_path))
    assert (report.verdicts[0].word, report.verdicts[0].run.answered_by) == ("yes", PEOPLE)


def pairs_of(both: int, judge: int, people: int, neither: int) -> tuple[Pair, ...]:
    return (
        ((True, True),) * both
        + ((True, False),) * judge
        + ((False, True),) * people
        + ((False, False),) * neither
    )


def test_kappa_by_hand() -> None:
    """.9 observed, .5 by chance: (.9 - .5) / (1 - .5)."""
    assert agreement_of(pairs_of(45, 5, 5, 45)).kappa == pytest.approx(0.8)
    assert agreement_of(pairs_of(20, 5, 10, 15)).kappa == pytest.approx(0.4)  # Cohen's .7 and .5
    assert agreement_of(pairs_of(0, 0, 0, 120)).kappa == 1.0
    assert agreement_of(()).kappa == 0.0


def test_each_language_in_which_the_judge_answers_is_calibrated() -> None:
    good = pairs_of(30, 2, 2, 66)
    wrong = pairs_of(0, 0, 15, 45)
    assert calibration_doubts({"en": good}, {"en"}, 0.7) == []
    (few,) = calibration_doubts({"en": good, "zh": good[:19]}, {"en", "zh"}, 0.7)
    assert "people answered 19 of the 20 points in Chinese that a calibrated judge needs" in few
    doubts = calibration_doubts({"en": good * 10, "zh": wrong}, {"en", "zh"}, 0.7)
    assert doubts == [
        "the judge and people agree on 45 of 60 points, kappa 0.00 in Chinese, which is below 0.7"
    ]
    assert calibration_doubts({"en": good * 10, "zh": wrong}, {"en"}, 0.7) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('needs = "people"', "needs"),
        ("agreement = 0.9", "calibrated"),
        ('needs = "calibrated"\nagreement = 0', "agreement"),
        ('needs = "calibrated"\nagreement = 1.1', "agreement"),
    ],
)
def test_needs_that_are_none_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_policy(policy(tmp_path, f"{text}\n{LIMIT}"))
    assert (
        read_policy(policy(tmp_path, f'needs = "calibrated"\nagreement = 0.9\n{LIMIT}')).agreement
        == 0.9
    )
