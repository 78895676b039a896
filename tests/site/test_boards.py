"""Ranks, ties and the first three, on matrices whose truth is known."""

from __future__ import annotations

import resource
import time

import numpy as np
import pytest
from boards_made import made_runs, made_source, made_split, made_values, sources_of
from tables import table

from h2htalk.benchmark.statistics import Values, sign_flip_p
from h2htalk.data.signature import Signature
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.site.boards import Contest, boards_of, contest, size_class, size_of

ALL = tuple(SUBTASKS)


def compared(values: Values, subtasks: tuple[str, ...] = ALL, clusters: int | None = None) -> Contest:
    """A contest of items that go through the subtasks in turn, each its own cluster, or in so many clusters."""
    items, of = range(len(values)), clusters or len(values)
    return contest(values, [subtasks[k % len(subtasks)] for k in items], [str(k % of) for k in items])


def around(levels: tuple[float, ...], items: int = 220, spread: float = 0.02, seed: int = 3) -> Values:
    rng = np.random.default_rng(seed)
    return np.array(levels) + rng.normal(0, 0.1, (items, 1)) + rng.normal(0, spread, (items, len(levels)))


def test_runs_that_differ_by_chance_share_a_rank_and_the_next_rank_counts_them() -> None:
    found = compared(around((0.6, 0.2, 0.6, 0.4)))
    assert (found.ranks, found.pairs, bool(found.apart[0, 2])) == ([1, 4, 1, 3], (5, 6), False)


def test_a_rank_is_one_more_than_the_number_shown_to_be_better_so_a_tie_need_not_pass_on() -> None:
    """The middle one is told apart from neither neighbour, the outer two from each other: ranks 1, 1, 2."""
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 0.1, (110, 3))
    noise -= noise.mean(axis=0)
    found = compared(np.array([0.535, 0.515, 0.495]) + noise, ALL[:1])
    assert [bool(found.apart[a, b]) for a, b in ((0, 1), (1, 2), (0, 2))] == [False, False, True]
    assert found.ranks == [1, 1, 2]


def test_the_order_of_runs_and_of_items_says_nothing() -> None:
    values, order = around((0.5, 0.51, 0.49, 0.3, 0.52)), [3, 0, 4, 2, 1]
    found, turned = compared(values), compared(values[:, order])
    assert [found.ranks[k] for k in order] == turned.ranks
    assert np.allclose(found.first[order], turned.first)
    assert np.allclose(found.p[np.ix_(order, order)], turned.p)


@pytest.mark.parametrize("clusters", [5, 12, 13, 200])
def test_p_is_that_of_compare_exactly_where_all_flips_are_tried_and_else_by_chance_near_it(clusters: int) -> None:
    values = around((0.5, 0.505), 200, 0.05)
    found = compared(values, (ALL[0],), clusters)
    at = np.arange(200) % clusters
    p = sign_flip_p(np.bincount(at, weights=values[:, 0] - values[:, 1]))
    assert found.p[0, 1] == pytest.approx(p, abs=0 if clusters <= 12 else 0.02)


def test_equal_runs_are_tied_and_share_what_is_left_of_the_first_three() -> None:
    found = compared(np.tile(around((0.5,)), 4))
    assert found.ranks == [1] * 4
    assert (found.p == 1).all()
    assert found.first == pytest.approx([0.75] * 4)


@pytest.mark.parametrize("runs", [4, 5, 9])
def test_the_probabilities_of_the_first_three_sum_to_three(runs: int) -> None:
    found = compared(around(tuple(np.linspace(0.4, 0.45, runs)), 110, 0.1))
    assert found.first.sum() == pytest.approx(3)
    assert ((found.first >= 0) & (found.first <= 1)).all()
    assert found.first[-1] > found.first[0]


def test_three_runs_have_no_first_three_and_few_clusters_no_bootstrap() -> None:
    assert compared(around((0.5, 0.4, 0.3))).first is None
    few = compared(around((0.5, 0.4, 0.3, 0.2)), clusters=9)
    assert (few.first, few.low) == (None, None)


def test_the_bootstrap_draws_the_same_items_for_all() -> None:
    """Runs a constant apart are always in one order, however much items differ."""
    hard = np.random.default_rng(0).uniform(0, 0.5, (110, 1))
    found = compared(hard + np.array([0.4, 0.3, 0.2, 0.1, 0.0]))
    assert list(found.first) == [1, 1, 1, 0, 0]
    assert found.low[0, 1] == pytest.approx(10)


