"""A real server on which annotators and managers work at the same time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from argilla_annotators import SimulatedAnnotator, item_of, write_annotators
from argilla_small import NAMES, SAYS, Opened, found_dataset
from argilla_stack import Stack

from h2htalk.errors import RoundError
from h2htalk.rounds.argilla.client import ArgillaClient, connect
from h2htalk.rounds.argilla.platform import ArgillaPlatform
from h2htalk.rounds.lifecycle import open_round, remove_annotator, reopen_round, round_status

pytestmark = [pytest.mark.live, pytest.mark.timeout(600), pytest.mark.usefixtures("signed_in")]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("managed")


def test_responses_during_discarding_and_restoring_are_kept(
    stack: Stack, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server refuses a second response of a user, and returns a response that it deletes."""
    small = Opened(base, stack, "meanwhile")
    one, _, third = small.annotators
    records, call, waiting = small.records(one), ArgillaClient.call, ["POST", "DELETE"]

    def answered_first(self: ArgillaClient, method: str, path: str, *rest: Any, **more: Any) -> Any:
        if method in waiting and "/responses" in path:
            waiting.remove(method)
            who, item = (one, "item-000") if method == "POST" else (third, "item-002")
            who.submit(records[item], SAYS)
        return call(self, method, path, *rest, **more)

    monkeypatch.setattr(ArgillaClient, "call", answered_first)
    changed = [replace(v, languages=("zh",) if v.name == one.name else v.languages, crisis=True)
               for v in small.round.annotators()]  # fmt: skip
    small.round.write_records("private/annotators.jsonl", changed)
    messages = ArgillaPlatform().publish(small.round)
    assert waiting == []
    assert any("was answered while it was restored; the answer is kept" in line for line in messages)
    status = round_status(small.round.path)
    assert (status.by_item["item-000"], status.by_item["item-002"], status.skipped) == (1, 1, 0)
    assert small.values()["item-002", "quality"] == 4


def test_changes_by_a_manager_are_noted(stack: Stack, base: Path) -> None:
    small = Opened(base, stack, "edited")
    one, other, _ = small.annotators
    records, client = small.records(one), connect()
    one.submit(records["item-000"], SAYS)
    dataset = found_dataset(client, "edited-en", "edited-set1-en-01")
    path = f"/api/v1/datasets/{dataset['id']}"
    assert round_status(small.round.path).notes == ()
    keep = next(one for one in client.get(f"{path}/questions")["items"] if one["name"] == "keep")
    texts = {"keep": "Drop it", "drop": "Keep it"}
    options = [{**option, "text": texts[option["value"]]} for option in keep["settings"]["options"]]
    client.call("PATCH", f"/api/v1/questions/{keep['id']}",
              {"settings": {"type": "label_selection", "options": options}})  # fmt: skip
    client.call("PATCH", path, {"name": "a nicer name"})
    client.call("DELETE", f"{path}/records", params={"ids": records["item-004"]})
    other.submit(records["item-000"], SAYS)
    status = round_status(small.round.path)
    assert status.by_item["item-000"] == 2
    named, worded, gone = status.notes
    assert "edited-set1-en-01: renamed to 'a nicer name'" in named
    assert "keep has another label of drop, label of keep" in worded
    assert "1 of 3 items that need annotators have no record, the first: 'item-004'" in gone
    with pytest.raises(RoundError, match="keep has another label of drop"):
        open_round(small.spec, small.round.path)


def test_a_removed_annotator(stack: Stack, base: Path) -> None:
    """The server counts the responses, and offers their items to nobody else until the round is reopened."""
    small = Opened(base, stack, "removed")
    one, other, third = small.annotators
    item = small.records(one)["item-000"]
    for annotator in (one, other):
        annotator.submit(item, SAYS)
    assert round_status(small.round.path).by_item["item-000"] == 2
    remove_annotator(small.round.path, other.name, why="the same answer to everything")
    other.submit(item, SAYS | {"quality": 1})
    status = round_status(small.round.path)
    assert (status.by_item["item-000"], status.new, status.missing["item-000"]) == (1, 0, 1)
    reopen_round(small.round.path)
    (second,) = [found for found in third.datasets("removed") if "set2-en" in found["name"]]
    offered = {item_of(record): record["id"] for record in third.pending(second)}
    third.submit(offered["item-000"], SAYS)
    assert round_status(small.round.path).by_item["item-000"] == 2
    remove_annotator(small.round.path, other.name, undo=True)
    status = round_status(small.round.path)
    assert status.by_item["item-000"] == 3
    assert small.values()["item-000", "quality"] in (1, 4)


def test_deleted_accounts_and_admins_of_half_the_round(
    stack: Stack, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    annotators = write_annotators(base / "halves-annotators.csv", [*NAMES[:2], "halves-c"])
    small = Opened(base, stack, "halves", annotators=str(annotators))
    client = connect()
    gone = next(one for one in client.get("/api/v1/users")["items"] if one["username"] == "halves-c")
    annotator = SimulatedAnnotator("halves-c", 1.0, stack.url, gone["api_key"])
    annotator.submit(small.records(annotator)["item-000"], SAYS)
    assert round_status(small.round.path).completed == 1
    client.call("DELETE", f"/api/v1/users/{gone['id']}")
    status = round_status(small.round.path)
    assert status.completed == 1
    assert ["halves-c: the account was deleted" in line for line in status.notes] == [True]
    open_round(small.spec, small.round.path)
    assert round_status(small.round.path).notes == ()

    account = {"username": "halves-admin", "first_name": "h", "password": "12345678", "role": "admin"}
    _, admin = client.call("POST", "/api/v1/users", account)
    places = {one["name"]: one["id"] for one in client.get("/api/v1/me/workspaces")["items"]}
    client.call("POST", f"/api/v1/workspaces/{places['halves-en']}/users", {"user_id": admin["id"]})
    monkeypatch.setenv("ARGILLA_API_KEY", admin["api_key"])
    with pytest.raises(RoundError, match="your key does not see the workspaces halves-zh"):
        round_status(small.round.path)
    client.call("POST", f"/api/v1/workspaces/{places['halves-zh']}/users", {"user_id": admin["id"]})
    assert round_status(small.round.path).notes == ()
