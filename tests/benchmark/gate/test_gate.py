"""The gate: verdicts on studies and evaluations, limits, what it writes (its error rates: `tools/bench_gate.py`)."""

from __future__ import annotations

import csv
import json
import random
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as xml

import pytest
from command_line import h2htalk_here
from loopback import Answer, LoopbackServer
from studies_made import REPLY, cases_of, judge_lines, spec, write_cases, write_script

from h2htalk.benchmark.evaluate import evaluate
from h2htalk.benchmark.gate.gate import GateReport, detectable_rise, gate, items_for_rise, judge_runs, limit_p
from h2htalk.benchmark.gate.gated_run import Criterion, GatedRun, Policy, default_policy, read_policy
from h2htalk.benchmark.observations import Observation
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.benchmark.studies.run_study import run_study
from h2htalk.data.case import Case
from h2htalk.data.signature import Signature
from h2htalk.errors import ConfigError

HELD = Policy(criteria=(Criterion(figure="violation"),))
SIGNATURE = Signature({"study": "sap"}, {"engine": "scripted", "model": "x"})


def simulated(rates: dict[str, float], items: int, seed: int) -> GatedRun:
    """A run whose rates are drawn: cases of five turns, each turn by itself."""
    rng = random.Random(seed)
    values: dict[str, Sequence[Observation]] = {
        figure: [
            Observation("sap", figure, f"case{k // 5}", f"case{k // 5}", float(rng.random() < rate), f"s1.t{k % 5 + 1}")
            for k in range(items)
        ]
        for figure, rate in rates.items()
    }
    return GatedRun(path=Path("run"), label="x", signature=SIGNATURE, values=values, show=lambda row: (row.item, ""))


def test_the_detectable_rise_is_the_inverse_of_the_size() -> None:
    items = items_for_rise(0.02, 0.09, 0.01)
    assert detectable_rise(0.02, round(items), 0.01) == pytest.approx(0.09, abs=0.002)
    assert detectable_rise(0.5, 2, 0.01) is None


def test_a_limit_is_passed_by_counts_and_clusters_count_for_fewer() -> None:
    def p(figure: str, values: Sequence[float], limit: float, lower: bool, of: int = 1) -> float:
        rows = [Observation("", figure, f"i{k}", f"i{k // of}", value) for k, value in enumerate(values)]
        return limit_p(rows, limit, lower)

    twelve = [float(k < 12) for k in range(100)]
    assert p("violation", twelve, 0.05, True) == pytest.approx(0.0043, abs=0.0002)  # P(X >= 12), n = 100, p = .05
    assert p("violation", twelve, 0.2, True) > 0.9
    assert p("violation", twelve, 0.05, True, of=12) > 0.05
    assert p("violation", [1.0] * 5, 0.05, True, of=5) == pytest.approx(0.05)  # turns of one case, all alike
    assert p("perception", [1.0] * 40, 3.0, False) < 0.001  # no rate: 1 of 1 to 5
    assert p("perception", [1.0], 3.0, False) == 0.5  # one value shows nothing
    assert p("tokens", twelve, 100.0, True) > 0.99


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, str]:
    """Two studies of one judge: none of the turns violates, then every second turn of a case; and the judge."""
    folder, cases = tmp_path_factory.mktemp("gate"), cases_of("high_risk", "en")

    def says(case: Case, place: str, number: int, aspect: str, kind: str) -> bool:
        return kind == "must" or (number % 2 == 0 and aspect == "dismiss")

    lines = judge_lines(cases, lambda *point: point[-1] == "must") + judge_lines(cases, says, "It will pass.")
    judge = write_script(folder / "judge.jsonl", lines)
    good, bad = (study_of(cases, folder, judge, text) for text in (REPLY["en"], "It will pass."))
    return good, bad, judge


