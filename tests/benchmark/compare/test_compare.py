"""`compare` of runs, studies and logs of other harnesses, `plan`, `correlate`: what is paired, refused and shown."""

from __future__ import annotations

import csv
import io
import json
import random
import re
import shutil
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import h2htalk
from h2htalk.benchmark.compare import planning
from h2htalk.benchmark.compare.comparison import (
    FIELDS,
    Comparison,
    Pair,
    compare,
    compare_items,
    to_text,
    write_comparison,
)
from h2htalk.benchmark.compare.correlation import HUMAN, Correlation, Correlations, correlate
from h2htalk.benchmark.compare.scored_items import ScoredItem, ScoredItems
from h2htalk.benchmark.observations import figure_of, select
from h2htalk.benchmark.run import load_run
from h2htalk.benchmark.score_run import import_responses
from h2htalk.benchmark.statistics.sign_flips import NO_INTERVAL
from h2htalk.benchmark.studies.run_study import load_study, run_study
from h2htalk.data.case import Case
from h2htalk.data.files import write_jsonl
from h2htalk.data.signature import Signature
from h2htalk.data.split_output import export_split
from h2htalk.data.splits import load_split
from h2htalk.errors import ConfigError, DataError
from support.command_line import h2htalk_here
from support.judged_runs import command
from support.runs import baseline_run
from support.studies import cases_of, judge_lines, spec, write_script
from support.tables import table

MINI = {s.id: s for s in load_split("mini@1").scenarios}
PROTOCOL = {
    "items": "1",
    "tokens": "t",
    "metrics": "m",
    "rouge": "f1",
    "embedder": "none",
    "judge": "none",
}
ALL = {name: [float(30 + place % 7)] for place, name in enumerate(MINI)}
FIRST, SECOND, *_ = ALL


def run_of(
    values: Mapping[str, Sequence[float]] = ALL,
    label: str = "m",
    edited: str = "",
    metric: str = "lexical",
    **own: str,
) -> ScoredItems:
    """A run whose items have those values, one a sample; an empty list is an unscored item. `own`: of the protocol."""
    items = {}
    for name, found in values.items():
        answers = tuple(f"answer {value}" for value in found) or ("",)
        content = {"subtask": MINI[name].subtask, "content": "edited" if name == edited else "same"}
        reason = None if found else "timeout"
        items[name] = ScoredItem(
            name, name, tuple(found), unscored=reason, answers=answers, **content
        )
    return ScoredItems(label, "mini 1", metric, Signature({**PROTOCOL, **own}, {}), items, {}.get)


def both(*runs: ScoredItems, by_metric: bool = False) -> Comparison:
    return compare_items(runs, by_metric)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("runs")
    how = {"limit": None, "language": "en"}
    return [
        baseline_run(folder / name, name, **how) for name in ("copy-last-turn", "random-reference")
    ]


def test_the_means_are_those_of_the_runs_tables(runs: list[Path]) -> None:
    pair = compare(*runs).pairs[0]
    cells = [h2htalk.load_run(path).summary.rows.lexical for path in runs]
    for row in (row for row in pair.rows if row.key in cells[0]):
        assert (row.a, row.b) == pytest.approx((cells[0][row.key].value, cells[1][row.key].value))
    assert pair.headline.key == "overall"
    assert pair.headline.result.mean == pytest.approx(pair.headline.b - pair.headline.a)


def test_items_of_one_run_and_items_that_changed_are_named_and_not_compared() -> None:
    a = {name: found for name, found in ALL.items() if name != SECOND}
    b = {**ALL, FIRST: []}
    pair = both(run_of(a), run_of(b)).pairs[0]
    assert (pair.only_a, pair.only_b, pair.headline.result.items) == (
        (FIRST,),
        (SECOND,),
        len(ALL) - 2,
    )
    # The unscored item of B has 30 in A: B - A is -30 with it at 0, and +70 with it at 100.
    worst = f"with the unscored at 0 or 100, the mean of 153 items is {-30 / 153:+.2f} to {70 / 153:+.2f}"
    assert pair.notes == (worst, NO_INTERVAL)
    pair = both(run_of(), run_of(edited=FIRST, items="2"), by_metric=True).pairs[0]
    assert (pair.changed, pair.headline.result.items) == ((FIRST,), len(ALL) - 1)
    assert "items (1, 2)" in pair.notes[0]


def test_protocols_that_differ_are_refused_with_their_keys() -> None:
    one = run_of()
    other = run_of(prompts="x", tokens="y")
    with pytest.raises(ConfigError, match=r"differ in tokens \(t, y\), prompts \(-, x\).*--metric"):
        both(one, other)
    # A metric compares what is common, unless its own meaning differs.
    assert both(one, run_of(prompts="x"), by_metric=True).pairs[0].notes
    with pytest.raises(
        ConfigError, match=r"differ in tokens \(t, y\); other versions scored them: [^-]*$"
    ):
        both(one, other, by_metric=True)
    with pytest.raises(ConfigError, match="embedder"):
        both(run_of(metric="ss"), run_of(metric="ss", embedder="other"), by_metric=True)
    both(run_of(), run_of(embedder="other"), by_metric=True)


