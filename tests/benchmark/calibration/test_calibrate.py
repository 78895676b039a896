"""`judge calibrate`: from labels to tables, through the command line."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path
from statistics import fmean

import pytest
from judged_made import LEVELS, annotators, command, evaluated, given, judge_file, judging_of, rate

from h2htalk.benchmark.calibration.calibrate import calibrate_judge
from h2htalk.benchmark.calibration.labels import plan_labels, read_labels, read_plan
from h2htalk.benchmark.compare.comparison import compare
from h2htalk.benchmark.judge.judgements import PeopleRating, answer_id, item_of, write_people_ratings
from h2htalk.benchmark.judge.rubric import qualities_of
from h2htalk.benchmark.run import load_run
from h2htalk.benchmark.score_run import judge_again
from h2htalk.data.files import write_jsonl
from h2htalk.data.responses import Response
from h2htalk.errors import ConfigError, DataError
from h2htalk.rounds.closing import close_round
from h2htalk.rounds.round_folder import RoundFolder


def rated(item: str) -> float:
    """What people give: less than the judge, and not always by as much."""
    return max(0.0, given(item) - 0.5 * (int.from_bytes(item.encode()) % 7 % 3))


def ids_of(run: Path) -> list[str]:
    """The items of levels I to III."""
    return [s.id for s in load_run(run).data.split.scenarios if s.subtask in LEVELS]


def labels_file(path: Path, ids: list[str]) -> Path:
    path.write_text("id,rating\n" + "".join(f"{one},{rated(one)}\n" for one in ids))
    return path


def test_corrected_cells_equal_a_computation_by_hand(run: Path, tmp_path: Path) -> None:
    command("judge", "plan-labels", run, "--labels", 8, "--out", tmp_path / "l.csv")
    plan = read_plan(run)
    assert plan is not None
    drawn = [item_of(answer) for answer in plan.answers]
    shown = command("judge", "calibrate", run, "--human", labels_file(tmp_path / "filled.csv", drawn))
    assert "8 of 12 judged items labelled; drawn by the plan" in shown
    assert "stratified" in shown
    scores = load_run(run).item_scores
    correction = 0.0
    for stratum in set(plan.strata.values()):
        own = [one for one, name in plan.strata.items() if name == stratum]
        correction += len(own) / 12 * fmean(rated(one) - given(one) for one in own if one in drawn)
    j = fmean(3 * (scores[one].s or 0) + 0.4 * given(one) for one in ids_of(run)) + 0.4 * correction
    judging = judging_of(run)
    assert judging.corrected["levels"].value == pytest.approx(20 * j, abs=1e-9)
    assert (judging.corrected["levels"].n, judging.corrected["levels"].total) == (8, 12)
    assert judging.correction == "stratified, 8 labels of 12 items"


def test_a_round_gives_labels(run: Path, tmp_path: Path) -> None:
    options = {"annotators": str(annotators(tmp_path, 3)), "format": "csv", "overlap": 3}
    plan_labels(run, labels=12, round_out=tmp_path / "round", round_options=options)
    plan = read_plan(run)
    assert plan is not None
    assert {item.id for item in RoundFolder(tmp_path / "round").items()} == set(plan.answers)
    names = sorted(path.stem for path in (tmp_path / "round").rglob("*.csv"))
    rate(tmp_path / "round", lambda item, annotator: int(rated(item)) + names.index(annotator) % 2)
    close_round(tmp_path / "round", force=True)
    found = calibrate_judge(run, tmp_path / "round")
    assert (found.labelled, found.annotators, found.drawn) == (12, 3, "by the plan")


def test_peoples_ratings_of_an_adjudication_are_no_judges_scores(run: Path, tmp_path: Path) -> None:
    file = labels_file(tmp_path / "l.csv", ids_of(run))
    before = calibrate_judge(run, file, random=True)
    loaded = load_run(run)
    answers = [one for one in loaded.answers.values() if isinstance(one, Response) and one.id in ids_of(run)]
    people = {answer_id(one): PeopleRating(answer_id(one), 0.0, 1, "r") for one in answers}
    write_people_ratings(loaded.data.folder, people.values())
    judge_again(run)
    assert calibrate_judge(run, file, random=True) == before


def test_cells_are_of_these_judgements_or_a_refusal_says_why(run: Path, tmp_path: Path) -> None:
    calibrate_judge(run, labels_file(tmp_path / "l.csv", ids_of(run)), random=True)
    assert {"levels"} < set(judging_of(run).corrected) <= {"levels", *LEVELS}
    assert judging_of(run).correction == "all labelled, 12 labels of 12 items"
    found = calibrate_judge(run, labels_file(tmp_path / "l.csv", ids_of(run)[:3]))
    assert {one.mean for one in found.corrections} == {None}
    assert judging_of(run).corrected == {}
    assert judging_of(run).correction == "refused: 3 labels, and 4 are needed, 3 labels of 12 items"
    command("judge", "run", run, "--judge", judge_file(run, lambda item: 3, "other"))
    assert judging_of(run).correction == "of other judgements: run `h2htalk judge calibrate` again"


def test_answers_of_one_item_are_averaged_first(run: Path, tmp_path: Path) -> None:
    """Two answers an item, of which people rated one or both: the judge's scores of the same answers count."""
    replies = [{"id": one.id, "sample": sample, "text": "A quiet day. " * (1 + n % 5 + sample)}
               for n, one in enumerate(load_run(run).data.split.scenarios) for sample in (0, 1)]  # fmt: skip
    write_jsonl(tmp_path / "replies.jsonl", replies)
    more = ("--samples", 2, "--temperature", 1, "--no-baselines")
    run = evaluated(tmp_path / "sampled", f"scripted:{tmp_path / 'replies.jsonl'}", *more)
    command("judge", "run", run, "--judge", judge_file(run))
    head = "id,sample,annotator,rating"
    answers = [(one, sample) for n, one in enumerate(ids_of(run)) for sample in range(1 + n % 2)]

    def rating(item: str, sample: int, annotator: str) -> float:
        return min(5.0, rated(item) + 0.5 * sample + (annotator == "b"))

    rows = [f"{one},{k},{name},{rating(one, k, name)}" for one, k in answers for name in "ab"]
    (tmp_path / "l.csv").write_text("\n".join([head, *rows]))
    found = calibrate_judge(run, tmp_path / "l.csv", random=True)
    assert (found.items, found.labelled, found.annotators) == (12, 12, 2)
    errors: dict[str, list[float]] = {}
    for one, k in answers:
        errors.setdefault(one, []).append(given(one) - fmean(rating(one, k, name) for name in "ab"))
    assert found.findings[2].value == pytest.approx(fmean(map(fmean, errors.values())))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,ratings\nx,1\n", "needs the columns id and rating"),
        ("id,rating\nnobody,1\n", "l.csv:2: the run has no answer '0' to an item 'nobody'"),
        ("id,sample,rating\nITEM,7,1\n", "no answer '7'"),
        ("id,rating\nITEM,5.5\n", "rating is '5.5'; write a number from 0 to 5"),
        ("id,rating\nITEM,4\nITEM,3\n", "l.csv:3: a second label of this answer"),
        ("id,contextual_awareness\nITEM,4\n", "personality_authenticity is ''"),
        ("id,rating\nITEM,\n", "holds no rating of an item that has a judge's score"),
    ],
)
def test_labels_that_cannot_be_are_refused(run: Path, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "l.csv").write_text(text.replace("ITEM", ids_of(run)[0]))
    with pytest.raises((ConfigError, DataError)) as raised:
        calibrate_judge(run, tmp_path / "l.csv")
    assert message in str(raised.value)


