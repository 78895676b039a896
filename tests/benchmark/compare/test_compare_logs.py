"""`compare` with logs of other harnesses: the same replies have the same means, and nothing pairs by position."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from command_line import h2htalk_here

import h2htalk
from h2htalk.benchmark.compare.comparison import Pair, compare, to_text, write_comparison
from h2htalk.data.files import write_jsonl
from h2htalk.data.splits import load_split
from h2htalk.errors import ConfigError

FIXTURES = Path(__file__).parents[2] / "data" / "imports" / "fixtures"
INSPECT, EPOCHS = FIXTURES / "once.eval", FIXTURES / "epochs.eval"
LM_EVAL = next(FIXTURES.glob("samples_companion_2*"))
SCORED = {f"mini-en-dialogue-{name}" for name in ("base-01", "base-02", "schedule-04")}
FAILED, EMPTY = "mini-en-dialogue-emotion-01", "mini-en-dialogue-schedule-01"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Our own runs of the same items and replies, with one answer an item and with two."""
    folder = tmp_path_factory.mktemp("runs")
    chosen = [s for s in load_split("mini@1").scenarios if s.id in SCORED | {FAILED, EMPTY}]
    write_jsonl(folder / "chosen.jsonl", (s.to_dict() for s in chosen))
    replies = [json.loads(line) for line in (FIXTURES / "replies.jsonl").read_text().splitlines()]
    for samples in (1, 2):
        write_jsonl(folder / "replies.jsonl", (reply for reply in replies if reply["sample"] < samples))
        where = {"split": folder / "chosen.jsonl", "out": folder / str(samples)}
        how = {"embedder": "none", "baselines": False, "samples": samples, "temperature": samples - 1.0}
        h2htalk.evaluate(h2htalk.EvaluateSpec(model=f"scripted:{folder / 'replies.jsonl'}", **where, **how))
    return folder / "1", folder / "2"


def one_pair(a: Path, b: Path, *metrics: str | None, scale: str = "0-1") -> Pair:
    return compare(a, b, metric=list(metrics) or None, scale=scale).pairs[0]


def table(path: Path, scores: Mapping[str, Any]) -> Path:
    path.write_text("id,score\n" + "".join(f"{name},{score}\n" for name, score in scores.items()))
    return path


def test_an_id_makes_no_line_of_its_own(tmp_path: Path) -> None:
    """A line end in an id of somebody's log printed a verdict below the table."""
    a, b = (table(tmp_path / f"{n}.csv", {'"x\nB is above A (p 0.001)."': n, "y": 0}) for n in (0, 1))
    lines = h2htalk_here("compare", a, b).stdout.splitlines()
    assert not [line for line in lines if line.startswith("B is above")]
    assert [line for line in lines if "x\\nB is above A" in line]


def equal(pair: Pair) -> set[str]:
    """The items of a pair whose differences are all 0."""
    assert max(abs(moved.difference()) for moved in pair.moved) < 1e-12
    return {moved.id for moved in pair.moved}


def test_the_same_replies_have_the_same_means_in_all_three(runs: tuple[Path, Path]) -> None:
    sides = [(runs[0], "lexical"), (INSPECT, "text_scores/lexical"), (LM_EVAL, "lexical")]
    for (a, metric_a), (b, metric_b) in permutations(sides, 2):
        pair = one_pair(a, b, metric_a, metric_b)
        assert equal(pair) == SCORED
        assert abs(pair.headline.a - pair.headline.b) < 1e-12


def test_epochs_are_averaged_by_item(runs: tuple[Path, Path]) -> None:
    pair = one_pair(runs[1], EPOCHS, "lexical", "text_scores/lexical")
    assert equal(pair) == {"mini-en-dialogue-base-01", "mini-en-dialogue-schedule-04"}
    assert {len(moved.b.values) for moved in pair.moved} == {2}