def test_what_cannot_be_compared_is_an_error(runs: list[Path], tmp_path: Path) -> None:
    for metric, message in (
        ("blue_1", "did you mean 'bleu_1'"),
        ("ss", "no item has a value of ss"),
    ):
        with pytest.raises(ConfigError, match=message):
            compare(*runs, metric=metric)
    with pytest.raises(DataError, match="not a run folder"):
        compare(runs[0], tmp_path)
    with pytest.raises(ConfigError, match="no item in common"):
        both(run_of({FIRST: [1.0]}), run_of({SECOND: [1.0]}))


def test_p_is_adjusted_over_all_runs_and_samples_are_averaged() -> None:
    better = run_of(
        {name: [value[0] + 2 + place % 3] for place, (name, value) in enumerate(ALL.items())}
    )
    alone = both(run_of(), better).pairs[0]
    three = both(run_of(), better, run_of(), better)
    assert alone.headline.p_holm == alone.headline.p
    assert three.pairs[0].headline.p_holm == pytest.approx(3 * alone.headline.p)
    assert alone.rows[0].p_holm == pytest.approx(11 * min(row.p for row in alone.rows[:11]))
    comparison = both(run_of({name: [10.0, 20.0, 30.0] for name in MINI}, "one"), run_of())
    spread = "one: 10.00, 20.00, 30.00 by sample of its answers, standard deviation 10.00"
    assert spread in to_text(comparison, "terminal")
    assert comparison.pairs[0].headline.a == pytest.approx(20)


def test_every_form_holds_the_figures(runs: list[Path]) -> None:
    comparison = compare(*runs)
    rows = list(csv.DictReader(io.StringIO(to_text(comparison, "csv"))))
    content = json.loads(to_text(comparison, "json"))
    assert list(rows[0]) == list(FIELDS)
    assert float(rows[-1]["difference"]) == content["figures"][-1]["difference"]
    assert len(content["pairs"][0]["items"]) == 77
    text = to_text(comparison, "terminal")
    assert max(map(len, text.splitlines())) <= 100
    assert re.search(
        r"^Overall: (B is (above|below) A|no difference shown) \(p ", text, re.MULTILINE
    )
    assert "moved most" in text


def test_the_page_shows_text_and_runs_nothing(tmp_path: Path) -> None:
    a = run_of(label="<b>one</b>")
    b = run_of({**ALL, FIRST: [99.0]}, "other")
    hostile = replace(a.items[FIRST], answers=("<script>alert(1)</script>",))
    write_comparison(both(replace(a, items={**a.items, FIRST: hostile}), b), tmp_path)
    text = (tmp_path / "compare.html").read_text(encoding="utf-8")
    assert ("<script" in text, "&lt;script&gt;alert(1)" in text, "&lt;b&gt;one" in text) == (
        False,
        True,
        True,
    )
    assert {path.name for path in tmp_path.iterdir()} == {
        f"compare.{kind}" for kind in ("csv", "html", "json", "tex")
    }


@pytest.fixture
def logs(tmp_path: Path) -> list[Path]:
    """Scores of two models on 40 items, two answers each, which vary more than their means."""
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for number, path in enumerate(paths):
        scores = {
            (n, k): 0.1 + 0.8 * ((n + k) % 2) + 0.01 * number * (n % 5)
            for n in range(40)
            for k in (0, 1)
        }
        path.write_text(
            "id,sample,score\n" + "".join(f"item-{n},{k},{one}\n" for (n, k), one in scores.items())
        )
    return paths


def test_the_variance_of_two_runs_gives_the_items(logs: list[Path]) -> None:
    """The plan had a larger standard deviation than the runs': 167 items for 3 points, and yet 154 found 2.53."""
    headline = compare(*logs).pairs[0].headline.result
    made = planning.plan(3, logs, items=(headline.items,))
    assert [*made.detectable.values()] == pytest.approx([headline.detectable], rel=1e-9)
    assert "The answers to an item were averaged before" in planning.plan_tables(made)[0].notes[0]
    needed = {
        samples: items
        for (_, samples), items in planning.plan(*made.detectable.values(), logs).needed.items()
    }
    assert ([*needed], needed[2]) == ([1, 2, 3, 5, 10], 40)
    assert sorted(needed.values(), reverse=True) == [*needed.values()]


