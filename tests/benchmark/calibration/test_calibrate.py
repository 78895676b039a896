"""Labels for a judge: how many and which, what a run keeps of them; agreement, biases and means corrected by labels."""

from __future__ import annotations

import csv
import io
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random
from statistics import fmean, variance
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.stats import spearmanr
from sklearn.metrics import cohen_kappa_score

from h2htalk.benchmark.calibration import calibrate
from h2htalk.benchmark.calibration import label_plan as plans
from h2htalk.benchmark.calibration.calibrate import calibrate_judge, correct
from h2htalk.benchmark.calibration.corrected_mean import (
    JudgedItem,
    draw_labels,
    regression,
    strata_of,
    stratified,
)
from h2htalk.benchmark.calibration.judged_items import load_judged
from h2htalk.benchmark.calibration.labels import read_labels
from h2htalk.benchmark.compare.comparison import compare
from h2htalk.benchmark.judge.judgements import (
    AnswerRating,
    PeopleRating,
    answer_id,
    item_of,
    write_people_ratings,
)
from h2htalk.benchmark.judge.rubric import qualities_of
from h2htalk.benchmark.run import load_run
from h2htalk.benchmark.score_run import apply_judgements
from h2htalk.benchmark.statistics.estimates import Estimate
from h2htalk.data.responses import Response
from h2htalk.errors import ConfigError, DataError
from h2htalk.rounds.lifecycle import close_round
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.texts.interface import interface_text
from support.judged_runs import (
    LEVELS,
    annotators,
    command,
    given,
    judge_file,
    judged_item,
    judging_of,
    rate,
)


@pytest.mark.parametrize(("items", "labels"), [(150, 42), (350, 50), (1000, 55)])
def test_the_number_of_labels_is_the_references(items: int, labels: int) -> None:
    assert plans.labels_needed(0.15, items, 0.57) == pytest.approx(labels, abs=1)
    assert (plans.labels_needed(5, items), plans.labels_needed(0.001, 30)) == (8, 30)


def test_each_level_is_drawn_apart_where_it_gets_sixteen() -> None:
    rng = Random(1)
    sizes = {"itinerary_basic": 100, "itinerary_middle": 61, "itinerary_advanced": 50}
    items = []
    for name, size in sizes.items():
        items += [judged_item(n, rng.randrange(30) / 6, subtask=name) for n in range(size)]
    drawn, strata, serves = plans.draw_by_level(items, 75, 4)
    counts = Counter(item.subtask for item in drawn)
    assert counts == {"itinerary_basic": 35, "itinerary_middle": 22, "itinerary_advanced": 18}
    assert [one.id for one in drawn] == [one.id for one in items if one in drawn]
    assert strata.keys() == {one.id for one in items}
    labels_by_stratum = Counter(strata[item.id] for item in drawn)
    assert labels_by_stratum.keys() == set(strata.values())
    assert min(labels_by_stratum.values()) >= 2
    assert serves == ("levels", *sorted(LEVELS))
    few, together, serves = plans.draw_by_level(items, 50, 4)
    assert len(plans.draw_by_level(items[:51], 51, 0)[0]) == 51
    assert (len(few), set(together.values()), serves) == (50, {"/0", "/1", "/2", "/3"}, ("levels",))


def test_without_levels_each_dimension_is_drawn_apart() -> None:
    sizes = {"dialogue_base": 60, "recollection_synthesis": 20, "recollection_refinement": 10}
    items = []
    for name, size in sizes.items():
        items += [judged_item(n, n % 6, subtask=name) for n in range(size)]
    drawn, strata, serves = plans.draw_by_level(items, 48, 0)
    assert serves == ("dialogue", "recollection")
    assert sum(strata[one.id].startswith("recollection/") for one in drawn) == 16