def test_qualities_are_averaged_and_annotators_kept_apart(run: Path, tmp_path: Path) -> None:
    item, names = ids_of(run)[0], ",".join(qualities_of("itinerary_basic"))
    (tmp_path / "l.csv").write_text(f"id,annotator,{names}\n{item},ann,5,4,3,2,1,0\n{item},bob,5,5,5,5,5,5\n")
    assert read_labels(load_run(run), tmp_path / "l.csv")[item, 0] == {"ann": 2.5, "bob": 5.0}


def drawn_labels(run: Path, path: Path) -> list[dict[str, str]]:
    """The rows of a plan's file, which is filled in."""
    plan_labels(run, labels=8, out=path)
    with path.open(newline="") as file:
        rows = [row | {"rating": str(n % 5)} for n, row in enumerate(csv.DictReader(file))]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return rows


def test_labels_beside_the_plan_are_left_out_and_those_of_other_replies_refused(run: Path, tmp_path: Path) -> None:
    path = tmp_path / "l.csv"
    drawn = drawn_labels(run, path)
    alone = calibrate_judge(run, path)
    other, *empty = [one for one in ids_of(run) if one not in {row["id"] for row in drawn}]
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
    assert any(f"A {a:.2f}, B {b:.2f}, B - A +0.00" in note for note in compare(run, other).pairs[0].notes)