def test_many_pairs_do_not_hide_a_difference_behind_the_least_p_of_the_flips() -> None:
    """10,000 flips have no p below .0001, which Holm's factor of 1,225 pairs would make .12."""
    found = compared(around(tuple([0.5] * 25 + [0.4] * 25), 220, 0.05))
    assert found.ranks[:25] == [1] * 25
    assert min(found.ranks[25:]) >= 25


def test_an_item_without_a_value_is_left_out_for_all() -> None:
    values = around((0.5, 0.4, 0.3, 0.2))
    holed = values.copy()
    holed[:11, 0] = np.nan
    assert compared(holed).means == pytest.approx(compared(values[11:]).means)
    assert compared(holed).items == 209
    holed[:, 1] = np.nan
    assert compared(holed) is compared(values[:, :1]) is None


def test_without_all_subtasks_the_mean_is_over_the_items() -> None:
    values = around((0.5, 0.4))
    few = compared(values, ALL[:2])
    assert (few.figure, compared(values).figure) == ("items_mean", "overall")
    assert few.means == pytest.approx(100 * values.mean(axis=0))


@pytest.mark.parametrize(("name", "size"), [*table("site", "sizes"), ("9" * 5000 + "B", None)])
def test_a_size_is_read_where_a_name_states_one_and_never_guessed(name: str, size: float | None) -> None:
    assert size_of(name) == size


def test_size_classes_are_the_papers_with_one_below() -> None:
    classes = {None: None, 0.5: "<1B", 1: "1-8B", 7: "1-8B", 8: "8-31B", 31: "8-31B", 32: "32B+", 72: "32B+"}
    assert {size: size_class(size) for size in classes} == classes


def test_a_board_ranks_complete_runs_of_models_and_shows_the_others() -> None:
    runs = made_runs(220)
    people = Signature(runs[0].run.summary.signature.protocol, {"engine": "human", "model": "people"})
    split = made_split(220)
    runs.append(made_source("people", split, made_values(split, (0.6,))[:, 0].tolist(), signature=people))
    (board,) = boards_of(sources_of(runs).runs)
    unranked = {one.source.label for one in board.entries if one.rank is None}
    assert unranked == {"people", "anthropic:claude-haiku-4-5"}
    assert [one.rank for one in board.entries if one.rank] == sorted(one.rank for one in board.entries if one.rank)
    assert [row.model for row in board.baselines] == ["copy", "constant"]
    assert board.figure == "overall"
    by_label = {one.source.label: one for one in board.entries}
    for one in board.entries:
        assert (one.place is None) == (one.rank is None)
        assert all(one.source.label in by_label[other].tied for other in one.tied)
        # The figure of the test is that of the table.
        assert one.rank is None or board.contest.means[one.place] == pytest.approx(one.row.value(board.figure))


def test_runs_of_other_protocols_have_a_board_of_their_own_and_the_largest_is_first() -> None:
    split = made_split(110)
    values = made_values(split, (0.5, 0.4, 0.3))
    others = {"signature": Signature({"items": "others"}, {"engine": "e", "model": "m2"})}
    runs = [made_source(f"m{k}", split, values[:, k].tolist(), **(others if k == 2 else {})) for k in range(3)]
    boards = boards_of(sources_of(runs).runs)
    assert [(board.number, len(board.entries)) for board in boards] == [(1, 2), (2, 1)]
    assert (boards[1].contest, boards[1].entries[0].rank) == (None, None)


def peak_memory() -> float:
    """In MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def test_many_runs_on_few_clusters_do_not_fill_the_memory() -> None:
    """As many flips at once as 13 clusters allow would be 161,000 times 1,225 sums, 1.6 GB."""
    values, before = around(tuple(np.linspace(0.4, 0.5, 50)), 143, 0.1), peak_memory()
    compared(values, clusters=13)
    assert peak_memory() - before < 300


@pytest.mark.slow
def test_fifty_runs_of_4650_items_take_under_a_minute_of_cpu_and_500_mb() -> None:
    subtasks = [name for name, one in SUBTASKS.items() for _ in range(one.count)]
    values, begun = around(tuple(np.linspace(0.4, 0.5, 50)), len(subtasks), 0.1), time.process_time()
    before = peak_memory()
    found = contest(values, subtasks, [str(k) for k in range(len(subtasks))])
    assert found.pairs
    assert time.process_time() - begun < 60
    assert peak_memory() - before < 500
