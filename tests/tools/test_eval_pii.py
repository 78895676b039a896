"""The measure of the recognisers: overlaps, exact spans, sealed sentences, intervals."""

from __future__ import annotations

import sys
from pathlib import Path

from h2htalk.curation.anonymize.spans import Span

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
from eval_pii import measure

ROWS = [
    {
        "id": "a",
        "form": "plain",
        "text": "I am Ann, 0123456789",
        "spans": [
            {"start": 5, "end": 8, "type": "PERSON", "kind": ""},
            {"start": 10, "end": 20, "type": "PHONE_NUMBER", "kind": "mobile"},
        ],
    },
    {
        "id": "b",
        "form": "hostile",
        "text": "Tom",
        "spans": [{"start": 0, "end": 3, "type": "PERSON", "kind": ""}],
    },
]
FOUND = [[Span(5, 9, "PERSON", 0.9), Span(10, 20, "QQ", 0.9)], [Span(0, 3, "PERSON", 0.9)]]


def test_spans_count_by_overlap_exactly_and_whatever_the_type() -> None:
    result = measure(ROWS, FOUND)
    person = result.by_type["PERSON", "", "all"]
    assert (person.gold, person.found, person.exact) == (2, 2, 1)
    phone = result.by_type["PHONE_NUMBER", "mobile", "plain"]
    assert (phone.gold, phone.found, phone.any_type) == (1, 0, 1)
    assert (result.marked["PERSON", "all"].marked, result.marked["PERSON", "all"].right) == (2, 2)
    assert ("QQ", "all") not in result.marked  # a type that nothing here is labelled with


def test_a_sentence_is_sealed_when_every_labelled_character_is_covered() -> None:
    assert (measure(ROWS, FOUND).sealed, measure(ROWS, FOUND).sentences) == (2, 2)
    assert measure(ROWS, [[Span(5, 8, "PERSON", 0.9), Span(11, 20, "QQ", 0.9)], FOUND[1]]).sealed == 1
