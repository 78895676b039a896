"""Ranks, ties and the first three, on matrices whose truth is known."""

from __future__ import annotations

import time
from collections import Counter

import numpy as np
import pytest

from h2htalk.benchmark import all_pairs
from h2htalk.benchmark.all_pairs import AllPairs, compare_all_pairs, rank_by_figure
from h2htalk.benchmark.statistics.sign_flips import Values, flipped_products, sign_flip_p
from h2htalk.data.signature import Signature
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.site.boards import boards_of, size_class, size_of
from support.boards import made_runs, made_source, made_split, made_values, sources_of
from support.memory import measured_memory
from support.tables import table

ALL = tuple(SUBTASKS)


def compared(
    values: Values, subtasks: tuple[str, ...] = ALL, clusters: int | None = None
) -> AllPairs:
    """A contest of items that go through the subtasks in turn, each its own cluster, or in so many clusters."""
    items = range(len(values))
    cluster_count = clusters or len(values)
    return compare_all_pairs(
        values,
        [subtasks[k % len(subtasks)] for k in items],
        [str(k % cluster_count) for k in items],
    )


def around(
    levels: tuple[float, ...], items: int = 220, spread: float = 0.02, seed: int = 3
) -> Values:
    rng = np.random.default_rng(seed)
    return (
        np.array(levels)
        + rng.normal(0, 0.1, (items, 1))
        + rng.normal(0, spread, (items, len(levels)))
    )


def test_runs_that_differ_by_chance_share_a_rank_and_the_next_rank_counts_them() -> None:
    result = compared(around((0.6, 0.2, 0.6, 0.4)))
    assert result.ranks == [1, 4, 1, 3]
    assert (result.pairs, bool(result.apart[0, 2])) == ((5, 6), False)


def test_a_rank_is_one_more_than_the_number_shown_to_be_better_so_a_tie_need_not_pass_on() -> None:
    """The middle one is told apart from neither neighbour, the outer two from each other: ranks 1, 1, 2."""
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 0.1, (110, 3))
    noise -= noise.mean(axis=0)
    result = compared(np.array([0.535, 0.515, 0.495]) + noise, ALL[:1])
    assert [bool(result.apart[a, b]) for a, b in ((0, 1), (1, 2), (0, 2))] == [False, False, True]
    assert result.ranks == [1, 1, 2]


def test_the_order_of_runs_and_of_items_says_nothing() -> None:
    values = around((0.5, 0.51, 0.49, 0.3, 0.52))
    order = [3, 0, 4, 2, 1]
    result = compared(values)
    turned = compared(values[:, order])
    assert [result.ranks[k] for k in order] == turned.ranks
    assert np.allclose(result.first[order], turned.first)
    assert np.allclose(result.p[np.ix_(order, order)], turned.p)


@pytest.mark.parametrize("clusters", [5, 12, 13, 200])
def test_p_is_that_of_compare_exactly_where_all_flips_are_tried_and_else_by_chance_near_it(
    clusters: int,
) -> None:
    values = around((0.5, 0.505), 200, 0.05)
    result = compared(values, (ALL[0],), clusters)
    cluster_of = np.arange(200) % clusters
    p = sign_flip_p(np.bincount(cluster_of, weights=values[:, 0] - values[:, 1]))
    assert result.p[0, 1] == pytest.approx(p, abs=0 if clusters <= 12 else 0.02)


def test_equal_runs_are_tied_and_share_what_is_left_of_the_first_three() -> None:
    result = compared(np.tile(around((0.5,)), 4))
    assert result.ranks == [1] * 4
    assert (result.p == 1).all()
    assert result.first == pytest.approx([0.75] * 4)


@pytest.mark.parametrize("runs", [4, 5, 9])
def test_the_probabilities_of_the_first_three_sum_to_three(runs: int) -> None:
    result = compared(around(tuple(np.linspace(0.4, 0.45, runs)), 110, 0.1))
    assert result.first.sum() == pytest.approx(3)
    assert ((result.first >= 0) & (result.first <= 1)).all()
    assert result.first[-1] > result.first[0]


def test_three_runs_have_no_first_three_and_few_clusters_no_bootstrap() -> None:
    assert compared(around((0.5, 0.4, 0.3))).first is None
    few = compared(around((0.5, 0.4, 0.3, 0.2)), clusters=9)
    assert (few.first, few.low) == (None, None)


def test_the_bootstrap_draws_the_same_items_for_all() -> None:
    """Runs a constant apart are always in one order, however much items differ."""
    hard = np.random.default_rng(0).uniform(0, 0.5, (110, 1))
    result = compared(hard + np.array([0.4, 0.3, 0.2, 0.1, 0.0]))
    assert list(result.first) == [1, 1, 1, 0, 0]
    assert result.low[0, 1] == pytest.approx(10)


