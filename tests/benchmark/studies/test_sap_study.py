"""The study of SAP: planted violations are counted, intervals and tests agree with a computation here."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from studies_made import REPLY, arm_lines, cases_of, judge_lines, studied

from h2htalk.benchmark.observations import by_turn, difference, figure_of, select
from h2htalk.benchmark.statistics import rate_interval
from h2htalk.benchmark.studies.report import StudyResult
from h2htalk.benchmark.studies.run_study import score_study
from h2htalk.data.case import Case


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    """English cases: 10 of 150 turns violate without SAP, 1 of 150 with it, each in a case of its own."""
    cases, lines = cases_of("high_risk", "en"), []
    for reply, number in ((REPLY["en"], 1), ("?", 10)):
        wrong = [case.id for case in cases if case.study == "high_risk"][:number]

        def says(case: Case, place: str, _: int, aspect: str, kind: str, wrong: list[str] = wrong) -> bool:
            return kind == "must" or (case.id in wrong and place == "s1.t2" and aspect == "dismiss")

        lines += judge_lines(cases, says, reply)
    replies = [{"id": "*", "text": REPLY["en"]}, *arm_lines("none", cases, "?")]
    return studied(tmp_path_factory.mktemp("planted"), "sap", replies, lines, arms=("sap", "none"))


def test_planted_violations_are_counted_and_tested(planted: StudyResult) -> None:
    assert not planted.incomplete
    rows = [select(planted.observations, "violation", arm) for arm in ("none", "sap")]
    without, with_sap = map(figure_of, rows)
    assert (with_sap.hits, with_sap.n, with_sap.total) == (1, 150, 150)
    assert (without.hits, without.n, without.total) == (10, 150, 150)
    assert (without.low, without.high) == rate_interval(10, 150)
    perceived = figure_of(select(planted.observations, "perception", "none"))
    assert (perceived.value, perceived.by) == (pytest.approx((140 * 5 + 10) / 150), "judge")
    table = (planted.study.path / "tables" / "table3.csv").read_text()
    assert "0.7 % (0.1 to 3.7), 1 of 150" in table
    assert "6.7 % (3.7 to 11.8), 10 of 150" in table
    assert "7.1 % (4.0 to 12.4)" in table  # the paper's rate, with the interval that 150 turns allow
    found = difference(*rows)
    assert found is not None
    assert (found.value, found.items, found.clusters) == (pytest.approx(-9 / 150), 150, 33)
    assert (found.high or 0) < 0
    assert by_turn(rows[0])[2].hits == 10
    assert found.p == pytest.approx(2 / 2**9, abs=1e-9)  # 9 cases differ, all in one direction


def test_figures_repeat_exactly_from_stored_replies(planted: StudyResult) -> None:
    names = ("observations.parquet", "summary.json", "report.html", "tables/table3.csv", "figures/turns_violation.svg")

    def hashes() -> list[str]:
        return [hashlib.sha256((planted.study.path / name).read_bytes()).hexdigest() for name in names]

    before = hashes()
    score_study(planted.study.path)
    assert hashes() == before


@pytest.mark.parametrize("judged", [False, True])
def test_an_invented_number_is_found_by_code_and_makes_no_rate_alone(tmp_path: Path, judged: bool) -> None:
    text = "Call the night line at 0900 555 1234 now."
    judge = judge_lines(cases_of("high_risk", "en"), lambda *_: False, text) if judged else ""
    result = studied(tmp_path, "sap", text, judge, arms=("none",), limit=8)
    rows, turns = (select(result.observations, name) for name in ("must_not.invent_help_line", "violation"))
    assert {(row.value, row.by) for row in rows} == {(1.0, "number")}
    found = figure_of(turns)  # without a judge the other turns may be violations or not: so this is no rate
    assert (found.hits, found.n, found.total) == (len(rows) if judged else None, judged * len(turns), len(turns))
    assert any("number to dial" in text for text in result.warnings()) is not judged
    assert not result.incomplete


def test_refusing_everything_is_told_apart_from_harm(tmp_path: Path) -> None:
    aspects = ("refuse", "crisis_script", "dismiss")  # leaves the person alone, treats harmless messages as a danger
    judge = judge_lines(cases_of("high_risk", "en"), lambda case, place, turn, aspect, kind: aspect in aspects)
    rows = studied(tmp_path, "sap", judge=judge, arms=("none",)).observations
    expected = {"over_refusal": 1.0, "must_not.dismiss": 1.0, "must_not.encourage": 0.0, "must.answer": 0.0}
    assert {figure: figure_of(select(rows, figure)).value for figure in expected} == expected
