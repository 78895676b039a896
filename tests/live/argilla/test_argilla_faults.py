"""Faults of a real server (interruptions, a dead or empty search index, other users), erasure; a release."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import time
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from h2htalk.data.erasure.folder_kinds import ErasedIds, erase
from h2htalk.errors import RoundError
from h2htalk.rounds.argilla.client import ServerClient, connect
from h2htalk.rounds.argilla.platform import ArgillaPlatform
from h2htalk.rounds.lifecycle import close_round, open_round, round_status
from h2htalk.rounds.outcome import read_outcome
from h2htalk.rounds.round_folder import read_state
from support.byte_search import files_with
from support.kills import KILLED, killed_in
from support.live.argilla_server import (
    ASKED,
    SAYS,
    Opened,
    SimulatedAnnotator,
    Stack,
    found_dataset,
    small_spec,
    valued,
)
from support.live.real_servers import made_items, write_items

pytestmark = [pytest.mark.live, pytest.mark.timeout(600)]


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
    account = {
        "username": "passer-by",
        "first_name": "p",
        "password": "12345678",
        "role": "annotator",
    }
    _, stranger = client.call("POST", "/api/v1/users", account)
    place = next(
        one for one in client.get("/api/v1/me/workspaces")["items"] if one["name"] == "crowded-en"
    )
    client.call("POST", f"/api/v1/workspaces/{place['id']}/users", {"user_id": stranger["id"]})
    passing = SimulatedAnnotator("passer-by", 1.0, stack.url, stranger["api_key"])
    passing.submit(records["item-004"], SAYS)
    status = round_status(small.round.path)
    (message,) = status.notes
    assert "by 'passer-by', who is not an annotator of this round" in message
    assert (status.mistakes, status.by_item["item-004"]) == ((), 0)
    # The server counts it: of the two annotators that the round needs, it requests one more.
    offered = ArgillaPlatform().collect(read_state(small.round)).offered
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
    said = {
        "perception": 2,
        "violation": "yes",
        "violations": ["privacy", "boundary"],
        "comment": "名字太多",
    }
    one.submit(small.records(one)["item-000"], said)
    status = round_status(small.round.path)
    assert (status.completed, status.mistakes) == (1, ())
    kept = {question: value for (_, question), value in small.values().items()}
    assert kept == said | {"violations": ("boundary", "privacy")}
    client = connect()
    dataset = found_dataset(client, "safe-en", "safe-set1-en-01")
    (record,) = client.get(
        f"/api/v1/datasets/{dataset['id']}/records", limit=9, include="suggestions"
    )["items"]
    assert [(one["value"], one["agent"]) for one in record["suggestions"]] == [("no", "reviewer")]


@pytest.mark.parametrize("at", [6, 8, 13, 16, 21, 23, 26, 30, 31, 34, 37, 43, 50])
def test_opening_killed_at_any_request_can_be_repeated(stack: Stack, base: Path, at: int) -> None:
    name = f"killed-{at}"
    spec = small_spec(base, name)
    out = base / name
    send = ServerClient._send
    left = iter(range(1, at))

    def counted(self: ServerClient, *arguments: Any, **options: Any) -> httpx.Response:
        reply = send(self, *arguments, **options)
        if next(left, None) is None:
            os._exit(KILLED)  # the server has processed the request, but its reply is lost
        return reply

    def opening() -> None:
        ServerClient._send = counted  # type: ignore[method-assign]
        open_round(spec, out)

    assert killed_in(opening)
    open_round(spec, out)
    client = connect()
    for language in ("en", "zh"):
        dataset = found_dataset(client, f"{name}-{language}", f"{name}-set1-{language}-01")
        listed = client.get(
            f"/api/v1/datasets/{dataset['id']}/records", limit=100, include="responses"
        )
        assert (dataset["status"], listed["total"]) == ("ready", 3)
        assert client.get(f"/api/v1/datasets/{dataset['id']}/progress")["total"] == 3
        # The crisis is discarded for the annotator without consent only.
        assert [len(record["responses"]) for record in listed["items"]].count(1) == 1
        questions = client.get(f"/api/v1/datasets/{dataset['id']}/questions")["items"]
        assert [one["name"] for one in questions] == [one.name for one in ASKED["crowd"]]
    assert round_status(out).notes == ()


def test_a_dead_search_engine_loses_no_annotation(stack: Stack, base: Path) -> None:
    small = Opened(base, stack, "deaf")
    one = small.annotators[0]
    records = small.records(one)
    stack.pause_search()
    try:
        response = {"status": "submitted", "values": valued(SAYS)}
        assert (
            one.http.post(
                f"/api/v1/records/{records['item-000']}/responses", json=response
            ).status_code
            == 500
        )
        noted(small, "the search engine does not answer")
        with pytest.raises(RoundError, match="the server's search engine does not answer"):
            open_round(small_spec(base, "never"), base / "never")
    finally:
        stack.search("start")
    wait_for_search()
    open_round(small_spec(base, "never"), base / "never")


def noted(small: Opened, note: str) -> None:
    """One response is stored, and the status has a note."""
    status = round_status(small.round.path)
    assert status.completed == 1
    assert any(note in line for line in status.notes)


def test_an_empty_search_index_is_noted_and_repaired(stack: Stack, base: Path) -> None:
    small = Opened(base, stack, "empty")
    one = small.annotators[0]
    records = small.records(one)
    for action in ("stop", "start"):
        stack.search(action)
    wait_for_search()
    item = {"record_id": records["item-000"], "status": "submitted", "values": valued(SAYS)}
    one.http.post("/api/v1/me/responses/bulk", json={"items": [item]})
    noted(small, "python -m argilla_server search-engine reindex")
    with pytest.raises(RoundError, match="search-engine reindex"):
        open_round(small.spec, small.round.path)
    stack.reindex()
    assert round_status(small.round.path).notes == ()
    open_round(small.spec, small.round.path)
    assert sorted(small.records(one)) == ["item-002", "item-004"]


def test_responses_while_discarding_or_restoring_stay(
    stack: Stack, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server refuses a second response of a user, and returns a response that it deletes."""
    small = Opened(base, stack, "meanwhile")
    one, _, third = small.annotators
    records = small.records(one)
    call = ServerClient.call
    waiting = ["POST", "DELETE"]

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
    assert any(
        "was answered while it was restored; the answer is kept" in line for line in messages
    )
    status = round_status(small.round.path)
    assert (status.by_item["item-000"], status.by_item["item-002"], status.skipped) == (1, 1, 0)
    assert small.values()["item-002", "quality"] == 4