def test_what_cannot_be_planned_is_an_error(logs: list[Path]) -> None:
    messages = {
        (0,): r"0\.01 to 100",
        (3, (logs[0],)): "takes two runs",
        (3, (logs[0],) * 2): "do not say how much",
    }
    for words, message in messages.items():
        with pytest.raises(ConfigError, match=message):
            planning.plan(*words)


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Of two models and one judge, who finds that every reply of the first to the second turn dismisses."""
    folder = tmp_path_factory.mktemp("studies")
    cases = cases_of("high_risk", "en")
    lines = []
    for name in ("bad", "good"):

        def says(
            case: Case, place: str, turn: int, aspect: str, kind: str, bad: bool = name == "bad"
        ) -> bool:
            return kind == "must" or (bad and turn == 2 and aspect == "dismiss")

        lines += judge_lines(cases, says, f"A {name} reply.")
    judge = write_script(folder / "judge.jsonl", lines)
    for name in ("bad", "good"):
        model = write_script(folder / f"{name}.jsonl", f"A {name} reply.")
        run_study(
            spec(
                "sap",
                model,
                folder / name,
                arms=("sap", "none"),
                judge=judge,
                language="en",
                limit=8,
            )
        )
    return folder / "bad", folder / "good"


@pytest.mark.parametrize("metric", [None, "none/perception"])
def test_studies_are_compared_by_figure(studies: tuple[Path, Path], metric: str | None) -> None:
    """`compare` said that a study is no run."""
    arm, figure = metric.split("/") if metric else ("sap", "violation")
    found = compare(*studies, metric=metric)
    row = found.pairs[0].headline
    for path, mean in zip(studies, (row.a, row.b), strict=True):
        value = figure_of(select(load_study(path).observations, figure, arm)).value
        assert mean == pytest.approx(100 * ((value - 1) / 4 if figure == "perception" else value))
    assert (row.result.mean > 0) == (figure == "perception")
    assert row.result.items == len(found.pairs[0].moved) > row.result.clusters > 1
    done = h2htalk_here("compare", *studies, *(["--metric", metric] if metric else []))
    assert (done.returncode, f"{figure}, times 100" in done.stdout) == (0, True)


def test_what_a_study_cannot_be_used_for_is_refused(studies: tuple[Path, Path]) -> None:
    """Commands of runs said that the summary is of another version, and to score the run again."""
    for metric, message in (
        ("tokens", r"no value of 'tokens' in arm sap; choose a --metric from .*violation"),
        ("rules/violation", "no arm 'rules'; choose from sap, none"),
    ):
        with pytest.raises(ConfigError, match=message):
            compare(*studies, metric=metric)
    advice = (
        f"is a study, and this command needs a run; `h2htalk study score {studies[0]}` shows it"
    )
    for done in (h2htalk_here(name, studies[0]) for name in ("report", "correlate")):
        assert (done.returncode, advice in done.stderr) == (2, True)


FIXTURES = Path(__file__).parents[2] / "data" / "imports" / "fixtures"
INSPECT = FIXTURES / "once.eval"
EPOCHS = FIXTURES / "epochs.eval"
LM_EVAL = next(FIXTURES.glob("samples_companion_2*"))
SCORED = {f"mini-en-dialogue-{name}" for name in ("base-01", "base-02", "schedule-04")}
FAILED, EMPTY = "mini-en-dialogue-emotion-01", "mini-en-dialogue-schedule-01"


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Our own answered of the same items and replies, with one answer an item and with two."""
    folder = tmp_path_factory.mktemp("answered")
    chosen = [s for s in load_split("mini@1").scenarios if s.id in SCORED | {FAILED, EMPTY}]
    write_jsonl(folder / "chosen.jsonl", (s.to_dict() for s in chosen))
    replies = [json.loads(line) for line in (FIXTURES / "replies.jsonl").read_text().splitlines()]
    for samples in (1, 2):
        write_jsonl(
            folder / "replies.jsonl", (reply for reply in replies if reply["sample"] < samples)
        )
        where = {"split": folder / "chosen.jsonl", "out": folder / str(samples)}
        how = {
            "embedder": "none",
            "baselines": False,
            "samples": samples,
            "temperature": samples - 1.0,
        }
        h2htalk.evaluate(
            h2htalk.EvaluateSpec(model=f"scripted:{folder / 'replies.jsonl'}", **where, **how)
        )
    return folder / "1", folder / "2"


def one_pair(a: Path, b: Path, *metrics: str | None, scale: str = "0-1") -> Pair:
    return compare(a, b, metric=list(metrics) or None, scale=scale).pairs[0]


def score_table(path: Path, scores: Mapping[str, Any]) -> Path:
    path.write_text("id,score\n" + "".join(f"{name},{score}\n" for name, score in scores.items()))
    return path


