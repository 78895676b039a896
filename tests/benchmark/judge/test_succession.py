"""A judge and its successor: differences by hand, against people, in the tables, and how often a shift is found."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from command_line import h2htalk
from judged_made import LEVELS, answered_run, item_name, scripted_judge, verdict

from h2htalk.benchmark.calibration.label_plan import LabelPlan, plan_path
from h2htalk.benchmark.evaluate import evaluate
from h2htalk.benchmark.judge.judge_run import judge_run, judged_answers
from h2htalk.benchmark.judge.judgements import answer_id, stored_judges
from h2htalk.benchmark.judge.ratings import PeopleRating, write_people_ratings
from h2htalk.benchmark.judge.settings import JudgeSpec
from h2htalk.benchmark.judge.succession import Figure, Items, judge_succession, rating_figures
from h2htalk.benchmark.load_run import load_run
from h2htalk.benchmark.metrics.composite import judged_score
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.benchmark.statistics.intervals import t_quantile
from h2htalk.benchmark.statistics.paired import sign_flip_p
from h2htalk.data.files import write_jsonl, write_sealed
from h2htalk.data.run_folder import RunFolder
from h2htalk.errors import ConfigError

SHIFT = [1, 0, 1, 1, 0, -1, 1, 0, 1, 1, 0, 1]  # B - A by judged item
LABELLED = 9  # of twelve


class Judged:
    """A run with judgements of A and B, the scores of both by item, and people's labels in `people`."""

    def __init__(self, folder: Path) -> None:
        self.run, self.people = folder / "run", folder / "people.csv"
        spec = {"model": "baseline:random-reference", "split": "mini@1", "language": "en", "limit": 44}
        evaluate(EvaluateSpec(**spec, embedder="minilm", out=str(self.run)))
        run = load_run(self.run)
        answers = [answer for _, answer in judged_answers(run, "levels")]
        self.s = {one.id: run.item_scores[one.id].s or 0.0 for one in answers}
        self.subtasks = {s.id: s.subtask for s in run.data.split.scenarios}
        self.a = {one.id: 1 + n % 4 for n, one in enumerate(answers)}
        self.b = {one.id: self.a[one.id] + shift for one, shift in zip(answers, SHIFT, strict=True)}
        self.y = {one.id: self.a[one.id] + (n % 3 - 1) / 2 for n, one in enumerate(answers) if n < LABELLED}
        self.ids = {one.id: answer_id(one) for one in answers}
        self.judges = [self.judge(folder, name, side) for name, side in (("a", self.a), ("b", self.b))]
        with self.people.open("w", newline="") as file:
            csv.writer(file).writerows([("id", "rating"), *self.y.items()])

    def judge(self, folder: Path, name: str, scores: Mapping[str, int]) -> str:
        replies = {self.ids[item]: verdict(score) for item, score in scores.items()}
        judge = scripted_judge(folder / f"{name}.jsonl", replies)
        judge_run(JudgeSpec(run=str(self.run), judges=(judge,)))
        return f"scripted:{name}.jsonl"

    def found(self) -> dict[str, Figure]:
        return {one.name: one for one in judge_succession(self.run, *self.judges, self.people).figures}


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Judged:
    return Judged(tmp_path_factory.mktemp("judged"))


def test_differences_are_those_of_a_hand_computation(judged: Judged) -> None:
    found, own = judged.found(), list(judged.y)
    assert (found["R, mean"].a, found["R, mean"].b) == (fmean(judged.a.values()), fmean(judged.b.values()))
    assert found["R, mean"].value == pytest.approx(fmean(SHIFT))
    assert found["R, mean"].items == len(SHIFT)
    half = t_quantile(11) * float(np.std(SHIFT, ddof=1)) / 12**0.5
    assert found["R, mean"].low == pytest.approx(fmean(SHIFT) - half)
    squares = [[(side[item] - judged.y[item]) ** 2 for item in own] for side in (judged.a, judged.b)]
    distance = found["squared distance from people"]
    assert (distance.a, distance.b) == tuple(map(fmean, squares))
    differences = np.array(squares[1]) - np.array(squares[0])
    assert (distance.value, distance.items) == (pytest.approx(differences.mean()), LABELLED)
    assert distance.p == pytest.approx(sign_flip_p(differences))


