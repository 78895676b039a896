"""From answers to a summary: rows, slices, counts, warnings, what a missing S does; the baselines."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache

import pytest

from h2htalk.benchmark.baselines import BASELINES, constant, copy_last_turn, random_reference
from h2htalk.benchmark.metrics.composite import Metrics
from h2htalk.benchmark.report.notes import spread_lines
from h2htalk.benchmark.summary import Summary
from h2htalk.data.languages import find_language
from h2htalk.data.responses import Answers, FailedResponse, Failure, Response
from h2htalk.data.scenario import Scenario
from h2htalk.data.splits import Split, load_split
from support.summaries import FirstLetters, summary_of

MINI = load_split("mini@1")


def reference_answers(split: Split) -> Answers:
    return {(s.id, 0): Response(s.id, 0, s.reference, "stop") for s in split.scenarios}


@cache
def lexical() -> Summary:
    return summary_of(MINI, reference_answers(MINI))


@cache
def english() -> Summary:
    return summary_of(MINI, reference_answers(MINI), Metrics(FirstLetters()))


def test_the_references_themselves_score_the_most_and_break_no_contract() -> None:
    summary = lexical()
    assert (
        summary.rows.lexical["overall"].value > 98
    )  # a reference of fewer than four tokens has no BLEU-4 of 1
    assert summary.rows.compliance["overall"].value == pytest.approx(100)
    assert (summary.violations, summary.warnings, summary.incomplete) == ({}, (), False)
    assert all(
        0 < baseline.lexical["overall"].value < 40 for baseline in summary.baselines.values()
    )


def test_an_english_embedder_gives_s_to_english_items_and_says_so() -> None:
    summary = english()
    assert (summary.measure, summary.languages, summary.s_languages) == ("s", ("en", "zh"), ("en",))
    assert summary.warnings == (
        "no S on zh items: the embedder is not made for them; see their lexical mean",
    )
    assert not summary.incomplete
    assert all("ss" in cells for cells in summary.metrics.values())
    assert not any("ss" in cells for cells in lexical().metrics.values())
    count = len(MINI.select("en").scenarios)
    assert {sum(cell.total for cell in cells.values()) for cells in summary.slices.values()} == {
        count
    }
    for rows in (summary.rows, *summary.baselines.values()):
        totals = [row["overall"].total for row in (rows.s, rows.lexical, rows.compliance)]
        assert totals == [count, len(MINI.scenarios), len(MINI.scenarios)]


def test_empty_and_refused_replies_are_scored_and_failed_ones_make_the_run_incomplete() -> None:
    split = MINI.select("en", ["dialogue_base"])
    ids = [s.id for s in split.scenarios]
    answers = reference_answers(split)
    answers[ids[0], 0] = Response(ids[0], 0, "<think>hm</think>", "stop")
    answers[ids[1], 0] = Response(ids[1], 0, "I cannot help with that.", "refusal")
    answers[ids[2], 0] = FailedResponse(ids[2], 0, Failure("timeout", "no answer"))
    del answers[ids[3], 0]
    summary = summary_of(split, answers)
    counts = summary.counts
    assert (counts.items, counts.scored, counts.unscored) == (len(ids), len(ids) - 2, 2)
    assert (counts.samples, counts.empty, counts.refused) == (len(ids) - 2, 1, 1)
    assert counts.empty_causes == {"reasoning_only": 1}
    assert (counts.failures, summary.incomplete) == ({"missing": 1, "timeout": 1}, True)
    cell = summary.rows.lexical["dialogue_base"]
    assert (cell.n, cell.total) == (len(ids) - 2, len(ids))
    assert cell.value < 100 * (len(ids) - 3) / (len(ids) - 2)  # the empty reply counts as 0


def test_several_samples_count_as_one_item() -> None:
    split = MINI.select("en", ["dialogue_base"])
    answers: Answers = {
        (s.id, n): Response(s.id, n, s.reference * n) for s in split.scenarios for n in range(2)
    }
    summary = summary_of(split, answers, samples=2)
    cell = summary.rows.lexical["dialogue_base"]
    assert (cell.n, cell.total) == (len(split.scenarios), len(split.scenarios))
    assert cell.value == pytest.approx(50, abs=0.5)
    assert summary.counts.samples == 2 * len(split.scenarios)
    assert summary.by_sample == pytest.approx((0, 100), abs=1)
    assert spread_lines(summary) == [
        "Mean of items by sample: 0.00, 100.00 (standard deviation 70.71)"
    ]
    assert (
        summary_of(split, {key: answer for key, answer in answers.items() if not key[1]}).by_sample
        == ()
    )


def synthesis_split(nulls: int, count: int) -> Split:
    """RecollectionSynthesis items of which the first `nulls` have nothing to remember."""
    pool = [
        s for s in MINI.scenarios if s.subtask == "recollection_synthesis" and s.language == "zh"
    ]
    full = [s for s in pool if s.reference != find_language("zh").null_memory]
    rows = []
    for number in range(count):
        row = replace(full[number % len(full)], id=f"made-{number:03}")
        rows.append(
            replace(row, references=(find_language("zh").null_memory,)) if number < nulls else row
        )
    return replace(MINI, scenarios=tuple(rows))


def test_the_constant_baseline_on_the_authors_share_of_nulls_and_a_model_below_it() -> None:
    """64 % null references: one constant line scores above 64, and a model that finds memories everywhere less."""
    split = synthesis_split(64, 100)
    block = next(
        s.reference for s in split.scenarios if s.reference != find_language("zh").null_memory
    )
    always: Answers = {(s.id, 0): Response(s.id, 0, block) for s in split.scenarios}
    summary = summary_of(split, always)
    both = (summary.baselines["constant"], summary.rows)
    baseline, model = (rows.lexical["recollection_synthesis"].value for rows in both)
    assert 64 <= baseline < 68
    assert model < 36
    assert summary.warnings == (
        "not shown to be above an answer that needs no model in 1 subtask: RecollectionSynthesis",
        "RecollectionSynthesis: not shown to be above printing the null line every time",
    )


ITEMS = list(MINI.scenarios)
BY_ID = {s.id: s for s in ITEMS}


def texts(answers: list[Response | FailedResponse]) -> dict[str, str]:
    return {a.id: a.text for a in answers if isinstance(a, Response)}


@pytest.mark.parametrize("name", BASELINES)
def test_every_item_has_one_answer_that_row_order_does_not_change(name: str) -> None:
    answers = BASELINES[name](ITEMS, ITEMS)
    assert [a.id for a in answers] == [s.id for s in ITEMS]
    assert {a.sample for a in answers} == {0}
    shuffled = random.Random(3).sample(ITEMS, len(ITEMS))
    assert texts(BASELINES[name](shuffled, shuffled[::-1])) == texts(answers)


def test_constant_says_one_line_a_language_and_the_null_line_where_nothing_may_be_worth_keeping() -> (
    None
):
    said = texts(constant(ITEMS, ITEMS))
    for language in ("en", "zh"):
        own = [s for s in ITEMS if s.language == language]
        assert len({said[s.id] for s in own if s.subtask != "recollection_synthesis"}) == 1
        nulls = {said[s.id] for s in own if s.subtask == "recollection_synthesis"}
        assert nulls == {find_language(language).null_memory}


def test_copy_last_turn_repeats_the_last_thing_shown() -> None:
    last = {
        "dialogue_schedule": lambda s: s.turns[-1].content,
        "itinerary_middle": lambda s: s.inputs["day_overview"],
        "recollection_refinement": lambda s: s.inputs["memories"][-1],
    }
    rows = [s for s in ITEMS if s.subtask in last]
    assert texts(copy_last_turn(rows, ITEMS)) == {s.id: last[s.subtask](s) for s in rows}


def test_random_reference_is_another_items_of_the_same_subtask_and_language() -> None:
    by_reference: dict[str, list[Scenario]] = {}
    for scenario in ITEMS:
        by_reference.setdefault(scenario.reference, []).append(scenario)
    for item_id, text in texts(random_reference(ITEMS, ITEMS)).items():
        own = BY_ID[item_id]
        others = [s for s in by_reference[text] if s.id != item_id]
        assert any((s.subtask, s.language) == (own.subtask, own.language) for s in others), item_id
    # An item without a neighbour fails and is not scored.
    (answer,) = random_reference(ITEMS[:1], ITEMS[:1])
    assert isinstance(answer, FailedResponse)
    assert (answer.sample, answer.failure.reason, answer.failure.attempts) == (0, "no_neighbour", 0)