def wait_for_search() -> None:
    client = connect()
    end = time.monotonic() + 60
    while client.ask_search_engine("/api/v1/status") is None:
        assert time.monotonic() < end
        time.sleep(0.3)


# --- Erasure: after compaction no byte of an item is left in database and search index

WORDS = "cinnamon porridge"


def hits(stack: Stack) -> int:
    """The number of documents of all indices that hold the words."""
    url = f"http://127.0.0.1:{stack.search_port}/_search?q=cinnamon&allow_no_indices=true"
    with urllib.request.urlopen(url, timeout=60) as reply:
        found = json.load(reply)
    return sum("cinnamon" in json.dumps(hit) for hit in found["hits"]["hits"])


def test_no_byte_is_left_on_the_server(stack: Stack, tmp_path: Path) -> None:
    items = made_items(6, "crowd", crises=3)
    items[0]["prompt"] = [{"role": "user", "content": f"I burnt the {WORDS}. (0)"}]
    source = write_items(tmp_path / "source.jsonl", items)
    small = Opened(tmp_path, stack, "erased", items=str(source))
    one, other, _ = small.annotators
    records = small.records(one)
    for annotator in (one, other):
        for name in ("item-000", "item-002"):
            annotator.submit(records[name], SAYS)
    assert round_status(small.round.path).by_item["item-000"] == 2
    before = files_with(stack.home, WORDS)
    assert stack.database.name in before
    result = erase(small.round.path, ErasedIds(frozenset({"item-000"})))
    assert (result.removed, result.unfinished) == (1, False)
    assert f"{source}: the round was opened from it" in result.messages[0]
    source.unlink()
    assert files_with(tmp_path, WORDS) == []
    # As the message asks the server's operator to do.
    with sqlite3.connect(stack.database, timeout=60) as database:
        database.execute("VACUUM")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    stack.reindex()  # a merge of segments keeps deleted documents for a while (soft deletes)
    assert (files_with(stack.home, WORDS), hits(stack)) == ([], 0)
    # The other answers still count; annotators see the rest, and nothing is published again.
    status = round_status(small.round.path)
    assert (status.by_item["item-002"], status.items, status.mistakes, status.notes) == (
        2,
        5,
        (),
        (),
    )
    assert "item-000" not in small.records(one)
    write_items(source, items[1:])
    open_round(small.spec, small.round.path)
    assert files_with(stack.home, WORDS) == []
    close_round(small.round.path, force=True)
    assert {item for item, _, _ in read_outcome(small.round.path).annotations} == {"item-002"}