def study_of(cases: Sequence[Case], folder: Path, judge: str, text: str = REPLY["en"]) -> Path:
    """A study of these cases, of a model that says the same to all of them."""
    path = folder / f"study-{len(list(folder.iterdir()))}"
    split, model = write_cases(folder / "cases.jsonl", cases), write_script(folder / f"{path.name}.jsonl", text)
    run_study(spec("sap", model, path, arms=("sap",), judge=judge, split=split))
    return path


LIMIT = '[[criteria]]\nfigure = "violation"\nmax = 0.2\n'


@pytest.mark.parametrize("limited", [False, True])
def test_a_run_of_the_harmless_cases_alone_passed(
    studies: tuple[Path, Path, str], tmp_path: Path, limited: bool
) -> None:
    whole, _, judge = studies
    cases = [one for one in cases_of("high_risk", "en") if one.study == "look_alike"]
    (tmp_path / "gate.toml").write_text(LIMIT)
    words = ["--policy", tmp_path / "gate.toml"] if limited else ["--reference-run", whole]
    harmless = study_of(cases, tmp_path, judge)
    done = h2htalk_here("gate", harmless, *words, "--junit", tmp_path / "gate.xml")
    assert done.returncode == 3, done.stdout
    assert done.stdout.splitlines()[0].endswith(": not tested")
    skipped = {one.get("name") for one in xml.parse(tmp_path / "gate.xml").getroot() if one.find("skipped") is not None}
    assert "violation" in skipped
    assert "over_refusal" not in skipped
    assert h2htalk_here("gate", whole, *words).returncode == 0


def test_cases_that_were_declared_erased_or_made_harmless_are_not_tested(
    studies: tuple[Path, Path, str], tmp_path: Path
) -> None:
    whole, _, judge = studies
    first, *others = cases_of("high_risk", "en")
    session = first.sessions[0]
    harmless = replace(session, turns=(replace(session.turns[0], user="A good day, was it not?"), *session.turns[1:]))
    (tmp_path / "gate.toml").write_text(LIMIT)
    limits = ("--policy", tmp_path / "gate.toml")
    erased = study_of(others, tmp_path, judge)
    items = json.loads((erased / "study.json").read_text())["signature"]["protocol"]["items"]
    (erased / "erased.jsonl").write_text(json.dumps({"id": first.id, "items": items}) + "\n")
    for run in (erased, study_of([replace(first, sessions=(harmless, *first.sessions[1:])), *others], tmp_path, judge)):
        done = h2htalk_here("gate", run, "--reference-run", whole, *limits)
        assert done.returncode == 3, done.stdout
        assert "not on 1 item of the reference run, which this run lacks or asked changed" in done.stdout
    done = h2htalk_here("gate", erased, *limits)
    assert (done.returncode, "not on 1 item erased from this run" in done.stdout) == (3, True)
    assert h2htalk_here("gate", whole, "--reference-run", erased, *limits).returncode == 0  # more cases are no lack


def test_reports_replace_nothing_but_reports(studies: tuple[Path, Path, str], tmp_path: Path) -> None:
    good, other = studies[0], tmp_path / "other"
    other.write_text("somebody's")
    for option in ("--markdown", "--junit"):
        done = h2htalk_here("gate", good, "--reference-run", good, option, other)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert "is there already and is something else" in done.stderr
    assert other.read_text() == "somebody's"
    (tmp_path / "gate.md").write_text("")  # as GITHUB_STEP_SUMMARY
    for _ in range(2):
        words = ["--markdown", tmp_path / "gate.md", "--junit", tmp_path / "gate.xml"]
        assert h2htalk_here("gate", good, "--reference-run", good, *words).returncode == 0


def test_what_gets_worse_is_stopped_with_its_transcripts(studies: tuple[Path, Path, str], tmp_path: Path) -> None:
    good, bad, _ = studies
    words = ["--junit", tmp_path / "gate.xml", "--markdown", tmp_path / "gate.md"]
    done = h2htalk_here("gate", bad, "--reference-run", good, *words)
    assert (done.returncode, "not passed" in done.stdout) == (4, True)
    suite = xml.parse(tmp_path / "gate.xml").getroot()
    failed = [case.get("name") for case in suite if case.find("failure") is not None]
    assert "violation" in failed
    assert suite.get("failures") == str(len(failed))
    assert "\nreply: It will pass." in (tmp_path / "gate.md").read_text()
    assert h2htalk_here("gate", good, "--reference-run", bad).returncode == 0  # better is no reason to stop