def test_labels_of_a_plan_count_for_the_items_of_their_stratum(judged: Judged, tmp_path: Path) -> None:
    run, ids = copied(judged, tmp_path), list(judged.y)
    strata = {item: "low" if at < 4 else "high" for at, item in enumerate(judged.ids)}
    plan = LabelPlan(0, (), tuple(judged.ids[item] for item in ids), strata)
    write_sealed(plan_path(run), asdict(plan))
    found = judge_succession(run, *judged.judges, judged.people)
    distance = next(one for one in found.figures if one.name == "squared distance from people")
    values = [(judged.b[item] - judged.y[item]) ** 2 - (judged.a[item] - judged.y[item]) ** 2 for item in ids]
    assert distance.value == pytest.approx((4 * fmean(values[:4]) + 8 * fmean(values[4:])) / 12)
    assert (distance.value, distance.p) == (pytest.approx((distance.b or 0) - (distance.a or 0)), None)
    assert "mean over the 12 planned items" in list(found.lines())[-1]
    few = tmp_path / "few.csv"
    few.write_text("id,rating\n" + "".join(f"{item},3\n" for item in ids[:5]))  # one of the eight high ones
    distance = next(one for one in judge_succession(run, *judged.judges, few).figures if one.name == distance.name)
    assert (distance.value, distance.low, distance.items) == (None, None, 5)
    few.write_text(f"id,rating\n{ids[0]},3\n{list(judged.ids)[-1]},3\n")  # the second was not drawn
    assert judge_succession(run, *judged.judges, few).mean_over == "over labelled items"


def test_each_cell_is_that_of_a_run_judged_by_one_of_them(judged: Judged) -> None:
    found = judged.found()
    for name in LEVELS:
        items = [item for item in judged.s if judged.subtasks[item] == name]
        cells = [
            fmean(20 * judged_score(judged.s[item], side[item]) for item in items) for side in (judged.a, judged.b)
        ]
        assert (found[name].a, found[name].b) == (pytest.approx(cells[0]), pytest.approx(cells[1]))
        assert found[name].value == pytest.approx(8 * fmean(judged.b[item] - judged.a[item] for item in items))
    judged_by_b = load_run(judged.run).summary.rows.judged
    assert judged_by_b is not None
    assert found["overall"].b == pytest.approx(judged_by_b.overall.value)


def test_items_that_move_across_the_threshold_are_named(judged: Judged) -> None:
    moved = judge_succession(judged.run, *judged.judges, judged.people).moved
    for name, value in (("J", lambda item, r: judged_score(judged.s[item], r)), ("R", lambda item, r: r)):
        below = [{item for item, r in side.items() if value(item, r) < 3.5} for side in (judged.a, judged.b)]
        assert [set(ids) for ids in moved[name]] == [below[0] - below[1], below[1] - below[0]]
    assert moved["R"][0]


def test_json_holds_what_the_terminal_shows(judged: Judged) -> None:
    words = ("judge", "succession", judged.run, "--judge", judged.judges[0], "--judge", judged.judges[1])
    ended = h2htalk(*words, "--human", judged.people, "--format", "json")
    assert ended.returncode == 0, ended.stderr
    content: dict[str, Any] = json.loads(ended.stdout)
    assert [one["name"] for one in content["figures"]] == list(judged.found())
    assert (content["answers"], content["unpaired"]) == (12, 0)
    text = h2htalk(*words, "--human", judged.people).stdout
    assert f"R, mean{12:29}{fmean(judged.a.values()):8.2f}{fmean(judged.b.values()):8.2f}" in text
    for judge in stored_judges(judged.run):
        assert judge.label in text


def test_answers_of_one_judge_alone_are_counted_and_a_judge_may_have_more_judgements(
    judged: Judged, tmp_path: Path
) -> None:
    run, ids = copied(judged, tmp_path), list(judged.ids)
    replies = [
        {"id": judged.ids[item], "sample": k, "text": verdict(2 + 2 * k) if item != ids[0] else "no"}
        for item in ids
        for k in range(2)
    ]
    write_jsonl(tmp_path / "twice.jsonl", replies)
    spec = JudgeSpec(run=str(run), judges=(f"scripted:{tmp_path / 'twice.jsonl'}",), judgements=2, temperature=1.0)
    judge_run(spec)
    found = judge_succession(run, judged.judges[0], "scripted:twice.jsonl", judged.people)
    assert (found.answers, found.unpaired) == (11, 1)
    mean = found.figures[0]
    assert (mean.a, mean.b) == (pytest.approx(fmean(judged.a[item] for item in ids[1:])), 3)
    levels = [one for one in found.figures if one.name in LEVELS]
    assert sum(one.items for one in levels) == 11