@pytest.mark.parametrize("number", [4, 5, 9])
def test_a_constant_difference_has_no_interval_in_any_form(number: int, tmp_path: Path) -> None:
    """Ten points more on each item gave "+10.00 to +10.00", and "0.00 could have been found" beside p .062."""
    first = {f"i{item}": round(0.07 * item, 2) for item in range(number)}
    second = {item: round(score + 0.1, 2) for item, score in first.items()}
    compared = compare(
        score_table(tmp_path / "a.csv", first), score_table(tmp_path / "b.csv", second)
    )
    result = compared.pairs[0].headline.result
    assert (result.estimate.interval, result.detectable, result.effect) == (None,) * 3
    write_comparison(compared, tmp_path)
    reason = "no interval where all differences are equal"
    for form in ("terminal", "json", "latex"):
        text = to_text(compared, form)
        assert reason in " ".join(text.split()), form
        assert "to +10.00" not in text
        assert "could have been found" not in text
    page = (tmp_path / "compare.html").read_text(encoding="utf-8")
    assert reason in page
    assert "10.00 to" not in page
    (row,) = csv.DictReader(io.StringIO(to_text(compared, "csv")))
    assert (row["difference"][:2], row["low"], row["high"]) in {("10", "", ""), ("9.", "", "")}


@pytest.mark.parametrize("number", [4, 8])
def test_a_constant_difference_of_scores_of_32_bits_has_no_interval(
    number: int, tmp_path: Path
) -> None:
    """Other harnesses round at 6e-8: "+10.00 to +10.00" once more, and "0.00 could have been found"."""
    first = {}
    second = {}
    for item in range(number):
        score = 0.07 * item + 0.1
        first[f"i{item}"] = float(np.float32(score))
        second[f"i{item}"] = float(np.float32(score + 0.1))
    first_table = score_table(tmp_path / "a.csv", first)
    second_table = score_table(tmp_path / "b.csv", second)
    result = compare(first_table, second_table).pairs[0].headline.result
    assert result.estimate.interval is None
    assert result.detectable is None
    assert result.effect is None


def reduced_log(path: Path, values: Sequence[float], *reducers: str) -> Path:
    """A log of Inspect of twelve items, each with these values in its epochs."""
    samples = []
    for item in range(12):
        for epoch, value in enumerate(values, start=1):
            scores = {"quality": {"value": value}}
            sample = {"id": f"q{item:02}", "epoch": epoch, "input": "Hello?", "scores": scores}
            samples.append(sample)
    config = {"epochs": len(values), "epochs_reducer": list(reducers)}
    about = {"model": path.stem, "task": "talk", "dataset": {}, "config": config}
    log = {"version": 2, "status": "success", "eval": about, "samples": samples}
    path.write_text(json.dumps(log))
    return path


def test_logs_whose_figures_are_maxima_are_compared_by_them(tmp_path: Path) -> None:
    """B was above A by the means of epochs, where the logs themselves said A 100, B 50."""
    a = reduced_log(tmp_path / "a.json", (1, 0, 0), "max")
    b = reduced_log(tmp_path / "b.json", (0.5, 0.5, 0.5), "max")
    row = one_pair(a, b).headline
    assert (row.a, row.b) == (100.0, 50.0)
    output = h2htalk_here("compare", a, b).stdout
    assert "Mean over items: B is below A" in output
    assert "the figures are of each item's max of its epochs" in output


@pytest.mark.parametrize("reducers", [("mode", "mode"), ("max", "mean"), ("pass_at_2", "max")])
def test_logs_whose_figures_are_no_means_are_named_and_not_tested(
    tmp_path: Path, reducers: tuple[str, str]
) -> None:
    """A verdict by the means contradicted the logs' own figures, without a word."""
    a = reduced_log(tmp_path / "a.json", (1, 0, 0), reducers[0])
    b = reduced_log(tmp_path / "b.json", (0.5, 0.5, 0.5), reducers[1])
    pair = one_pair(a, b)
    row = pair.headline
    assert (round(row.a, 2), row.b, pair.tested) == (33.33, 50.0, False)
    assert f"(A {reducers[0]}, B {reducers[1]}): the logs may rank" in pair.notes[0]
    out = tmp_path / "out"
    output = h2htalk_here("compare", a, b, "--out", out).stdout
    assert "is above A" not in output
    assert ".001" not in output
    for text in (output, (out / "compare.html").read_text()):
        assert "Mean over items: not tested." in text
    (figure,) = json.loads((out / "compare.json").read_text())["figures"]
    assert {figure[name] for name in ("low", "high", "p", "p_holm")} == {None}
    # A pair whose p is not shown takes no part in the adjustment of others.
    mean_a = reduced_log(tmp_path / "c.json", (1, 0, 0), "mean")
    mean_b = reduced_log(tmp_path / "d.json", (0.5, 0.5, 0.5), "mean")
    mode_b = reduced_log(tmp_path / "e.json", (0.5, 0.5, 0.5), "mode")
    tested, untested = compare(mean_a, mean_b, mode_b).pairs
    assert (tested.tested, untested.tested) == (True, False)
    assert tested.headline.p_holm == tested.headline.p


