"""A small round on the server of argilla_double.py."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from argilla_double import OWNER_KEY, ArgillaDouble

from h2htalk.rounds.argilla import client
from h2htalk.rounds.argilla.datasets import record_id
from h2htalk.rounds.argilla.platform import ArgillaPlatform
from h2htalk.rounds.assignment.assignments import AssignmentSet
from h2htalk.rounds.lifecycle import open_round
from h2htalk.rounds.round_folder import RoundFolder, read_state
from h2htalk.rounds.settings import Care, RoundSpec

ITEMS: list[dict[str, Any]] = [
    {"id": "a", "language": "en", "prompt": "Good morning.", "reference": "Good morning to you."},
    {"id": "b", "language": "en", "prompt": "It has been a long, long day.", "crisis": True},
    {"id": "c </script>", "language": "en", "prompt": "</script><b>$& #TEMPLATE#</b>", "suggested": {"keep": "drop"}},
    {"id": "d", "language": "zh", "prompt": "早上好。", "subtask": "dialogue_base"},
]  # fmt: skip
DATASET = "round-set1-en-01"
SAYS: dict[str, Any] = {"subtask": "none", "keep": "keep", "quality": 4}


def named(round: RoundFolder, item: str) -> str:
    """An item's record id."""
    return record_id(item, round.salt())


@contextmanager
def running(monkeypatch: pytest.MonkeyPatch) -> Iterator[ArgillaDouble]:
    """The server, with address and key in the environment, and without pauses before retries."""
    monkeypatch.setattr(client.time, "sleep", lambda seconds: None)
    with ArgillaDouble() as double:
        monkeypatch.setenv("ARGILLA_API_URL", double.url)
        monkeypatch.setenv("ARGILLA_API_KEY", OWNER_KEY)
        yield double


def spec_in(base: Path, items: list[dict[str, Any]] = ITEMS, **changes: Any) -> RoundSpec:
    base.mkdir(parents=True, exist_ok=True)
    (base / "items.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    (base / "annotators.csv").write_text("name,languages,crisis\nann,en zh,yes\nben,en,no\ncem,zh en,yes\n")
    made = RoundSpec(
        kind="crowd", items=str(base / "items.jsonl"), where="argilla",
        annotators=str(base / "annotators.csv"), overlap=2,
        care=Care(session_items=20, crisis_share=0.5),
    )  # fmt: skip
    return replace(made, **changes)


def opened(base: Path, **changes: Any) -> RoundFolder:
    open_round(spec_in(base, **changes), base / "round")
    return RoundFolder(base / "round")


def change(round: RoundFolder, name: str, **facts: Any) -> list[str]:
    """Change an annotator, and publish the round again."""
    changed = [replace(one, **facts) if one.name == name else one for one in round.annotators()]
    round.write_records("private/annotators.jsonl", changed)
    return ArgillaPlatform().publish(read_state(round))


def add_second_set(round: RoundFolder) -> None:
    """Publish the item `a` again, in a second assignment set for one annotator."""
    (first,) = round.assignment_sets()
    round.write_records("assignment_sets.jsonl", [first, AssignmentSet(2, {"a": 1}, (), (("a",),))])


def discarded_for(server: ArgillaDouble, round: RoundFolder, item: str, dataset: str = DATASET) -> set[str]:
    """Names of users for whom an item is discarded."""
    responses = server.dataset(dataset)["records"][named(round, item)]["responses"]
    return {server.users[user]["username"] for user, one in responses.items() if one["status"] == "discarded"}