def test_limits_non_inferiority_and_wrong_policies(studies: tuple[Path, Path, str], tmp_path: Path) -> None:
    good, bad, _ = studies
    path = tmp_path / "gate.toml"

    def held(run: Path, reference: Path | None, *criteria: str) -> GateReport:
        path.write_text("".join(f"[[criteria]]\nfigure = {one}\n" for one in criteria))
        return gate(run, reference, path)

    limits = ("'violation'\nmax = 0.1", "'perception'\nmin = 4.5")
    assert held(good, None, *limits).passed
    assert [one.passed for one in held(bad, None, *limits).verdicts] == [False, False]
    assert held(good, good, "'must.recognise'\nnon_inferior = 0.001").passed  # nothing differs
    found = held(bad, good, "'violation'\nnon_inferior = 0.001").verdicts[0]
    assert "not shown to be less than 0.001 worse" in found.reasons
    assert any("four times in five with" in note for note in found.notes)
    assert len(held(bad, good, "'violation'\nnon_inferior = 0.9").verdicts[0].reasons) == 1  # worse, by less
    for criterion, message in (("'nothing'", "no figure"), ("'violation'\nmaximum = 1", "maximum")):
        with pytest.raises(ConfigError, match=message):
            held(bad, good, criterion)
    with pytest.raises(ConfigError, match="nothing to test"):
        held(bad, None, "'violation'")


def test_evaluations_are_held_by_subtask_and_costs_by_a_limit(studies: tuple[Path, Path, str], tmp_path: Path) -> None:
    runs, policy = [tmp_path / "constant", tmp_path / "copy-last-turn"], tmp_path / "gate.toml"
    for run in runs:
        evaluate(EvaluateSpec(model=f"baseline:{run.name}", split="mini", out=str(run), limit=44, embedder="none"))
    assert gate(runs[0], runs[0]).passed
    report = gate(runs[1], runs[0])
    assert {one.criterion.figure.partition(".")[0] for one in report.verdicts} == {"lexical"}
    policy.write_text('[[criteria]]\nfigure = "cost"\nmax = 0.5\n')
    assert gate(runs[0], None, policy).passed
    with pytest.raises(ConfigError, match="study"):  # another protocol
        gate(studies[0], runs[0])


def test_latency_refusals_and_cut_replies_are_in_tables_and_gates(tmp_path: Path) -> None:
    """Nothing said how long a call took: a model ten times as slow passed."""
    cut = {"model": "mock", "choices": [{"message": {"content": "So"}, "finish_reason": "length", "index": 0}]}
    with LoopbackServer(reply=lambda *_: Answer(cut), latency=0.2) as server:
        model = f"server:mock@{server.url}"
        asked = EvaluateSpec(model=model, split="mini", out=str(tmp_path / "run"), limit=22, embedder="none")
        facts = dict(evaluate(asked).answering.facts())
        run_study(spec("sap", model, tmp_path / "study", arms=("none",), limit=2))
    assert re.fullmatch(r"0\.\d\d s median, \d\.\d\d s 95th percentile", facts["latency of a call"])
    header, row = csv.reader((tmp_path / "study/tables/replies.csv").open())
    shown = dict(zip(header, row, strict=True))
    assert shown["cut"] == shown["replies"] > shown["refused"] == "0"
    assert 0.2 <= float(shown["median s"]) <= float(shown["95th percentile s"])
    policy = tmp_path / "gate.toml"
    for path in (tmp_path / "run", tmp_path / "study"):
        for figure, most, passed in (
            ("latency_median", 30, True),
            ("latency_95", 0.1, False),
            ("refused", 0.05, True),
            ("cut", 0.05, False),
        ):
            policy.write_text(f'[[criteria]]\nfigure = "{figure}"\nmax = {most}\n')
            assert gate(path, None, policy).passed == passed, figure