def test_peoples_ratings_in_the_tables_are_the_same_with_both_judges(judged: Judged, tmp_path: Path) -> None:
    run = copied(judged, tmp_path)
    rated = {answer: PeopleRating(answer, 5, 2, "round") for answer in judged.ids.values()}
    write_people_ratings(RunFolder(run), rated)
    found = {one.name: one for one in judge_succession(run, *judged.judges, judged.people).figures}
    assert found["R, mean"].value == judged.found()["R, mean"].value
    assert [found[name].value for name in (*LEVELS, "overall")] == [0, 0, 0, 0]
    assert found["overall"].a != judged.found()["overall"].a


def test_judges_and_labels_that_cannot_be_compared_are_refused(judged: Judged, tmp_path: Path) -> None:
    a, b = judged.judges
    label = next(one.label for one in stored_judges(judged.run) if one.model == a)
    with pytest.raises(ConfigError, match=rf"'scripted:c': the run has 0 judges of this name; choose from .*{label}"):
        judge_succession(judged.run, a, "scripted:c", judged.people)
    with pytest.raises(ConfigError, match="no answer that two judges"):
        judge_succession(judged.run, a, label, judged.people)
    (tmp_path / "people.csv").write_text("id,rating\nmini-en-dialogue-base-01,3\n")
    with pytest.raises(ConfigError, match="no answer that two judges"):
        judge_succession(judged.run, a, b, tmp_path / "people.csv")
    ended = h2htalk("judge", "succession", judged.run, "--judge", a, "--human", judged.people)
    assert (ended.returncode, "name two: A, then B" in ended.stderr) == (2, True)


def test_without_s_there_are_no_cells_and_one_label_has_no_interval(tmp_path: Path) -> None:
    run = answered_run(tmp_path, ["One day.", "Another day.", "A third."])
    for name, score in (("a", 2), ("b", 4)):
        judge_run(JudgeSpec(run=str(run), judges=(scripted_judge(tmp_path / name, {}, verdict(score)),)))
    (tmp_path / "people.csv").write_text(f"id,rating\n{item_name(1)},3\n")
    found = judge_succession(run, "scripted:a", "scripted:b", tmp_path / "people.csv")
    assert [(one.name, one.value, one.low) for one in found.figures][2:] == [("squared distance from people", 0, None)]
    assert [list(map(len, ids)) for ids in found.moved.values()] == [[0, 0], [3, 0]]
    assert len(list(found.lines())) == 2 + len(found.figures) + 3


def copied(judged: Judged, folder: Path) -> Path:
    return Path(shutil.copytree(judged.run, folder / "run"))


def drawn(seed: int, n: int, shift: float) -> Items:
    """Ratings of two judges with noise of their own, and people's."""
    rng = np.random.default_rng((seed, n))
    people = np.clip(3.8 + rng.standard_normal(n), 0, 5)
    return [str(at) for at in range(n)], np.array(
        [*(people + 0.5 * rng.standard_normal((2, n)) + [[0], [shift]]), people]
    )


def test_a_planted_shift_lies_in_its_interval_and_without_one_few_are_called() -> None:
    means = [next(rating_figures(drawn(seed, 48, 0.3), drawn(seed, 48, 0.3))) for seed in range(100)]
    assert sum((one.low or 0) <= 0.3 <= (one.high or 0) for one in means) >= 90
    assert sum((one.low or 0) > 0 for one in means) >= 70
    none = [next(rating_figures(drawn(seed, 12, 0), drawn(seed, 12, 0))) for seed in range(1000)]
    assert sum((one.p or 1) < 0.05 for one in none) <= 65
    assert sum(not (one.low or 0) <= 0 <= (one.high or 0) for one in none) <= 65