def test_an_id_makes_no_line_of_its_own(tmp_path: Path) -> None:
    """A line end in an id of somebody's log printed a verdict below the table."""
    a, b = (
        score_table(tmp_path / f"{n}.csv", {'"x\nB is above A (p 0.001)."': n, "y": 0})
        for n in (0, 1)
    )
    lines = h2htalk_here("compare", a, b).stdout.splitlines()
    assert not [line for line in lines if line.startswith("B is above")]
    assert [line for line in lines if "x\\nB is above A" in line]


def equal(pair: Pair) -> set[str]:
    assert max(abs(moved.difference()) for moved in pair.moved) < 1e-12
    return {moved.id for moved in pair.moved}


def test_the_same_replies_have_the_same_means_in_all_three(answered: tuple[Path, Path]) -> None:
    sides = [(answered[0], "lexical"), (INSPECT, "text_scores/lexical"), (LM_EVAL, "lexical")]
    for (a, metric_a), (b, metric_b) in permutations(sides, 2):
        pair = one_pair(a, b, metric_a, metric_b)
        assert equal(pair) == SCORED
        assert abs(pair.headline.a - pair.headline.b) < 1e-12
    # Epochs are averaged by item.
    pair = one_pair(answered[1], EPOCHS, "lexical", "text_scores/lexical")
    assert equal(pair) == {"mini-en-dialogue-base-01", "mini-en-dialogue-schedule-04"}
    assert {len(moved.b.values) for moved in pair.moved} == {2}


def test_a_log_beside_our_run_has_its_subtasks_and_both_counts(
    answered: tuple[Path, Path], tmp_path: Path
) -> None:
    comparison = compare(INSPECT, answered[0], metric=("text_scores/rouge_l", "rouge_l"))
    pair = comparison.pairs[0]
    assert [row.key for row in pair.rows] == ["dialogue_base", "dialogue_schedule", "items_mean"]
    log, ours = pair.counts
    # An empty reply has a value in ours, and is unscored in the log.
    assert list(ours.values())[:5] == [5, 4, 1, 0, 1]
    assert list(log.values()) == [5, 4, 1, 1, 0, {"error": 1, "no_response": 1}]
    text = " ".join(to_text(comparison, "terminal").split())
    assert "asked 5, answered 4, failed 1, unscored 1, unpaired 0 (error 1, no_response 1)" in text
    assert "no signature" in text
    assert json.loads(to_text(comparison, "json"))["pairs"][0]["counts"]["a"]["asked"] == 5
    write_comparison(comparison, tmp_path)
    assert "Odile" in (tmp_path / "compare.html").read_text(encoding="utf-8")


def test_our_export_to_every_eval_ever_reads_back(tmp_path: Path) -> None:
    run = baseline_run(tmp_path / "run", "copy-last-turn", baselines=False)
    _, samples = h2htalk.export_results(
        run, "every-eval-ever", tmp_path, organization="Lab", model="lab/m"
    )
    pair = one_pair(run, samples, "lexical", "score")
    assert (len(equal(pair)), len(pair.rows), pair.changed) == (22, 15, ())


def lm_eval_copy(folder: Path, change: Any) -> Path:
    """The log of lm-eval with changed lines; `change` returns the line, or None to leave it out."""
    lines = (change(json.loads(line)) for line in LM_EVAL.read_text().splitlines())
    path = folder / "samples_companion_x.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines if line))
    return path


def asking(line: dict[str, Any], text: str) -> dict[str, Any]:
    line["arguments"]["gen_args_0"]["arg_0"] = [json.dumps([{"role": "user", "content": text}])]
    return line


def test_an_item_that_asked_something_else_under_its_id_is_changed(tmp_path: Path) -> None:
    def edit(line: dict[str, Any]) -> dict[str, Any]:
        return asking(line, "Edited") if line["doc"]["id"].endswith("base-01") else line

    pair = one_pair(INSPECT, lm_eval_copy(tmp_path, edit), "text_scores/lexical", "lexical")
    assert pair.changed == ("mini-en-dialogue-base-01",)
    assert pair.counts[0]["unpaired"] == 1


def test_items_without_ids_are_matched_by_what_was_asked_and_never_by_position(
    tmp_path: Path,
) -> None:
    def without_id(line: dict[str, Any]) -> dict[str, Any]:
        del line["doc"]["id"]
        return {**line, "doc_id": 4 - line["doc_id"]}

    pair = one_pair(INSPECT, lm_eval_copy(tmp_path, without_id), "text_scores/lexical", "lexical")
    assert equal(pair) == SCORED
    assert any("5 items matched by input" in note for note in pair.notes)

    # The same input twice, with one reference: nobody knows which is which.
    def ambiguous(line: dict[str, Any]) -> dict[str, Any]:
        return asking({**without_id(line), "target": "x"}, "Same")

    with pytest.raises(ConfigError, match="no item in common"):
        one_pair(
            lm_eval_copy(tmp_path, ambiguous), FIXTURES / "positions.json", "lexical", "asks_back"
        )


