"""Votes as columns."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from votes_made import vote_lists, votes_of

from h2htalk.rounds.aggregation.dawid_skene import dawid_skene
from h2htalk.rounds.aggregation.votes import Vote, majority, tabulate


@settings(deadline=None)
@given(vote_lists())
def test_table_has_sorted_votes_and_replaces_them(votes: list[Vote]) -> None:
    table = tabulate(iter(votes))
    assert table.votes(range(len(table))) == sorted(votes, key=lambda vote: (vote.item, vote.annotator))
    assert tabulate(table) is table
    assert majority(table) == majority(votes)
    assert dawid_skene(table) == dawid_skene(votes)


def test_votes_in_several_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    votes = votes_of("a b a\nb b .\n. a a")
    whole = majority(votes)
    monkeypatch.setattr("h2htalk.rounds.aggregation.votes.CHUNK", 2)
    assert majority(vote for vote in votes) == whole
