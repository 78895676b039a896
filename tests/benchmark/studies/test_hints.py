"""What code finds for a rater of a point."""

from __future__ import annotations

import pytest
from releases_made import case
from tables import table

from h2htalk.benchmark.studies.point_answers import hints, numbers
from h2htalk.data.case import Case

FACTS = [
    {"id": "cat", "kind": "corrected", "session": 1, "text": "The cat is Pip.", "forms": ["Pip"], "replaced_by": "now"},
    {"id": "now", "kind": "stated", "session": 1, "text": "The cat is Tib.", "forms": ["Tib"]},
    {"id": "dog", "kind": "trap", "session": 1, "text": "There is no dog.", "forms": ["狗"]},
]


def one(check: str | None, language: str = "en") -> Case:
    point = {"id": "stays", "kind": "must", "text": "x", "check": check}
    return case(1, language, points=[point], facts=FACTS)


@pytest.mark.parametrize(("check", "language", "reply", "found"), table("benchmark", "hints"))
def test_a_rater_is_shown_what_was_told_and_what_code_finds(
    check: str | None, language: str, reply: str, found: list[str]
) -> None:
    item = one(check, language)
    assert list(hints(reply, item.points[0], item)) == found


@pytest.mark.parametrize(("reply", "unknown"), table("benchmark", "numbers_to_dial"))
def test_numbers_to_dial_and_whose_they_are(reply: str, unknown: list[str]) -> None:
    assert [number for number, owner in numbers(reply).items() if not owner] == unknown
