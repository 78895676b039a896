"""Spans that overlap are settled: the surest stays, and nothing that was found shows again."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from h2htalk.curation.anonymize.spans import TYPES, Span, resolve_overlaps

spans = st.builds(
    lambda at, length, kind, score: Span(at, at + length, kind, score),
    st.integers(0, 40),
    st.integers(1, 9),
    st.sampled_from(TYPES),
    st.sampled_from([0.5, 0.6, 0.9]),
)


@given(st.lists(spans, max_size=12))
def test_every_character_stays_marked_and_once(found: list[Span]) -> None:
    settled = resolve_overlaps(found)
    marked = [at for span in settled for at in range(span.start, span.end)]
    assert sorted(marked) == sorted({at for span in found for at in range(span.start, span.end)})
    assert settled == sorted(settled)


@given(st.lists(spans, max_size=8), st.integers(0, 99))
def test_the_order_of_finding_does_not_matter(found: list[Span], seed: int) -> None:
    shuffled = random.Random(seed).sample(found, len(found))
    assert resolve_overlaps(shuffled) == resolve_overlaps(found)


def test_the_surer_stays_then_the_longer_then_the_type_that_stands_first() -> None:
    assert resolve_overlaps([Span(0, 5, "PERSON", 0.6), Span(0, 5, "QQ", 0.9)]) == [Span(0, 5, "QQ", 0.9)]
    assert resolve_overlaps([Span(0, 5, "PERSON", 0.6), Span(0, 3, "ADDRESS", 0.6)]) == [Span(0, 5, "PERSON", 0.6)]
    assert resolve_overlaps([Span(0, 5, "PERSON", 0.6), Span(0, 5, "ADDRESS", 0.6)]) == [Span(0, 5, "ADDRESS", 0.6)]
