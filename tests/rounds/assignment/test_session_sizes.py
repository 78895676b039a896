"""Sizes of sessions: crises are spread as evenly as the share allows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.rounds.assignment.assignments import session_sizes
from h2htalk.rounds.settings import Care

CARE = Care(session_items=10, crisis_share=0.2)


@pytest.mark.parametrize(
    ("number", "hard", "sizes"),
    [
        (0, 0, ()),
        (18, 2, ((9, 1), (9, 1))),
        (18, 3, ((10, 2), (8, 1))),
        (21, 4, ((10, 2), (6, 1), (5, 1))),
        (21, 5, ((10, 2), (10, 2), (1, 1))),
        (20, 4, ((10, 2), (10, 2))),
        (20, 5, None),
        (2, 2, None),
    ],
)
def test_crises_are_spread_evenly(number: int, hard: int, sizes: tuple[tuple[int, int], ...] | None) -> None:
    """18 items with 3 crises were refused: sessions of 9 and 9 hold one each, sessions of 10 and 8 hold three."""
    assert session_sizes(number, hard, CARE) == sizes


@given(st.integers(1, 40), st.integers(1, 20), st.sampled_from([0.1, 0.2, 0.25, 0.4, 0.9, 1.0]))
def test_session_sizes_respect_the_share(number: int, session: int, share: float) -> None:
    care = Care(session, share)
    assert session_sizes(number, 1, care) is not None
    for hard in range(number + 1):
        sizes = session_sizes(number, hard, care)
        if sizes is not None:
            assert (sum(size for size, _ in sizes), sum(crises for _, crises in sizes)) == (number, hard)
            assert all(1 <= size <= session and crises <= max(1, share * size + 1e-9) for size, crises in sizes)