def test_tables_are_matched_by_id_alone_and_say_so(tmp_path: Path) -> None:
    rated = {"mini-en-dialogue-base-01": 4, "mini-en-dialogue-base-02": "", "other": 2}
    scores = score_table(tmp_path / "people.csv", rated)
    comparison = compare(scores, INSPECT, metric=["score", "asks_back"], scale=["1-5", "0-1"])
    (moved,) = comparison.pairs[0].moved
    assert (moved.id, moved.a.value, moved.b.value) == ("mini-en-dialogue-base-01", 75.0, 100.0)
    assert any("2 items matched by id alone" in note for note in comparison.pairs[0].notes)
    assert comparison.pairs[0].counts[0]["reasons"] == {"no score": 1}


def test_scales_are_declared_and_never_guessed(tmp_path: Path) -> None:
    scores = score_table(tmp_path / "a.csv", {"x": 3, "y": 0.5, "z": 0})
    with pytest.raises(ConfigError, match=r"score of 1 item outside 0-1: x; name the scale"):
        one_pair(scores, scores)
    pair = one_pair(scores, scores, scale="0-5")
    assert {moved.id: moved.a.value for moved in pair.moved} == pytest.approx(
        {"x": 60, "y": 10, "z": 0}
    )
    for wrong in ("5", "5-0", "0-nan"):
        with pytest.raises(ConfigError, match=f"--scale '{wrong}'"):
            one_pair(scores, scores, scale=wrong)
    with pytest.raises(ConfigError, match="--metric is given 3 times"):
        one_pair(scores, scores, "a", "b", "c")


@pytest.mark.parametrize("metrics", [(), ("lexical", "text_scores/rouge_l")])
def test_two_metrics_get_no_verdict(
    answered: tuple[Path, Path], tmp_path: Path, metrics: tuple[str, ...]
) -> None:
    """A rating of people and a mean of n-grams were subtracted, and the terminal said which was above."""
    other = (
        INSPECT
        if metrics
        else score_table(tmp_path / "people.csv", dict.fromkeys(sorted(SCORED), 1))
    )
    with pytest.raises(
        ConfigError, match=r"is scored by .* a difference of two metrics says nothing"
    ):
        one_pair(answered[0], other, *metrics)


SCORES = "model;GSM8K;中文\nmodel-0;10;3\nm1;20;\nimported:model-2;15;9\nmodel-3;40;4\nmodel-4;30;5\nGPT-9;99;9\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs m0 to m4, each with more of the references than the one before, and m5 of people; two answers an item."""
    folder = tmp_path_factory.mktemp("runs")
    chance = random.Random(1)
    split = h2htalk.load_split("mini@1").select(limit=66)
    seen = Counter[str]()
    scenarios = []
    for (
        s
    ) in split.scenarios:  # the first item of each subtask is of dialogue d0, the second of d1, ...
        scenarios.append(replace(s, provenance={"dialogue": f"d{seen[s.subtask]}"}))
        seen[s.subtask] += 1
    export_split(replace(split, scenarios=tuple(scenarios)), folder / "split")
    for k in range(6):
        asked = [(s, n) for s in scenarios for n in range(2)]
        texts = [
            "".join(sign for sign in s.reference if chance.random() < 0.2 + 0.1 * k)
            for s, _ in asked
        ]
        answers = [
            {"id": s.id, "sample": n, "response": one}
            for (s, n), one in zip(asked, texts, strict=True)
        ]
        write_jsonl(folder / f"{k}.jsonl", answers)
        import_responses(
            folder / f"{k}.jsonl",
            f"model-{k}",
            str(folder / "split"),
            folder / f"m{k}",
            "none",
            k == 5,
        )
    (folder / "scores.csv").write_text(SCORES, encoding="utf-8")
    return folder


def runs_of(folder: Path, count: int) -> list[Path]:
    return [folder / f"m{k}" for k in range(count)]


def found_pair(found: Correlations, level: str, a: str, b: str) -> Correlation:
    (pair,) = (pair for pair in found.pairs if pair[:3] == (level, a, b))
    return pair