def test_the_file_shows_replies_and_no_score(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "labels.csv"
    shown = command("judge", "plan-labels", run, "--labels", 8, "--out", out, "--seed", 3)
    assert "8 of 12 items to label" in shown
    rows = list(csv.DictReader(out.open(newline="")))
    assert list(rows[0]) == ["id", "sample", "subtask", "scenario", "reply", "rating"]
    assert all(row["reply"] and not row["rating"] for row in rows)
    # Raters got the reply alone: they see persona, conversation and reference, as annotators of a round do.
    for row in rows:
        (scenario,) = (s for s in load_run(run).data.split.scenarios if s.id == row["id"])
        texts = (*(turn.content for turn in scenario.turns), scenario.reference)
        assert all(" ".join(text.split()) in " ".join(row["scenario"].split()) for text in texts)
    plan = plans.read_plan(run)
    assert [row["id"] for row in rows] == [item_of(answer) for answer in plan.answers]
    assert (plan.seed, len(plan.strata), len(plan.judges)) == (3, 12, 1)
    # Labels that are filled in are not overwritten.
    assert "is there already" in command(
        "judge", "plan-labels", run, "--labels", 8, "--out", out, code=2
    )
    with pytest.raises(ConfigError, match="the run has another plan"):
        plans.plan_labels(run, labels=9, out=tmp_path / "other.csv")


def test_no_cell_of_the_file_is_a_formula_and_crisis_is_announced(
    run: Path, tmp_path: Path
) -> None:
    judged = load_judged(run)
    split = judged.run.data.split
    first = replace(split.scenarios[0], tags=replace(split.scenarios[0].tags, risk="self_harm"))
    answer = judged.run.answers[first.id, 0]
    assert isinstance(answer, Response)
    scenarios = (first, *split.scenarios[1:])
    data = replace(judged.run.data, split=replace(split, scenarios=scenarios))
    text = plans.label_sheet(
        replace(judged, run=replace(judged.run, data=data)), [replace(answer, text="=1+1")]
    )
    (row,) = csv.DictReader(io.StringIO(text))
    assert row["reply"] == "'=1+1"
    assert row["scenario"].startswith(interface_text("crisis_notice", first.language))


@pytest.mark.parametrize("labels", [8, 12])
def test_a_plan_names_what_it_serves_and_calibrate_refuses_none_of_it(
    run: Path, tmp_path: Path, labels: int
) -> None:
    """A plan of the levels together was refused level by level, for want of labels in a stratum."""
    out = tmp_path / "labels.csv"
    filled = tmp_path / "filled.csv"
    shown = command("judge", "plan-labels", run, "--labels", labels, "--out", out)
    plan = plans.read_plan(run)
    assert plan.serves == (("levels",) if labels == 8 else ("levels", *sorted(LEVELS)))
    assert ("each by itself needs 12 labels" in shown) == (labels == 8)
    items = [item_of(answer) for answer in plan.answers]
    filled.write_text(
        "id,rating\n" + "".join(f"{item},{at % 6}\n" for at, item in enumerate(items))
    )
    found = calibrate_judge(run, filled)
    assert {one.group for one in found.corrections} == set(plan.serves)
    assert all(one.mean is not None for one in found.corrections)


def test_without_a_file_nothing_is_drawn_and_pilot_labels_say_how_many(
    run: Path, tmp_path: Path
) -> None:
    assert "9 of 12 items to label" in command("judge", "plan-labels", run, "--half-width", 0.2)
    ids = [s.id for s in load_run(run).data.split.scenarios if s.subtask == "itinerary_basic"]
    judged = load_judged(run).items
    # The judges' error is 1 0 1 0 of four items: its standard deviation is .577.
    labels = "".join(f"{one},{judged[one].score - (n + 1) % 2}\n" for n, one in enumerate(ids))
    (tmp_path / "pilot.csv").write_text(f"id,rating\n{labels}")
    shown = command(
        "judge", "plan-labels", run, "--half-width", 0.9, "--pilot", tmp_path / "pilot.csv"
    )
    error = "standard deviation of the judges' error: 0.58, measured on 4 items"
    assert (error in shown, "8 of 12" in shown, plans.read_plan(run)) == (True, True, None)


def test_what_cannot_be_planned_is_refused(run: Path) -> None:
    one_of, too_many = "name one of --half-width", "--labels is 13; it must be 8 to 12"
    for options, message in (
        ({}, one_of),
        ({"half_width": 0.2, "labels": 9}, one_of),
        ({"labels": 13}, too_many),
    ):
        with pytest.raises(ConfigError, match=message):
            plans.plan_labels(run, **options)


def rated(item: str) -> float:
    """What people give: less than the judge, and not always by as much."""
    return max(0.0, given(item) - 0.5 * (int.from_bytes(item.encode()) % 7 % 3))


def ids_of(run: Path) -> list[str]:
    return [s.id for s in load_run(run).data.split.scenarios if s.subtask in LEVELS]


def labels_file(path: Path, ids: list[str]) -> Path:
    path.write_text("id,rating\n" + "".join(f"{one},{rated(one)}\n" for one in ids))
    return path


def test_corrected_cells_equal_a_computation_by_hand(run: Path, tmp_path: Path) -> None:
    command("judge", "plan-labels", run, "--labels", 8, "--out", tmp_path / "l.csv")
    plan = plans.read_plan(run)
    drawn = [item_of(answer) for answer in plan.answers]
    shown = command(
        "judge", "calibrate", run, "--human", labels_file(tmp_path / "filled.csv", drawn)
    )
    assert "8 of 12 judged items labelled; drawn by the plan" in shown
    assert "stratified" in shown
    scores = load_run(run).item_scores
    correction = 0.0
    for stratum in set(plan.strata.values()):
        own = [one for one, name in plan.strata.items() if name == stratum]
        correction += len(own) / 12 * fmean(rated(one) - given(one) for one in own if one in drawn)
    j = fmean(3 * (scores[one].s or 0) + 0.4 * given(one) for one in ids_of(run)) + 0.4 * correction
    judging = judging_of(run)
    cell = judging.corrected["levels"]
    assert (cell.value, cell.n, cell.total) == (pytest.approx(20 * j, abs=1e-9), 8, 12)
    assert judging.correction == "stratified, 8 labels of 12 items"


def test_a_round_gives_labels(run: Path, tmp_path: Path) -> None:
    options = {"annotators": str(annotators(tmp_path, 3)), "overlap": 3}
    plans.plan_labels(run, labels=12, round_out=tmp_path / "round", round_options=options)
    assert {item.id for item in RoundFolder(tmp_path / "round").items()} == set(
        plans.read_plan(run).answers
    )
    names = sorted(path.stem for path in (tmp_path / "round").rglob("*.xlsx"))
    rate(tmp_path / "round", lambda item, annotator: int(rated(item)) + names.index(annotator) % 2)
    close_round(tmp_path / "round", force=True)
    found = calibrate_judge(run, tmp_path / "round")
    assert (found.labelled, found.annotators, found.drawn) == (12, 3, "by the plan")


def test_peoples_ratings_of_an_adjudication_are_no_judges_scores(run: Path, tmp_path: Path) -> None:
    file = labels_file(tmp_path / "l.csv", ids_of(run))
    before = calibrate_judge(run, file, random_sample=True)
    loaded = load_run(run)
    answers = [
        one
        for one in loaded.answers.values()
        if isinstance(one, Response) and one.id in ids_of(run)
    ]
    people = {answer_id(one): PeopleRating(answer_id(one), 0.0, 1, "r") for one in answers}
    write_people_ratings(loaded.data.folder, people.values())
    apply_judgements(run)
    assert calibrate_judge(run, file, random_sample=True) == before


def test_cells_are_of_these_judgements_or_a_refusal_says_why(run: Path, tmp_path: Path) -> None:
    calibrate_judge(run, labels_file(tmp_path / "l.csv", ids_of(run)), random_sample=True)
    assert {"levels"} < set(judging_of(run).corrected) <= {"levels", *LEVELS}
    assert judging_of(run).correction == "all labelled, 12 labels of 12 items"
    found = calibrate_judge(run, labels_file(tmp_path / "l.csv", ids_of(run)[:3]))
    assert {one.mean for one in found.corrections} == {None}
    assert judging_of(run).corrected == {}
    assert judging_of(run).correction == "refused: 3 labels, and 4 are needed, 3 labels of 12 items"
    command("judge", "run", run, "--judge", judge_file(run, lambda item: 3, "other"))
    assert judging_of(run).correction == "of other judgements: run `h2htalk judge calibrate` again"


def test_answers_of_one_item_are_averaged_first(run: Path) -> None:
    """Two answers an item, of which people rated both or one: the judge's scores of the same answers count."""
    made = load_judged(run)
    one, other, *_ = ids_of(run)
    data = replace(made.run.data, spec=replace(made.run.data.spec, samples=2, temperature=1.0))
    scores = {(one, 0): 2.0, (one, 1): 4.0, (other, 0): 1.0, (other, 1): 5.0}
    ratings = {key: AnswerRating(score, (score,)) for key, score in scores.items()}
    labels = {(one, 0): {"a": 1.0, "b": 2.0}, (one, 1): {"a": 5.0}, (other, 1): {"a": 4.5}}
    found = replace(made, run=replace(made.run, data=data), ratings=ratings).labelled(labels)
    assert [(item.people, item.panel, item.whole) for item in found] == [
        (3.25, (3.0,), True),
        (4.5, (5.0,), False),
    ]


def test_labels_that_cannot_be_are_refused(run: Path, tmp_path: Path) -> None:
    for text, message in (
        ("id,rating\nnobody,1\n", "l.csv:2: the run has no answer '0' to an item 'nobody'"),
        ("id,rating\nITEM,5.5\n", "rating is '5.5'; write a number from 0 to 5"),
        (
            "id,rating\nITEM,4\nITEM,3\n",
            r"l\.csv:3: a second rating of this reply .*, after .*l\.csv:2",
        ),
        ("id,rating\nITEM,\n", "holds no rating of an item that has a judge's score"),
    ):
        (tmp_path / "l.csv").write_text(text.replace("ITEM", ids_of(run)[0]))
        with pytest.raises((ConfigError, DataError), match=message):
            calibrate_judge(run, tmp_path / "l.csv")


def test_qualities_are_averaged_and_annotators_kept_apart(run: Path, tmp_path: Path) -> None:
    item = ids_of(run)[0]
    names = ",".join(qualities_of("itinerary_basic"))
    (tmp_path / "l.csv").write_text(
        f"id,annotator,{names}\n{item},ann,5,4,3,2,1,0\n{item},bob,5,5,5,5,5,5\n"
    )
    assert read_labels(load_run(run), tmp_path / "l.csv")[item, 0] == {"ann": 2.5, "bob": 5.0}


def drawn_labels(run: Path, path: Path) -> list[dict[str, str]]:
    """The rows of a plan's file, which is filled in."""
    plans.plan_labels(run, labels=8, out=path)
    rows = [
        row | {"rating": str(n % 5)} for n, row in enumerate(csv.DictReader(path.open(newline="")))
    ]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([rows[0], *(row.values() for row in rows)])
    return rows


def test_labels_beside_the_plan_are_left_out_and_those_of_other_replies_refused(
    run: Path, tmp_path: Path
) -> None:
    path = tmp_path / "l.csv"
    drawn = drawn_labels(run, path)
    alone = calibrate_judge(run, path)
    planned = {row["id"] for row in drawn}
    other, *empty = [item for item in ids_of(run) if item not in planned]
    with path.open("a") as file:
        file.write(f"{other},0,,,,5\n" + "".join(f"{one},0,,,,\n" for one in empty))
    both = calibrate_judge(run, path)
    assert alone.drawn == both.drawn == "by the plan"
    assert both.corrections == alone.corrections
    assert "1 label of answers that the plan did not draw: left out" in both.notes
    path.write_text(path.read_text().replace(drawn[0]["reply"], "Somebody else's words"))
    with pytest.raises(DataError, match="the reply is not the run's answer"):
        calibrate_judge(run, path)


def test_a_comparison_shows_what_peoples_labels_make_of_both(run: Path, tmp_path: Path) -> None:
    other = shutil.copytree(run, tmp_path / "other")
    for one in (run, other):
        drawn_labels(one, tmp_path / f"{one.name}.csv")
        calibrate_judge(one, tmp_path / f"{one.name}.csv")
    a, b = (judging_of(one).corrected["levels"].value for one in (run, other))
    assert any(
        f"A {a:.2f}, B {b:.2f}, B - A +0.00" in note for note in compare(run, other).pairs[0].notes
    )


def test_strata_end_at_the_ranks_and_each_gives_a_quarter_of_the_labels() -> None:
    scores = [float(n % 17) for n in range(200)]
    strata = strata_of(scores, 3)
    assert [strata.count(n) for n in range(4)] == [24, 56, 60, 60]
    for a, b in product(range(200), repeat=2):
        assert strata[a] >= strata[b] or scores[a] <= scores[b]
    drawn = draw_labels(scores, 100, 3)
    assert Counter(strata[index] for index in drawn) == {0: 24, 1: 25, 2: 26, 3: 25}
    assert drawn == draw_labels(scores, 100, 3)
    # Of four items, four labels drew three: what the last strata could not take was lost.
    for size in range(1, 30):
        assert draw_labels([float(n) for n in range(size)], size) == list(range(size))


def test_check_values() -> None:
    """40 items with a mean score of 4, of which 8 are labelled; half widths over these items, and over such items."""
    own = [3.5, 4.5, 5, 2, 4.5, 5, 4, 4.5]
    ratings = [3, 4, 5, 2.5, 4.5, 3.5, 5, 4]
    scores = [*own, *[(160 - sum(own)) / 32] * 32]
    labels = dict(enumerate(ratings))
    for found, value, here, df in (
        (regression(scores, labels), 3.8591, 0.5567, 6),
        (stratified(scores, labels, [0] * 40), 3.8125, 0.5630, 7),
    ):
        sample = found.sample
        population = found.population
        assert [sample.value, sample.high - sample.value] == pytest.approx([value, here], abs=1e-4)
        v = (here / stats.t.ppf(0.975, df)) ** 2
        u = variance(ratings) / 40  # Satterthwaite's degrees of freedom
        over = stats.t.ppf(0.975, (v + u) ** 2 / (v * v / df + u * u / 7)) * (v + u) ** 0.5
        assert population.high - population.value == pytest.approx(over, abs=1e-4)


def test_one_score_alone_says_no_slope() -> None:
    """A judge that says yes once among the labelled replies divided by zero: that label decided the slope alone."""
    scores = [1.0, *[0.0] * 9]
    found = regression(scores * 3, {0: 1.0, 1: 0.0, 2: 1.0, 3: 0.0, 4: 0.0}).population
    assert (found.value, found.low is None) == (pytest.approx(0.4), False)  # the labels' mean


def test_the_mean_of_these_items_is_never_less_certain_than_that_of_such_items() -> None:
    """Errors that vary in one stratum gave these items t with 1 degree of freedom: [1.54, 2.77] beside [1.61, 2.70]."""
    scores = [float(n % 20) / 4 for n in range(40)]
    strata = strata_of(scores)
    drawn = draw_labels(scores, 8)
    errors = iter((0.5, -0.5))
    labels = {at: scores[at] - (next(errors) if strata[at] == 0 else 0.25) for at in drawn}
    found = stratified(scores, labels, strata)
    spread = (5 / 40) ** 2 * (1 - 2 / 5) * 0.5 / 2
    assert found.sample.high - found.sample.value == pytest.approx(
        2.776445 * spread**0.5, rel=1e-6
    )  # t with 4
    assert found.population.high >= found.sample.high
    # Of ten items all are labelled; of three others two: t with 1 degree of freedom, with 4 of such items.
    found = stratified(
        [2.5] * 13, {0: 2.0, 1: 3.0} | dict.fromkeys(range(3, 13), 2.5), [0] * 3 + [1] * 10
    )
    assert (
        found.population.high
        == found.sample.high
        == pytest.approx(2.5 + 12.7062 * 3 / 13 * (0.25 / 3) ** 0.5, rel=1e-4)
    )
    with pytest.raises(ValueError, match="a stratum of 3 items has 1 label, and two are needed"):
        stratified([2.5] * 4, {0: 2.0, 3: 1.0}, [0] * 3 + [1])


ITEMS = 350


def judged(seed: int, labels: int, drawn: bool = False) -> tuple[list[JudgedItem], list[int]]:
    """Items of a judge that prefers length, of which people labelled some, drawn by strata or at random."""
    rng = np.random.default_rng(seed)
    length = rng.standard_normal(ITEMS)
    people = np.clip(np.round(2 * (3.8 + 1.1 * rng.standard_normal(ITEMS))) / 2, 0, 5)
    scores = (people + 0.2 + 0.4 * length + 0.5 * rng.standard_normal(ITEMS)).tolist()
    own = {
        *(
            draw_labels(scores, labels, seed)
            if drawn
            else rng.choice(ITEMS, labels, replace=False).tolist()
        )
    }
    ratings = [float(rating) if at in own else None for at, rating in enumerate(people)]
    s = rng.random(ITEMS).tolist()
    items = [judged_item(n, f, ratings[n], length=length[n], s=s[n]) for n, f in enumerate(scores)]
    return items, strata_of(scores, seed)


def ratings(items: Sequence[JudgedItem]) -> dict[int, float]:
    return {at: one.people for at, one in enumerate(items) if one.people is not None}


def scores_of(items: Sequence[JudgedItem]) -> list[float]:
    return [one.score for one in items]


def refusal(items: Sequence[JudgedItem], *how: Any, **more: Any) -> str:
    found = correct("levels", "R", items, *how, **more)
    assert found.mean is None
    return found.estimator


def test_the_estimator_depends_on_how_the_labels_came() -> None:
    drawn, strata = judged(3, 100, True)
    chance, _ = judged(3, 100)
    for mean, expected in (
        (
            correct("levels", "R", drawn, strata).mean,
            stratified(scores_of(drawn), ratings(drawn), strata),
        ),
        (
            correct("levels", "R", chance, random=True).mean,
            regression(scores_of(chance), ratings(chance)),
        ),
    ):
        assert mean == expected
    # Labels whose choice is unknown were once corrected after a test that overlooked half of the choices by length.
    assert "nobody knows which items" in refusal(chance)
    everything, _ = judged(3, ITEMS)
    found = correct("levels", "R", everything)
    assert (found.estimator, found.labels, found.items) == ("all labelled", ITEMS, ITEMS)
    assert (
        found.mean.sample.low
        == found.mean.sample.value
        == pytest.approx(fmean(ratings(everything).values()))
    )
    # Answers that nobody rated vary within an item: nothing is said of these very items.
    found = correct(
        "levels", "R", [replace(one, whole=at > 0) for at, one in enumerate(everything)]
    )
    assert (found.mean.sample.low, found.mean.population.low is None) == (None, False)


def test_what_cannot_be_corrected_is_refused_with_the_reason() -> None:
    assert refusal(judged(1, 3)[0], random=True) == "3 labels, and 4 are needed"
    drawn, strata = judged(1, 40, True)
    few = [
        one if at in [*ratings(drawn)][:7] else replace(one, people=None)
        for at, one in enumerate(drawn)
    ]
    assert refusal(few, strata) == "7 labels, and 8 are needed"
    same = [one if one.people is None else replace(one, people=2.0, panel=(2.5,)) for one in drawn]
    assert "the same on all labelled items" in refusal(same, strata)
    alone = [
        one if h == 3 else replace(one, people=None) for one, h in zip(drawn, strata, strict=True)
    ]
    assert "two are needed" in refusal(alone, strata)


@pytest.mark.parametrize("drawn", [True, False])
def test_j_corrects_the_rating_alone(drawn: bool) -> None:
    """J = 3 S + 0.4 R, where S needs no correction; section 2 of the estimators' reference."""
    items, strata = judged(7, 48, drawn)
    s = np.array([one.s for one in items])
    how = (strata if drawn else None, not drawn)
    r = correct("levels", "R", items, *how).mean
    j = correct("levels", "J", items, *how)
    assert j.judge_mean == pytest.approx(fmean(3 * s) + 0.4 * fmean(scores_of(items)))
    mean = j.mean.sample
    assert mean.value == pytest.approx(fmean(3 * s) + 0.4 * r.sample.value)
    assert mean.high - mean.value == pytest.approx(0.4 * (r.sample.high - r.sample.value))
    labels = [rating + 7.5 * s[at] for at, rating in ratings(items).items()]
    weights = np.ones(48)
    if drawn:
        own = [strata[at] for at in ratings(items)]
        weights = np.array([strata.count(h) / own.count(h) for h in own])
    centre = np.average(labels, weights=weights)
    beyond = np.average((labels - centre) ** 2, weights=weights) * 48 / 47 / ITEMS
    within = mean.high - mean.value
    over = j.mean.population.high - mean.value
    assert over**2 == pytest.approx(
        within**2 + 4 * 0.16 * beyond, rel=0.05
    )  # t squared is nearly 4


def agreement_of(judge: list[float], people: list[float]) -> dict[str, Estimate]:
    items = [
        judged_item(at, score, rating)
        for at, (score, rating) in enumerate(zip(judge, people, strict=True))
    ]
    return {finding.name: finding.estimate for finding in calibrate.agreements(items)}


def test_kappa_and_spearman_equal_other_programs() -> None:
    rng = np.random.default_rng(0)
    people = np.clip(np.round(2 * (3.5 + rng.standard_normal(60))) / 2, 0, 5)
    judge = np.clip(np.round(6 * (people + 0.3 + 0.6 * rng.standard_normal(60))) / 6, 0, 5)
    found = agreement_of(judge.tolist(), people.tolist())
    whole = [np.floor(side + 0.5).astype(int) for side in (judge, people)]
    kappa = cohen_kappa_score(*whole, weights="quadratic")
    assert found["weighted kappa"].value == pytest.approx(kappa, abs=1e-12)
    assert found["Spearman"].value == pytest.approx(spearmanr(judge, people).statistic, abs=1e-12)
    assert all(one.low < one.value < one.high for one in found.values())
    # Half points are rounded up on both sides, and a side that does not vary has no correlation.
    assert agreement_of([2.5, 1.5, 4.0], [3, 2, 4])["weighted kappa"].value == pytest.approx(1.0)
    constant = agreement_of([3.0] * 20, [float(n % 5) for n in range(20)])
    assert (constant["Spearman"].value, constant["weighted kappa"].value) == (None, 0.0)
    # Weights count as repeated items.
    drawn = [0, 0, 0, 1, 2, 3, 3, 4, 5, 6, 11, 11]
    weights = np.bincount(drawn, minlength=60)[None].astype(float)
    kappa = cohen_kappa_score(*(side[drawn] for side in whole), weights="quadratic")
    assert calibrate.weighted_kappa(np.array(whole), weights)[0] == pytest.approx(kappa, abs=1e-12)


def test_a_cluster_is_left_out_at_a_time() -> None:
    made = judged(5, ITEMS)[0][:24]
    items = [
        replace(one, cluster=f"c{at // 3}", weight=1.0 + at % 2) for at, one in enumerate(made)
    ]
    x = np.array([item.length for item in items])
    y = np.array([item.error for item in items])
    w = np.array([item.weight for item in items])

    def fit(own: np.ndarray) -> np.ndarray:
        slope, level = np.polyfit((x - np.average(x, weights=w))[own], y[own], 1, w=np.sqrt(w[own]))
        return np.array([level, slope])

    whole = fit(np.arange(24) >= 0)
    changes = sum((fit(np.arange(24) // 3 != left) - whole) ** 2 for left in range(8))
    found = calibrate.error_effects(items)
    estimates = [finding.estimate for finding in found]
    assert [one.value for one in estimates] == pytest.approx(whole.tolist())
    half = [one.high - one.value for one in estimates]
    assert half == pytest.approx(
        (2.446912 * changes**0.5).tolist(), rel=1e-5
    )  # t with 6 degrees of freedom
    assert {one.method for one in found} == {"jackknife, t(6)"}
    assert (
        calibrate.error_effects(items[:9])[0].method == "jackknife, t(1)"
    )  # three clusters are the fewest
    for few in ([replace(one, length=1.0) for one in items], items[:2]):
        assert {(one.estimate.value, one.method) for one in calibrate.error_effects(few)} == {
            (None, "too few items decide it")
        }
