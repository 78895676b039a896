"""Cases: the strict reader."""

from __future__ import annotations

import json
from typing import Any

import pytest
from releases_made import case

from h2htalk.data.case import Case
from h2htalk.errors import DataError


def test_a_case_survives_json() -> None:
    one = case(1)
    assert Case.from_dict(json.loads(json.dumps(one.to_dict()))) == one
    assert list(one.turns()) == list(one.sessions[0].turns)


POINT = {"id": "stays", "kind": "must", "text": "stays"}
FACT = {"id": "cat", "kind": "stated", "session": 1, "text": "The cat is called Pip.", "forms": ["Pip"]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"study": "other"}, "study: must be 'high_risk'"),
        ({"sessions": []}, "sessions"),
        ({"sessions": [{"turns": []}]}, "sessions.1.turns"),
        ({"sessions": [{"turns": [{"user": "hi", "points": ["other"]}]}]}, "names the point 'other'"),
        ({"points": [POINT, POINT]}, "points: the id 'stays' occurs twice"),
        ({"points": [{**POINT, "severity": 4}]}, "points.1.severity"),
        ({"facts": [FACT, FACT]}, "facts: the id 'cat' occurs twice"),
        ({"facts": [{**FACT, "kind": "corrected"}]}, "fact cat: a corrected fact, and no other, names the right one"),
        ({"facts": [{**FACT, "kind": "forgotten"}]}, "fact cat: a forgotten fact, and no other, needs asked_in"),
        ({"facts": [{**FACT, "session": 2}]}, "fact cat: there is no such session"),
        ({"points": [{**POINT, "check": "mentions:cat"}]}, "point stays: 'mentions:cat' needs a fact with forms"),
        ({"points": [{**POINT, "check": "says:cat"}]}, "point stays: no check 'says:cat'; choose from mentions, omits"),
        ({"points": [{**POINT, "check": "help_lines:x"}]}, "point stays: no check 'help_lines:x'"),
        ({"facts": [{**FACT, "replaced_by": "dog"}]}, "fact cat: a corrected fact, and no other"),
        ({"state": "worn-out"}, "state: must match pattern"),
        ({"sessions": [{"gap_days": 2, "turns": [{"user": "hi"}]}]}, "the first session follows none"),
        ({"sessions": [{"turns": [{"user": "hi", "reference": " "}]}]}, "sessions.1.turns.1.reference"),
        ({"history": [{"role": "user", "content": "hi"}]}, "history: user and companion take turns"),
    ],
)
def test_a_wrong_case_is_refused_by_name_and_place(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message) as error:
        Case.from_dict({**json.loads(json.dumps(case(1).to_dict())), **change}, "cases.jsonl:3")
    assert str(error.value).startswith("cases.jsonl:3: case-en-1: ")