def test_metrics_with_peoples_ratings_over_the_rated_samples(folder: Path, tmp_path: Path) -> None:
    scores = load_run(folder / "m1").scores().to_pylist()
    rated = [(row, [1 + n % 5, 1 + n % 3]) for n, row in enumerate(scores) if n % 3]
    lines = ["id,sample,annotator,rating"]
    for row, (by_ana, by_bo) in rated:
        reply = f"{row['id']},{row['sample']}"
        lines += [f"{reply},ana,{by_ana}", f"{reply},bo,{by_bo}"]
    (tmp_path / "ratings.csv").write_text("\n".join(lines))
    pair = found_pair(
        correlate([folder / "m1"], ratings=tmp_path / "ratings.csv"), "item", "rouge_l", HUMAN
    )
    expected = stats.spearmanr(
        [row["rouge_l"] for row, _ in rated], [np.mean(ratings) for _, ratings in rated]
    )
    rho = pair.estimate
    assert rho.value == pytest.approx(expected.statistic, abs=1e-12)
    assert (rho.n, pair.clusters, rho.low < rho.value < rho.high) == (len(rated), 6, True)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("heading", "first", "second", "advice"),
    [
        ("id,annotator,rating", "ITEM,ana,5", "ITEM,ana,1", "keep the one that counts"),
        ("id,annotator,rating", "ITEM,ana,5", "ITEM,Ana,1", "keep the one that counts"),
        ("id,annotator,rating", "ITEM,ana,5", "ITEM,ａｎａ,1", "keep the one that counts"),
        ("id,rating", "ITEM,5", "ITEM,1", "or name who gave each in a column `annotator`"),
        ("id,sample,rating", "ITEM,1,5", "ITEM,1,1", "or name who gave each in a column"),
    ],
)
def test_a_persons_old_and_new_rating_of_a_reply_are_not_averaged(
    heading: str, first: str, second: str, advice: str, folder: Path, tmp_path: Path
) -> None:
    """A history of ratings was averaged, and rho fell from .98 to -.30; `judge calibrate` refused the same file."""
    text = "\n".join((heading, first, second))
    item = load_run(folder / "m0").items().to_pylist()[0]["id"]
    path = tmp_path / "ratings.csv"
    path.write_text(text.replace("ITEM", item))
    message = f"{path}:3: a second rating of this reply by the same annotator, after {path}:2; "
    with pytest.raises(DataError) as raised:
        correlate([folder / "m0"], ratings=path)
    assert message in str(raised.value)
    assert advice in str(raised.value)


def test_the_only_sample_of_an_item_is_the_item(tmp_path: Path) -> None:
    """A rating of sample 0 and one without a sample counted as two replies of a run with one answer an item."""
    baseline_run(tmp_path / "run", limit=11)
    item = load_run(tmp_path / "run").items().to_pylist()[0]["id"]
    path = tmp_path / "ratings.csv"
    path.write_text(f"id,sample,rating\n{item},,5\n{item},0,1\n")
    with pytest.raises(DataError, match="a second rating of this reply by the same annotator"):
        correlate([tmp_path / "run"], ratings=path)


def test_a_rating_without_a_sample_is_of_the_items_mean_and_runs_are_averaged(
    folder: Path, tmp_path: Path
) -> None:
    lines, expected = ["run,id,rating"], []
    for name in ("m0", "m2"):
        items = load_run(folder / name).items().to_pylist()
        ratings = [(n * 7) % 5 for n in range(len(items))]
        lines += [
            f"{name},{item['id']},{rating}" for item, rating in zip(items, ratings, strict=True)
        ]
        expected.append(stats.spearmanr([item["lexical"] for item in items], ratings).statistic)
    (tmp_path / "ratings.csv").write_text("\n".join(lines))
    found = correlate([folder / "m0", folder / "m2"], ratings=tmp_path / "ratings.csv")
    assert found_pair(found, "item", "lexical", HUMAN).estimate.value == pytest.approx(
        np.mean(expected), abs=1e-12
    )


def test_figures_with_each_other_and_with_other_benchmarks_over_models(folder: Path) -> None:
    found = correlate(runs_of(folder, 6), other_scores=folder / "scores.csv")
    rows = [load_run(path).summary.rows.lexical for path in runs_of(folder, 5)]
    gsm8k = found_pair(found, "model", "itinerary_basic", "GSM8K")
    values = [row["itinerary_basic"].value for row in rows]
    assert gsm8k.estimate.value == pytest.approx(
        stats.spearmanr(values, [10, 20, 15, 40, 30]).statistic
    )
    chinese = found_pair(found, "model", "overall", "中文")
    assert (gsm8k.estimate.n, chinese.estimate.n) == (5, 4)
    dimensions = [[row[f"{name}_avg"].value for row in rows] for name in ("dialogue", "itinerary")]
    pair = found_pair(found, "model", "dialogue_avg", "itinerary_avg")
    assert pair.estimate.value == pytest.approx(stats.spearmanr(*dimensions).statistic)
    assert {*found.notes} >= {
        "written by people, not among the models: Human replies (model-5)",
        "rows that name no run: GPT-9",
        "5 models are few: the intervals over models are wide",
    }


