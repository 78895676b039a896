"""Studies where a run is asked for: they are compared and costed; other commands name the one that is right."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import h2htalk_here
from studies_made import cases_of, judge_lines, spec, write_script

from h2htalk.benchmark.compare.comparison import compare
from h2htalk.benchmark.observations import figure_of, select
from h2htalk.benchmark.studies.run_study import load_study, run_study
from h2htalk.data.case import Case
from h2htalk.errors import ConfigError


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Of two models and one judge, who finds that every reply of the first to the second turn dismisses."""
    folder, cases, lines = tmp_path_factory.mktemp("studies"), cases_of("high_risk", "en"), []
    for name in ("bad", "good"):

        def says(case: Case, place: str, turn: int, aspect: str, kind: str, bad: bool = name == "bad") -> bool:
            return kind == "must" or (bad and turn == 2 and aspect == "dismiss")

        lines += judge_lines(cases, says, f"A {name} reply.")
    judge = write_script(folder / "judge.jsonl", lines)
    for name in ("bad", "good"):
        model = write_script(folder / f"{name}.jsonl", f"A {name} reply.")
        run_study(spec("sap", model, folder / name, arms=("sap", "none"), judge=judge, language="en", limit=8))
    return folder / "bad", folder / "good"


@pytest.mark.parametrize(
    ("metric", "arm", "figure"), [(None, "sap", "violation"), ("none/perception", "none", "perception")]
)
def test_studies_are_compared_by_figure(studies: tuple[Path, Path], metric: str | None, arm: str, figure: str) -> None:
    """`compare` said that a study is no run."""
    found = compare(*studies, metric=metric)
    row = found.pairs[0].headline
    for path, mean in zip(studies, (row.a, row.b), strict=True):
        value = figure_of(select(load_study(path).observations, figure, arm)).value
        assert value is not None
        assert mean == pytest.approx(100 * ((value - 1) / 4 if figure == "perception" else value))
    assert (row.result.mean > 0) == (figure == "perception")
    assert row.result.items == len(found.pairs[0].moved) > row.result.clusters > 1
    done = h2htalk_here("compare", *studies, *(["--metric", metric] if metric else []))
    assert (done.returncode, f"{figure}, times 100" in done.stdout) == (0, True)


def test_what_studies_cannot_be_compared_by_is_refused(studies: tuple[Path, Path]) -> None:
    with pytest.raises(ConfigError, match=r"no value of 'tokens' in arm sap; choose a --metric from .*violation"):
        compare(*studies, metric="tokens")
    with pytest.raises(ConfigError, match="no arm 'rules'; choose from sap, none"):
        compare(*studies, metric="rules/violation")
    with pytest.raises(ConfigError, match="a difference of two metrics says nothing"):
        compare(*studies, metric=["violation", "perception"])


@pytest.mark.parametrize("command", ["report", "leaderboard", "score", "correlate"])
def test_commands_of_runs_name_the_command_of_studies(studies: tuple[Path, Path], command: str) -> None:
    """They said that the summary is of another version, and to score the run again."""
    done = h2htalk_here(command, studies[0])
    assert done.returncode == 2
    assert f"is a study, and this command needs a run; `h2htalk study score {studies[0]}` shows it" in done.stderr


def test_a_study_that_paid_nothing_costs_nothing(studies: tuple[Path, Path]) -> None:
    done = h2htalk_here("costs", studies[0])
    assert (done.returncode, done.stdout) == (0, "No call has a recorded price.\n")
