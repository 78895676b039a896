"""Cases in a round: the script with its references, points and facts."""

from __future__ import annotations

import json
from pathlib import Path

from releases_made import case

from h2htalk.rounds.item_sources import case_item, read_items
from h2htalk.rounds.lifecycle import open_round
from h2htalk.rounds.settings import RoundSpec

FACT = {"id": "cat", "kind": "stated", "session": 1, "text": "The cat is Pip.", "forms": ["Pip"]}
SESSIONS = [
    {"turns": [{"user": "I fed Pip.", "reference": "Good.", "points": ["stays"]}]},
    {"gap_days": 12, "turns": [{"user": "Hello again.", "reference": "How is Pip?", "points": ["calls"]}]},
]
POINTS = [
    {"id": "stays", "kind": "must", "text": "The reply stays."},
    {"id": "calls", "kind": "must_not", "text": "The reply forgets Pip."},
]


def test_a_case_is_read_whole() -> None:
    item = case_item(case(1, sessions=SESSIONS, points=POINTS, facts=[FACT]))
    assert [turn.content for turn in item.turns] == [
        "I fed Pip.",
        "Good.",
        "[12 days later] Hello again.",
        "How is Pip?",
    ]
    context = dict(item.context)
    assert context["points"] == "1. must: The reply stays.\n2. must_not: The reply forgets Pip."
    assert context["facts"] == "stated: The cat is Pip."
    assert "Nora" in context["persona"]
    assert item.crisis


def test_a_sexual_case_is_announced() -> None:
    """Annotators met a case that is tagged `sexual.explicit` unannounced."""
    item = case_item(case(1, study="instructions", sessions=SESSIONS, points=POINTS, tags=["sexual.explicit"]))
    assert (item.explicit, item.crisis, item.notice) == (True, True, "explicit_notice")


def test_cases_of_a_split_and_of_a_file_are_items(tmp_path: Path) -> None:
    (tmp_path / "cases.jsonl").write_text(json.dumps(case(1).to_dict()) + "\n" + json.dumps(case(2).to_dict()) + "\n")
    for name in (str(tmp_path), str(tmp_path / "cases.jsonl")):
        source = read_items(name, kind="expert")
        assert [item.id for item in source.items] == ["case-en-1", "case-en-2"]
        assert source.records["case-en-1"]["study"] == "high_risk"


def test_experts_review_a_set_that_is_about_crises(tmp_path: Path) -> None:
    """A round of crises alone could not be opened: no session may hold so many of them."""
    lines = [json.dumps(case(number).to_dict()) for number in range(1, 8)]
    (tmp_path / "cases.jsonl").write_text("\n".join(lines) + "\n")
    spec = RoundSpec(kind="expert", items=str(tmp_path / "cases.jsonl"))
    status, _ = open_round(spec, tmp_path / "round")
    assert (status.state, status.items) == ("open", 7)
