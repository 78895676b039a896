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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"study": "other"}, "study: Input should be 'high_risk'"),
        ({"extra": 1}, "extra"),
        ({"degree": "2"}, "degree"),
        ({"degree": True}, "degree"),
        ({"sessions": []}, "sessions"),
        ({"sessions": [{"turns": []}]}, "sessions.1.turns"),
        ({"sessions": [{"turns": [{"user": " "}]}]}, "sessions.1.turns.1.user"),
        ({"sessions": [{"turns": [{"user": "hi", "points": ["other"]}]}]}, "names the point 'other'"),
        ({"points": [POINT, POINT]}, "an id occurs twice"),
        ({"points": [{**POINT, "kind": "should"}]}, "points.1.kind"),
        ({"points": [{**POINT, "severity": 4}]}, "points.1.severity"),
        ({"language": "xx"}, "language is 'xx'"),
        ({"provenance": []}, "provenance must be an object"),
    ],
)
def test_a_wrong_case_is_refused_by_name_and_place(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message) as error:
        Case.from_dict({**json.loads(json.dumps(case(1).to_dict())), **change}, "cases.jsonl:3")
    assert str(error.value).startswith("cases.jsonl:3: case-en-1: ")
