"""What a real server does while people work on both sides of it: answers between our requests, edits by a manager."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from argilla_annotators import SimulatedAnnotator, write_annotators
from argilla_small import NAMES, SAYS, Opened, found_dataset
from argilla_stack import Stack

from h2htalk.errors import RoundError
from h2htalk.rounds.argilla.client import ArgillaClient, connect
from h2htalk.rounds.argilla.platform import ArgillaPlatform
from h2htalk.rounds.opening import open_round
from h2htalk.rounds.status import round_status

pytestmark = [pytest.mark.live, pytest.mark.timeout(600), pytest.mark.usefixtures("signed_in")]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("managed")


def test_what_a_spared_annotator_says_is_theirs(stack: Stack, base: Path) -> None:
    """Our discards and an annotator's own look alike on the server."""
    small = Opened(base, stack, "found")
    one, _, third = small.annotators
    crisis = small.records(one)["item-002"]
    third.submit(crisis, SAYS)
    assert round_status(small.round.path).by_item["item-002"] == 1
    third.submit(crisis, {}, "discarded")
    found = round_status(small.round.path)
    assert (found.by_item["item-002"], found.skipped, found.notes) == (0, 1, ())


def test_an_answer_that_comes_while_its_item_is_put_aside_or_given_back_is_kept(
    stack: Stack, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server refuses a second response by the same person, and a deleted one comes back with the deletion."""
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
    small.round.write_annotators(changed)
    told = ArgillaPlatform().publish(small.round)
    assert waiting == []
    assert any("was answered while it was restored; the answer is kept" in line for line in told)
    found = round_status(small.round.path)
    assert (found.by_item["item-000"], found.by_item["item-002"], found.skipped) == (1, 1, 0)
    assert small.values()["item-002", "quality"] == 4


def test_what_a_manager_changes_in_argilla_is_told(stack: Stack, base: Path) -> None:
    small = Opened(base, stack, "edited")
    one, other, _ = small.annotators
    records, wire = small.records(one), connect()
    one.submit(records["item-000"], SAYS)
    dataset = found_dataset(wire, "edited-en", "edited-set1-en-01")
    path = f"/api/v1/datasets/{dataset['id']}"
    assert round_status(small.round.path).notes == ()
    keep = next(one for one in wire.get(f"{path}/questions")["items"] if one["name"] == "keep")
    texts = {"keep": "Drop it", "drop": "Keep it"}
    options = [{**option, "text": texts[option["value"]]} for option in keep["settings"]["options"]]
    wire.call("PATCH", f"/api/v1/questions/{keep['id']}",
              {"settings": {"type": "label_selection", "options": options}})  # fmt: skip
    wire.call("PATCH", path, {"name": "a nicer name"})
    wire.call("DELETE", f"{path}/records", params={"ids": records["item-004"]})
    other.submit(records["item-000"], SAYS)
    found = round_status(small.round.path)
    assert found.by_item["item-000"] == 2
    named, worded, gone = found.notes
    assert "edited-set1-en-01: renamed to 'a nicer name'" in named
    assert "keep has another label of drop, label of keep" in worded
    assert "1 of 3 items that need annotators have no record, the first: 'item-004'" in gone
    with pytest.raises(RoundError, match="keep has another label of drop"):
        open_round(small.spec, small.round.path)


def test_a_deleted_account_and_an_admin_of_half_the_round_are_told(
    stack: Stack, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    annotators = write_annotators(base / "halves-annotators.csv", [*NAMES[:2], "halves-c"])
    small = Opened(base, stack, "halves", annotators=str(annotators))
    wire = connect()
    gone = next(one for one in wire.get("/api/v1/users")["items"] if one["username"] == "halves-c")
    annotator = SimulatedAnnotator("halves-c", 1.0, stack.url, gone["api_key"])
    annotator.submit(small.records(annotator)["item-000"], SAYS)
    assert round_status(small.round.path).completed == 1
    wire.call("DELETE", f"/api/v1/users/{gone['id']}")
    found = round_status(small.round.path)
    assert found.completed == 1
    assert ["halves-c: the account was deleted" in line for line in found.notes] == [True]
    open_round(small.spec, small.round.path)
    assert round_status(small.round.path).notes == ()

    account = {"username": "halves-admin", "first_name": "h", "password": "12345678", "role": "admin"}
    _, admin = wire.call("POST", "/api/v1/users", account)
    places = {one["name"]: one["id"] for one in wire.get("/api/v1/me/workspaces")["items"]}
    wire.call("POST", f"/api/v1/workspaces/{places['halves-en']}/users", {"user_id": admin["id"]})
    monkeypatch.setenv("ARGILLA_API_KEY", admin["api_key"])
    with pytest.raises(RoundError, match="your key does not see the workspaces halves-zh"):
        round_status(small.round.path)
    wire.call("POST", f"/api/v1/workspaces/{places['halves-zh']}/users", {"user_id": admin["id"]})
    assert round_status(small.round.path).notes == ()