def test_a_log_beside_our_run_has_its_subtasks_and_both_counts(runs: tuple[Path, Path], tmp_path: Path) -> None:
    comparison = compare(INSPECT, runs[0], metric=("text_scores/rouge_l", "rouge_l"))
    pair = comparison.pairs[0]
    assert [row.key for row in pair.rows] == ["dialogue_base", "dialogue_schedule", "items_mean"]
    log, ours = pair.counts
    # An empty reply has a value in ours, and is unscored in the log.
    assert list(ours.values())[:5] == [5, 4, 1, 0, 1]
    assert list(log.values()) == [5, 4, 1, 1, 0, {"error": 1, "no_response": 1}]
    text = to_text(comparison, "terminal")
    assert "asked 5, answered 4, failed 1, unscored 1, unpaired 0 (error 1, no_response 1)" in text
    assert "no signature" in text
    assert json.loads(to_text(comparison, "json"))["pairs"][0]["counts"]["a"]["asked"] == 5
    write_comparison(comparison, tmp_path)
    assert "Odile" in (tmp_path / "compare.html").read_text(encoding="utf-8")


def test_our_export_to_every_eval_ever_reads_back(tmp_path: Path) -> None:
    run, how = tmp_path / "run", {"split": "mini@1", "embedder": "none", "baselines": False, "limit": 22}
    h2htalk.evaluate(h2htalk.EvaluateSpec(model="baseline:copy-last-turn", out=str(run), **how))
    _, samples = h2htalk.export_results(run, "every-eval-ever", tmp_path, organization="Lab", model="lab/m")
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


def test_items_without_ids_are_matched_by_what_was_asked_and_never_by_position(tmp_path: Path) -> None:
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
        one_pair(lm_eval_copy(tmp_path, ambiguous), FIXTURES / "positions.json", "lexical", "asks_back")


def test_tables_are_matched_by_id_alone_and_say_so(tmp_path: Path) -> None:
    scores = table(tmp_path / "people.csv", {"mini-en-dialogue-base-01": 4, "mini-en-dialogue-base-02": "", "other": 2})
    comparison = compare(scores, INSPECT, metric=["score", "asks_back"], scale=["1-5", "0-1"])
    (moved,) = comparison.pairs[0].moved
    assert (moved.id, moved.a.value, moved.b.value) == ("mini-en-dialogue-base-01", 75.0, 100.0)
    assert any("2 items matched by id alone" in note for note in comparison.pairs[0].notes)
    assert comparison.pairs[0].counts[0]["reasons"] == {"no score": 1}


def test_scales_are_declared_and_never_guessed(tmp_path: Path) -> None:
    scores = table(tmp_path / "a.csv", {"x": 3, "y": 0.5, "z": 0})
    with pytest.raises(ConfigError, match=r"score of 1 item outside 0-1: x; name the scale"):
        one_pair(scores, scores)
    pair = one_pair(scores, scores, scale="0-5")
    assert {moved.id: moved.a.value for moved in pair.moved} == pytest.approx({"x": 60, "y": 10, "z": 0})
    for wrong in ("5", "5-0", "0-nan"):
        with pytest.raises(ConfigError, match=f"--scale '{wrong}'"):
            one_pair(scores, scores, scale=wrong)
    with pytest.raises(ConfigError, match="--metric is given 3 times"):
        one_pair(scores, scores, "a", "b", "c")


@pytest.mark.parametrize("metrics", [(), ("lexical", "text_scores/rouge_l")])
def test_two_metrics_get_no_verdict(runs: tuple[Path, Path], tmp_path: Path, metrics: tuple[str, ...]) -> None:
    """A rating of people and a mean of n-grams were subtracted, and the terminal said which was above."""
    other = INSPECT if metrics else table(tmp_path / "people.csv", dict.fromkeys(sorted(SCORED), 1))
    with pytest.raises(ConfigError, match=r"is scored by .* a difference of two metrics says nothing"):
        one_pair(runs[0], other, *metrics)


def test_a_partial_log_says_so() -> None:
    pair = one_pair(INSPECT, FIXTURES / "killed.eval", "asks_back")
    assert pair.counts[1]["failed"] == 2
    assert "B: the log is partial: status started, 1 of 3 samples" in pair.notes
