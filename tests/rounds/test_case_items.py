"""Cases in a round: the script with its references, points and facts."""

from __future__ import annotations

import json
from pathlib import Path

from releases_made import case

from h2htalk.rounds.item_sources import case_item, read_items

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


def test_cases_of_a_split_and_of_a_file_are_items(tmp_path: Path) -> None:
    (tmp_path / "cases.jsonl").write_text(json.dumps(case(1).to_dict()) + "\n" + json.dumps(case(2).to_dict()) + "\n")
    for name in (str(tmp_path), str(tmp_path / "cases.jsonl")):
        source = read_items(name, kind="expert")
        assert [item.id for item in source.items] == ["case-en-1", "case-en-2"]
        assert source.records["case-en-1"]["study"] == "high_risk"
