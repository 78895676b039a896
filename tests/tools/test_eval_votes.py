"""Tests of the replay of adaptive overlap on public votes."""

from __future__ import annotations

import sys
from pathlib import Path

from h2htalk.rounds.aggregation.adaptive_overlap import needs_more
from h2htalk.rounds.aggregation.vote_table import Vote, tabulate

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
from eval_votes import ADAPTIVE_LIMITS, adaptive, read_votes, replay


def test_a_replay_keeps_the_first_votes_of_an_order_until_the_item_is_decided() -> None:
    labels = {"i0": "a" * 12 + "b" * 4, "i1": "ab" * 7, "i2": "aa", "i3": "a" * 20}
    votes = [Vote(item, f"v{n}", label) for item, given in labels.items() for n, label in enumerate(given)]
    for seed in range(10):
        collected = replay(votes, seed=seed)
        assert replay(votes[::-1], seed=seed) == collected
        assert set(collected) <= set(votes)
        for item, given in labels.items():
            theirs = [vote for vote in collected if vote.item == item]
            assert all(needs_more(theirs[:n], [item])[item] > 0 for n in range(len(theirs)))
            assert len(theirs) == len(given) or needs_more(theirs, [item])[item] == 0
    assert len(replay(votes[16:30], seed=0, minimum=2, lead=20, maximum=7)) == 7


def test_on_d_possent_a_lead_of_four_halves_the_votes_and_keeps_the_accuracy(shared_data: Path) -> None:
    table, gold = read_votes(shared_data / "crowd" / "d_possent")
    counted, modelled, votes = adaptive(tabulate(table), gold, 5)[4]
    least, better, most = ADAPTIVE_LIMITS
    assert counted > least - 0.5
    assert modelled > better - 0.5
    assert votes < most
