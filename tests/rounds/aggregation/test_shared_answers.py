"""Pairs of annotators who share unusual answers: planted copyists, and honest crowds in which nobody is named."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from h2htalk.rounds.aggregation.annotator_statistics import annotator_statistics, statistics_csv
from h2htalk.rounds.aggregation.shared_answers import SharedAnswers, shared_answers
from h2htalk.rounds.annotations import Annotation
from h2htalk.rounds.annotator_erasure import erase_annotator
from h2htalk.rounds.items import Item
from h2htalk.rounds.lifecycle import close_round, remove_annotator, round_status
from h2htalk.rounds.outcome import read_outcome
from h2htalk.rounds.questions import QUESTIONS, Kind, Question, Value
from h2htalk.rounds.round_folder import RoundFolder
from support.byte_search import files_with
from support.rounds import NAMES, answer, begin, expert
from support.votes import public_votes

WHEN = "2026-01-05T00:00:00+00:00"
# item, question, annotator -> answer
Sheets = dict[tuple[int, str, str], Value]


def honest(
    kind: Kind,
    items: int,
    people: int,
    seed: int,
    *,
    skill: tuple[float, float] = (0.7, 0.95),
    lenient: float = 0.0,
) -> Sheets:
    """Answers of people of different skill; the share `lenient` of them rates one step higher or lower than others."""
    draw = random.Random(seed)
    skills = {f"a{n:02}": draw.uniform(*skill) for n in range(people)}
    steps = {name: draw.choice([-1, 1]) if draw.random() < lenient else 0 for name in skills}
    sheets: Sheets = {}
    for item in range(items):
        for question in QUESTIONS[kind]:
            if question.form == "text":
                continue
            choices: list[Value] = [*(question.labels or question.ratings)]
            right = draw.choice(choices)
            rival = draw.choice(choices)
            hard = draw.random() < 0.2
            for name, share in skills.items():
                if draw.random() < (0.55 if hard else share):
                    value = right
                elif hard:
                    value = rival
                else:
                    value = draw.choice(choices)
                if isinstance(value, int):
                    value = min(question.ratings[-1], max(question.ratings[0], value + steps[name]))
                sheets[item, question.name, name] = value
    return sheets


def copied(
    sheets: Sheets, rate: float, seed: int = 0, *, writer: str = "a00", copyist: str = "a01"
) -> Sheets:
    """The same answers, of which the copyist took the share `rate` from the writer."""
    draw = random.Random(seed)
    taken = dict(sheets)
    for item, question, name in sheets:
        if name == copyist and draw.random() < rate:
            taken[item, question, name] = sheets[item, question, writer]
    return taken


def annotations(sheets: Sheets) -> list[Annotation]:
    return [
        Annotation("r", f"i{item:03}", name, question, value, WHEN)
        for (item, question, name), value in sheets.items()
    ]


def pairs_in(kind: Kind, sheets: Sheets) -> dict[tuple[str, str], SharedAnswers]:
    found = shared_answers(QUESTIONS[kind], annotations(sheets), {name for _, _, name in sheets})
    return {one.annotators: one for one in found}


@pytest.mark.parametrize(
    ("people", "rate"), [(20, 1.0), (20, 0.9), (10, 0.85), (5, 0.9), (3, 0.95)]
)
@pytest.mark.parametrize("kind", ["crowd", "expert"])
def test_a_copyist_is_named_with_whom_they_copied(kind: Kind, people: int, rate: float) -> None:
    """Somebody who copied from another annotator had the best agreement of all, and nothing said so."""
    sheets = honest(kind, 100, people, seed=people)
    assert pairs_in(kind, sheets) == {}
    found = pairs_in(kind, copied(sheets, rate))
    assert list(found) == [("a00", "a01")]
    pair = found["a00", "a01"]
    assert (pair.shared >= rate * 0.7 * pair.deviations, pair.identical) == (True, rate == 1)
    assert pair.probability < 1e-3


def test_three_who_copied_from_each_other_are_three_pairs() -> None:
    sheets = copied(copied(honest("crowd", 100, 12, seed=4), 0.95), 0.95, 1, copyist="a02")
    assert set(pairs_in("crowd", sheets)) == {("a00", "a01"), ("a00", "a02"), ("a01", "a02")}


@pytest.mark.parametrize("people", [5, 10, 20])
def test_people_who_answer_on_their_own_are_hardly_ever_named(people: int) -> None:
    """Neither on hard items, nor with different skills, nor with habits in common; of three: docs/measurements.md."""
    alarms = []
    for kind in ("crowd", "expert", "safety"):
        for seed in range(3):
            alarms += pairs_in(kind, honest(kind, 40, people, seed))
            alarms += pairs_in(kind, honest(kind, 40, people, seed, skill=(0.3, 0.98)))
            alarms += pairs_in(kind, honest(kind, 40, people, seed, lenient=0.5))
    assert alarms == []


def test_two_who_always_rate_five_are_straight_lining_and_no_copyists() -> None:
    sheets = honest("expert", 40, 10, seed=2)
    for item, question, name in list(sheets):
        if name in ("a00", "a01") and question != "keep":
            sheets[item, question, name] = 5
    assert pairs_in("expert", sheets) == {}


@pytest.mark.parametrize("name", ["d_possent", "snow_rte"])
def test_no_pair_of_public_votes_is_named(shared_data: Path, name: str) -> None:
    votes, _ = public_votes(shared_data, name)
    question = Question("label", "label", tuple(sorted({vote.label for vote in votes})))
    given = [
        Annotation("r", vote.item, vote.annotator, "label", vote.label, WHEN) for vote in votes
    ]
    assert shared_answers([question], given, {vote.annotator for vote in votes}) == []


def test_identical_answers_are_named_where_items_are_few() -> None:
    """Eight items have too few deviations for a share of them to say much."""
    sheets = honest("expert", 8, 5, seed=3, skill=(0.5, 0.8))
    assert pairs_in("expert", sheets) == {}
    pair = pairs_in("expert", copied(sheets, 1.0))["a00", "a01"]
    assert (pair.identical, pair.common) == (True, 32)
    assert pair.describe("ann", "bo").startswith(
        "identical answers: all 32 answers of ann and bo to the same questions"
    )
    # Where all agree in everything, equal answers show nothing; neither do those of two people on an item.
    alike: Sheets = {
        (item, "keep", name): "keep" for item in range(20) for name in ("a00", "a01", "a02")
    }
    assert pairs_in("crowd", alike) == {}
    two = {key: value for key, value in copied(sheets, 1.0).items() if key[2] in ("a00", "a01")}
    assert pairs_in("expert", two) == {}


def test_neither_the_order_of_rows_nor_people_who_are_not_listed_change_the_pairs() -> None:
    rows = annotations(copied(honest("crowd", 60, 8, seed=5), 0.9))
    listed = {one.annotator for one in rows}
    found = shared_answers(QUESTIONS["crowd"], rows, listed)
    random.Random(0).shuffle(rows)
    assert shared_answers(QUESTIONS["crowd"], rows, listed) == found
    assert len(found) == 1
    assert shared_answers(QUESTIONS["crowd"], rows, listed - {"a01"}) == []
    assert shared_answers(QUESTIONS["crowd"], [], listed) == []


def test_the_table_of_annotators_names_the_other_one() -> None:
    sheets = copied(honest("crowd", 60, 8, seed=5), 0.9)
    rows = annotations(sheets)
    listed = sorted({name for _, _, name in sheets})
    pairs = shared_answers(QUESTIONS["crowd"], rows, listed)
    items = [Item(f"i{n:03}", "en", context=(("memories", "x"),)) for n in range(60)]
    figures = annotator_statistics(items, QUESTIONS["crowd"], rows, listed, pairs)
    table = {
        row["annotator"]: row for row in csv.DictReader(io.StringIO(statistics_csv(figures, 0.7)))
    }
    assert [table[name]["shares answers with"] for name in ("a00", "a01", "a02")] == [
        "a01",
        "a00",
        "",
    ]
    assert "shared answers: " in table["a01"]["warnings"]


# --- In a round -------------------------------------------------------------------------------------------------------


@pytest.fixture
def round_with_copyist(tmp_path: Path) -> Path:
    """An expert round of 24 items and five annotators, in which bogumil copied from annalena."""
    path = begin(tmp_path, "expert", count=24, people=5, overlap=5)
    draw = random.Random(7)
    names = [item.id for item in RoundFolder(path).items()]
    typed: dict[tuple[str, str], Mapping[str, str]] = {}
    for item in names:
        right = draw.choice([2, 3, 4])
        for annotator in NAMES[:5]:
            near = right + draw.choice([-1, 0, 0, 0, 1])
            typed[item, annotator] = expert(
                draw.choice(["keep", "keep", "keep", "drop"]), str(near)
            )
        if item != names[0]:
            typed[item, "bogumil"] = typed[item, "annalena"]
    answer(path, lambda item, annotator: typed[item, annotator])
    return path


def test_status_and_closing_name_the_pair_and_remove_nobody(round_with_copyist: Path) -> None:
    path = round_with_copyist
    status = round_status(path)
    (note,) = [note for note in status.notes if "annalena and bogumil" in note]
    assert note.startswith("look at the answers of annalena and bogumil: shared answers: ")
    assert status.completed == 5 * 24
    status, _ = close_round(path)
    assert sum("look at the answers of annalena and bogumil" in note for note in status.notes) == 1
    outcome = read_outcome(path)
    ids = {one.id: one.name for one in RoundFolder(path).annotators()}
    assert outcome.shared_answers is not None
    assert [{ids[one] for one in pair.annotators} for pair in outcome.shared_answers] == [
        {"annalena", "bogumil"}
    ]
    assert {key[1] for key in outcome.annotations} == set(ids)
    public = "".join(p.read_text() for p in path.glob("*.*") if p.is_file())
    assert "bogumil" not in public
    # A closed round still says so; without one of the two there is no pair.
    assert any("annalena and bogumil" in note for note in round_status(path).notes)
    remove_annotator(path, "bogumil", why="the same answers as another annotator")
    assert read_outcome(path).shared_answers == ()
    assert (path / "shared_answers.before-2.jsonl").is_file()


def test_erasing_one_of_a_pair_keeps_the_statistics_of_the_other(round_with_copyist: Path) -> None:
    """The row of the other one names the pair, and would have gone with it, or have kept the erased id."""
    path = round_with_copyist
    close_round(path)
    ids = {one.name: one.id for one in RoundFolder(path).annotators()}
    erase_annotator(path, "bogumil", keep_payments=False)
    assert files_with(path, ids["bogumil"]) == []
    assert read_outcome(path).shared_answers == ()
    with (path / "annotator_statistics.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["annotator"]: row for row in csv.DictReader(file)}
    assert rows.keys() == {ids[name] for name in NAMES[:5] if name != "bogumil"}
    kept = rows[ids["annalena"]]
    assert kept["shares answers with"] == ""
    assert "shared answers" not in kept["warnings"]


def test_a_round_that_an_earlier_version_closed_can_be_read(round_with_copyist: Path) -> None:
    path = round_with_copyist
    close_round(path)
    (path / "shared_answers.jsonl").unlink()
    assert read_outcome(path).shared_answers is None
