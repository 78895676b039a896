"""Which answers people should label: how many, drawn how, and what the run keeps of it."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from judged_made import LEVELS, command, judged_item

from h2htalk.benchmark.calibration.calibrate import calibrate_judge
from h2htalk.benchmark.calibration.labels import (
    LabelPlan,
    draw_by_level,
    drawn_apart_from,
    groups_of,
    label_sheet,
    labels_needed,
    load_judged,
    plan_labels,
    read_plan,
)
from h2htalk.benchmark.judge.judgements import item_of
from h2htalk.benchmark.run import load_run
from h2htalk.data.responses import Response
from h2htalk.errors import ConfigError
from h2htalk.rounds.texts.interface import interface_text


def plan_of(run: Path) -> LabelPlan:
    plan = read_plan(run)
    assert plan is not None
    return plan


@pytest.mark.parametrize(("items", "labels"), [(150, 42), (350, 50), (1000, 55)])
def test_the_number_of_labels_is_the_references(items: int, labels: int) -> None:
    assert labels_needed(0.15, items, 0.57) == pytest.approx(labels, abs=1)
    assert (labels_needed(5, items), labels_needed(0.001, 30)) == (8, 30)


def test_each_level_is_drawn_apart_where_it_gets_sixteen() -> None:
    rng = Random(1)
    sizes = {"itinerary_basic": 100, "itinerary_middle": 61, "itinerary_advanced": 50}
    items = [judged_item(n, rng.randrange(30) / 6, subtask=name) for name, size in sizes.items() for n in range(size)]
    drawn, strata, serves = draw_by_level(items, 75, 4)
    counts = {name: sum(one.subtask == name for one in drawn) for name in LEVELS}
    assert counts == {"itinerary_basic": 35, "itinerary_middle": 22, "itinerary_advanced": 18}
    assert [one.id for one in drawn] == [one.id for one in items if one in drawn]
    assert strata.keys() == {one.id for one in items}
    assert all(sum(strata[one.id] == stratum for one in drawn) >= 2 for stratum in set(strata.values()))
    assert serves == ("levels", *sorted(LEVELS))
    few, together, serves = draw_by_level(items, 50, 4)
    assert len(draw_by_level(items[:51], 51, 0)[0]) == 51
    assert (len(few), set(together.values()), serves) == (50, {"/0", "/1", "/2", "/3"}, ("levels",))


def test_without_levels_each_dimension_is_drawn_apart_or_the_labels_are_too_few() -> None:
    sizes = {"dialogue_base": 60, "recollection_synthesis": 20, "recollection_refinement": 10}
    items = [judged_item(n, n % 6, subtask=name) for name, size in sizes.items() for n in range(size)]
    groups = groups_of(items)
    assert {name: len(own) for name, own in groups.items()} == {"dialogue": 60, "recollection": 30}
    assert drawn_apart_from(groups) == 48
    drawn, strata, serves = draw_by_level(items, 48, 0)
    assert serves == ("dialogue", "recollection")
    assert sum(strata[one.id].startswith("recollection/") for one in drawn) == 16


def test_the_file_shows_replies_and_no_score(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "labels.csv"
    shown = command("judge", "plan-labels", run, "--labels", 8, "--out", out, "--seed", 3)
    assert "8 of 12 items to label" in shown
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["id", "sample", "subtask", "scenario", "reply", "rating"]
    assert all(row["reply"] and not row["rating"] for row in rows)
    # Raters got the reply alone: they see persona, conversation and reference, as annotators of a round do.
    for row in rows:
        (scenario,) = (s for s in load_run(run).data.split.scenarios if s.id == row["id"])
        texts = (*(turn.content for turn in scenario.turns), scenario.reference)
        assert all(" ".join(text.split()) in " ".join(row["scenario"].split()) for text in texts)
    plan = plan_of(run)
    assert [row["id"] for row in rows] == [item_of(answer) for answer in plan.answers]
    assert (plan.seed, len(plan.strata), len(plan.judges)) == (3, 12, 1)
    # Labels that are filled in are not overwritten.
    assert "is there already" in command("judge", "plan-labels", run, "--labels", 8, "--out", out, code=2)
    with pytest.raises(ConfigError, match="the run has another plan"):
        plan_labels(run, labels=9, out=tmp_path / "other.csv")


def test_no_cell_of_the_file_is_a_formula_and_crisis_is_announced(run: Path, tmp_path: Path) -> None:
    judged = load_judged(run)
    split = judged.run.data.split
    first = replace(split.scenarios[0], tags=replace(split.scenarios[0].tags, risk="self_harm"))
    answer = judged.run.answers[first.id, 0]
    assert isinstance(answer, Response)
    scenarios = (first, *split.scenarios[1:])
    data = replace(judged.run.data, split=replace(split, scenarios=scenarios))
    text = label_sheet(replace(judged, run=replace(judged.run, data=data)), [replace(answer, text="=1+1")])
    (row,) = csv.DictReader(io.StringIO(text))
    assert row["reply"] == "'=1+1"
    assert row["scenario"].startswith(interface_text("crisis_notice", first.language))


@pytest.mark.parametrize("labels", [8, 12])
def test_a_plan_names_what_it_serves_and_calibrate_refuses_none_of_it(run: Path, tmp_path: Path, labels: int) -> None:
    """A plan of the levels together was refused level by level, for want of labels in a stratum."""
    out, filled = tmp_path / "labels.csv", tmp_path / "filled.csv"
    shown = command("judge", "plan-labels", run, "--labels", labels, "--out", out)
    plan = plan_of(run)
    assert plan.serves == (("levels",) if labels == 8 else ("levels", *sorted(LEVELS)))
    assert ("each by itself needs 12 labels" in shown) == (labels == 8)
    items = [item_of(answer) for answer in plan.answers]
    filled.write_text("id,rating\n" + "".join(f"{item},{at % 6}\n" for at, item in enumerate(items)))
    found = calibrate_judge(run, filled)
    assert {one.group for one in found.corrections} == set(plan.serves)
    assert all(one.mean is not None for one in found.corrections)


def test_without_a_file_nothing_is_drawn_and_pilot_labels_say_how_many(run: Path, tmp_path: Path) -> None:
    assert "9 of 12 items to label" in command("judge", "plan-labels", run, "--half-width", 0.2)
    ids = [s.id for s in load_run(run).data.split.scenarios if s.subtask == "itinerary_basic"]
    judged = load_judged(run).items
    # The judges' error is 0 1 0 1 of four items: its standard deviation is .577.
    labels = "".join(f"{one},{judged[one].score - n % 2}\n" for n, one in enumerate(ids))
    (tmp_path / "pilot.csv").write_text(f"id,rating\n{labels}")
    shown = command("judge", "plan-labels", run, "--half-width", 0.9, "--pilot", tmp_path / "pilot.csv")
    assert "standard deviation of the judges' error: 0.58, measured on 4 items" in shown
    assert "8 of 12" in shown
    assert read_plan(run) is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "name one of --half-width"),
        ({"half_width": 0.2, "labels": 9}, "name one of --half-width"),
        ({"labels": 13}, "--labels is 13; it must be 8 to 12"),
    ],
)
def test_what_cannot_be_planned_is_refused(run: Path, options: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        plan_labels(run, **options)  # type: ignore[arg-type]