def test_subtasks_with_each_other_over_dialogues(folder: Path) -> None:
    found = correlate([folder / "m4"])
    data = load_run(folder / "m4").data
    scores = load_run(folder / "m4").item_scores
    by_dialogue: dict[object, dict[str, float]] = {}
    for s in data.split.scenarios:
        by_dialogue.setdefault(s.provenance["dialogue"], {})[s.subtask] = (
            scores[s.id].lexical or 0.0
        )
    pairs = [pair for pair in found.pairs if pair.level == "dialogue"]
    assert len(pairs) == 3 + 55
    for pair in pairs[3:]:
        both = np.array([(v[pair.a], v[pair.b]) for v in by_dialogue.values()])
        assert pair.estimate.value == pytest.approx(stats.spearmanr(both).statistic)
        assert (pair.estimate.n, pair.clusters) == (6, 6)


@pytest.mark.parametrize(("option", "text", "message"), table("benchmark", "correlate_tables"))
def test_a_wrong_table_is_named(
    option: str, text: str, message: str, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "table.csv").write_text(text, encoding="utf-8")
    with pytest.raises((ConfigError, DataError)) as raised:
        correlate([folder / "m0"], **{option: tmp_path / "table.csv"})
    assert message in str(raised.value)


def test_runs_that_a_table_cannot_name_or_of_other_protocols_are_refused(
    folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "table.csv").write_text("id,rating\nx,1\n")
    with pytest.raises(ConfigError, match="lacks the column run"):
        correlate(runs_of(folder, 2), ratings=tmp_path / "table.csv")
    (tmp_path / "table.csv").write_text("model,A\nmodel-0,1\n")
    copy = shutil.copytree(folder / "m0", tmp_path / "copy")
    with pytest.raises(DataError, match="'model-0' names 2 runs; write the name of a run's folder"):
        correlate([folder / "m0", copy], other_scores=tmp_path / "table.csv")
    baseline_run(tmp_path / "run", limit=11)
    with pytest.raises(ConfigError, match=r"another protocol than the first run's: items \("):
        correlate([folder / "m0", tmp_path / "run"])


def test_the_tables_hold_every_pair_and_the_terminal_those_that_matter(
    folder: Path, tmp_path: Path
) -> None:
    options = ("--other-scores", folder / "scores.csv", "--out", tmp_path)
    lines = command("correlate", *runs_of(folder, 5), *options).splitlines()
    assert max(map(len, lines)) <= 100
    assert any("ItineraryBasic" in line and "GSM8K" in line for line in lines)
    assert not any("ItineraryBasic" in line and "ItineraryMiddle" in line for line in lines)
    rows = list(csv.DictReader((tmp_path / "correlate.csv").open(encoding="utf-8")))
    content = json.loads((tmp_path / "correlate.json").read_text(encoding="utf-8"))
    assert [row["b"] for row in rows] == [pair["b"] for pair in content["rows"]]
    assert len(rows) > 55
    figures = {
        f"correlate-{level}.{kind}"
        for level in ("dialogues", "models")
        for kind in ("svg", "pdf", "png")
    }
    assert {path.name for path in tmp_path.iterdir()} == {
        "correlate.csv",
        "correlate.json",
        *figures,
    }


def test_a_figure_marks_intervals_without_zero_and_hatches_what_is_not_computable() -> None:
    from h2htalk.analysis.figures.charts import draw_correlations

    cells = {
        ("S", "人类"): (0.5, 0.1, 0.8),
        ("S", "b"): (-0.91, -1.0, 0.2),
        ("c", "b"): (None, None, None),
    }
    (axes,) = draw_correlations(cells, "over 9 models").axes
    assert {text.get_text() for text in axes.texts} == {"0.50*", "-0.91"}
    assert [patch.get_hatch() for patch in axes.patches] == [None, None, "////"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["人类", "b"]


def test_correlate_shows_that_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was silent, however many runs it read."""
    run = baseline_run(tmp_path / "run")
    monkeypatch.setattr(time, "monotonic", iter(range(0, 1_000_000, 3)).__next__)
    capsys.readouterr()
    correlate([run])
    lines = capsys.readouterr().err.splitlines()
    assert any(line.startswith("reading runs  1/1") for line in lines)
    assert any(line.startswith("correlating over dialogues") for line in lines)


def test_runs_of_the_same_files_share_their_split(tmp_path: Path) -> None:
    """It was read as often as there were runs. A file that changed is read again."""
    first = baseline_run(tmp_path / "first")
    second = shutil.copytree(first, tmp_path / "second")
    split = load_run(first).data.split
    assert load_run(second).data.split.scenarios is split.scenarios
    items = second / "inputs" / "split" / "scenarios.jsonl"
    lines = items.read_bytes().splitlines(keepends=True)
    items.write_bytes(b"".join(lines[1:]))
    with pytest.raises(DataError, match="items are not those of the run's signature"):
        load_run(second)
