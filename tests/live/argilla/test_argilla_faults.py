"""Faults of a real server: interruptions, a dead or empty search index, other users, removed annotators."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from argilla_annotators import SimulatedAnnotator, item_of, made_items, write_items
from argilla_small import SAYS, Opened, found_dataset, small_spec
from argilla_stack import Stack

from h2htalk.errors import RoundError
from h2htalk.rounds.argilla.client import ServerClient, connect
from h2htalk.rounds.argilla.platform import ArgillaPlatform
from h2htalk.rounds.lifecycle import open_round, remove_annotator, reopen_round, round_status
from h2htalk.rounds.questions import QUESTIONS
from h2htalk.rounds.round_folder import read_state

pytestmark = [pytest.mark.live, pytest.mark.timeout(600), pytest.mark.usefixtures("signed_in")]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faults")


def test_further_annotators_and_other_users(stack: Stack, base: Path) -> None:
    small = Opened(base, stack, "crowded")
    records = small.records(small.annotators[0])
    for annotator in small.annotators:
        annotator.submit(records["item-000"], SAYS)
    status = round_status(small.round.path)
    assert (status.by_item["item-000"], status.mistakes) == (3, ())

    client = connect()
    account = {"username": "passer-by", "first_name": "p", "password": "12345678", "role": "annotator"}
    _, stranger = client.call("POST", "/api/v1/users", account)
    place = next(one for one in client.get("/api/v1/me/workspaces")["items"] if one["name"] == "crowded-en")
    client.call("POST", f"/api/v1/workspaces/{place['id']}/users", {"user_id": stranger["id"]})
    passing = SimulatedAnnotator("passer-by", 1.0, stack.url, stranger["api_key"])
    passing.submit(records["item-004"], SAYS)
    status = round_status(small.round.path)
    (message,) = status.notes
    assert "by 'passer-by', who is not an annotator of this round" in message
    assert status.mistakes == ()
    assert status.by_item["item-004"] == 0
    # The server counts it: of the two annotators that the round needs, it requests one more.
    offered = ArgillaPlatform().collect(read_state(small.round)).offered
    assert offered is not None
    assert (offered["item-000"], offered["item-002"], offered["item-004"]) == (0, 2, 1)
    response = re.search(r"response ([0-9a-f-]{36})", message)[1]
    client.call("DELETE", f"/api/v1/responses/{response}")
    status = round_status(small.round.path)
    assert (status.mistakes, status.notes) == ((), ())
    client.call("DELETE", f"/api/v1/users/{stranger['id']}")


def test_every_form_of_question_and_a_suggestion(stack: Stack, base: Path) -> None:
    items = [{**item, "suggested": {"violation": "no"}} for item in made_items(2, "safety")]
    safe = write_items(base / "safe.items.jsonl", items)
    small = Opened(base, stack, "safe", kind="safety", items=str(safe), suggest=True)
    one = small.annotators[0]
    said = {"perception": 2, "violation": "yes", "violations": ["privacy", "boundary"], "comment": "名字太多"}
    one.submit(small.records(one)["item-000"], said)
    status = round_status(small.round.path)
    assert (status.completed, status.mistakes) == (1, ())
    kept = {question: value for (_, question), value in small.values().items()}
    assert kept == said | {"violations": ("boundary", "privacy")}
    client = connect()
    dataset = found_dataset(client, "safe-en", "safe-set1-en-01")
    (record,) = client.get(f"/api/v1/datasets/{dataset['id']}/records", limit=9, include="suggestions")["items"]
    assert [(one["value"], one["agent"]) for one in record["suggestions"]] == [("no", "reviewer")]


@pytest.mark.parametrize("at", [6, 8, 13, 16, 21, 23, 26, 30, 31, 34, 37, 43, 50])
def test_opening_killed_at_any_request_can_be_repeated(stack: Stack, base: Path, at: int) -> None:
    name = f"killed-{at}"
    spec, out = small_spec(base, name), base / name
    script = Path(__file__).with_name("argilla_killed.py")
    done = subprocess.run(
        [sys.executable, str(script), json.dumps(spec.to_dict()), str(out), str(at)], timeout=120, check=False
    )
    assert done.returncode == -signal.SIGKILL
    open_round(spec, out)
    client = connect()
    for language in ("en", "zh"):
        dataset = found_dataset(client, f"{name}-{language}", f"{name}-set1-{language}-01")
        listed = client.get(f"/api/v1/datasets/{dataset['id']}/records", limit=100, include="responses")
        assert (dataset["status"], listed["total"]) == ("ready", 3)
        assert client.get(f"/api/v1/datasets/{dataset['id']}/progress")["total"] == 3
        # The crisis is discarded for the annotator without consent only.
        assert [len(record["responses"]) for record in listed["items"]].count(1) == 1
        questions = client.get(f"/api/v1/datasets/{dataset['id']}/questions")["items"]
        assert [one["name"] for one in questions] == [one.name for one in QUESTIONS["crowd"]]
    assert round_status(out).notes == ()


def test_a_dead_search_engine_loses_no_annotation(stack: Stack, base: Path) -> None:
    small = Opened(base, stack, "deaf")
    one = small.annotators[0]
    records = small.records(one)
    stack.pause_search()
    try:
        values = {name: {"value": value} for name, value in SAYS.items()}
        reply = one.http.post(
            f"/api/v1/records/{records['item-000']}/responses", json={"status": "submitted", "values": values}
        )
        assert reply.status_code == 500
        status = round_status(small.round.path)
        assert status.completed == 1
        assert any("the search engine does not answer" in line for line in status.notes)
        with pytest.raises(RoundError, match="the server's search engine does not answer"):
            open_round(small_spec(base, "never"), base / "never")
    finally:
        stack.start_search()
    wait_for_search()
    open_round(small_spec(base, "never"), base / "never")


def test_an_empty_search_index_is_noted_and_repaired(stack: Stack, base: Path) -> None:
    small = Opened(base, stack, "empty")
    one = small.annotators[0]
    records = small.records(one)
    stack.stop_search()
    stack.start_search()
    wait_for_search()
    one.http.post("/api/v1/me/responses/bulk", json={"items": [
        {"record_id": records["item-000"], "status": "submitted",
         "values": {name: {"value": value} for name, value in SAYS.items()}}]})  # fmt: skip
    status = round_status(small.round.path)
    assert status.completed == 1
    assert any("python -m argilla_server search-engine reindex" in line for line in status.notes)
    with pytest.raises(RoundError, match="search-engine reindex"):
        open_round(small.spec, small.round.path)
    stack.reindex()
    assert round_status(small.round.path).notes == ()
    open_round(small.spec, small.round.path)
    assert sorted(small.records(one)) == ["item-002", "item-004"]


def test_responses_during_discarding_and_restoring_are_kept(
    stack: Stack, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server refuses a second response of a user, and returns a response that it deletes."""
    small = Opened(base, stack, "meanwhile")
    one, _, third = small.annotators
    records, call, waiting = small.records(one), ServerClient.call, ["POST", "DELETE"]

    def answered_first(self: ServerClient, method: str, path: str, *rest: Any, **more: Any) -> Any:
        if method in waiting and "/responses" in path:
            waiting.remove(method)
            who, item = (one, "item-000") if method == "POST" else (third, "item-002")
            who.submit(records[item], SAYS)
        return call(self, method, path, *rest, **more)

    monkeypatch.setattr(ServerClient, "call", answered_first)
    changed = [replace(v, languages=("zh",) if v.name == one.name else v.languages, crisis=True)
               for v in small.round.annotators()]  # fmt: skip
    small.round.write_records("private/annotators.jsonl", changed)
    messages = ArgillaPlatform().publish(read_state(small.round))
    assert waiting == []
    assert any("was answered while it was restored; the answer is kept" in line for line in messages)
    status = round_status(small.round.path)
    assert (status.by_item["item-000"], status.by_item["item-002"], status.skipped) == (1, 1, 0)
    assert small.values()["item-002", "quality"] == 4


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


def wait_for_search() -> None:
    client = connect()
    end = time.monotonic() + 60
    while client.ask_search_engine("/api/v1/status") is None:
        assert time.monotonic() < end
        time.sleep(0.3)
