"""Votes as columns: read once, sorted, and as good as the votes themselves."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from votes_made import vote_lists, votes_of

from h2htalk.rounds.aggregation.dawid_skene import dawid_skene
from h2htalk.rounds.aggregation.majority import majority
from h2htalk.rounds.aggregation.vote_table import Vote, tabulate


@settings(deadline=None)
@given(vote_lists())
def test_a_table_holds_the_votes_sorted_and_may_stand_in_for_them(votes: list[Vote]) -> None:
    table = tabulate(iter(votes))
    assert table.votes(range(len(table))) == sorted(votes, key=lambda vote: (vote.item, vote.annotator))
    assert tabulate(table) is table
    assert majority(table) == majority(votes)
    assert dawid_skene(table) == dawid_skene(votes)


def test_more_votes_than_are_read_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    votes = votes_of("a b a\nb b .\n. a a")
    whole = majority(votes)
    monkeypatch.setattr("h2htalk.rounds.aggregation.vote_table.CHUNK", 2)
    assert majority(vote for vote in votes) == whole
