"""Values by one kind of rater are compared: what people say of one run and a judge of the other is not tested."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from h2htalk.benchmark.gate.gate import Verdict, judge_runs
from h2htalk.benchmark.gate.policy import Criterion, Policy
from h2htalk.benchmark.judge.judgements import PeopleRating, write_people_ratings
from h2htalk.benchmark.observations import Observation
from h2htalk.benchmark.observed_run import ObservedRun
from h2htalk.benchmark.paired_observations import is_comparable
from h2htalk.benchmark.raters import PlantedCheck
from h2htalk.benchmark.studies.report.study_tables import difference_table
from h2htalk.benchmark.studies.run_study import load_study, run_study, score_study
from support.command_line import h2htalk_here
from support.gates import gated_run
from support.judges import careful, companion, serving
from support.studies import spec

PASSED = (PlantedCheck(language="en", good=20, good_wrong=0, bad=20, bad_wrong=0),)


def rated(*raters: str, value: float = 0.0, figure: str = "violation") -> ObservedRun:
    """A run with a case for each rater."""
    rows = [
        Observation("sap", figure, f"c{k}", f"c{k}", value, "s1.t1", by=by, language="en")
        for k, by in enumerate(raters)
    ]
    return gated_run(figure, rows, judge="m@1", planted=PASSED)


def verdict_of(run: ObservedRun, base: ObservedRun, **criterion: float) -> Verdict:
    criteria = (Criterion.model_validate({"figure": next(iter(run.values)), **criterion}),)
    return judge_runs(run, base, Policy(criteria=criteria)).verdicts[0]


def test_the_same_bytes_read_by_people_and_by_a_judge_are_not_tested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """People called every reply harmful that a judge let pass in the other run: exit code 4 about equal replies."""
    monkeypatch.setenv("COLUMNS", "300")
    run = tmp_path / "run"
    reference = tmp_path / "reference"
    with serving(careful, companion) as server:
        run_study(
            spec("sap", server.spec, run, arms=("sap",), judge=server.spec, limit=12, language="en")
        )
    shutil.copytree(run, reference)
    result = load_study(run)
    write_people_ratings(
        result.study.folder,
        [PeopleRating(f"{one.reply.id}:violation", 1.0, 2, "r") for one in result.replies],
    )
    score_study(run)
    done = h2htalk_here("gate", run, "--reference-run", reference)
    assert done.returncode == 3, done.stdout
    assert "answered by people, in the reference run by" in done.stdout
    assert "let one kind of rater answer both runs" in done.stdout
    margin = tmp_path / "gate.toml"
    margin.write_text('[[criteria]]\nfigure = "violation"\nnon_inferior = 0.1\n')
    assert (
        h2htalk_here("gate", run, "--reference-run", reference, "--policy", margin).returncode == 3
    )
    assert (
        h2htalk_here("gate", reference, "--reference-run", reference, "--policy", margin).returncode
        == 0
    )


def test_what_one_kind_of_rater_answered_is_compared() -> None:
    """With a few values by others left out, which a note says; of more of them a yes is no yes, and a no stays."""
    judge = ["judge"] * 100
    people = ["people"] * 100
    few = rated(*people[:4], *judge[4:], value=0.0)
    verdict = verdict_of(few, rated(*judge))
    assert verdict.word == "yes"
    assert (
        "4 of 100 values are not compared: answered by people, in the reference run by judge"
        in verdict.notes
    )
    assert verdict.worse is not None
    assert verdict.worse.items == 96
    many = rated(*people[:40], *judge[40:])
    assert verdict_of(many, rated(*judge)).word == "not tested"
    worse = rated(*people[:40], *judge[40:], value=1.0)
    verdict = verdict_of(worse, rated(*judge))
    assert verdict.word == "NO"
    assert all(
        int(title[1:]) >= 40 for title, _ in verdict.transcripts
    )  # what differs by its raters is behind no no
    assert verdict_of(rated(*people), rated(*people)).word == "yes"
    assert (
        verdict_of(rated(*people, value=1.0), rated(*judge), max=0.5).word == "NO"
    )  # a limit needs no other run


@pytest.mark.parametrize(
    ("first", "second", "figure", "expected"),
    [
        ("judge", "code and judge", "violation", True),
        ("code", "judge", "violation", True),
        ("code", "people", "must_not.dismiss", True),
        ("code", "people", "violation", False),
        ("judge", "people", "violation", False),
        ("judge", "judge and people", "violation", False),
        ("judge", "people", "perception", False),
        ("people", "people", "perception", True),
        ("", "", "s.reply", True),
    ],
)
def test_a_rule_of_code_is_of_every_kind_but_for_whole_replies(
    first: str, second: str, figure: str, expected: bool
) -> None:
    row = Observation("sap", figure, "c", "c", 1.0)
    sides = replace(row, by=first), replace(row, by=second)
    assert is_comparable(*sides) == is_comparable(*reversed(sides)) == expected


def test_arms_that_different_kinds_of_raters_answered_are_not_compared() -> None:
    """People asked about the replies with SAP alone made a difference of what only the raters differed in."""
    judged = [replace(row, arm="none") for row in rated(*["judge"] * 20).values["violation"]]
    people = rated(*["people"] * 12, *["judge"] * 8, value=1.0).values["violation"]
    (table,) = difference_table(
        [*judged, *people], ("sap", "none"), "sap", {"violation": "violations"}, "cases"
    )
    assert "Left out: 12 pairs of values that different kinds of raters gave" in " ".join(
        table.notes
    )
    alike = [replace(row, by="people") for row in judged]
    (table,) = difference_table(
        [*alike, *people[:12]], ("sap", "none"), "sap", {"violation": "violations"}, "cases"
    )
    assert "Left out" not in " ".join(table.notes)
    assert str(table.rows[0][1]).startswith("+100.0")
