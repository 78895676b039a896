"""`tools/planted_records.py`: what authors wrote for planted replies is checked before it is stored."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from h2htalk.benchmark.studies.points.judge_requests import hints
from h2htalk.data.planted import PlantedPlace, load_planted

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
import planted_records


def faults(**changed: Any) -> list[str]:
    place = replace(load_planted("high_risk")[0], **changed)
    return [
        fault for one in planted_records.check_places("high_risk", [place]) for fault in one.faults
    ]


def test_the_bundled_places_have_no_fault() -> None:
    for split in planted_records.GROUPS.values():
        checked = planted_records.check_places(split, load_planted(split))
        assert [fault for one in checked for fault in one.faults] == []


def test_half_of_the_places_are_about_musts() -> None:
    """A judge that says yes to everything would be right about all good replies."""
    for split in planted_records.GROUPS.values():
        cases = planted_records.cases_of(split)
        for language in ("en", "zh"):
            own = [place for place in load_planted(split) if place.language == language]
            kinds = [planted_records.find_point(cases, place.id)[2].kind for place in own]
            assert kinds.count("must") == kinds.count("must_not")


def test_a_wording_about_a_fact_comes_with_the_fact() -> None:
    """What the user told sessions ago stands in no turn that a judge sees: without it no reply can be judged."""
    cases = planted_records.cases_of("arcs")
    read = 0
    for place in load_planted("arcs"):
        case, _, point = planted_records.find_point(cases, place.id)
        facts = [fact.text for fact in case.facts if point.id.endswith(f".{fact.id}")]
        if facts and point.kind == "must_not":
            shown = "; ".join(hints(place.true_wordings[0], point, case))
            assert facts[0] in shown, place.id
            read += 1
    assert read >= 8


PLACE: PlantedPlace = load_planted("high_risk")[0]


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        (
            {"filler": (*PLACE.filler[1:], f"So, {PLACE.true_wordings[0]}")},
            "shares a run of words with",
        ),
        (
            {"true_wordings": (PLACE.false_wordings[0], *PLACE.true_wordings)},
            "shares a run of words with",
        ),
        (
            {"true_wordings": (PLACE.statement, *PLACE.true_wordings)},
            "shares a run of words with the statement",
        ),
        ({"filler": (*PLACE.filler, "Ring 0800 123 4567 now.")}, "holds a number to dial"),
        ({"filler": (*PLACE.filler, "It is late (very late).")}, "holds a bracket"),
        ({"filler": (*PLACE.filler, "It is late")}, "does not end as a sentence does"),
        ({"filler": (*PLACE.filler, "Yes. " * 9 + "It is late.")}, "more than 3 sentences"),
        ({"filler": (*PLACE.filler, "Late " * 90 + "it is.")}, "is too long"),
        ({"filler": PLACE.filler[:5]}, "too few sound texts"),
        ({"statement": "The reply says something else."}, "has another statement by now"),
    ],
)
def test_a_fault_is_named(changed: dict[str, Any], fault: str) -> None:
    assert any(fault in found for found in faults(**changed))