def test_many_pairs_do_not_hide_a_difference_behind_the_least_p_of_the_flips() -> None:
    """10,000 flips have no p below .0001, which Holm's factor of 1,225 pairs would make .12."""
    result = compared(around(tuple([0.5] * 25 + [0.4] * 25), 220, 0.05))
    assert result.ranks[:25] == [1] * 25
    assert min(result.ranks[25:]) >= 25


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
def test_a_size_is_read_where_a_name_states_one_and_never_guessed(
    name: str, size: float | None
) -> None:
    assert size_of(name) == size


def test_size_classes_are_the_papers_with_one_below() -> None:
    classes = {
        None: None,
        0.5: "<1B",
        1: "1-8B",
        7: "1-8B",
        8: "8-31B",
        31: "8-31B",
        32: "32B+",
        72: "32B+",
    }
    assert {size: size_class(size) for size in classes} == classes


def test_a_board_ranks_complete_runs_of_models_and_shows_the_others() -> None:
    runs = made_runs(220)
    people = Signature(
        runs[0].run.summary.signature.protocol, {"engine": "human", "model": "people"}
    )
    split = made_split(220)
    runs.append(
        made_source("people", split, made_values(split, (0.6,))[:, 0].tolist(), signature=people)
    )
    (board,) = boards_of(sources_of(runs).runs)
    unranked = {entry.source.label for entry in board.entries if entry.rank is None}
    assert unranked == {"people", "anthropic:claude-haiku-4-5"}
    assert [entry.rank for entry in board.entries if entry.rank] == sorted(
        entry.rank for entry in board.entries if entry.rank
    )
    assert [row.model for row in board.baselines] == ["copy", "constant"]
    assert board.figure == "overall"
    by_label = {entry.source.label: entry for entry in board.entries}
    for board_entry in board.entries:
        assert (board_entry.column is None) == (board_entry.rank is None)
        assert all(board_entry.source.label in by_label[label].tied for label in board_entry.tied)
        # The figure of the test is that of the table.
        assert board_entry.rank is None or board.compared.means[
            board_entry.column
        ] == pytest.approx(board_entry.row.value(board.figure))


def test_runs_of_other_protocols_have_a_board_of_their_own_and_the_largest_is_first() -> None:
    split = made_split(110)
    values = made_values(split, (0.5, 0.4, 0.3))
    other_protocol = {"signature": Signature({"items": "others"}, {"engine": "e", "model": "m2"})}
    runs = [
        made_source(f"m{k}", split, values[:, k].tolist(), **(other_protocol if k == 2 else {}))
        for k in range(3)
    ]
    boards = boards_of(sources_of(runs).runs)
    assert [(board.number, len(board.entries)) for board in boards] == [(1, 2), (2, 1)]
    assert (boards[1].compared, boards[1].entries[0].rank) == (None, None)


def test_many_runs_on_few_clusters_do_not_fill_the_memory() -> None:
    """As many flips at once as 13 clusters allow would be 161,000 times 1,225 sums, 1.6 GB."""
    values = around(tuple(np.linspace(0.4, 0.5, 50)), 143, 0.1)
    with measured_memory() as peak:
        compared(values, clusters=13)
        assert peak() < 300 << 10  # KiB


@pytest.mark.slow
def test_fifty_runs_of_4650_items_take_under_a_minute_of_cpu_and_500_mb() -> None:
    subtasks = list(Counter({name: subtask.count for name, subtask in SUBTASKS.items()}).elements())
    values = around(tuple(np.linspace(0.4, 0.5, 50)), len(subtasks), 0.1)
    begun = time.process_time()
    with measured_memory() as peak:
        labels = [str(number) for number in range(len(subtasks))]
        result = compare_all_pairs(values, subtasks, labels)
        kibibytes = peak()
    seconds = time.process_time() - begun
    assert kibibytes < 512_000
    assert result.pairs
    assert seconds < 60


def test_flips_are_counted_for_those_pairs_alone_that_can_still_be_told_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Fifty runs took eight times the CPU once each column's p was adjusted for all of them; ranks stay the same."""
    names = [ALL[number % len(ALL)] for number in range(220)]
    clusters = [str(number) for number in range(220)]
    flips: list[int] = []

    def counted_products(signs: Values, sums: Values) -> Values:
        flips.append(len(signs))
        return flipped_products(signs, sums)

    monkeypatch.setattr(all_pairs, "flipped_products", counted_products)
    apart = around((0.6, 0.55, *np.linspace(0.4, 0.41, 14)), spread=0.1)
    alike = around((0.5,) * 16, spread=0.1)
    quick = rank_by_figure(ALL, apart, names, clusters)
    flips.clear()
    assert rank_by_figure(ALL, alike, names, clusters)["dialogue_base"] == [1] * 16
    needed = sum(flips)
    monkeypatch.setattr(all_pairs, "_kept_limit", lambda _: 2.0)
    flips.clear()
    rank_by_figure(ALL, alike, names, clusters)
    assert needed < 0.5 * sum(flips)
    assert rank_by_figure(ALL, apart, names, clusters) == quick
    assert len(set(quick["dialogue_base"])) > 1
