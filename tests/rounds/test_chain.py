"""Items and where they come from; a chain of rounds: from a workspace to a crowd, to experts and to a safety round."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from h2htalk.data.links import Link, read_links
from h2htalk.data.scenario import Turn
from h2htalk.data.splits import load_split
from h2htalk.errors import DataError, RoundError
from h2htalk.rounds.item_sources import case_item, read_items
from h2htalk.rounds.items import Item, check_values
from h2htalk.rounds.lifecycle import open_round
from h2htalk.rounds.questions import QUESTIONS, Kind
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import RoundSpec
from h2htalk.rounds.spreadsheets.platform import SpreadsheetPlatform
from support.curations import finished
from support.kills import interrupted_at
from support.releases import case
from support.rounds import (
    SCENARIO,
    begin,
    candidate,
    closed,
    crisis_candidate,
    crowd,
    crowd_round,
    expert,
    files_of,
    items_of,
    people,
    spec_of,
    write,
)
from support.tables import table

TALK = [{"role": "user", "content": "你好"}, {"role": "companion", "content": "嗯"}]
WHOLE: dict[str, Any] = {
    "id": "a-1",
    "language": "zh",
    "prompt": TALK,
    "context": {"memories": "likes rain"},
}
WHOLE |= {
    "response": "r",
    "reference": "p",
    "labels": ["keep", "drop"],
    "crisis": True,
    "subtask": "dialogue_base",
}
WHOLE |= {"gold": {"keep": "keep"}, "suggested": {"quality": 4}, "note": "n"}


def test_items_as_json_and_their_stored_answers() -> None:
    item = Item.from_dict(WHOLE)
    assert item.to_dict() == WHOLE
    assert Item.from_dict({"id": "a", "language": "en", "prompt": "hi"}) == Item(
        "a", "en", (Turn("user", "hi"),)
    )
    # Gold and suggested answers must be valid.
    item = Item.from_dict(WHOLE)
    assert check_values(item, QUESTIONS["crowd"]) is item
    for changed, says in (
        ({"gold": {"kept": "keep"}}, "gold: unknown question 'kept'"),
        ({"gold": {"keep": "perhaps"}}, "gold: 'perhaps' is not valid for keep"),
        ({"suggested": {"quality": 9}}, "suggested: 9 is not valid for quality"),
    ):
        with pytest.raises(DataError, match=says):
            check_values(Item.from_dict(WHOLE | changed), QUESTIONS["crowd"])
    for changed, message in table("rounds", "invalid_items"):
        with pytest.raises(DataError, match=message):
            Item.from_dict(WHOLE | changed, "items.jsonl:1")


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
    with pytest.raises(
        RoundError, match=r"status 'need_people'; choose from accept \(1\), needs_people \(1\)"
    ):
        read_items(str(stage), ["accept", "need_people"])


def test_items_of_a_jsonl_file(tmp_path: Path) -> None:
    talk = {"id": "d-1", "language": "en", "messages": [{"role": "user", "content": "hi"}]}
    talk |= {"metadata": {"safety": {"tags": ["crisis.ideation"], "risk": "high"}}}
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
    # A possible crisis was lost with the scenario, and a companion's harm that nobody had decided on.
    for noted in ({"possible_crisis": True}, {"tags": ["companion.harm"]}):
        record = candidate("c-1", "accept")
        record["scenario"]["metadata"] = {"safety": {"risk": "none", **noted}}
        (item,) = read_items(str(write(tmp_path / "c.jsonl", [record]))).items
        assert item.crisis
    # Invalid records are named by line.
    invalid: dict[str, list[Any]] = {
        "contains no items": [],
        "all.jsonl:1: neither an item": [{"name": "a"}],
    }
    invalid |= {
        "'a' occurs twice": [{"id": "a", "language": "en", "prompt": "x"}] * 2,
        "all.jsonl:1": [[1]],
    }
    for message, lines in invalid.items():
        with pytest.raises((DataError, RoundError), match=message):
            read_items(str(write(tmp_path / "all.jsonl", lines)))


FACT = {"id": "cat", "kind": "stated", "session": 1, "text": "The cat is Pip.", "forms": ["Pip"]}
SESSIONS = [
    {"turns": [{"user": "I fed Pip.", "reference": "Good.", "points": ["stays"]}]},
    {
        "gap_days": 12,
        "turns": [{"user": "Hello again.", "reference": "How is Pip?", "points": ["calls"]}],
    },
]
POINTS = [{"id": "stays", "kind": "must", "text": "The reply stays."}]
POINTS += [{"id": "calls", "kind": "must_not", "text": "The reply forgets Pip."}]


def test_a_case_is_read_whole_and_a_sexual_one_announced() -> None:
    item = case_item(case(1, sessions=SESSIONS, points=POINTS, facts=[FACT]))
    said = [turn.content for turn in item.turns]
    assert said == ["I fed Pip.", "Good.", "[12 days later] Hello again.", "How is Pip?"]
    context = dict(item.context)
    assert context["points"] == "1. must: The reply stays.\n2. must_not: The reply forgets Pip."
    assert context["facts"] == "stated: The cat is Pip."
    assert "Nora" in context["persona"]
    assert item.crisis
    # Annotators met a case that is tagged `sexual.explicit` unannounced.
    item = case_item(
        case(1, study="instructions", sessions=SESSIONS, points=POINTS, tags=["sexual.explicit"])
    )
    assert (item.explicit, item.crisis, item.notice) == (True, True, "explicit_notice")


def test_cases_of_a_split_and_of_a_file_are_items(tmp_path: Path) -> None:
    (tmp_path / "cases.jsonl").write_text(
        json.dumps(case(1).to_dict()) + "\n" + json.dumps(case(2).to_dict()) + "\n"
    )
    for name in (str(tmp_path), str(tmp_path / "cases.jsonl")):
        source = read_items(name, kind="expert")
        assert [item.id for item in source.items] == ["case-en-1", "case-en-2"]
        assert source.records["case-en-1"]["study"] == "high_risk"


@pytest.mark.parametrize("kind", ["expert", "adjudication"])
def test_sets_that_are_about_crises_can_be_opened(tmp_path: Path, kind: Kind) -> None:
    """They were refused, as no session may hold so many crises; but the manager cannot choose other items."""
    lines = [case(number).to_dict() for number in range(1, 8)]
    if kind == "adjudication":
        tie = {"language": "en", "prompt": "hi", "labels": ["a", "b"], "crisis": True}
        lines = [{"id": f"t{n}", **tie} for n in range(7)]
    (tmp_path / "items.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    status, _ = open_round(
        RoundSpec(kind=kind, items=str(tmp_path / "items.jsonl")), tmp_path / "round"
    )
    assert (status.state, status.items) == ("open", 7)


def test_experts_get_what_the_crowd_kept_and_all_that_nobody_read(tmp_path: Path) -> None:
    """No command led from the crowd to the experts; provenance, licence and review were lost on the way."""
    path = crowd_round(tmp_path)
    status, messages = open_round(spec_of("expert", path, 3), tmp_path / "expert")
    assert (status.kind, status.items) == ("expert", 2)
    assert messages[0].startswith(
        "crowd: 2 kept, 1 dropped, 1 tied; ties are left out: to decide them first, "
    )
    folder = RoundFolder(tmp_path / "expert")
    items = items_of(tmp_path / "expert")
    assert folder.sources() == {"c-1": crisis_candidate("c-1"), "c-2": candidate("c-2", "accept")}
    assert {name: item.crisis for name, item in items.items()} == {"c-1": True, "c-2": False}
    # The crowd round, which does not ask for accuracy, had removed the reviewer's.
    assert "accuracy" not in items_of(path)["c-2"].suggested
    assert items["c-2"].suggested == {"keep": "keep", "accuracy": 4}
    assert items["c-2"].reference == items_of(path)["c-2"].reference
    # Every round knows its workspace and what came after.
    work = tmp_path / "work"
    open_round(spec_of("adjudication", path, 1), tmp_path / "ties")
    closed(tmp_path / "expert", expert())
    _, messages = open_round(spec_of("safety", tmp_path / "expert"), tmp_path / "safety")
    assert messages[0] == "expert: 2 kept, 0 dropped, 0 tied"
    assert read_links(work) == (Link("round", "../crowd", path),)
    assert [link.target for link in read_links(path)] == ["../expert", "../ties"]
    assert [link.target for link in read_links(tmp_path / "expert")] == ["../safety"]
    for name in ("crowd", "expert", "ties", "safety"):
        assert RoundFolder(tmp_path / name).source_paths()["workspace"] == str(work)
        assert str(tmp_path) not in (tmp_path / name / "round.json").read_text()
    assert RoundFolder(tmp_path / "safety").sources() == RoundFolder(tmp_path / "expert").sources()


def test_a_round_that_experts_cannot_continue(tmp_path: Path) -> None:
    asks = "a round of safety does not ask what to keep; name a closed round of crowd or expert"
    for kind, typed, message in (
        ("safety", {"perception": "5", "violation": "no"}, asks),
        ("crowd", crowd("drop"), r"this round keeps no item \(round: 0 kept, 2 dropped, 0 tied\)"),
    ):
        path = closed(begin(tmp_path / kind, kind, 2, people=2, overlap=2), typed)
        spec = spec_of("expert", path)
        before = files_of(path)
        with pytest.raises((RoundError, DataError), match=message):
            open_round(spec, tmp_path / "expert")
        assert (files_of(path), (tmp_path / "expert").exists()) == (before, False)


def test_a_refused_opening_leaves_neither_links_nor_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link stayed where the platform refused."""
    work = finished(tmp_path / "work", "review", [candidate("c-1", "accept")]).path
    spec = spec_of("crowd", work)
    people(Path(spec.annotators), "anna")
    before = files_of(work)

    def fails(self: SpreadsheetPlatform, folder: RoundFolder) -> None:
        assert read_links(work)
        raise RoundError("no server")

    monkeypatch.setattr(SpreadsheetPlatform, "check", fails)
    out = tmp_path / "crowd"
    with pytest.raises(RoundError, match="no server"):
        open_round(spec, out)
    assert (read_links(work), out.exists()) == ((), False)
    assert not (work / "links.jsonl").exists()
    with pytest.raises(RoundError, match="guidelines cannot be read"):
        open_round(replace(spec, guidelines=str(tmp_path)), out)
    assert (files_of(work), out.exists()) == (before, False)
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    with pytest.raises(RoundError, match="no server"):
        open_round(spec, out)
    assert [one.name for one in out.iterdir()] == ["notes.txt"]


def test_an_opening_that_is_killed_at_any_write(tmp_path: Path) -> None:
    """It is completed by the same command, and before it holds an item, the round before knows of it."""
    path = crowd_round(tmp_path)
    number = 0
    killed = True
    spec = spec_of("expert", path)
    while killed:
        out = tmp_path / f"expert-{number}"
        killed = interrupted_at(number, partial(open_round, spec, out))
        known = {link.path for link in read_links(path)}
        assert out in known or not (out / "items.jsonl").exists()
        assert open_round(spec, out)[0].state == "open"
        assert set(RoundFolder(out).sources()) == set(items_of(out)) == {"c-1", "c-2"}
        assert RoundFolder(out).source_paths()["workspace"] == str(tmp_path / "work")
        number += 1
    assert number > 10
    assert [link.path for link in read_links(path)] == [
        tmp_path / f"expert-{n}" for n in range(number)
    ]