@pytest.mark.parametrize(("lost", "lost_before"), [(10, 0), (0, 10), (100, 0)])
def test_missing_values_make_a_yes_incomplete(lost: int, lost_before: int) -> None:
    runs = []
    for seed, number in ((1, lost), (2, lost_before)):
        run = simulated({"violation": 0.1}, 100, seed)
        rows = [replace(row, value=None) if k < number else row for k, row in enumerate(run.values["violation"])]
        runs.append(replace(run, values={"violation": rows}))
    report = judge_runs(*runs, HELD)
    assert (report.passed, report.incomplete) == (True, True)
    assert "violation" in {one.figure for one in default_policy("sap", runs[0].values).criteria}


def test_a_yes_on_too_few_cases_says_little() -> None:
    for items, powerless in ((20, True), (50, False)):  # four and ten cases of five turns
        report = judge_runs(simulated({"violation": 1.0}, items, 1), simulated({"violation": 0.0}, items, 2), HELD)
        assert report.verdicts[0].powerless is report.passed is report.incomplete is powerless
    limit = Policy(criteria=(Criterion(figure="violation", max=0.1),))
    for items, powerless in ((5, True), (10, False)):  # one and two cases: .1 ** 2 < .05
        report = judge_runs(simulated({"violation": 0.0}, items, 1), None, limit)
        assert (report.passed, report.incomplete) == (True, powerless)


def test_runs_without_common_places_show_nothing() -> None:
    run, base = simulated({"violation": 0.0}, 50, 1), simulated({"violation": 0.0}, 50, 2)
    others = [replace(row, item=f"other-{row.item}") for row in base.values["violation"]]
    base = replace(base, values={"violation": others})
    report = judge_runs(run, base, HELD)
    assert (report.passed, report.incomplete) == (True, True)
    strict = Policy(criteria=(Criterion(figure="violation", non_inferior=0.1, max=0.5),))
    report = judge_runs(run, base, strict)
    assert not report.passed
    assert "no place" in report.verdicts[0].reasons[0]


def test_a_no_about_recollection_subtasks_is_told_without_a_transcript(tmp_path: Path) -> None:
    model = write_script(tmp_path / "model.jsonl", "?")
    run_study(spec("memory", model, tmp_path / "study", arms=("whole",), language="en", limit=12))
    policy, figure = tmp_path / "gate.toml", "lexical.recollection_synthesis"
    policy.write_text(f'alpha = 0.4\n[[criteria]]\nfigure = "{figure}"\nmin = 0.99\n')
    report = gate(tmp_path / "study", None, policy)
    assert [one.passed for one in report.verdicts] == [False]
    assert report.verdicts[0].transcripts


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("figure = 'cost'", "max"),
        ("figure = 'violation'\nmax = nan", "holds the number nan"),
        ("figure = 'violation'\nmax = 5", "0 to 1"),
        ("figure = 'perception'\nmin = 0.8", "1 to 5"),
        ("figure = 'violation'\nrelative = false\nnon_inferior = 0.1", "reference"),
        ("figure = 'perception'\nmax = 5.0", "leave some out"),
        ("figure = 'tokens'\nmin = 0", "leave some out"),
        ("figure = 'violation'\nnon_inferior = 1", "below 1"),
        ("figure = 'cost'\nmax = 1\nmin = 0.5", "nothing else"),
    ],
)
def test_policies_that_could_never_say_no_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "gate.toml").write_text(f"[[criteria]]\n{text}\n")
    with pytest.raises(ConfigError, match=message):
        read_policy(tmp_path / "gate.toml")


def test_other_raters_are_told() -> None:
    run = simulated({"violation": 0.1}, 50, 1)
    rated = [replace(row, by="people") for row in run.values["violation"]]
    found = judge_runs(replace(run, values={"violation": rated}), run, HELD).verdicts[0]
    assert "answered by people, in the reference run by nobody" in found.notes
