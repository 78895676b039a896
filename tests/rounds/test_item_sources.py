"""Sources of items."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from chain_made import SCENARIO, candidate, write

from h2htalk.data.splits import load_split
from h2htalk.errors import ConfigError, DataError, RoundError
from h2htalk.rounds.item_sources import read_items
from h2htalk.rounds.settings import make_spec


def test_items_of_a_split() -> None:
    items = {item.id: item for item in read_items("mini@1").items}
    assert len(items) == len(load_split("mini@1").scenarios)
    item = items[SCENARIO.id]
    assert item.turns == SCENARIO.turns
    assert item.reference == SCENARIO.reference
    assert item.subtask == "dialogue_schedule"
    passages = dict(item.context)
    assert list(passages) == ["persona", "today_schedule", "current_activity"]
    assert passages["persona"] == load_split("mini@1").personas[SCENARIO.persona].descriptions["en"]
    plan: Any = SCENARIO.inputs["today_schedule"][0]
    assert passages["today_schedule"].startswith(f"{plan.time}  {plan.activity}\n")
    assert {i.crisis for i in items.values()} == {True, False}


def test_items_of_a_stage_with_suggestions(tmp_path: Path) -> None:
    stage = tmp_path / "06-reviewed"
    write(stage / "kept" / "part-00000.jsonl", [candidate("c-2", "needs_people")])
    write(stage / "kept" / "part-00001.jsonl", [candidate("c-1", "accept")])
    with pytest.raises(RoundError, match="this stage is not finished"):
        read_items(str(stage))
    (stage / "summary.json").write_text("{}")
    items = read_items(str(stage)).items
    assert [item.id for item in items] == ["c-1", "c-2"]
    assert items[0].suggested == {"keep": "keep", "accuracy": 4, "subtask": "dialogue_base"}
    assert "keep" not in items[1].suggested
    assert [item.id for item in read_items(str(stage), ["needs_people"]).items] == ["c-2"]
    assert len(read_items(str(stage), ["needs_people", "accept"]).items) == 2
    with pytest.raises(RoundError, match=r"status 'need_people'; choose from accept \(1\), needs_people \(1\)"):
        read_items(str(stage), ["accept", "need_people"])


def test_status_needs_reviewed_records(tmp_path: Path) -> None:
    """It was ignored, and every item was published."""
    plain = write(tmp_path / "all.jsonl", [{"id": "i-1", "language": "en", "prompt": "hi"}])
    for source in (str(plain), "mini@1"):
        with pytest.raises(RoundError, match="no record has a review status; remove status"):
            read_items(source, ["needs_people"])
    reviewed = write(tmp_path / "c.jsonl", [candidate("c-1", "accept"), candidate("c-2", "revise")])
    assert [item.id for item in read_items(str(reviewed), ["revise"]).items] == ["c-2"]


def test_items_of_a_jsonl_file(tmp_path: Path) -> None:
    talk = {
        "id": "d-1",
        "language": "en",
        "messages": [{"role": "user", "content": "hi"}],
        "metadata": {"safety": {"tags": ["crisis.ideation"], "risk": "high"}},
    }
    records = [
        {"id": "i-1", "language": "en", "prompt": "hi"},
        SCENARIO.to_dict(),
        candidate("c-1", "accept"),
        talk,
    ]
    source = read_items(str(write(tmp_path / "all.jsonl", records)))
    items = {item.id: item for item in source.items}
    assert set(items) == {"i-1", SCENARIO.id, "c-1", "d-1"}
    assert items["d-1"].crisis
    # What nobody reads comes along, unchanged; an item that was written as one has no other record.
    assert source.records == {SCENARIO.id: SCENARIO.to_dict(), "c-1": records[2], "d-1": talk}


@pytest.mark.parametrize("noted", [{"possible_crisis": True}, {"tags": ["companion.harm"]}])
def test_a_possible_crisis_was_lost_with_the_scenario(tmp_path: Path, noted: dict[str, Any]) -> None:
    """And so was a companion's harm that nobody had decided on: annotators who declined got it."""
    record = candidate("c-1", "accept")
    record["scenario"]["metadata"] = {"safety": {"risk": "none", **noted}}
    (item,) = read_items(str(write(tmp_path / "c.jsonl", [record]))).items
    assert item.crisis


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([], "contains no items"),
        ([{"id": "a", "language": "en", "prompt": "x"}] * 2, "'a' occurs twice"),
        ([{"name": "a"}], "all.jsonl:1: neither an item"),
        ([{"id": "a", "language": "en", "prompt": "x"}, {"id": "b"}], "all.jsonl:2"),
        ([[1]], "all.jsonl:1"),
    ],
)
def test_invalid_records_are_named_by_line(tmp_path: Path, records: Sequence[Any], message: str) -> None:
    with pytest.raises((DataError, RoundError), match=message):
        read_items(str(write(tmp_path / "all.jsonl", records)))


@pytest.mark.parametrize("name", ["nowhere", "nowhere" * 50])
def test_unknown_source(name: str) -> None:
    """A name that is too long for a file was a traceback."""
    spec = make_spec("crowd", name, {})
    with pytest.raises((ConfigError, DataError), match="nowhere"):
        read_items(str(spec.items))
