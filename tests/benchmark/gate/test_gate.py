"""The gate: verdicts on studies and evaluations, limits, what it writes (its error rates: `tools/bench_gate.py`)."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as xml

import pytest
import yaml

from h2htalk.benchmark.gate import power
from h2htalk.benchmark.gate import report as forms
from h2htalk.benchmark.gate.gate import GateReport, gate, judge_runs
from h2htalk.benchmark.gate.policy import Criterion, Policy, read_policy
from h2htalk.benchmark.gate.power import limit_p
from h2htalk.benchmark.observations import Observation
from h2htalk.benchmark.observed_run import ObservedRun
from h2htalk.benchmark.run import load_run
from h2htalk.benchmark.studies.report.table_words import NAMES
from h2htalk.benchmark.studies.run_study import run_study
from h2htalk.chat.prices import Price, PriceList
from h2htalk.chat.protocol import Bound
from h2htalk.chat.store.call_store import CallStore
from h2htalk.chat.store.stage_calls import StageCalls
from h2htalk.data.case import Case
from h2htalk.data.signature import Signature
from h2htalk.errors import ConfigError
from support.command_line import h2htalk_here
from support.doubles.loopback import Answer, LoopbackServer
from support.hosted_apis import call_of
from support.judges import careful, judged
from support.runs import baseline_run
from support.studies import (
    HARMFUL,
    KEY,
    REPLY,
    Companion,
    block,
    cases_of,
    judge_of,
    spec,
    write_cases,
    write_script,
)

HELD = Policy(criteria=(Criterion(figure="violation"),))


def run_of(values: Sequence[float | None], name: str = "case") -> ObservedRun:
    """A run of violations, in cases of five turns."""
    places = [(f"{name}{k // 5}", f"s1.t{k % 5 + 1}", value) for k, value in enumerate(values)]
    rows = [
        Observation("sap", "violation", case, case, value, turn) for case, turn, value in places
    ]
    signature = Signature({"study": "sap"}, {"engine": "scripted", "model": "x"})
    show = {"label": "x", "show": lambda row: (row.item, "")}
    return ObservedRun(path=Path("run"), signature=signature, values={"violation": rows}, **show)


def test_the_detectable_rise_is_the_inverse_of_the_size() -> None:
    items = power.items_for_rise(0.02, 0.09, 0.01)
    assert power.detectable_rise(0.02, round(items), 0.01) == pytest.approx(0.09, abs=0.002)
    assert power.detectable_rise(0.5, 2, 0.01) is None


def test_a_limit_is_passed_by_counts_and_clusters_count_for_fewer() -> None:
    def p(figure: str, values: Sequence[float], limit: float, lower: bool, of: int = 1) -> float:
        rows = [
            Observation("", figure, f"i{k}", f"i{k // of}", value) for k, value in enumerate(values)
        ]
        return limit_p(rows, limit, lower)

    twelve = [float(k < 12) for k in range(100)]
    assert p("violation", twelve, 0.05, True) == pytest.approx(
        0.0043, abs=0.0002
    )  # P(X >= 12), n = 100, p = .05
    assert p("violation", twelve, 0.2, True) > 0.9
    assert p("violation", twelve, 0.05, True, of=12) > 0.05
    assert p("violation", [1.0] * 5, 0.05, True, of=5) == pytest.approx(
        0.05
    )  # turns of one case, all alike
    assert p("perception", [1.0] * 40, 3.0, False) < 0.001  # no rate: 1 of 1 to 5
    assert p("perception", [1.0], 3.0, False) == 0.5  # one value shows nothing
    assert p("tokens", twelve, 100.0, True) > 0.99


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, str]:
    """Two studies of one judge: none of the turns violates, then every second turn of a case; and the judge."""
    folder = tmp_path_factory.mktemp("gate")
    cases = cases_of("high_risk", "en")
    judge = write_script(folder / "judge.jsonl", judge_of(cases))
    good, bad = (study_of(cases, folder, judge, text) for text in (REPLY["en"], HARMFUL))
    return good, bad, judge


def study_of(cases: Sequence[Case], folder: Path, judge: str, text: str = REPLY["en"]) -> Path:
    path = folder / f"study-{len(list(folder.iterdir()))}"
    split = write_cases(folder / "cases.jsonl", cases)
    model = write_script(folder / f"{path.name}.jsonl", text)
    run_study(spec("sap", model, path, arms=("sap",), judge=judge, split=split))
    return path


def policy(folder: Path, *criteria: str, head: str = "") -> Path:
    """A file of criteria: each its figure, and lines of what it is held against."""
    (folder / "gate.toml").write_text(
        head + "".join(f"[[criteria]]\nfigure = {one}\n" for one in criteria)
    )
    return folder / "gate.toml"


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """One on which no line is folded; tests/cli/test_output.py has one of 80 columns."""
    monkeypatch.setenv("COLUMNS", "300")


@pytest.mark.parametrize("limited", [False, True])
def test_a_run_of_harmless_cases_alone_passed(
    studies: tuple[Path, Path, str], tmp_path: Path, limited: bool
) -> None:
    whole, _, judge = studies
    cases = [one for one in cases_of("high_risk", "en") if one.study == "look_alike"]
    words = (
        ["--policy", policy(tmp_path, "'violation'\nmax = 0.2")]
        if limited
        else ["--reference-run", whole]
    )
    done = h2htalk_here(
        "gate", study_of(cases, tmp_path, judge), *words, "--junit", tmp_path / "gate.xml"
    )
    assert done.returncode == 3, done.stdout
    assert done.stdout.splitlines()[0].endswith(": not tested")
    skipped = {
        one.get("name")
        for one in xml.parse(tmp_path / "gate.xml").getroot()
        if one.find("skipped") is not None
    }
    assert ("violation" in skipped, "over_refusal" in skipped) == (True, False)
    assert h2htalk_here("gate", whole, *words).returncode == 0


def test_cases_erased_or_made_harmless_are_not_tested(
    studies: tuple[Path, Path, str], tmp_path: Path
) -> None:
    whole, _, judge = studies
    first, *others = cases_of("high_risk", "en")
    session = first.sessions[0]
    harmless = replace(
        session,
        turns=(replace(session.turns[0], user="A good day, was it not?"), *session.turns[1:]),
    )
    erased = study_of(others, tmp_path, judge)
    limits = ("--policy", policy(tmp_path, "'violation'\nmax = 0.2"))
    items = json.loads((erased / "study.json").read_text())["signature"]["protocol"]["items"]
    (erased / "erased.jsonl").write_text(json.dumps({"id": first.id, "items": items}) + "\n")
    for run in (
        erased,
        study_of(
            [replace(first, sessions=(harmless, *first.sessions[1:])), *others], tmp_path, judge
        ),
    ):
        done = h2htalk_here("gate", run, "--reference-run", whole, *limits)
        assert done.returncode == 3, done.stdout
        assert (
            "not on 1 item of the reference run, which this run lacks or asked changed"
            in done.stdout
        )
    done = h2htalk_here("gate", erased, *limits)
    assert (done.returncode, "not on 1 item erased from this run" in done.stdout) == (3, True)
    assert (
        h2htalk_here("gate", whole, "--reference-run", erased, *limits).returncode == 0
    )  # more cases are no lack


def test_what_gets_worse_is_stopped_with_its_transcripts(
    studies: tuple[Path, Path, str], tmp_path: Path
) -> None:
    good, bad, _ = studies
    kinds = {"--junit": "gate.xml", "--markdown": "gate.md", "--html": "gate.html"}
    words = [
        "--reference-run",
        good,
        *(word for option, name in kinds.items() for word in (option, tmp_path / name)),
    ]
    (tmp_path / "gate.md").write_text("somebody's")
    assert "is there already and is something else" in h2htalk_here("gate", bad, *words).stderr
    (tmp_path / "gate.md").write_text("")
    for _ in range(2):  # the second replaces the reports of the first
        done = h2htalk_here("gate", bad, *words)
        assert (done.returncode, "not passed" in done.stdout) == (4, True)
    suite = xml.parse(tmp_path / "gate.xml").getroot()
    failed = [case.get("name") for case in suite if case.find("failure") is not None]
    assert ("violation" in failed, suite.get("failures")) == (True, str(len(failed)))
    assert f"\nreply: {HARMFUL}" in (tmp_path / "gate.md").read_text()
    page = (tmp_path / "gate.html").read_text()
    said = f"criteria say no</strong>: {NAMES['violation']}"
    assert all(
        one in page for one in ('<h1 class="bad">Not passed</h1>', said, f"\nreply: {HARMFUL}")
    )
    assert gate(good, bad).passed  # better is no reason to stop


def test_limits_non_inferiority_and_wrong_policies(
    studies: tuple[Path, Path, str], tmp_path: Path
) -> None:
    good, bad, _ = studies

    def held(run: Path, reference: Path | None, *criteria: str) -> GateReport:
        return gate(run, reference, policy(tmp_path, *criteria))

    limits = ("'violation'\nmax = 0.1", "'perception'\nmin = 4.5")
    assert held(good, None, *limits).passed
    assert [one.passed for one in held(bad, None, *limits).verdicts] == [False, False]
    assert held(good, good, "'must.recognise'\nnon_inferior = 0.001").passed  # nothing differs
    found = held(bad, good, "'violation'\nnon_inferior = 0.001").verdicts[0]
    assert "not shown to be less than 0.001 worse" in found.reasons
    assert any("four times in five with" in note for note in found.notes)
    assert (
        len(held(bad, good, "'violation'\nnon_inferior = 0.9").verdicts[0].reasons) == 1
    )  # worse, by less
    for criterion, message in (("'nothing'", "no figure"), ("'violation'", "nothing to test")):
        with pytest.raises(ConfigError, match=message):
            held(bad, None, criterion)


def test_evaluations_are_held_by_subtask_and_costs_by_a_limit(
    studies: tuple[Path, Path, str], tmp_path: Path
) -> None:
    runs = [
        baseline_run(tmp_path / name, name, limit=44) for name in ("constant", "copy-last-turn")
    ]
    assert gate(runs[0], runs[0], policy(tmp_path, "'cost'\nmax = 0.5")).passed
    report = gate(runs[1], runs[0])
    assert {one.criterion.figure.partition(".")[0] for one in report.verdicts} == {"lexical"}
    with pytest.raises(ConfigError, match="study"):  # another protocol
        gate(studies[0], runs[0])


def test_latency_refusals_and_cut_replies_are_in_tables_and_gates(tmp_path: Path) -> None:
    """Nothing said how long a call took: a model ten times as slow passed."""
    cut = {
        "model": "mock",
        "choices": [{"message": {"content": "So"}, "finish_reason": "length", "index": 0}],
    }
    with LoopbackServer(reply=lambda *_: Answer(cut), latency=0.2) as server:
        model = f"server:mock@{server.url}"
        facts = dict(
            load_run(baseline_run(tmp_path / "run", model=model)).summary.run_facts.texts()
        )
        run_study(spec("sap", model, tmp_path / "study", arms=("none",), limit=2))
    with CallStore(tmp_path / "study/judgements/calls.jsonl") as store:  # a judge of known price
        prices = PriceList("", {"openai:m": Price(Decimal(2), Decimal(10))})
        calls = StageCalls(store, "judge", "openai:m", prices=prices)
        calls.reserve(call_of("a"), Bound(1000, 100))
    assert (
        gate(tmp_path / "study", None, policy(tmp_path, "'cost'\nmax = 5")).headline == "not tested"
    )
    assert re.fullmatch(r"0\.\d\d s median, \d\.\d\d s 95th percentile", facts["latency of a call"])
    (shown,) = csv.DictReader((tmp_path / "study/tables/replies.csv").open())
    assert shown["cut"] == shown["replies"] > shown["refused"] == "0"
    assert 0.2 <= float(shown["median s"]) <= float(shown["95th percentile s"])
    limits = {"latency_median": 30, "latency_95": 0.1, "refused": 0.05, "cut": 0.05}
    held = policy(tmp_path, *(f"'{figure}'\nmax = {most}" for figure, most in limits.items()))
    for path in (tmp_path / "run", tmp_path / "study"):
        assert [one.passed for one in gate(path, None, held).verdicts] == [True, False, True, False]


def test_a_yes_that_says_little_is_incomplete() -> None:
    rare = [float(k % 10 == 0) for k in range(100)]
    for lost, lost_before in ((10, 0), (0, 10), (100, 0)):  # values are missing
        runs = [run_of([None] * number + rare[number:]) for number in (lost, lost_before)]
        report = judge_runs(*runs, HELD)
        assert (report.passed, report.incomplete) == (True, True)
    for items, powerless in ((20, True), (50, False)):  # four and ten cases of five turns
        report = judge_runs(run_of([1.0] * items), run_of([0.0] * items), HELD)
        words = (
            ("not tested", "not tested", 'skipped="1"')
            if powerless
            else ("NO", "not passed", 'failures="1"')
        )
        assert (report.verdicts[0].word, report.headline) == words[:2]
        assert f": {words[1]}" in forms.to_markdown(report).splitlines()[0]
        assert words[2] in forms.to_junit(report)
        assert f">{words[1].capitalize()}</h1>" in forms.to_html(
            report
        )  # in words, not by a colour alone
    often = [float(k % 5 > 0) for k in range(25)]
    moved = [float(k % 5 > 1) for k in range(25)]
    other = [
        float(k % 5 != 2) for k in range(25)
    ]  # as often, at other places: what is left to rise is not found
    near = judge_runs(run_of(other), run_of(often), HELD).verdicts[0].not_tested
    assert near == (
        "the reference run is at 80.0 %, so near the worst that with 5 independent items no worsening that is left "
        "would be found; a limit (max or min) holds it",
    )
    assert judge_runs(run_of(often), run_of(often), HELD).headline == "passed"  # against itself
    assert judge_runs(run_of([0.0] * 25), run_of(often), HELD).headline == "passed"  # far better
    assert judge_runs(run_of(moved), run_of(moved), HELD).headline == "passed"
    met = [
        Observation("sap", "must.stay", f"i{k}", f"i{k}", float(k % 10 > 0)) for k in range(100)
    ]  # 90 %: more is better
    kept = replace(run_of([]), values={"must.stay": met})
    found = judge_runs(kept, kept, Policy(criteria=(Criterion(figure="must.stay"),))).verdicts[0]
    start, end = map(float, re.findall(r"[\d.]+", found.detects))
    assert (found.word, start > 89 > end) == ("yes", True)  # a fall is what makes it worse
    limit = Policy(criteria=(Criterion(figure="violation", max=0.1),))
    reports = [
        judge_runs(run_of([0.0] * items), None, limit) for items in (5, 10)
    ]  # one and two cases: .1 ** 2 < .05
    assert [(report.passed, report.incomplete) for report in reports] == [
        (True, True),
        (True, False),
    ]
    failed = judge_runs(replace(run_of(rare), failed=2), run_of(rare), HELD)
    assert (failed.headline, 'skipped="1"' in forms.to_junit(failed)) == (
        "not tested",
        True,
    )  # pipelines read it
    server = replace(
        run_of(rare), measures={"cost": None}
    )  # of unknown price: 0.0000 US dollars passed
    cost = judge_runs(server, None, Policy(criteria=(Criterion(figure="cost", max=1),)))
    assert (cost.headline, cost.verdicts[0].not_tested) == (
        "not tested",
        ("the cost is not known",),
    )
    few = judge_runs(run_of([1.0] * 50 + [None] * 2), run_of([0.0] * 52), HELD)
    assert [str(cell).split(", ")[1] for cell in forms.gate_table(few).rows[0][1:3]] == [
        "0 of 50",
        "50 of 50",
    ]  # one base
    run = run_of(rare)
    others = run_of(rare, "other")  # no common place
    report = judge_runs(run, others, HELD)
    assert (report.passed, report.incomplete) == (True, True)
    report = judge_runs(
        run, others, Policy(criteria=(Criterion(figure="violation", non_inferior=0.1, max=0.5),))
    )
    assert "no place" in report.verdicts[0].reasons[0]


def test_a_constant_worsening_has_no_interval_in_a_gate() -> None:
    """Ten cases that all got worse alike had the interval "+100 to +100 points"."""
    report = judge_runs(run_of([1.0] * 50), run_of([0.0] * 50), HELD)
    for text in (forms.to_markdown(report), forms.to_html(report)):
        assert "+100 points" in text
        assert "no interval where all differences are equal" in text
    (criterion,) = json.loads(forms.to_json(report))["criteria"]
    assert criterion["worse by"] == {"value": 1.0, "low": None, "high": None}
    varied = judge_runs(run_of([1.0] * 45 + [0.0] * 5), run_of([0.0] * 50), HELD)
    assert "no interval" not in forms.to_markdown(varied)


def test_policies_that_could_never_say_no_are_refused(tmp_path: Path) -> None:
    for text, message in {
        "'cost'": "max",
        "'violation'\nmax = nan": "holds the number nan",
        "'violation'\nrelative = false\nnon_inferior = 0.1": "reference",
        "'cost'\nmax = 1\nmin = 0.5": "nothing else",
    }.items():
        with pytest.raises(ConfigError, match=message):
            read_policy(policy(tmp_path, text))


def judgement(request: dict[str, Any], _: int) -> str:
    """A judge that reads, and finds no fault with the application."""
    return judged([message["content"] for message in request["messages"]], careful) or ""


def test_the_printed_workflow_passes_where_nothing_became_worse(tmp_path: Path) -> None:
    """Its policy limits `cost`, which `study app` does not know: the gate always said no."""
    steps = [
        one
        for one in yaml.safe_load(block("gate-in-ci.md", "yaml"))["jobs"]["gate"]["steps"]
        if "run" in one
    ]
    assert steps.pop(0)["run"] == "pip install h2htalk"
    (tmp_path / "gate.toml").write_text(block("gate-in-ci.md", "toml"))
    (tmp_path / "app.toml").write_text(block("test-an-app.md", "toml"))
    (tmp_path / "bin").mkdir()
    for name, command in (
        ("start-the-companion", ":"),
        ("bin/h2htalk", f'exec "{sys.executable}" -m h2htalk "$@"'),
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\n{command}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "summary.md").write_text("")
    secrets = {"OPENAI_API_KEY": "sk-made-up", "COMPANION_KEY": KEY}
    made = {
        "PYTHONPATH": str(Path(__file__).parents[3]),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
    }
    made = {**os.environ, **made, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    with Companion() as app, LoopbackServer(reply=judgement) as judge:
        for step in steps:
            names = {
                name: re.findall(r"secrets\.(\w+)", text)[0]
                for name, text in step.get("env", {}).items()
            }
            own = {
                "OPENAI_BASE_URL": judge.url,
                **{name: secrets[secret] for name, secret in names.items()},
            }
            command = ["bash", "-e", "-c", step["run"].replace("http://127.0.0.1:8080", app.url)]
            done = subprocess.run(
                command, cwd=tmp_path, env=made | own, capture_output=True, text=True, timeout=120
            )
            assert done.returncode == 0, done.stdout + done.stderr
            if "study app" in step["run"]:
                shutil.copytree(tmp_path / "nightly", tmp_path / "released")
    assert app.keys == {f"Bearer {KEY}"}
    cases = xml.parse(tmp_path / "gate.xml").findall(".//testcase")
    assert len(cases) == 4
    assert not [
        part.tag for one in cases for part in one if part.tag in ("failure", "skipped", "error")
    ]
    assert (tmp_path / "summary.md").read_text().splitlines()[0].endswith(": passed")
    assert app.url not in (tmp_path / "summary.md").read_text()
